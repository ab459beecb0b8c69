//! Runs the timers that are due. Each acts at the time when it was due (R58).

use super::effective::write_off;
use super::enter::enter;
use super::ramp::ramp;
use super::timers::{due, schedule_check};
use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::pause;
use crate::state::{ATTEMPT, BreakerState, Core, Memory, TransitionCause};
use crate::time::Time;

/// Runs the timers that are due, each at its own time, and stores the next check time.
#[inline(always)]
pub(crate) fn tick<M: Memory>(m: &mut M, now: Time) {
    if now >= m.next_check() {
        run_timers(m, now);
    }
}

#[cold]
fn run_timers<M: Memory>(m: &mut M, now: Time) {
    let breaker = m.breaker_policy();
    let mut health = m.health();
    let before = health;
    // Each round leaves a state, or raises the rate as far as it is due. Both come to an end, and so does the
    // loop.
    while let Some(at) = due(&health, &breaker).filter(|due| *due <= now) {
        match health.state() {
            BreakerState::Normal => ramp(m, &mut health, &breaker, now),
            BreakerState::CacheOnly => {
                enter(m, &mut health, BreakerState::Sleep, TransitionCause::AutoRecover, at);
                health.flag(ATTEMPT, true);
                health.until = at.plus(breaker.sleep_min);
            }
            BreakerState::Open => {
                enter(m, &mut health, BreakerState::HalfOpen, TransitionCause::ResetTimeout, at)
            }
            _ => enter(m, &mut health, BreakerState::HalfOpen, TransitionCause::SleepExpired, at),
        }
    }
    write_off(m, &mut health, &breaker, now);
    let resumed = pause::expire(m, now);
    let watched = m.next_check();
    schedule_check(m, &health, now);
    if health != before || resumed || m.next_check() != watched {
        // The next change must not be earlier than a timer that just ran, nor earlier than a gate that was seen
        // open (R3).
        let core = m.core();
        m.set_core(Core { latest: now.max(core.latest), ..core });
        m.set_health(&health);
    }
}
