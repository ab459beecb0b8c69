//! Token bucket, GCRA and leaky bucket (R12 to R18, R23 to R27): three interpretations of one number.
//!
//! The state is a time `at`. For GCRA it is the theoretical arrival time. For a token bucket it is the time at
//! which the bucket is full again. For a leaky bucket it is the time at which the bucket has leaked empty: a
//! level L that leaks one unit per T is L·T of time ahead, and "L + c <= B" is the same test. A bucket of
//! capacity B that fills one token per T has B - max(0, at - now)/T tokens, and taking c moves `at` to max(now,
//! at) + c·T. "tokens >= c" is then "max(now, at) + c·T - now <= tau" with tau = B·T. Refill costs nothing, so
//! polling loses no fraction (R14), and a refusal writes nothing (R5).
//!
//! # Refunds
//!
//! A call that was never sent is refunded. The refund must never leave more than if the call had not been made:
//! its units may have been refilled meanwhile, and granting them again would exceed the limit. Let the
//! *position* of a live charge be p = `at` minus the costs of all live later charges, or anything lower. Let
//! `last` be no earlier than the last charge. A refund of r = clamp(p - last, 0, c·T), and at most at - now, is
//! safe. Without the call, `at` would be the largest of t_j + (costs of the live calls from j on, times T) over
//! the live calls j made at t_j, or before now:
//!  - for a call j before this one that sum shrinks by c·T, and `at` by no more than that;
//!  - for a call j after this one the sum is at most last + (costs of later calls), and r <= p - last leaves `at` at
//!    no less than that.
//!
//! The position stays valid for these reasons. Right after its charge it is `at` itself. A later charge raises
//! `at` by its cost or more. A refund of a later charge lowers `at` by no more than that sum. Only a refund r
//! of an *earlier* charge lowers `at` and not the sum, so positions must be lowered by r. Therefore the state
//! keeps `back`, the sum of refunds for charges that were not the latest, and a charge is remembered as `at +
//! back`. Its position is that value minus the present `back`. (A refund of the latest charge, p = `at`,
//! affects no later charge.) Charges older than the refunded one are lowered as well, although that is not
//! necessary. Undoing calls first to last or last to first is exact. Other orders may refund less, but none
//! refunds more.
//!
//! A ticket has one word for this. Positions are only ever compared with `at`, so they are stored as a count of
//! `ticks` that may wrap around. A tick is 1/den ns, the finest difference between two times of this rule. If
//! eight times tau has more ticks than a word can hold, a tick is 2^k of those, and a position is rounded down.
//!
//! The comparison is never ambiguous, because the difference stays below a whole turn of the counter:
//!  - A charge admitted at t ends at t + tau at the latest. After that there is nothing to refund.
//!  - Before that, `at` minus the position is at most the sum of three parts: how far `at` is ahead, tau (an eighth
//!    of a turn), and the growth of `back`.
//!  - Whenever `back` has grown by a quarter turn, all charges so far are forgotten.
//!  - While settlements have moved `at` more than half a turn ahead, nothing is refunded.
//!
//! # Below zero
//!
//! A breaker may reduce the capacity (R54). A cost above the reduced capacity, but not above the configured
//! one, is admitted when the bucket is full. It moves `at` further ahead than tau: up to [`Terms::overdraft`]
//! times tau. That is then the time during which a charge may be refunded, and the size of a tick is chosen for
//! it.

use super::algorithm::{Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When};
use crate::span::{MAX_SPAN, Span};
use crate::state::{Charge, Memory, RULE_WORDS, RuleState, UNKNOWN, View};
use crate::terms::Terms;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// The arithmetic that token bucket, GCRA and leaky bucket share.
#[derive(Clone, Copy, Debug)]
pub struct Bucket;

/// Binary logarithm of a quarter of all ticks that a word can count.
const QUARTER_TURN: u32 = u64::BITS - 2;

/// Half of all ticks that a word can count.
const HALF_TURN: u128 = 1 << (u64::BITS - 1);

/// The words of the state.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct BucketState {
    at: Span,
    /// The sum of refunds in ticks. Wraps around.
    back: u64,
    /// Charges made before this time cannot be refunded any more.
    since: Time,
}

impl BucketState {
    /// How far `at` is ahead of now. If `at` has passed, the bucket is full and the debt is zero.
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

    /// The value that a ticket remembers for a charge that moved `at` here.
    #[inline(always)]
    fn mark(self, terms: &Terms) -> Charge {
        Charge(ticks(self.at, terms).wrapping_add(self.back))
    }
}

