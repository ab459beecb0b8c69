//! Token bucket, GCRA and leaky bucket (R12 to R18, R23 to R27): three readings of one number.
//!
//! The state is a time `at`: GCRA's theoretical arrival time, or for a bucket the moment it is full again, or has leaked
//! empty: a level L that leaks one unit each T is L·T of time ahead, and "L + c <= B" is the same test.
//! A bucket of capacity B that fills one token each T has B - max(0, at - now)/T tokens, and taking c moves
//! `at` to max(now, at) + c·T. "tokens >= c" is then "max(now, at) + c·T - now <= tau" with tau = B·T.
//! Refill costs nothing, so polling loses no fraction (R14), and a refusal has nothing to write (R5).
//!
//! # Giving back
//!
//! A call that was never sent is taken back, but it must never leave more than if it had not been made:
//! what it took may have been refilled meanwhile, and handing it out again would exceed the limit.
//! Let the *position* of a live charge be p = `at` less all that live later charges took, or anything lower.
//! Let `last` be no earlier than the last charge. Giving back r = clamp(p - last, 0, c·T), and no more than at - now, is
//! safe. Without the call, `at` would be the largest of
//! t_j + (costs of the live calls from j on, times T) over the live calls j made at t_j, or before now:
//!  - for a call j before this one that sum shrinks by c·T, and `at` by no more than that;
//!  - for a call j after this one the sum is at most last + (what later calls took), and r <= p - last leaves
//!    `at` at no less than that.
//!
//! How the position stays true: right after its charge it is `at` itself. A later charge raises `at` by its
//! cost or more; a refund of a later charge takes no more off `at` than off that sum. Only a refund r of an
//! *earlier* charge lowers `at` and not the sum, so positions must go down by r. The state therefore keeps
//! `back`, the sum of refunds given to charges that were not the latest, and a charge is remembered as
//! `at + back`: its position is that, less today's `back`. (Refunding the latest charge, p = `at`, concerns no
//! later one.) Charges older than the refunded one are lowered too although they need not be: undoing calls
//! first to last or last to first is exact, other orders may give back less, none gives back more.
//!
//! A ticket has one word for this. Positions are only ever compared with `at`, so they are kept as a count of
//! `ticks` that may go round. A tick is 1/den ns, the finest a time of this rule can differ; only where eight
//! times tau has more ticks than a word holds, a tick is 2^k of those, and a position is rounded down. A charge
//! admitted at t ends at t + tau at the latest, so once that is past there is nothing to give back; before it,
//! `at` less the position is at most how far `at` is ahead, plus tau (an eighth of a turn), plus what `back` has
//! grown. Whenever `back` has grown by a quarter turn, all charges so far are forgotten; while settlements have
//! driven `at` more than half a turn ahead, nothing is given back. So the difference is below a whole turn, and
//! never mistaken.
//!
//! # Below zero
//!
//! A breaker may reduce the capacity (R54). A cost above what is left of it, but not above what was configured, is admitted
//! when the bucket is full, and moves `at` further ahead than tau: up to [`Terms::overdraft`] times tau. That is then how
//! long a charge may be given back, and what ticks are chosen for.

use super::algorithm::{Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When};
use crate::span::{MAX_SPAN, Span};
use crate::state::{Charge, Memory, RuleState, UNKNOWN, View};
use crate::terms::Terms;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// The arithmetic that token bucket, GCRA and leaky bucket share.
#[derive(Clone, Copy, Debug)]
pub struct Bucket;

/// Binary logarithm of a quarter of all ticks a word can count.
const QUARTER_TURN: u32 = u64::BITS - 2;

/// Half of all ticks a word can count.
const HALF_TURN: u128 = 1 << (u64::BITS - 1);

/// The state's words.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BucketState {
    at: Span,
    /// In ticks; goes round.
    back: u64,
    /// Charges made before this are not refunded any more.
    since: Time,
}

impl BucketState {
    /// How far `at` is ahead of now. A bucket that is full again counts as just full.
    #[inline]
    const fn debt(self, now: Time) -> Span {
        match self.at.whole.checked_sub(now.0) {
            Some(whole) => Span { whole, frac: self.at.frac },
            None => Span::ZERO,
        }
    }

    /// The state after taking `cost` at `now`.
    #[inline(always)]
    fn after(self, terms: &Terms, now: Time, cost: u64) -> BucketState {
        let den = terms.den();
        let from = if self.at.whole >= now.0 { self.at } else { Span::whole(now.0) };
        BucketState { at: from.plus(terms.step().times(cost, den), den), ..self }
    }

