//! The consecutive breaker (closed, open, half open): evaluates an outcome (R78, R79).

use super::enter::enter;
use crate::health_state::Health;
use crate::outcome::OutcomeClass;
use crate::policy::StoredBreaker;
use crate::state::{BreakerState, Memory, TransitionCause};
use crate::time::Time;

pub(super) fn evaluate<M: Memory>(
    m: &mut M,
    health: &mut Health,
    breaker: &StoredBreaker,
    class: OutcomeClass,
    now: Time,
) {
    match (health.state(), class) {
        (BreakerState::Normal, OutcomeClass::Ok) => health.failures = 0,
        (BreakerState::Normal, _) => {
            health.failures = health.failures.saturating_add(1);
            if health.failures >= breaker.failure_threshold {
                open(m, health, breaker, TransitionCause::ConsecutiveFailures, now);
            }
        }
        (BreakerState::HalfOpen, OutcomeClass::Ok) => {
            health.successes = health.successes.saturating_add(1);
            if health.successes >= breaker.required_successes {
                enter(m, health, BreakerState::Normal, TransitionCause::ProbeOk, now);
            }
        }
        (BreakerState::HalfOpen, _) => {
            health.failures = health.failures.saturating_add(1);
            open(m, health, breaker, TransitionCause::ProbeFailed, now);
        }
        // A late outcome changes nothing.
        _ => {}
    }
}

/// Opens the breaker for the full reset time.
pub(super) fn open<M: Memory>(
    m: &mut M,
    health: &mut Health,
    breaker: &StoredBreaker,
    cause: TransitionCause,
    now: Time,
) {
    enter(m, health, BreakerState::Open, cause, now);
    health.until = now.plus(breaker.reset_timeout);
}