/// A time in ticks, modulo the size of a word.
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
        let at = BucketState::read(state).at;
        if let Some(ready) = ready(at, terms, terms.room(leave_reserve), cost) {
            return When::at(ready, *now);
        }
        // A reduced capacity has room for at least one unit.
        let full = if cost > 1 && terms.overdraft() > 0 { full(v, at, need) } else { None };
        full.map_or(When::Never, |full| When::at(full, *now))
    }

    // The calls are taken one after another, so their sum may exceed the room: max(now, at) + (ahead + c)·T -
    // room.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let (RuleContext { terms, now, .. }, Need { cost, leave_reserve }) = (at, need);
        let (den, room) = (terms.den(), terms.room(leave_reserve));
        if terms.step().times(cost, den) > room {
            // The call waits until the bucket is full again after the calls ahead.
            let at = BucketState::read(state).after(terms, *now, ahead).at;
            let full = if terms.overdraft() > 0 { full(v, at, need) } else { None };
            return full.map_or(When::Never, |full| When::at(full, *now));
        }
        let words = BucketState::read(state).after(terms, *now, ahead.saturating_add(cost));
        When::at(Time(words.at.minus(room, den).ceil()), *now)
    }

    // Not `charge` after `earliest`: that limits how far `at` may move, by words that may be damaged.
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let (terms, cost) = (&at.terms, need.cost);
        let words = BucketState::read(state).after(terms, at.now, cost);
        if words.at <= limit(at.now, terms.room(need.leave_reserve)) {
            return Some((words.write(), words.mark(terms)));
        }
        let overdraws = cost > 1 && terms.overdraft() > 0 && Self::earliest(v, at, state, need) == When::Now;
        overdraws.then(|| Self::charge(v, at, state, cost))
    }

    fn charge<V: View>(_: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let RuleContext { terms, now, .. } = at;
        let mut words = BucketState::read(state).after(terms, *now, cost);
        // Only a settlement can exceed this. Admitted costs stay within tau, or within the overdraft.
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
        let state = m.rule(*rule);
        let words = BucketState::read(state);
        let debt = words.debt(*now);
        let reach = tau.whole.saturating_mul(terms.overdraft().max(1));
        let over = charged.at.0.saturating_add(reach) < now.0;
        let unclear =
            words.at.frac >= den || words.at.whole == UNKNOWN || debt.parts(den) >> terms.tick() > HALF_TURN;
        if over || unclear {
            return;
        }
        // The units charged after this charge, in ticks.
        let later = ticks(words.at, terms).wrapping_sub(charged.charge.0.wrapping_sub(words.back));
        let latest = later == 0;
        let later = match terms.tick() {
            // Without a division in the usual case.
            0 if latest => Span::ZERO,
            0 => Span::from_parts(u128::from(later), 1, den),
            // A rounded position may be one tick too high.
            tick => Span::from_parts(u128::from(later.saturating_add(1)) << tick, 1, den),
        };
        // A refund beyond this point would leave more than the later charges found.
        let since_last = words.debt(charged.last.min(*now));
        let refund = since_last.minus(later, den).min(debt).min(terms.step().times(cost, den));
        let at = words.at.minus(refund, den);
        if latest {
            return m.replace_rule(*rule, state, BucketState { at, ..words }.write());
        }
        let back = words.back.wrapping_add(ticks_up(refund, terms));
        let turned = back >> QUARTER_TURN != words.back >> QUARTER_TURN;
        let after = BucketState { at, back, ..words };
        let after = after.write();
        m.replace_rule(*rule, state, if turned { after.forgetful(*now) } else { after });
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
    /// Charges a bucket whose terms begin with the word `head`, if it has room for the call.
    ///
    /// The test is that of `earliest` with the sum that is stored anyway: max(now, at) + c·T <= now + room. A cost above
    /// the room of a reduced bucket is left to the general form.
    #[inline(always)]
    pub(super) fn take_room<M: Memory>(
        m: &mut M,
        rule: usize,
        head: u64,
        now: Time,
        need: Need,
    ) -> Option<Charge> {
        let terms = terms_for(m, rule, head, need.leave_reserve);
        let state = before(m.rule_words(rule));
        let words = BucketState::read(state).after(&terms, now, need.cost);
        if words.at > limit(now, terms.tau()) {
            return None;
        }
        m.replace_rule(rule, state, words.write());
        Some(words.mark(&terms))
    }

    /// The time at which a bucket whose terms begin with the word `head` has room for the call. `None` if that is
    /// never, or if the general form must decide.
    #[inline(always)]
    pub(super) fn room_at<V: View>(v: &V, rule: usize, head: u64, need: Need) -> Option<Time> {
        let terms = terms_for(v, rule, head, need.leave_reserve);
        let [whole, frac] = v.rule_words(rule);
        ready(Span { whole, frac }, &terms, terms.tau(), need.cost)
    }

    /// Converts `state` from the terms `old` to the terms of `at`.
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
            // The available units are kept, rounded down in the new terms, and clipped to the new capacity.
            let kept = convert(old.tau().minus(debt, old.den()), old, new, false);
            new.tau().minus(kept, den)
        } else {
            let owed = convert(debt.minus(old.tau(), old.den()), old, new, true);
            new.tau().plus(owed, den)
        };
        let at = Span::whole(now.0).plus(debt, den).min(Span::whole(furthest(new, *now)));
        BucketState { at, ..words }.write()
    }

    /// The time until the bucket has leaked empty, rounded up (R25).
    #[inline]
    pub(super) fn level(at: &RuleContext, state: RuleState) -> Nanos {
        Nanos(BucketState::read(state).debt(at.now).ceil())
    }
}

