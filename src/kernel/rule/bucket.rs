//! Token bucket and GCRA (R12 to R18): two readings of one number.
//!
//! The state is a time `at`: GCRA's theoretical arrival time, or for a bucket the moment it is full again.
//! A bucket of capacity B that fills one token each T has B - max(0, at - now)/T tokens, and taking c moves
//! `at` to max(now, at) + c·T. "tokens >= c" is then "max(now, at) + c·T - now <= tau" with tau = B·T.
//! Refill costs nothing, so polling loses no fraction (R14), and a refusal has nothing to write (R5).
//!
//! # Giving back
//!
//! A call that was never sent is taken back, but it must never leave more than if it had not been made:
//! what it took may have been refilled meanwhile, and handing it out again would exceed the limit.
//! Let the *position* of a live charge be p = `at` less all that live later charges took, or anything lower.
//! Giving back r = clamp(p - now, 0, c·T) is safe. Without the call, `at` would be the largest of
//! t_j + (costs of the live calls from j on, times T) over the live calls j made at t_j, or before now:
//!  - for a call j before this one that sum shrinks by c·T, and `at` by no more than that;
//!  - for a call j after this one the sum is at most now + (what later calls took), and r <= p - now leaves
//!    `at` at no less than that.
//!
//! How the position stays true: right after its charge it is `at` itself. A later charge raises `at` by its
//! cost or more; a refund of a later charge takes no more off `at` than off that sum. Only a refund r of an
//! *earlier* charge lowers `at` and not the sum, so positions must go down by r. The state therefore keeps
//! `back`, the sum of refunds given to charges that were not the latest, and a charge is remembered as
//! `at + back`: its position is that, less today's `back`. (Refunding the latest charge, p = `at`, concerns no
//! later one.) Charges older than the refunded one are lowered too although they need not be: undoing calls
//! first to last or last to first is exact, other orders may give back less, none gives back more.

use super::{Charge, Count, When};
use crate::kernel::span::{MAX_SPAN, Span};
use crate::kernel::state::RuleState;
use crate::kernel::terms::Terms;
use crate::kernel::time::Time;

/// The arithmetic that token bucket and GCRA share.
#[derive(Clone, Copy, Debug)]
pub struct Bucket;

/// `at` and `back` out of the state's words.
#[derive(Clone, Copy)]
struct Words {
    at: Span,
    back: Span,
}

impl Words {
    #[inline]
    const fn read(state: RuleState) -> Words {
        let [whole, frac, back_whole, back_frac] = state.0;
        Words { at: Span { whole, frac }, back: Span { whole: back_whole, frac: back_frac } }
    }

    #[inline]
    const fn write(self) -> RuleState {
        RuleState([self.at.whole, self.at.frac, self.back.whole, self.back.frac])
    }

    /// How far `at` is ahead of now. A bucket that is full again counts as just full.
    #[inline]
    const fn debt(self, now: Time) -> Span {
        match self.at.whole.checked_sub(now.0) {
            Some(whole) => Span { whole, frac: self.at.frac },
            None => Span::ZERO,
        }
    }
}

/// `back` only grows and is only ever compared with itself, so it may go round.
#[inline]
const fn wrapping_plus(a: Span, b: Span, den: u64) -> Span {
    let frac = a.frac.wrapping_add(b.frac);
    let carry = frac >= den;
    Span {
        whole: a.whole.wrapping_add(b.whole).wrapping_add(carry as u64),
        frac: if carry { frac.wrapping_sub(den) } else { frac },
    }
}

#[inline]
const fn wrapping_minus(a: Span, b: Span, den: u64) -> Span {
    let borrow = a.frac < b.frac;
    Span {
        whole: a.whole.wrapping_sub(b.whole).wrapping_sub(borrow as u64),
        frac: a.frac.wrapping_sub(b.frac).wrapping_add(if borrow { den } else { 0 }),
    }
}

impl Count for Bucket {
    #[inline(always)]
    fn earliest(terms: &Terms, state: RuleState, now: Time, cost: u64, leave_reserve: bool) -> When {
        let den = terms.den();
        let mut need = terms.step().times(cost, den);
        if leave_reserve {
            need = need.plus(terms.reserve(), den);
        }
        let tau = terms.tau();
        if need > tau {
            return When::Never;
        }
        let ahead = Words::read(state).debt(now).plus(need, den);
        if ahead <= tau {
            return When::Now;
        }
        When::At(Time(now.0.saturating_add(ahead.minus(tau, den).ceil())))
    }

    // The same decision with the sum that is stored anyway: max(now, at) + c·T + reserve <= now + tau.
    #[inline(always)]
    fn admit(
        terms: &Terms,
        state: RuleState,
        now: Time,
        cost: u64,
        leave_reserve: bool,
    ) -> Result<(RuleState, Charge), When> {
        let den = terms.den();
        let Words { at, back } = Words::read(state);
        let from = if at.whole >= now.0 { at } else { Span::whole(now.0) };
        let at = from.plus(terms.step().times(cost, den), den);
        let end = if leave_reserve { at.plus(terms.reserve(), den) } else { at };
        let tau = terms.tau();
        if end > (Span { whole: now.0.saturating_add(tau.whole), frac: tau.frac }) {
            return Err(Self::earliest(terms, state, now, cost, leave_reserve));
        }
        let mark = wrapping_plus(at, back, den);
        Ok((Words { at, back }.write(), Charge { whole: mark.whole, frac: mark.frac }))
    }

