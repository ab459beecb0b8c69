//! Changes the breaker to another state.

use super::effective::{apply_effective, rate, throttle_rate};
use super::ramp::ramp_start;
use crate::health_state::HealthStateMemory;
use crate::outcome;
use crate::policy::BreakerKind;
use crate::state::{
    ATTEMPT, BreakerState, Health, Held, Memory, OFFLINE, RAMPING, Transition, TransitionCause,
};
use crate::time::Time;

/// Enters a state. Stores everything except `health` itself, which the caller stores.
pub(super) fn enter<M: Memory>(
    m: &mut M,
    health: &mut Health,
    to: BreakerState,
    cause: TransitionCause,
    at: Time,
) {
    let from = health.state();
    if from != to {
        m.set_transition(health.transitions, &Transition { at, from, to, cause });
        health.transitions = health.transitions.wrapping_add(1);
    }
    let breaker = m.breaker_policy();
    health.state = to as u32;
    health.since = at;
    health.until = Time::ZERO;
    health.flag(OFFLINE | RAMPING, false);
    (health.agreed, health.successes, health.unanswered) = (0, 0, 0);
    (health.written_off, health.written_at) = (Held::default(), Time::ZERO);
    // Only the path CacheOnly, Sleep, HalfOpen, driven by timers alone, is a recovery attempt (R65).
    if cause != TransitionCause::SleepExpired {
        health.flag(ATTEMPT, false);
    }
    match to {
        BreakerState::Normal => {
            (health.sleeps, health.failures) = (0, 0);
            let by_probes = breaker.kind() == BreakerKind::Fsm && cause == TransitionCause::ProbeOk;
            let start = ramp_start(m).filter(|_| by_probes);
            health.rate = start.unwrap_or_default();
            if let Some(start) = start {
                m.set_ramp_from(start);
                health.flag(RAMPING, true);
                health.until = at.plus(breaker.ramp_every);
            }
        }
        BreakerState::Throttle => health.rate = throttle_rate(m),
        BreakerState::HalfOpen => {
            // Errors from before the probing would keep the ratio high (R60). The consecutive breaker uses
            // counts instead of the ratio, so its window is kept: it shows the error rate of the latest
            // outcomes in every state (R42).
            if breaker.kind() == BreakerKind::Fsm {
                outcome::clear(health);
                (health.consec429, health.sustained) = (0, 0);
            }
            // A rate below that of Throttle is left over from earlier probes, and the probe rate may have been
            // patched since (R110).
            let before = rate(m, health).max(throttle_rate(m));
            health.rate = breaker.probe_rate.min(before);
            health.probe_until = at.plus(breaker.probe_timeout);
        }
        BreakerState::Sleep | BreakerState::CacheOnly | BreakerState::Open => {}
    }
    apply_effective(m, health, at);
}
