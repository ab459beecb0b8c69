//! Sliding counters (R34 to R37): two calendar windows. The older one is weighted by the part of it that a
//! sliding window ending now still covers.
//!
//! A cost is admitted if floor(prev * (period - elapsed) / period) + curr + cost stays within the limit,
//! exactly (R35). While nothing is charged that sum never grows, not even at a boundary. So there is a first
//! moment at which a cost fits.

use super::algorithm::{
    CalendarWords, Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When, Window,
};
use super::calendar::{Calendar, Step, is_near};
use crate::state::{Charge, Memory, RuleState, UNKNOWN, View};
use crate::time::Time;
use bytemuck::{Pod, Zeroable};

/// A count for the present calendar window, and one for the window before.
#[derive(Clone, Copy, Debug)]
pub struct SlidingCounter;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SlidingCounterState {
    /// The end of the present window.
    until: Time,
    /// Above the limit only after a settlement.
    curr: u64,
    prev: u64,
    /// Charges made before this time cannot be refunded any more.
    since: Time,
}

impl SlidingCounterState {
    /// The state in the window of `at.now`. A window that was not the one just before counts nothing.
    #[inline(always)]
    fn at<V: View>(v: &V, at: &RuleContext, state: RuleState) -> (SlidingCounterState, Calendar) {
        let words = SlidingCounterState::read(state);
        let calendar = Calendar::of(v, at, words.until);
        let (curr, prev) = match calendar.step {
            _ if words.until.0 == UNKNOWN => (u64::MAX, 0),
            Step::Same => (words.curr, words.prev),
            Step::Closed => (words.curr.max(at.terms.limit(false)), words.prev),
            Step::Next => (0, words.curr),
            Step::Later => (0, 0),
        };
        (SlidingCounterState { until: calendar.until, curr, prev, ..words }, calendar)
    }

    /// The same as `weighted(period, elapsed) + cost <= room`, without a division: floor(prev * left / period) <=
    /// most exactly if prev * left < (most + 1) * period.
    #[inline(always)]
    fn admits(&self, period: u64, elapsed: u64, cost: u64, room: u64) -> bool {
        let Some(most) = room.checked_sub(cost).and_then(|room| room.checked_sub(self.curr)) else {
            return false;
        };
        let left = period.saturating_sub(elapsed);
        u128::from(self.prev) * u128::from(left) < (u128::from(most) + 1) * u128::from(period)
    }

    /// The weighted sum at this moment.
    #[inline]
    fn weighted(&self, period: u64, elapsed: u64) -> u64 {
        let left = period.saturating_sub(elapsed);
        let prev = u128::from(self.prev) * u128::from(left) / u128::from(period);
        self.curr.saturating_add(prev as u64)
    }
}

/// The first time within a window of `period` at which the weight of `prev` is at most `most`. `None` if that
/// does not happen within the window.
///
/// floor(prev * left / period) <= most is the same as prev * left < (most + 1) * period.
#[inline]
fn first_within(prev: u64, most: u64, period: u64) -> Option<u64> {
    if prev <= most {
        return Some(0);
    }
    let parts = (u128::from(most) + 1) * u128::from(period) - 1;
    // At most the period, because `prev` is more than `most`.
    match (parts / u128::from(prev)) as u64 {
        0 => None,
        left => Some(period.saturating_sub(left)),
    }
}

