//! GCRA in its older burst mode (R22): `burst` free passes in each calendar period, then one call per T.
//!
//! A pass does not affect the pacing. A cost is taken wholly from the passes if there are enough, otherwise
//! wholly by pacing. Pacing admits a call when the time of the previous paced call is over, and reserves now +
//! c·T. The reserve is a number of passes: background calls leave that many, and use pacing like all other
//! calls.
//!
//! The reserved time is stored in whole nanoseconds, rounded up. Pacing starts from a whole `now` each time, so
//! no decision differs and nothing drifts. Only with several settlements in a row is each of them rounded up.

use super::algorithm::{
    CalendarWords, Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When, Window,
};
use super::calendar::{Calendar, Step, is_near};
use crate::span::MAX_SPAN;
use crate::state::{Charge, Memory, RuleState, UNKNOWN, View};
use crate::terms::Terms;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// Free passes, then pacing.
#[derive(Clone, Copy, Debug)]
pub struct GcraWindow;

/// Marks a charge taken by pacing. The mark of a charge taken from passes is the end of its window.
const PACED: Charge = Charge(u64::MAX);

/// The time until the next check, in nanoseconds, if the call might go at once.
const RETRY_DELAY: u64 = 1_000_000;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GcraWindowState {
    /// The theoretical arrival time of the next paced call.
    tat: Time,
    /// The end of the window.
    until: Time,
    /// Passes used in that window.
    used: u64,
    /// Charges made before this time cannot be refunded any more.
    since: Time,
}

impl GcraWindowState {
    /// The state in the window of `at.now`.
    #[inline]
    fn at<V: View>(v: &V, at: &RuleContext, state: RuleState) -> (GcraWindowState, Calendar) {
        let words = GcraWindowState::read(state);
        let calendar = Calendar::of(v, at, words.until);
        let used = match calendar.step {
            _ if words.tat.0 == UNKNOWN => u64::MAX,
            Step::Same => words.used,
            Step::Closed => words.used.max(at.terms.limit(false)),
            Step::Next | Step::Later => 0,
        };
        (GcraWindowState { until: calendar.until, used, ..words }, calendar)
    }

    /// The state with `cost` taken from passes, if there are enough for a caller who may use `passes` of them.
    /// Otherwise with `cost` taken by pacing.
    #[inline]
    fn after(self, at: &RuleContext, cost: u64, passes: u64) -> Charging {
        let used = self.used.saturating_add(cost);
        if used <= passes {
            return (GcraWindowState { used, ..self }.write(), Charge(self.until.0));
        }
        let tat = self.tat.max(at.now).plus(length(&at.terms, cost)).min(furthest(at));
        (GcraWindowState { tat, ..self }.write(), PACED)
    }
}

/// c·T, rounded up.
#[inline]
fn length(terms: &Terms, cost: u64) -> Nanos {
    Nanos(terms.step().times(cost, terms.den()).ceil())
}

/// The furthest time to which settlements may move the pacing. See the function of this name in `bucket.rs`.
fn furthest(at: &RuleContext) -> Time {
    const AN_HOUR: u64 = 3_600_000_000_000;
    let burst = length(&at.terms, at.terms.limit(false)).0;
    at.now.plus(Nanos(burst.saturating_mul(64).saturating_add(AN_HOUR).min(MAX_SPAN)))
}

impl RateAlgorithm for GcraWindow {
    const CALENDAR: Option<CalendarWords> = Some(CalendarWords { until: 1, before: None });

    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        Self::earliest_behind(v, at, state, 0, need)
    }

    // The call goes now in two cases: if there are enough passes for all calls, or if there are enough for the
    // calls ahead and this call goes by pacing. Otherwise a call ahead goes by pacing, or waits. It is not
    // known how the sum ahead divides into calls, so nothing more is certain.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let passes = at.terms.limit(need.leave_reserve);
        if need.cost > passes {
            return When::Never;
        }
        let (words, calendar) = GcraWindowState::at(v, at, state);
        let before = words.used.saturating_add(ahead);
        let paced = words.tat <= at.now && (ahead == 0 || before <= at.terms.limit(false));
        if before <= passes - need.cost || paced {
            return When::Now;
        }
        // If a call ahead goes by pacing now, the next paced call goes T later. Passes that are too few for the
        // calls ahead may still be enough for this call, so it checks again soon, but not at once.
        let step = length(&at.terms, 1).0.max(1);
        let retry_delay = if words.used <= passes - need.cost { step.min(RETRY_DELAY) } else { step };
        let paced = if words.tat <= at.now { at.now.plus(Nanos(retry_delay)) } else { words.tat };
        When::At(paced.min(calendar.time(v, 1, 0)))
    }

    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let passes = at.terms.limit(need.leave_reserve);
        let (words, _) = GcraWindowState::at(v, at, state);
        let admitted = words.used.saturating_add(need.cost) <= passes || words.tat <= at.now;
        (admitted && need.cost <= passes).then(|| words.after(at, need.cost, passes))
    }

    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        GcraWindowState::at(v, at, state).0.after(at, cost, at.terms.limit(false))
    }

    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        let (words, passes) = (GcraWindowState::at(v, at, state).0, at.terms.limit(leave_reserve));
        // A caller that may use no passes at all is refused, even by pacing.
        let paced = words.tat <= at.now && passes > 0;
        passes.saturating_sub(words.used).saturating_add(u64::from(paced))
    }

    fn sane<V: View>(_: &V, at: &RuleContext, state: RuleState) -> bool {
        let words = GcraWindowState::read(state);
        words.tat <= furthest(at) && is_near(at, words.until)
    }

    // A pass is refunded to its window. Pacing is refunded only if nothing was paced since. A later paced call
    // started when this call's time was over, so it is not affected.
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let words = GcraWindowState::read(m.rule(at.rule));
        let promised = |cost| charged.at.plus(length(&at.terms, cost));
        let after = if charged.charge == PACED && words.tat == promised(charged.cost) {
            GcraWindowState { tat: promised(charged.cost.saturating_sub(cost)), ..words }
        } else if charged.charge == Charge(words.until.0) {
            GcraWindowState { used: words.used.saturating_sub(cost), ..words }
        } else {
            return;
        };
        m.set_rule(at.rule, after.write());
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let until = Calendar::fresh(m, at).until;
        let tat = at.now.plus(length(&at.terms, 1));
        m.set_rule(
            at.rule,
            GcraWindowState { tat, until, used: at.terms.limit(false), since: Time(0) }.write(),
        );
    }

    // Used passes stay used, like the counts of windows. The debt of the pacing keeps its number of units, but
    // at the new T. It is rounded up to at least one unit.
    fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
        let new = &at.terms;
        if old.period() != new.period() {
            return Self::empty(m, at);
        }
        let words = GcraWindowState::read(state);
        let owed = words.tat.since(at.now).0;
        if (old.step(), old.den()) == (new.step(), new.den()) || owed == 0 {
            return m.set_rule(at.rule, state);
        }
        let units = u128::from(owed)
            .saturating_mul(u128::from(old.den()))
            .div_ceil(old.step().parts(old.den()).max(1));
        let units = u64::try_from(units).unwrap_or(u64::MAX);
        let tat = at.now.plus(length(new, units)).min(furthest(at));
        m.set_rule(at.rule, GcraWindowState { tat, ..words }.write());
    }

    // The window for reports.
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let (words, calendar) = GcraWindowState::at(v, at, state);
        Some(Window { used: words.used, before: 0, resets_at: calendar.time(v, 1, 0) })
    }
}
