//! GCRA in its older burst mode (R22): `burst` free passes in each calendar period, then one call each T.
//!
//! A pass leaves the pacing alone. A cost is taken wholly from the passes if they suffice, else wholly by pacing: that
//! admits when the time it has promised is over, and promises now + c·T then. The reserve is one of passes: background
//! leaves so many of them, and goes by pacing like everybody.
//!
//! The promised time is kept in whole nanoseconds, rounded up. Pacing starts from a whole `now` each time, so no decision
//! differs and nothing drifts; only settlements on top of each other are each rounded up.

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

/// Marks a charge taken by pacing; those taken from passes name their window.
const PACED: Charge = Charge(u64::MAX);

/// When to look again where that may be at once.
const RETRY_DELAY: u64 = 1_000_000;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GcraWindowState {
    /// The theoretical arrival time of the next paced call.
    tat: Time,
    /// When the window ends.
    until: Time,
    /// Passes used in that window.
    used: u64,
    /// Charges made before this are not refunded any more.
    since: Time,
}

impl GcraWindowState {
    /// As they are in the window of `at.now`.
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

    /// With `cost` taken from passes if they suffice for a caller who may use `passes` of them.
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

/// How far ahead settlements may drive the pacing: see the same in `bucket.rs`.
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

    // Now it goes if passes suffice for all, or for those ahead while it goes by pacing itself. Else one of those ahead
    // goes by pacing, or waits; into which calls the sum ahead falls is not known, so more than that is not certain.
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
        // If one ahead goes by pacing now, the next does so T later. Passes that are too few for those ahead may still do
        // for this one: so look soon, but not at once.
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
        // Who may use no pass at all is refused, pacing or not.
        let paced = words.tat <= at.now && passes > 0;
        passes.saturating_sub(words.used).saturating_add(u64::from(paced))
    }

    fn sane<V: View>(_: &V, at: &RuleContext, state: RuleState) -> bool {
        let words = GcraWindowState::read(state);
        words.tat <= furthest(at) && is_near(at, words.until)
    }

    // A pass goes back to its window. Pacing is given back while nothing was paced since: what came later started when
    // this one's time was over, and owes it nothing.
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

    // Used passes stay used, as the counts of windows do. What pacing still owes is the same number of units, but at
    // the new T, and at least one unit: rounded up.
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

    // What a report says of it.
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let (words, calendar) = GcraWindowState::at(v, at, state);
        Some(Window { used: words.used, before: 0, resets_at: calendar.time(v, 1, 0) })
    }
}
