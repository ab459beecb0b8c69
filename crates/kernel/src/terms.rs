//! A rule as its decisions need it: one cache line of derived numbers.

use bytemuck::{Pod, Zeroable};

use super::policy::{Algorithm, AlgorithmKind, BurstMode, FirstRule, PerSecond, Policy, Rule};
use super::span::{MAX_SPAN, Span};
use super::time::Nanos;
use super::{MAX_LOG, MAX_UNITS};

/// How many words [`Terms`] takes.
pub const TERMS_WORDS: usize = 8;

/// What decisions about one rule run on, derived from its [`Rule`], and from the breaker if that drives it.
///
/// Words that come from a damaged segment decide something useless, but never panic; [`Terms::check`] tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Terms {
    /// Kind in the low byte, unit index in the next, tick in the third. In the upper 40 bits the place of its log, or of a
    /// bucket that a breaker reduced, see [`Terms::overdraft`].
    head: u64,
    step_whole: u64,
    step_frac: u64,
    den: u64,
    /// Buckets: tau. Others: the limit (passes, of the older burst mode) and the period.
    capacity: [u64; 2],
    /// Buckets: tau without the reserve. Others: the limit without the reserve, and for which limit a log has room.
    room: [u64; 2],
}

/// What [`Terms::overdraft`] has room for.
const MAX_OVERDRAFT: u64 = (1 << 40) - 1;
/// All codes up to this are of [`AlgorithmKind::Bucket`].
const LAST_BUCKET: u8 = Algorithm::LeakyBucket as u8;