impl RateAlgorithm for SlidingCounter {
    const CALENDAR: Option<CalendarWords> = Some(CalendarWords { until: 0, before: Some(2) });

    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        let room = at.terms.limit(need.leave_reserve);
        if need.cost > room {
            return When::Never;
        }
        let (words, calendar) = SlidingCounterState::at(v, at, state);
        let period = at.terms.period().0;
        let most = room - need.cost;
        if words.weighted(period, calendar.elapsed) <= most {
            return When::Now;
        }
        let this = most.checked_sub(words.curr).and_then(|most| first_within(words.prev, most, period));
        if let Some(elapsed) = this {
            return When::At(calendar.time(v, 0, elapsed));
        }
        match first_within(words.curr, most, period) {
            Some(elapsed) => When::At(calendar.time(v, 1, elapsed)),
            None => When::At(calendar.time(v, 2, 0)),
        }
    }

    // The same test as in `earliest`, and the same state as in `charge`, with one look at the calendar.
    #[inline(always)]
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let (words, calendar) = SlidingCounterState::at(v, at, state);
        let room = at.terms.limit(need.leave_reserve);
        let admitted = words.admits(at.terms.period().0, calendar.elapsed, need.cost, room);
        admitted.then(|| {
            let words = SlidingCounterState { curr: words.curr.saturating_add(need.cost), ..words };
            (words.write(), Charge(words.until.0))
        })
    }

    // Assumes that each window takes as much as it can hold, regardless of the weight of the window before. The
    // calls ahead are then served as soon as possible. Taking fewer of them earlier never helps: a unit weighs
    // no more in the window after its own than if it is still to come.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let (limit, room) = (at.terms.limit(false).max(1), at.terms.limit(need.leave_reserve));
        if need.cost > room {
            return When::Never;
        }
        let (words, calendar) = SlidingCounterState::at(v, at, state);
        let (period, most) = (at.terms.period().0, room - need.cost);
        if words.weighted(period, calendar.elapsed).saturating_add(ahead) <= most {
            return When::Now;
        }
        let all = words.curr.saturating_add(ahead);
        let this = most.checked_sub(all).and_then(|most| first_within(words.prev, most, period));
        if let Some(elapsed) = this {
            return When::At(calendar.time(v, 0, elapsed));
        }
        let (mut windows, mut prev) = (1, words.curr.max(limit.min(all)));
        let mut rest = all - prev;
        // Skips whole windows until the rest fits together with the cost.
        if rest > most {
            let more = (rest - most).div_ceil(limit);
            rest -= limit.saturating_mul(more - 1);
            prev = limit.min(rest);
            rest -= prev;
            windows += more;
        }
        match first_within(prev, most.saturating_sub(rest), period) {
            Some(elapsed) => When::At(calendar.time(v, windows, elapsed)),
            None => When::At(calendar.time(v, windows.saturating_add(1), 0)),
        }
    }

    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let (words, _) = SlidingCounterState::at(v, at, state);
        // A settlement may charge any cost. The sum must not be the mark of a lost word.
        let curr = words.curr.saturating_add(cost).min(UNKNOWN - 1);
        let words = SlidingCounterState { curr, ..words };
        (words.write(), Charge(words.until.0))
    }

    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        let (words, calendar) = SlidingCounterState::at(v, at, state);
        let weighted = words.weighted(at.terms.period().0, calendar.elapsed);
        at.terms.limit(leave_reserve).saturating_sub(weighted)
    }

    fn sane<V: View>(_: &V, at: &RuleContext, state: RuleState) -> bool {
        is_near(at, SlidingCounterState::read(state).until)
    }

    // Refunds to the window that was charged, as long as that window still counts.
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let words = SlidingCounterState::read(m.rule(at.rule));
        let period = at.terms.period().0;
        let after = match words.until.0.checked_sub(charged.charge.0) {
            Some(0) => SlidingCounterState { curr: words.curr.saturating_sub(cost), ..words },
            // The window before, if the wall clock was not set meanwhile.
            Some(later) if later == period => {
                SlidingCounterState { prev: words.prev.saturating_sub(cost), ..words }
            }
            _ => return,
        };
        m.set_rule(at.rule, after.write());
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let until = Calendar::fresh(m, at).until;
        m.set_rule(
            at.rule,
            SlidingCounterState { until, curr: at.terms.limit(false), prev: 0, since: Time(0) }.write(),
        );
    }

    // The window for reports (R37).
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let (words, calendar) = SlidingCounterState::at(v, at, state);
        Some(Window { used: words.curr, before: words.prev, resets_at: calendar.time(v, 1, 0) })
    }
}