    /// What a charge that moved `at` to here is remembered as.
    #[inline(always)]
    fn mark(self, terms: &Terms) -> Charge {
        Charge(ticks(self.at, terms).wrapping_add(self.back))
    }
}

/// A time in ticks, as many of them as a word holds.
#[inline(always)]
fn ticks(time: Span, terms: &Terms) -> u64 {
    match terms.tick() {
        0 => time.whole.wrapping_mul(terms.den()).wrapping_add(time.frac),
        coarse => coarse_ticks(time, terms.den(), coarse),
    }
}

#[cold]
fn coarse_ticks(time: Span, den: u64, tick: u32) -> u64 {
    (time.parts(den) >> tick) as u64
}

impl RateAlgorithm for Bucket {
    // max(now, at) + c·T - now <= room, solved for now: at - (room - c·T) <= now.
    #[inline(always)]
    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        let (RuleContext { terms, now, .. }, Need { cost, leave_reserve }) = (at, need);
        let den = terms.den();
        let (at, room) = (BucketState::read(state).at, terms.room(leave_reserve));
        let needed = terms.step().times(cost, den);
        if room < needed {
            // A reduced capacity has room for one at least.
            let full = if cost > 1 && terms.overdraft() > 0 { full(v, at, need) } else { None };
            return full.map_or(When::Never, |full| When::at(full, *now));
        }
        // Rounded up once, at the end: the fractions together are more than -1 ns and less than 2 ns.
        let frac = at.frac.wrapping_add(needed.frac).wrapping_sub(room.frac) as i64;
        let up = u64::from(frac > 0) + u64::from(frac > den as i64);
        let ready = at.whole.saturating_add(up).saturating_sub(room.whole.wrapping_sub(needed.whole));
        When::at(Time(ready), *now)
    }

    // Taken one after the other, the sum may be more than fits at once: max(now, at) + (ahead + c)·T - room.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let (RuleContext { terms, now, .. }, Need { cost, leave_reserve }) = (at, need);
        let (den, room) = (terms.den(), terms.room(leave_reserve));
        if terms.step().times(cost, den) > room {
            // It waits until the bucket is full again after what is ahead.
            let at = BucketState::read(state).after(terms, *now, ahead).at;
            let full = if terms.overdraft() > 0 { full(v, at, need) } else { None };
            return full.map_or(When::Never, |full| When::at(full, *now));
        }
        let words = BucketState::read(state).after(terms, *now, ahead.saturating_add(cost));
        When::at(Time(words.at.minus(room, den).ceil()), *now)
    }

    // The same with the sum that is stored anyway: max(now, at) + c·T <= now + room.
    #[inline(always)]
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let (RuleContext { terms, now, rule }, cost) = (at, need.cost);
        let room = terms.room(need.leave_reserve);
        let words = BucketState::read(state).after(terms, *now, cost);
        if words.at > (Span { whole: now.0.saturating_add(room.whole), frac: room.frac }) {
            let overdraws = cost > 1 && terms.overdraft() > 0;
            return if overdraws { overdraw(v, *rule, *now, state, need) } else { None };
        }
        Some((words.write(), words.mark(terms)))
    }

    fn charge<V: View>(_: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let RuleContext { terms, now, .. } = at;
        let mut words = BucketState::read(state).after(terms, *now, cost);
        // Only a settlement can come to this; admitted costs stay within tau, or what overdraws it.
        words.at = words.at.min(Span::whole(furthest(terms, *now)));
        (words.write(), words.mark(terms))
    }

    #[inline]
    fn available<V: View>(_: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        let RuleContext { terms, now, .. } = at;
        let den = terms.den();
        terms.room(leave_reserve).minus(BucketState::read(state).debt(*now), den).count(terms.step(), den)
    }

    fn sane<V: View>(_: &V, at: &RuleContext, state: RuleState) -> bool {
        let time = BucketState::read(state).at;
        time.frac < at.terms.den() && time.whole <= furthest(&at.terms, at.now)
    }

    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let RuleContext { rule, terms, now } = at;
        let (den, tau) = (terms.den(), terms.tau());
        let words = BucketState::read(m.rule(*rule));
        let debt = words.debt(*now);
        let reach = tau.whole.saturating_mul(terms.overdraft().max(1));
        let over = charged.at.0.saturating_add(reach) < now.0;
        let unclear =
            words.at.frac >= den || words.at.whole == UNKNOWN || debt.parts(den) >> terms.tick() > HALF_TURN;
        if over || unclear {
            return;
        }
        // What was charged after it.
        let later = ticks(words.at, terms).wrapping_sub(charged.charge.0.wrapping_sub(words.back));
        let latest = later == 0;
        // A rounded position may be a tick too high.
        let later = if terms.tick() == 0 { later } else { later.saturating_add(1) };
        let later = Span::from_parts(u128::from(later) << terms.tick(), 1, den);
        // From here on the later charges would have found less than this.
        let since_last = words.debt(charged.last.min(*now));
        let refund = since_last.minus(later, den).min(debt).min(terms.step().times(cost, den));
        let at = words.at.minus(refund, den);
        if latest {
            return m.set_rule(*rule, BucketState { at, ..words }.write());
        }
        let back = words.back.wrapping_add(ticks_up(refund, terms));
        let turned = back >> QUARTER_TURN != words.back >> QUARTER_TURN;
        let after = BucketState { at, back, ..words };
        let after = after.write();
        m.set_rule(*rule, if turned { after.forgetful(*now) } else { after });
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let full = Span::whole(at.now.0).plus(at.terms.tau(), at.terms.den());
        m.set_rule(at.rule, BucketState { at: full, back: 0, since: Time(0) }.write());
    }

    fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
        m.set_rule(at.rule, Bucket::rescaled(at, old, state));
    }
}