/// The time at which a bucket that is full at `at` has `room` for a cost. `None` if the cost is above the room.
#[inline(always)]
fn ready(at: Span, terms: &Terms, room: Span, cost: u64) -> Option<Time> {
    let den = terms.den();
    let needed = terms.step().times(cost, den);
    if room < needed {
        return None;
    }
    // Rounded up once, at the end: the sum of the fractions is more than -1 ns and less than 2 ns.
    let frac = at.frac.wrapping_add(needed.frac).wrapping_sub(room.frac) as i64;
    let up = u64::from(frac > 0) + u64::from(frac > den as i64);
    Some(Time(at.whole.saturating_add(up).saturating_sub(room.whole.wrapping_sub(needed.whole))))
}

/// For a reduced bucket that is full at `at`: the time at which it admits a cost above its room. `None` if the
/// cost is above the configured capacity, too (R6). The reserve does not matter, because no other call wants it
/// while the bucket is full.
#[cold]
#[inline(never)]
fn full<V: View>(v: &V, at: Span, need: Need) -> Option<Time> {
    let first = v.first_rule()?;
    let reserve = if need.leave_reserve { first.reserve } else { 0 };
    let fits = need.cost.saturating_add(reserve) <= first.burst;
    fits.then_some(Time(at.ceil()))
}

/// The furthest time to which a call that has this `room` may move a bucket's `at`.
#[inline(always)]
const fn limit(now: Time, room: Span) -> Span {
    Span { whole: now.0.saturating_add(room.whole), frac: room.frac }
}

/// The terms of a bucket for a decision about one call. Words are read one by one, so each that is not read saves time.
#[inline(always)]
fn terms_for<V: View>(v: &V, rule: usize, head: u64, leave_reserve: bool) -> Terms {
    Terms::of_bucket(head, v.terms_words(rule, 1), v.terms_words(rule, Terms::room_at(leave_reserve)))
}

/// A bucket's state from its first words. The last word does not change with a charge, so it is not read for one.
#[inline(always)]
const fn before([whole, frac, back]: [u64; RULE_WORDS - 1]) -> RuleState {
    RuleState([whole, frac, back, 0])
}

/// The furthest time to which a settlement may move `at`. It is far beyond any real settlement, but near enough
/// that a damaged word does not refuse all calls for years.
fn furthest(terms: &Terms, now: Time) -> u64 {
    const AN_HOUR: u64 = 3_600_000_000_000;
    // The overdraft of a reduced bucket is below the configured capacity. So is a debt from before the
    // reduction.
    let often = terms.overdraft().saturating_mul(2).max(64);
    let ahead = terms.tau().whole.saturating_mul(often).saturating_add(AN_HOUR).min(MAX_SPAN);
    now.0.saturating_add(ahead)
}

/// A length in ticks, rounded up.
fn ticks_up(span: Span, terms: &Terms) -> u64 {
    let (parts, tick) = (span.parts(terms.den()), terms.tick());
    let rest = parts & ((1 << tick) - 1);
    ((parts >> tick) as u64).wrapping_add(u64::from(rest > 0))
}

/// The same number of units as time under new terms: `span / T_old * T_new`.
///
/// Whole units are exact, and the rest is rounded to 1/den ns. The computation has two parts so that nothing
/// exceeds 128 bits: the rest is less than one old step, and both steps have less than 2^62 parts.
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
