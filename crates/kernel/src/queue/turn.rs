//! Checks one call together with the calls ahead of it: whether it may go, when it may go, and when to check
//! again.

use super::call::NewWaiter;
use super::order::{Needs, Survey, bound, longest_sleep};
use super::{LONGEST_SLEEP, SHORTEST_BOUND};
use crate::admission;
use crate::request::{AcquireRequest, Reason, Refusal};
use crate::rule::{self, Need, RuleContext, When};
use crate::state::View;
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};

/// The result of checking a call together with the calls ahead of it.
pub(super) struct Checked {
    /// Whether a permit is free for the call, and no pause without a known end is in effect.
    pub(super) permit: bool,
    /// The time at which rules, pause, breaker, gate and pace let the call go. `None` means never, or not until an
    /// operator changes the breaker's state.
    pub(super) time: Option<Time>,
    /// Like `time`, but after all calls that are expected to go first, also those that come later.
    expected: Option<Time>,
    /// Whether a pause is in effect that lasts until the limiter is resumed.
    paused: bool,
    now: Time,
}

/// Checks a call for which a pass over the queue found `found`.
pub(super) fn check<V: View>(
    v: &V,
    request: &AcquireRequest,
    found: &Survey,
    owed: bool,
    now: Time,
) -> Checked {
    check_behind(v, request, &found.ahead, found.expected, owed, now)
}

/// Checks a call that has the calls of `ahead` before it.
pub(super) fn check_behind<V: View>(
    v: &V,
    request: &AcquireRequest,
    ahead: &Needs,
    expected: [u64; MAX_UNITS],
    owed: bool,
    now: Time,
) -> Checked {
    let permit = admission::permit_free_behind(v, request.priority, ahead.permits, ahead.background);
    // A background call that is owed its share may use the reserve. Otherwise it would block all other calls
    // until the reserve is full.
    let leave_reserve = request.priority.is_background() && !owed;
    let StartTime { time, paused } = time(v, request, ahead.cost, ahead.calls, leave_reserve, now);
    let expected = if expected == ahead.cost {
        time
    } else {
        self::time(v, request, expected, ahead.calls, leave_reserve, now).time
    };
    Checked { permit: permit && !paused, time, expected, paused, now }
}

/// The known facts about the start of a call.
struct StartTime {
    /// The time at which all layers with a known end let the call go. `None` means never, or not until an
    /// operator changes the breaker's state.
    time: Option<Time>,
    /// Whether a pause without a known end is in effect.
    paused: bool,
}

impl StartTime {
    const NEVER: StartTime = StartTime { time: None, paused: false };
}

/// The time at which a call may go after the calls ahead of it.
fn time<V: View>(
    v: &V,
    request: &AcquireRequest,
    ahead: [u64; MAX_UNITS],
    calls: u32,
    leave_reserve: bool,
    now: Time,
) -> StartTime {
    let Some(opening) = admission::opening(v, calls, now) else { return StartTime::NEVER };
    let (open, paused) = (opening.at, opening.open_ended);
    let mut time = open;
    for rule in 0..v.general().rules.min(MAX_RULES) {
        // The refill until `open` is available at that time.
        let at = RuleContext::of(v, rule, open);
        let (cost, ahead) = (request.cost[at.terms.unit()], ahead[at.terms.unit()]);
        if cost == 0 {
            continue;
        }
        match rule::earliest_behind(v, &at, v.rule(rule), ahead, Need { cost, leave_reserve }) {
            When::Now => {}
            When::At(at) => time = time.max(at),
            When::Never => return StartTime::NEVER,
        }
    }
    StartTime { time: Some(time), paused }
}

impl Checked {
    /// Whether exited processes should be looked for, because their calls or permits may be in the way.
    pub(super) fn suspects_dead(&self, found: &Survey) -> bool {
        !self.permit || found.late || found.ahead.calls > 0
    }

    /// Whether the call may go now.
    pub(super) fn is_now(&self) -> bool {
        self.permit && self.time == Some(self.now)
    }

    /// Whether only time is in the way, and the time is known.
    pub(super) fn is_timed(&self) -> bool {
        self.permit && self.time.is_some_and(|time| time > self.now)
    }

    /// The refusal by the first layer that would refuse the call even if no other call waited. If no layer would,
    /// the reason is that other calls are ahead.
    pub(super) fn refusal<V: View>(&self, v: &V, request: &AcquireRequest, now: Time) -> Refusal {
        match admission::check(v, request, now) {
            Some(alone) => Refusal { ready_at: alone.ready_at.and(self.time), ..alone },
            None => Refusal {
                reason: Reason::Queued,
                rule: None,
                retry_at: self.time.filter(|_| self.permit),
                ready_at: self.time,
                gate: now,
                checked_at: now,
            },
        }
    }

    /// The refusal of a call that can never go, or not before its deadline (R132).
    pub(super) fn refusal_by_deadline<V: View>(
        &self,
        v: &V,
        request: &AcquireRequest,
        deadline: Time,
        now: Time,
    ) -> Option<Refusal> {
        let in_time = deadline > now && self.time.is_some_and(|time| time <= deadline);
        if in_time {
            return None;
        }
        let refusal = self.refusal(v, request, now);
        // A pause alone keeps calls waiting. If the breaker also refuses until an operator changes its state, this
        // call is refused now, with the breaker's reason.
        let stopped = if self.time.is_none() { admission::refused_without_end(v, now) } else { None };
        Some(match stopped {
            Some(reason) if refusal.reason == Reason::Paused => Refusal { reason, retry_at: None, ..refusal },
            _ => refusal,
        })
    }

    /// The next time at which the waiting call checks again.
    pub(super) fn next_look(&self, found: &Survey, who: &NewWaiter, now: Time) -> Time {
        let (time, expected) = (self.time.unwrap_or(now), self.expected.unwrap_or(now));
        let calls = found.ahead.calls;
        // If the call may go now and was still not granted, stored words are damaged. The bounds below keep it from
        // checking in a loop without a sleep.
        let until = if self.paused {
            // The process that resumes the limiter wakes the call. A call that cannot be woken checks a few
            // times per second.
            match who.can_be_woken {
                true => now.plus(LONGEST_SLEEP),
                false => bound(now, u32::MAX, found.waiting, false),
            }
        } else if !self.permit || time <= now {
            time.max(bound(now, calls, found.waiting, who.can_be_woken))
        } else if who.can_be_woken {
            // If the process that should wake this call dies first, the call wakes soon after the time at which
            // it could have gone.
            let behind = Nanos(SHORTEST_BOUND.0.saturating_mul(u64::from(calls) + 1));
            expected.min(time.plus(behind))
        } else {
            time
        };
        until.min(now.plus(longest_sleep(found.waiting))).min(who.deadline)
    }
}