impl Terms {
    /// Derives the terms of all rules of a policy, each as it was configured.
    pub fn all(policy: &Policy) -> impl Iterator<Item = Terms> + '_ {
        let mut log_at = 0;
        policy.rules().iter().map(move |rule| {
            let reserve = if policy.queueing().priorities { rule.reserve } else { 0 };
            let terms = Terms::of(rule, reserve, log_at);
            log_at += terms.log_words();
            terms
        })
    }

    fn of(rule: &Rule, reserve: u64, log_at: usize) -> Terms {
        let period = Nanos::of(rule.period).0;
        let shared = gcd(period, rule.limit);
        let (parts, den) = (u128::from(period / shared), rule.limit / shared);
        if rule.algorithm.has_burst() && rule.burst_mode == BurstMode::GcraTau {
            let tau = rule.tau.map(|tau| Span::whole(Nanos::of(tau).0));
            return Terms::bucket(rule.algorithm, rule.unit, (parts, den), (rule.burst, tau), reserve, 0);
        }
        let passes = rule.burst_mode == BurstMode::FixedWindow;
        let (code, most) = if passes {
            (AlgorithmKind::GCRA_WINDOW, rule.burst)
        } else {
            (rule.algorithm as u8, rule.limit)
        };
        let log_at = if rule.algorithm == Algorithm::SlidingLog { log_at as u64 } else { 0 };
        let step = Span::from_parts(parts, 1, den);
        Terms {
            head: u64::from(code) | u64::from(rule.unit) << 8 | log_at << 24,
            step_whole: step.whole,
            step_frac: step.frac,
            den,
            capacity: [most, period],
            room: [most.saturating_sub(reserve), rule.log_room],
        }
    }

    /// The first rule, a bucket, as it was configured. Its fractions are not reduced more than decimals are, so that
    /// tokens can be carried over exactly between this rate and those of a breaker.
    pub fn configured(first: &FirstRule) -> Terms {
        let shared = tens(first.period.0, first.limit);
        let step = (u128::from(first.period.0 / shared), first.limit / shared);
        Terms::bucket(first.algorithm, first.unit, step, (first.burst, None), first.reserve, 0)
    }

    /// The first rule while a breaker drives it: another rate, and another capacity (R54). A reserve is reduced as the
    /// capacity is, rounded down, and leaves the background at least one unit.
    pub fn effective(first: &FirstRule, rate: PerSecond, burst: u64) -> Terms {
        // T = 10^18 / rate, because a rate is in billionths a second.
        const SECOND: u64 = 1_000_000_000_000_000_000;
        let rate = rate.0.clamp(1, PerSecond::FASTEST.0);
        let shared = tens(SECOND, rate);
        let step = (u128::from(SECOND / shared), rate / shared);
        let (reserve, overdraft) = if burst < first.burst {
            let scaled = u128::from(first.reserve) * u128::from(burst) / u128::from(first.burst);
            let reserve = u64::try_from(scaled).unwrap_or(u64::MAX).min(burst.saturating_sub(1));
            (reserve, first.burst.div_ceil(burst.max(1)).min(MAX_OVERDRAFT))
        } else {
            (first.reserve.min(burst), 0)
        };
        Terms::bucket(first.algorithm, first.unit, step, (burst, None), reserve, overdraft)
    }

    /// A bucket of `burst` units, each of which takes `parts` times `1/den` ns.
    fn bucket(
        algorithm: Algorithm,
        unit: u8,
        (parts, den): (u128, u64),
        (burst, tau): (u64, Option<Span>),
        reserve: u64,
        overdraft: u64,
    ) -> Terms {
        let longest = Span::whole(MAX_SPAN - 1);
        let step = Span::from_parts(parts, 1, den);
        let tau = tau.unwrap_or_else(|| Span::from_parts(parts, u128::from(burst), den)).min(longest);
        let room = tau.minus(Span::from_parts(parts, u128::from(reserve), den), den);
        let reach = tau.parts(den).saturating_mul(u128::from(overdraft.max(1)));
        let bits = u128::BITS - reach.saturating_mul(8).leading_zeros();
        let tick = bits.saturating_sub(u64::BITS);
        Terms {
            head: algorithm as u64 | u64::from(unit) << 8 | u64::from(tick) << 16 | overdraft << 24,
            step_whole: step.whole,
            step_frac: step.frac,
            den,
            capacity: [tau.whole, tau.frac],
            room: [room.whole, room.frac],
        }
    }

    /// From stored words. What one unit costs is stored inverted: if that word is lost, a unit costs more than there is.
    #[inline]
    pub fn from_words(words: [u64; TERMS_WORDS]) -> Terms {
        let stored: Terms = bytemuck::cast(words);
        Terms { step_whole: !stored.step_whole, ..stored }
    }

    /// The words to store.
    #[inline]
    pub fn to_words(self) -> [u64; TERMS_WORDS] {
        bytemuck::cast(Terms { step_whole: !self.step_whole, ..self })
    }

    /// How the numbers are to be read; nothing if the words are damaged.
    #[inline(always)]
    pub const fn kind(&self) -> Option<AlgorithmKind> {
        match AlgorithmKind::from_code(self.head as u8) {
            // Without the room it has nobody knows where its runs are.
            Some(AlgorithmKind::Log) if self.room[1] == 0 => None,
            kind => kind,
        }
    }

    /// Whether it is a bucket of any kind.
    #[inline(always)]
    pub const fn is_bucket(&self) -> bool {
        (self.head as u8).wrapping_sub(Algorithm::TokenBucket as u8) < LAST_BUCKET
    }

    /// Whether it is a bucket whose grants carry no delay: token bucket or GCRA.
    #[inline(always)]
    pub const fn is_plain_bucket(&self) -> bool {
        (self.head as u8).wrapping_sub(Algorithm::TokenBucket as u8) <= 1
    }

    /// Of a bucket that was under the terms `old` before: whether its state says what was used of it (GCRA's arrival time,
    /// a leaky bucket's level) rather than what is left (a token bucket's tokens). Another capacity changes the other.
    pub const fn keeps_what_was_used(&self, old: &Terms) -> bool {
        self.head as u8 == old.head as u8 && self.head as u8 != Algorithm::TokenBucket as u8
    }

    /// Whether it is a leaky bucket, whose grants say when to let a call out (R25).
    #[inline]
    pub const fn is_leaky(&self) -> bool {
        self.head as u8 == Algorithm::LeakyBucket as u8
    }

    /// Index of the unit this rule counts; always a valid index.
    #[inline]
    pub const fn unit(&self) -> usize {
        (self.head >> 8) as u8 as usize % MAX_UNITS
    }

    /// Binary logarithm of how many `1/den` ns are told apart when a charge is taken back; see `rule/bucket.rs`.
    #[inline]
    pub const fn tick(&self) -> u32 {
        (self.head >> 16) as u8 as u32 % u64::BITS
    }

    /// T: the time one unit costs.
    #[inline]
    pub const fn step(&self) -> Span {
        Span { whole: self.step_whole, frac: self.step_frac }
    }

    /// Denominator of all fractions of this rule.
    #[inline]
    pub const fn den(&self) -> u64 {
        self.den
    }

    /// Of a bucket: how far ahead of now the state may run, the capacity as time.
    #[inline]
    pub const fn tau(&self) -> Span {
        Span { whole: self.capacity[0], frac: self.capacity[1] }
    }

    /// Of a bucket: how far ahead of now a caller may run the state: all of tau, or what is left of it without the
    /// reserve (R107).
    #[inline]
    pub const fn room(&self, leave_reserve: bool) -> Span {
        if leave_reserve { Span { whole: self.room[0], frac: self.room[1] } } else { self.tau() }
    }

    /// Of a bucket whose capacity a breaker reduced: how many times that capacity the configured one is, rounded up; 0 for
    /// all others. A cost between the two is admitted when the bucket is full, and drives it below zero (R6).
    #[inline]
    pub const fn overdraft(&self) -> u64 {
        if self.is_bucket() { self.head >> 24 } else { 0 }
    }

    /// Of all others: how much a window holds, or what is left of it without the reserve.
    #[inline]
    pub const fn limit(&self, leave_reserve: bool) -> u64 {
        if leave_reserve { self.room[0] } else { self.capacity[0] }
    }

    /// Of all others: the length of the window; never nothing. A length that was lost is one that does not end.
    #[inline]
    pub const fn period(&self) -> Nanos {
        Nanos(if self.capacity[1] == 0 { u64::MAX } else { self.capacity[1] })
    }

    /// Of a log: its first word among those of all logs.
    #[inline]
    pub const fn log_at(&self) -> usize {
        (self.head >> 24) as usize
    }

    /// Of a log: how many entries it has room for; nothing for all others.
    #[inline]
    pub const fn log_capacity(&self) -> usize {
        if self.head as u8 != Algorithm::SlidingLog as u8 {
            return 0;
        }
        // Each entry counts at least one unit, but what was cancelled leaves an empty one until it is too old.
        let most = if self.room[1] > MAX_LOG { MAX_LOG } else { self.room[1] };
        (most + if most / 4 > 64 { most / 4 } else { 64 }) as usize
    }

    /// How many words its log takes.
    #[inline]
    pub const fn log_words(&self) -> usize {
        2 * self.log_capacity()
    }

    /// Whether words read from a segment are within the ranges a valid policy gives.
    pub fn check(&self) -> bool {
        let in_range = |span: Span| span.frac < self.den && span.whole < MAX_SPAN;
        let numbers = match self.kind() {
            Some(AlgorithmKind::Bucket) => {
                let tick = self.head >> 16 & 0xff;
                tick < u64::from(u64::BITS) && in_range(self.tau()) && in_range(self.room(true))
            }
            Some(kind) => {
                let fits = match kind {
                    AlgorithmKind::Log => self.capacity[0] <= self.room[1] && self.room[1] <= MAX_LOG,
                    _ => self.room[1] == 0,
                };
                fits && self.capacity[0] >= 1 && self.room[0] <= self.capacity[0] && self.capacity[1] >= 1
            }
            None => false,
        };
        numbers
            && self.head >> 8 & 0xff < MAX_UNITS as u64
            && self.den >= 1
            && self.den <= PerSecond::FASTEST.0
            && self.step() > Span::ZERO
            && in_range(self.step())
    }
}

/// The largest power of ten that divides both.
const fn tens(a: u64, b: u64) -> u64 {
    let mut shared = 1;
    while a.is_multiple_of(shared * 10) && b.is_multiple_of(shared * 10) && shared < 1_000_000_000_000_000_000
    {
        shared *= 10;
    }
    shared
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
