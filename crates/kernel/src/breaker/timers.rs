//! The timers of the breaker: when the present state ends, what blocks every call until then, and the next
//! check time.

use crate::gate;
use crate::pause;
use crate::policy::StoredBreaker;
use crate::request::Block;
use crate::state::{BreakerState, Health, Memory, OFFLINE, RAMPING, View};
use crate::time::{Nanos, Time};

/// The present state, if it blocks every call. Otherwise the gate, if it is closed. Call [`tick`](super::tick)
/// first.
pub(crate) fn block(health: &Health, breaker: &StoredBreaker, now: Time) -> Option<Block> {
    if let Some(reason) = health.state().blocks() {
        return Some(Block { reason, until: due(health, breaker) });
    }
    gate::block(health, now)
}

/// The time at which the state's timer is due, if it has one.
pub fn due(health: &Health, breaker: &StoredBreaker) -> Option<Time> {
    match health.state() {
        BreakerState::Sleep | BreakerState::Open if !health.has(OFFLINE) => Some(health.until),
        BreakerState::CacheOnly if breaker.auto_recover > Nanos::ZERO => {
            Some(health.since.plus(breaker.auto_recover))
        }
        BreakerState::Normal if health.has(RAMPING) => Some(health.until),
        _ => None,
    }
}

/// The end of the present state for reports: the time at which its timer is due. A Sleep is not reported as
/// over before the gate opens, because no call is made until then (R57).
pub fn eta(health: &Health, breaker: &StoredBreaker) -> Option<Time> {
    let due = due(health, breaker);
    if health.state() == BreakerState::Sleep { due.map(|due| due.max(health.gate_until)) } else { due }
}

/// Stores the next check time.
pub(crate) fn schedule_check<M: Memory>(m: &mut M, health: &Health, now: Time) {
    m.set_next_check(compute_next_check(m, health, now));
}

pub(super) fn compute_next_check<V: View>(v: &V, health: &Health, now: Time) -> Time {
    let at_once = matches!(health.state(), BreakerState::HalfOpen)
        || health.state().blocks().is_some()
        || gate::is_closed(health, now)
        || pause::paused_until(v) > now
        || v.is_passthrough()
        || v.is_adaptive();
    match at_once {
        true => Time::ZERO,
        false if health.has(RAMPING) => health.until,
        false => Time(u64::MAX),
    }
}