impl Bucket {
    /// `state`, from under the terms `old`, under the terms of `at`.
    pub(super) fn rescaled(at: &RuleContext, old: &Terms, state: RuleState) -> RuleState {
        let RuleContext { terms: new, now, .. } = at;
        if (old.step(), old.den(), old.tau()) == (new.step(), new.den(), new.tau()) {
            return state;
        }
        let words = BucketState::read(state);
        let debt = words.debt(*now);
        let den = new.den();
        let debt = if new.keeps_what_was_used(old) {
            convert(debt, old, new, true)
        } else if debt <= old.tau() {
            // What is to be had, rounded down in the new terms, and never more than fits.
            let kept = convert(old.tau().minus(debt, old.den()), old, new, false);
            new.tau().minus(kept, den)
        } else {
            let owed = convert(debt.minus(old.tau(), old.den()), old, new, true);
            new.tau().plus(owed, den)
        };
        let at = Span::whole(now.0).plus(debt, den).min(Span::whole(furthest(new, *now)));
        BucketState { at, ..words }.write()
    }

    /// How long it takes to leak empty, rounded up (R25).
    #[inline]
    pub(super) fn level(at: &RuleContext, state: RuleState) -> Nanos {
        Nanos(BucketState::read(state).debt(at.now).ceil())
    }
}

/// Of a reduced bucket that is full at `at`: when it admits a cost that is above its room; nothing if the cost is above
/// what is configured, too (R6). The reserve makes no difference: while the bucket is full nobody wants it.
#[cold]
#[inline(never)]
fn full<V: View>(v: &V, at: Span, need: Need) -> Option<Time> {
    let first = v.first_rule()?;
    let reserve = if need.leave_reserve { first.reserve } else { 0 };
    let fits = need.cost.saturating_add(reserve) <= first.burst;
    fits.then_some(Time(at.ceil()))
}

/// [`RateAlgorithm::admit`] for a cost that is above the room of a reduced bucket. Told which rule rather than its terms, so that
/// these need not be in memory for it.
#[cold]
#[inline(never)]
fn overdraw<V: View>(v: &V, rule: usize, now: Time, state: RuleState, need: Need) -> Option<Charging> {
    let at = RuleContext::of(v, rule, now);
    match Bucket::earliest(v, &at, state, need) {
        When::Now => Some(Bucket::charge(v, &at, state, need.cost)),
        When::At(_) | When::Never => None,
    }
}

/// How far ahead a settlement may drive `at`. Far beyond any real one, but near enough that a damaged word does not
/// refuse everybody for years.
fn furthest(terms: &Terms, now: Time) -> u64 {
    const AN_HOUR: u64 = 3_600_000_000_000;
    // What overdrew a reduced bucket is below the configured capacity, and so is what a state before it left to be paid.
    let often = terms.overdraft().saturating_mul(2).max(64);
    let ahead = terms.tau().whole.saturating_mul(often).saturating_add(AN_HOUR).min(MAX_SPAN);
    now.0.saturating_add(ahead)
}

/// A length in ticks, rounded up.
fn ticks_up(span: Span, terms: &Terms) -> u64 {
    span.parts(terms.den()).div_ceil(1 << terms.tick()) as u64
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
