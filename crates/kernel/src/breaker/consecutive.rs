//! Closed, open, half open: what an outcome leads to (R78, R79).

use super::enter::enter;
use crate::outcome::Class;
use crate::policy::Breaker;
use crate::sheet::Health;
use crate::state::{Cause, Memory, State};
use crate::time::Time;

pub(super) fn evaluate<M: Memory>(
    m: &mut M,
    health: &mut Health,
    breaker: &Breaker,
    class: Class,
    now: Time,
) {
    match (health.state(), class) {
        (State::Normal, Class::Ok) => health.failures = 0,
        (State::Normal, _) => {
            health.failures = health.failures.saturating_add(1);
            if health.failures >= breaker.failure_threshold {
                open(m, health, breaker, Cause::ConsecutiveFailures, now);
            }
        }
        (State::HalfOpen, Class::Ok) => {
            health.successes = health.successes.saturating_add(1);
            if health.successes >= breaker.required_successes {
                enter(m, health, State::Normal, Cause::ProbeOk, now);
            }
        }
        (State::HalfOpen, _) => {
            health.failures = health.failures.saturating_add(1);
            open(m, health, breaker, Cause::ProbeFailed, now);
        }
        // Late: nothing moves.
        _ => {}
    }
}

/// Opens, for the whole time.
pub(super) fn open<M: Memory>(m: &mut M, health: &mut Health, breaker: &Breaker, cause: Cause, now: Time) {
    enter(m, health, State::Open, cause, now);
    health.until = now.plus(breaker.reset_timeout);
}
