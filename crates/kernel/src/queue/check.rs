//! One call, judged together with what is ahead of it: whether it may go, when it may, and when to look again.

use super::call::NewWaiter;
use super::order::{Needs, Survey, bound, longest_sleep};
use super::{LONGEST_SLEEP, SHORTEST_BOUND};
use crate::admission;
use crate::request::{AcquireRequest, Reason, Refusal};
use crate::rule::{self, Need, RuleContext, When};
use crate::state::View;
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};

/// A call judged together with what is ahead of it.
pub(super) struct Checked {
    /// Whether permits suffice.
    pub(super) permit: bool,
    /// When the rules have room; nothing = never.
    pub(super) time: Option<Time>,
    /// The same with all that is expected to come before it.
    expected: Option<Time>,
    /// Whether a pause is in effect that lasts until the limiter is resumed.
    paused: bool,
    now: Time,
}

/// Judges a call that sees the queue like this.
pub(super) fn check<V: View>(
    v: &V,
    request: &AcquireRequest,
    found: &Survey,
    owed: bool,
    now: Time,
) -> Checked {
    check_behind(v, request, &found.ahead, found.expected, owed, now)
}

/// Judges a call behind others.
pub(super) fn check_behind<V: View>(
    v: &V,
    request: &AcquireRequest,
    ahead: &Needs,
    expected: [u64; MAX_UNITS],
    owed: bool,
    now: Time,
) -> Checked {
    let permit = admission::permit_free_behind(v, request.priority, ahead.permits, ahead.background);
    // A background call that is owed its share may use the reserve: else it would hold up all others until that is full.
    let leave_reserve = request.priority.is_background() && !owed;
    let StartTime { time, paused } = time(v, request, ahead.cost, ahead.calls, leave_reserve, now);
    let expected = if expected == ahead.cost {
        time
    } else {
        self::time(v, request, expected, ahead.calls, leave_reserve, now).time
    };
    Checked { permit: permit && !paused, time, expected, paused, now }
}

/// What is known about when a call may go.
struct StartTime {
    /// When everything that knows its time lets it go; nothing = never, or not until an operator says so.
    time: Option<Time>,
    /// Whether a pause is on of which nobody knows when it ends.
    paused: bool,
}

impl StartTime {
    const NEVER: StartTime = StartTime { time: None, paused: false };
}

/// When a call may go behind others.
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
        // What is refilled until the way is open is there by then.
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
    /// Whether the dead should be looked for, because they may be in its way.
    pub(super) fn suspects_dead(&self, found: &Survey) -> bool {
        !self.permit || found.late || found.ahead.calls > 0
    }

    /// Whether it may go.
    pub(super) fn is_now(&self) -> bool {
        self.permit && self.time == Some(self.now)
    }

    /// Whether only time is in the way, and it is known how much.
    pub(super) fn is_timed(&self) -> bool {
        self.permit && self.time.is_some_and(|time| time > self.now)
    }

    /// The layer in the way if the call were alone; that others are ahead, if it is only that.
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
        // A paused limiter keeps its calls waiting; one that the breaker refuses until further notice does not.
        let stopped = if self.time.is_none() { admission::refused_without_end(v, now) } else { None };
        Some(match stopped {
            Some(reason) if refusal.reason == Reason::Paused => Refusal { reason, retry_at: None, ..refusal },
            _ => refusal,
        })
    }

    /// When to look again.
    pub(super) fn next_look(&self, found: &Survey, who: &NewWaiter, now: Time) -> Time {
        let (time, expected) = (self.time.unwrap_or(now), self.expected.unwrap_or(now));
        let calls = found.ahead.calls;
        // Now, and yet not granted: only damaged words do that, and nobody should spin for them.
        let until = if self.paused {
            // Whoever resumes the limiter rings; who cannot be rung looks a few times a second.
            match who.can_be_woken {
                true => now.plus(LONGEST_SLEEP),
                false => bound(now, u32::MAX, found.waiting, false),
            }
        } else if !self.permit || time <= now {
            time.max(bound(now, calls, found.waiting, who.can_be_woken))
        } else if who.can_be_woken {
            // If whoever should ring dies first, not much later than it could have gone.
            let behind = Nanos(SHORTEST_BOUND.0.saturating_mul(u64::from(calls) + 1));
            expected.min(time.plus(behind))
        } else {
            time
        };
        until.min(now.plus(longest_sleep(found.waiting))).min(who.deadline)
    }
}
