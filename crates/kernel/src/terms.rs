//! The terms of a rule: one cache line of derived numbers for its decisions.

use bytemuck::{Pod, Zeroable};

use super::policy::{Algorithm, AlgorithmKind, BurstMode, FirstRule, PerSecond, Policy, Rule};
use super::span::{MAX_SPAN, Span};
use super::time::Nanos;
use super::{MAX_LOG, MAX_UNITS};

/// Number of words of [`Terms`].
pub const TERMS_WORDS: usize = 8;

/// The numbers that decisions about one rule use. They are derived from its [`Rule`], and from the breaker if
/// that controls the rule.
///
/// Words from a damaged segment give useless decisions, but never a panic. [`Terms::check`] detects them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Terms {
    /// The kind in the low byte, the unit index in the next byte, the tick in the third. The upper 40 bits hold
    /// the place of a log, or [`Terms::overdraft`] for a bucket that a breaker reduced.
    head: u64,
    step_whole: u64,
    step_frac: u64,
    den: u64,
    /// Buckets: tau. Others: the limit (the free passes, for GCRA in its older burst mode) and the period.
    capacity: [u64; 2],
    /// Buckets: tau without the reserve. Others: the limit without the reserve, and the largest limit that a
    /// log has room for.
    room: [u64; 2],
}

/// The largest value of [`Terms::overdraft`].
const MAX_OVERDRAFT: u64 = (1 << 40) - 1;
/// The largest code of [`AlgorithmKind::Bucket`].
const LAST_BUCKET: u8 = Algorithm::LeakyBucket as u8;

impl Terms {
    /// Derives the terms of all rules of a policy, each as configured.
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

    /// The configured terms of the first rule, a bucket. The fraction is reduced only by powers of ten, so that
    /// tokens can be carried over exactly between this rate and those of a breaker.
    pub fn configured(first: &FirstRule) -> Terms {
        let shared = tens(first.period.0, first.limit);
        let step = (u128::from(first.period.0 / shared), first.limit / shared);
        Terms::bucket(first.algorithm, first.unit, step, (first.burst, None), first.reserve, 0)
    }

