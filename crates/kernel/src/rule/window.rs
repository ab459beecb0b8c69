//! Fixed windows (R28 to R30): a count for each calendar window, which starts again at the boundary.
//!
//! The known flaw of this algorithm is kept: around a boundary, twice the limit may be granted within less than
//! a window.

use super::algorithm::{
    CalendarWords, Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When, Window,
};
use super::calendar::{Calendar, Step, is_near};
use crate::state::{Charge, Memory, RuleState, UNKNOWN, View};
use crate::time::Time;
use bytemuck::{Pod, Zeroable};

/// A count for each calendar window.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct FixedWindowState {
    /// The end of the window.
    until: Time,
    /// Above the limit only after a settlement.
    count: u64,
    unused: u64,
    /// Charges made before this time cannot be refunded any more.
    since: Time,
}

impl FixedWindowState {
    /// The state in the window of `at.now`.
    #[inline(always)]
    fn at<V: View>(v: &V, at: &RuleContext, state: RuleState) -> (FixedWindowState, Calendar) {
        let words = FixedWindowState::read(state);
        let calendar = Calendar::of(v, at, words.until);
        let count = match calendar.step {
            _ if words.until.0 == UNKNOWN => u64::MAX,
            Step::Same => words.count,
            Step::Closed => words.count.max(at.terms.limit(false)),
            Step::Next | Step::Later => 0,
        };
        (FixedWindowState { until: calendar.until, count, ..words }, calendar)
    }
}

impl RateAlgorithm for FixedWindow {
    const CALENDAR: Option<CalendarWords> = Some(CalendarWords { until: 0, before: None });

    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        let limit = at.terms.limit(need.leave_reserve);
        if need.cost > limit {
            return When::Never;
        }
        let (words, calendar) = FixedWindowState::at(v, at, state);
        if words.count <= limit - need.cost { When::Now } else { When::At(calendar.time(v, 1, 0)) }
    }

    // The same test as in `earliest`, and the same state as in `charge`, with one look at the calendar.
    #[inline(always)]
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let (words, _) = FixedWindowState::at(v, at, state);
        let count = words.count.checked_add(need.cost)?;
        let admitted = count <= at.terms.limit(need.leave_reserve);
        admitted.then(|| (FixedWindowState { count, ..words }.write(), Charge(words.until.0)))
    }

    // The calls ahead fill this window and then whole windows. They may use the reserve, so the result is never
    // too late.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let (limit, room) = (at.terms.limit(false).max(1), at.terms.limit(need.leave_reserve));
        if need.cost > room {
            return When::Never;
        }
        let (words, calendar) = FixedWindowState::at(v, at, state);
        if words.count.saturating_add(ahead) <= room - need.cost {
            return When::Now;
        }
        let rest = ahead.saturating_sub(limit.saturating_sub(words.count));
        let more = rest.saturating_sub(room - need.cost).div_ceil(limit);
        When::At(calendar.time(v, more.saturating_add(1), 0))
    }

    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let (words, _) = FixedWindowState::at(v, at, state);
        // A settlement may charge any cost. The sum must not be the mark of a lost word.
        let count = words.count.saturating_add(cost).min(UNKNOWN - 1);
        let words = FixedWindowState { count, ..words };
        (words.write(), Charge(words.until.0))
    }

    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        at.terms.limit(leave_reserve).saturating_sub(FixedWindowState::at(v, at, state).0.count)
    }

    fn sane<V: View>(_: &V, at: &RuleContext, state: RuleState) -> bool {
        is_near(at, FixedWindowState::read(state).until)
    }

    // Refunds only in the window that was charged. A later window does not contain the charge.
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let words = FixedWindowState::read(m.rule(at.rule));
        if charged.charge.0 == words.until.0 {
            m.set_rule(
                at.rule,
                FixedWindowState { count: words.count.saturating_sub(cost), ..words }.write(),
            );
        }
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let until = Calendar::fresh(m, at).until;
        m.set_rule(
            at.rule,
            FixedWindowState { until, count: at.terms.limit(false), ..FixedWindowState::zeroed() }.write(),
        );
    }

    // The window for reports (R29).
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let (words, calendar) = FixedWindowState::at(v, at, state);
        Some(Window { used: words.count, before: 0, resets_at: calendar.time(v, 1, 0) })
    }
}
