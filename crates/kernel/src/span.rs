//! Durations with exact fractions of a nanosecond (R1).
//!
//! A rule of `limit` per `period` grants one unit per T = period/limit, which is rarely a whole number of
//! nanoseconds. All times of one rule are multiples of 1/den ns with the same `den`: the limit divided by its
//! greatest common divisor with the period. So a sum needs a carry but never a division, and nothing drifts.

use bytemuck::{Pod, Zeroable};
use std::cmp::Ordering;

/// Upper bound of all configured durations (146 years), so that a time plus a duration fits in a word.
pub const MAX_SPAN: u64 = 1 << 62;

/// `whole + frac/den` nanoseconds. `den` belongs to the rule.
///
/// The order is the order of the values as long as `frac < den`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    /// Whole nanoseconds.
    pub whole: u64,
    /// Numerator of the fraction.
    pub frac: u64,
}

impl Ord for Span {
    #[inline(always)]
    fn cmp(&self, other: &Span) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Span {
    #[inline(always)]
    fn partial_cmp(&self, other: &Span) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // Written out because the compiler does not find it: one subtraction with a borrow instead of two
    // comparisons.
    #[inline(always)]
    fn lt(&self, other: &Span) -> bool {
        self.key() < other.key()
    }

    #[inline(always)]
    fn gt(&self, other: &Span) -> bool {
        self.key() > other.key()
    }
}

impl Span {
    /// A number with the same order.
    #[inline(always)]
    const fn key(self) -> u128 {
        (self.whole as u128) << 64 | self.frac as u128
    }

    /// The empty span.
    pub const ZERO: Span = Span { whole: 0, frac: 0 };
    /// Longer than any span that a rule allows.
    pub const MAX: Span = Span { whole: u64::MAX, frac: 0 };

    /// A span of whole nanoseconds.
    #[inline]
    pub const fn whole(whole: u64) -> Span {
        Span { whole, frac: 0 }
    }

    /// The sum. Saturates.
    #[inline(always)]
    pub const fn plus(self, other: Span, den: u64) -> Span {
        let frac = self.frac.wrapping_add(other.frac);
        let carry = frac >= den;
        Span {
            whole: self.whole.saturating_add(other.whole).saturating_add(carry as u64),
            frac: if carry { frac.wrapping_sub(den) } else { frac },
        }
    }

    /// The difference, or zero if `other` is longer.
    #[inline(always)]
    pub const fn minus(self, other: Span, den: u64) -> Span {
        match self.checked_minus(other, den) {
            Some(difference) => difference,
            None => Span::ZERO,
        }
    }

    /// The difference, or `None` if `other` is longer.
    #[inline(always)]
    pub const fn checked_minus(self, other: Span, den: u64) -> Option<Span> {
        let borrow = self.frac < other.frac;
        if self.whole < other.whole || (self.whole == other.whole && borrow) {
            return None;
        }
        Some(Span {
            whole: self.whole.wrapping_sub(other.whole).wrapping_sub(borrow as u64),
            frac: self.frac.wrapping_sub(other.frac).wrapping_add(if borrow { den } else { 0 }),
        })
    }

    /// The product with `count`. Saturates to [`Span::MAX`].
    #[inline(always)]
    pub fn times(self, count: u64, den: u64) -> Span {
        if count == 1 {
            return self;
        }
        self.times_many(count, den)
    }

    // A separate function, so that the usual cost of 1 takes only a few instructions.
    #[inline(never)]
    fn times_many(self, count: u64, den: u64) -> Span {
        let Some(whole) = self.whole.checked_mul(count) else {
            return Span::MAX;
        };
        if self.frac == 0 {
            return Span { whole, frac: 0 };
        }
        match self.frac.checked_mul(count) {
            Some(parts) if den != 0 => Span { whole: whole.saturating_add(parts / den), frac: parts % den },
            _ => Span::from_parts(self.parts(den), u128::from(count), den),
        }
    }

    /// This span as a number of `1/den` ns.
    #[inline]
    pub const fn parts(self, den: u64) -> u128 {
        // u64::MAX² + u64::MAX still fits.
        self.whole as u128 * den as u128 + self.frac as u128
    }

    /// `parts * count` times `1/den` ns. Saturates to [`Span::MAX`].
    pub fn from_parts(parts: u128, count: u128, den: u64) -> Span {
        let den = den.max(1);
        let all = parts.checked_mul(count);
        // A division of one word is several times as fast.
        if let Some(all) = all.and_then(|all| u64::try_from(all).ok()) {
            return Span { whole: all / den, frac: all % den };
        }
        let den = u128::from(den);
        match all {
            Some(all) => match u64::try_from(all / den) {
                Ok(whole) => Span { whole, frac: (all % den) as u64 },
                Err(_) => Span::MAX,
            },
            None => Span::MAX,
        }
    }

    /// This span rounded up to whole nanoseconds (R4).
    #[inline(always)]
    pub const fn ceil(self) -> u64 {
        self.whole.saturating_add((self.frac > 0) as u64)
    }

    /// The number of times that `step` fits into this span, rounded down (R7, R18).
    #[inline]
    pub fn count(self, step: Span, den: u64) -> u64 {
        if self.frac == 0 && step.frac == 0 {
            return self.whole.checked_div(step.whole).unwrap_or(u64::MAX);
        }
        self.parts(den).checked_div(step.parts(den)).and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX)
    }
}