    /// The terms of the first rule while a breaker controls it: another rate and another capacity (R54). A
    /// reserve is reduced in proportion to the capacity, rounded down, and leaves background calls at least one
    /// unit.
    pub fn effective(first: &FirstRule, rate: PerSecond, burst: u64) -> Terms {
        // T = 10^18 / rate, because a rate is in billionths per second.
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

    /// The terms of a bucket as far as a decision about one call needs them: the stored words of head, cost of a unit
    /// and denominator, and the part of the capacity that the caller may use.
    #[inline(always)]
    pub(crate) const fn of_bucket(
        head: u64,
        [step_whole, step_frac, den]: [u64; 3],
        room: [u64; 2],
    ) -> Terms {
        Terms { head, step_whole: !step_whole, step_frac, den, capacity: room, room }
    }

    /// The words of the part of a bucket's capacity that a caller may use.
    pub(crate) const fn room_at(leave_reserve: bool) -> usize {
        if leave_reserve { 6 } else { 4 }
    }

    /// The terms whose first word is `head`, for their kind and unit.
    #[inline(always)]
    pub(crate) const fn of_head(head: u64) -> Terms {
        Terms { head, step_whole: 0, step_frac: 0, den: 0, capacity: [0; 2], room: [0; 2] }
    }

    /// Decodes stored words. The cost of one unit is stored inverted: if that word is lost, a unit costs more
    /// than the capacity.
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

    /// The kind of the rule. `None` if the words are damaged.
    #[inline(always)]
    pub const fn kind(&self) -> Option<AlgorithmKind> {
        match AlgorithmKind::from_code(self.head as u8) {
            // Without its room, the positions of the log's runs are not known.
            Some(AlgorithmKind::Log) if self.room[1] == 0 => None,
            kind => kind,
        }
    }

    /// Whether the rule is a bucket of any kind.
    #[inline(always)]
    pub const fn is_bucket(&self) -> bool {
        (self.head as u8).wrapping_sub(Algorithm::TokenBucket as u8) < LAST_BUCKET
    }

    /// For a bucket that had the terms `old` before: whether its state means the used units (GCRA's arrival
    /// time, a leaky bucket's level) and not the units left (a token bucket's tokens). A change of the capacity
    /// changes the other number.
    pub const fn keeps_what_was_used(&self, old: &Terms) -> bool {
        self.head as u8 == old.head as u8 && self.head as u8 != Algorithm::TokenBucket as u8
    }

    /// Whether the rule is a leaky bucket, whose grants carry a delay (R25).
    #[inline]
    pub const fn is_leaky(&self) -> bool {
        self.head as u8 == Algorithm::LeakyBucket as u8
    }

    /// Index of the unit that the rule counts. It is always a valid index.
    #[inline]
    pub const fn unit(&self) -> usize {
        (self.head >> 8) as u8 as usize % MAX_UNITS
    }

    /// Binary logarithm of the tick, in `1/den` ns: the precision with which refunds distinguish times. See
    /// `rule/bucket.rs`.
    #[inline]
    pub const fn tick(&self) -> u32 {
        (self.head >> 16) as u8 as u32 % u64::BITS
    }

    /// T: the time that one unit costs.
    #[inline]
    pub const fn step(&self) -> Span {
        Span { whole: self.step_whole, frac: self.step_frac }
    }

    /// Denominator of all fractions of this rule.
    #[inline]
    pub const fn den(&self) -> u64 {
        self.den
    }

    /// For a bucket: the capacity as time, which is how far ahead of now the state may be.
    #[inline]
    pub const fn tau(&self) -> Span {
        Span { whole: self.capacity[0], frac: self.capacity[1] }
    }

    /// For a bucket: how far ahead of now a caller may move the state. All of tau, or tau without the reserve
    /// (R107).
    #[inline]
    pub const fn room(&self, leave_reserve: bool) -> Span {
        if leave_reserve { Span { whole: self.room[0], frac: self.room[1] } } else { self.tau() }
    }

    /// For a bucket whose capacity a breaker reduced: the configured capacity divided by the reduced one,
    /// rounded up. 0 for all others. A cost between the two capacities is admitted when the bucket is full, and
    /// moves it below zero (R6).
    #[inline]
    pub const fn overdraft(&self) -> u64 {
        if self.is_bucket() { self.head >> 24 } else { 0 }
    }

    /// For all others: the limit of a window, or the limit without the reserve.
    #[inline]
    pub const fn limit(&self, leave_reserve: bool) -> u64 {
        if leave_reserve { self.room[0] } else { self.capacity[0] }
    }

    /// For all others: the length of the window, which is never zero. If that word was lost, the window never
    /// ends.
    #[inline]
    pub const fn period(&self) -> Nanos {
        Nanos(if self.capacity[1] == 0 { u64::MAX } else { self.capacity[1] })
    }

    /// For a log: the index of its first word among the words of all logs.
    #[inline]
    pub const fn log_at(&self) -> usize {
        (self.head >> 24) as usize
    }

    /// For a log: the number of entries it has room for. 0 for all others.
    #[inline]
    pub const fn log_capacity(&self) -> usize {
        if self.head as u8 != Algorithm::SlidingLog as u8 {
            return 0;
        }
        // Each entry counts at least one unit, but a cancelled call leaves an empty entry until it is too old.
        let most = if self.room[1] > MAX_LOG { MAX_LOG } else { self.room[1] };
        (most + if most / 4 > 64 { most / 4 } else { 64 }) as usize
    }

    /// The number of words of its log.
    #[inline]
    pub const fn log_words(&self) -> usize {
        2 * self.log_capacity()
    }

    /// Whether words from a segment are within the ranges of a valid policy.
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