    fn charge(terms: &Terms, state: RuleState, now: Time, cost: u64) -> (RuleState, Charge) {
        let den = terms.den();
        let Words { at, back } = Words::read(state);
        let from = if at.whole >= now.0 { at } else { Span::whole(now.0) };
        let at = from.plus(terms.step().times(cost, den), den);
        // Only a settlement can be as large as this; admitted costs stay within tau.
        let at = if at.whole > now.0.saturating_add(MAX_SPAN) {
            Span::whole(now.0.saturating_add(MAX_SPAN))
        } else {
            at
        };
        let mark = wrapping_plus(at, back, den);
        (Words { at, back }.write(), Charge { whole: mark.whole, frac: mark.frac })
    }

    fn refund(terms: &Terms, state: RuleState, now: Time, cost: u64, charge: Charge) -> RuleState {
        let den = terms.den();
        let Words { at, back } = Words::read(state);
        if charge.frac >= den || back.frac >= den || at.frac >= den {
            return state;
        }
        let mark = Span { whole: charge.whole, frac: charge.frac };
        let position = wrapping_minus(mark, back, den);
        // Beyond `at` is no position of this state: it went round, or the words are damaged.
        if position.whole < now.0 || position > at {
            return state;
        }
        let refund = position.minus(Span::whole(now.0), den).min(terms.step().times(cost, den));
        let back = if position == at { back } else { wrapping_plus(back, refund, den) };
        Words { at: at.minus(refund, den), back }.write()
    }

    #[inline]
    fn available(terms: &Terms, state: RuleState, now: Time, leave_reserve: bool) -> u64 {
        let den = terms.den();
        let mut taken = Words::read(state).debt(now);
        if leave_reserve {
            taken = taken.plus(terms.reserve(), den);
        }
        terms.tau().minus(taken, den).count(terms.step(), den)
    }

    fn sane(terms: &Terms, state: RuleState, latest: Time) -> bool {
        let Words { at, back } = Words::read(state);
        at.frac < terms.den() && back.frac < terms.den() && at.whole <= latest.0.saturating_add(MAX_SPAN)
    }

    fn empty(terms: &Terms, now: Time) -> RuleState {
        Words { at: Span::whole(now.0).plus(terms.tau(), terms.den()), back: Span::ZERO }.write()
    }

    fn rescale(old: &Terms, new: &Terms, state: RuleState, now: Time) -> RuleState {
        if (old.step(), old.den(), old.tau()) == (new.step(), new.den(), new.tau()) {
            return state;
        }
        let words = Words::read(state);
        let debt = words.debt(now);
        let den = new.den();
        let debt = if debt <= old.tau() {
            // What is to be had, rounded down in the new terms, and never more than fits.
            let kept = convert(old.tau().minus(debt, old.den()), old, new, false);
            new.tau().minus(kept, den)
        } else {
            let owed = convert(debt.minus(old.tau(), old.den()), old, new, true);
            new.tau().plus(owed, den)
        };
        let debt = if debt.whole >= MAX_SPAN { Span::whole(MAX_SPAN) } else { debt };
        Words { at: Span::whole(now.0).plus(debt, den), back: Span::ZERO }.write()
    }

    fn forget(before: RuleState, after: RuleState, now: Time) -> RuleState {
        // No mark exceeds `at + back` of its time; 2 more cover the fractions of both.
        let Words { at, back } = Words::read(before);
        let highest_mark = at.whole.max(now.0).wrapping_add(back.whole).wrapping_add(2);
        let back = Span::whole(highest_mark.wrapping_sub(now.0).wrapping_add(1));
        Words { back, ..Words::read(after) }.write()
    }
}

/// The same number of units as time under new terms: `span / T_old * T_new`.
///
/// Whole units are exact; the rest is rounded to 1/den ns. Divided in two so that nothing exceeds 128 bits:
/// the rest is below the old step's parts, and both steps have less than 2^62 of them.
fn convert(span: Span, old: &Terms, new: &Terms, up: bool) -> Span {
    let step_old = old.step().parts(old.den()).max(1);
    let parts = span.parts(old.den());
    let units = u64::try_from(parts / step_old).unwrap_or(u64::MAX);
    let whole_units = new.step().times(units, new.den());
    let Some(rest) = (parts % step_old).checked_mul(new.step().parts(new.den())) else {
        return if up { Span::MAX } else { whole_units };
    };
    let rest = if up { rest.div_ceil(step_old) } else { rest / step_old };
    whole_units.plus(Span::from_parts(rest, 1, new.den()), new.den())
}
