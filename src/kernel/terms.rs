//! A rule as its decisions need it: one cache line of derived numbers.

use bytemuck::{Pod, Zeroable};

use super::MAX_UNITS;
use super::policy::{Algorithm, Rule};
use super::span::{MAX_SPAN, Span};

/// How many words [`Terms`] takes.
pub const TERMS_WORDS: usize = 8;

/// What decisions about one rule run on, derived from its [`Rule`] when a policy is encoded.
///
/// Words that come from a damaged segment decide something useless, but never panic; [`Terms::check`] tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Terms {
    /// Algorithm code in the low byte, unit index in the next, tick in the third.
    head: u64,
    step_whole: u64,
    step_frac: u64,
    den: u64,
    tau_whole: u64,
    tau_frac: u64,
    room_whole: u64,
    room_frac: u64,
}

impl Terms {
    /// Derives the terms of a valid rule.
    pub fn of(rule: &Rule) -> Terms {
        let shared = gcd(rule.period.0, rule.limit);
        let den = rule.limit / shared;
        let parts = u128::from(rule.period.0 / shared);
        let step = Span::from_parts(parts, 1, den);
        let tau = match rule.tau {
            Some(tau) => Span::whole(tau.0),
            None => Span::from_parts(parts, u128::from(rule.burst), den),
        };
        let room = tau.minus(Span::from_parts(parts, u128::from(rule.reserve), den), den);
        let bits = u128::BITS - tau.parts(den).saturating_mul(8).leading_zeros();
        let tick = bits.saturating_sub(u64::BITS);
        Terms {
            head: rule.algorithm as u64 | u64::from(rule.unit) << 8 | u64::from(tick) << 16,
            step_whole: step.whole,
            step_frac: step.frac,
            den,
            tau_whole: tau.whole,
            tau_frac: tau.frac,
            room_whole: room.whole,
            room_frac: room.frac,
        }
    }

    /// From the words of an encoded policy.
    #[inline]
    pub fn from_words(words: [u64; TERMS_WORDS]) -> Terms {
        bytemuck::cast(words)
    }

    /// The words for an encoded policy.
    #[inline]
    pub fn to_words(self) -> [u64; TERMS_WORDS] {
        bytemuck::cast(self)
    }

    /// The algorithm's code, see [`Algorithm`].
    #[inline]
    pub const fn kind(&self) -> u8 {
        self.head as u8
    }

    /// Index of the unit this rule counts; always a valid index.
    #[inline]
    pub const fn unit(&self) -> usize {
        (self.head >> 8) as u8 as usize % MAX_UNITS
    }

    /// Binary logarithm of how many `1/den` ns are told apart when a charge is taken back; see `rule/bucket.rs`.
    #[inline]
    pub const fn tick(&self) -> u32 {
        (self.head >> 16) as u32 % u64::BITS
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

    /// How far ahead of now the state may run: the capacity as time.
    #[inline]
    pub const fn tau(&self) -> Span {
        Span { whole: self.tau_whole, frac: self.tau_frac }
    }

    /// How far ahead of now a caller may run the state: all of tau, or what is left of it without the reserve (R107).
    #[inline]
    pub const fn room(&self, leave_reserve: bool) -> Span {
        if leave_reserve { Span { whole: self.room_whole, frac: self.room_frac } } else { self.tau() }
    }

    /// Whether words read from a segment are within the ranges a valid policy gives.
    pub fn check(&self) -> bool {
        let in_range = |span: Span| span.frac < self.den && span.whole < MAX_SPAN;
        self.head >> 16 < u64::from(u64::BITS)
            && self.head >> 8 & 0xff < MAX_UNITS as u64
            && Algorithm::from_code(self.kind()).is_some()
            && self.den >= 1
            && self.den < MAX_SPAN
            && self.step() > Span::ZERO
            && in_range(self.step())
            && in_range(self.tau())
            && in_range(self.room(true))
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
