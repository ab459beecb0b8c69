//! The five-state breaker: evaluates an outcome (R51 to R61).

use super::enter::enter;
use crate::growth::grown;
use crate::health_state::{ATTEMPT, Health, OFFLINE};
use crate::outcome::{self, OutcomeClass};
use crate::policy::StoredBreaker;
use crate::state::{BreakerState, Memory, TransitionCause};
use crate::time::{Nanos, Time};

/// Evaluates the window after an outcome was added to it. `was_empty` says whether the window was empty before
/// that outcome.
pub(super) fn evaluate<M: Memory>(
    m: &mut M,
    health: &mut Health,
    breaker: &StoredBreaker,
    class: OutcomeClass,
    wait: Option<Nanos>,
    was_empty: bool,
    now: Time,
) {
    let min_samples = m.window_policy().min_samples;
    // In Normal the count of successes is not used.
    if class == OutcomeClass::Ok && health.state() != BreakerState::Normal {
        health.successes = health.successes.saturating_add(1);
    }
    // "For five minutes" means at every evaluation since then. An empty window ends the period (R56).
    if was_empty || !outcome::is_at_least(health, breaker.p_sleep, min_samples) {
        health.sustained = 0;
    }
    if health.sustained == 0 && outcome::is_at_least(health, breaker.p_sleep, min_samples) {
        health.sustained = now.0.saturating_add(1);
    }
    match health.state() {
        BreakerState::Normal => {
            let too_many = outcome::is_at_least(health, breaker.p_throttle, min_samples);
            let confirmed = agrees(health, breaker, too_many);
            if health.consec429 >= breaker.n_throttle {
                enter(m, health, BreakerState::Throttle, TransitionCause::Consec429, now);
            } else if confirmed {
                enter(m, health, BreakerState::Throttle, TransitionCause::ErrorRatio, now);
            }
        }
        BreakerState::Throttle => {
            let well = health.successes >= breaker.s_recover && outcome::is_below(health, breaker.p_recover);
            let confirmed = agrees(health, breaker, well);
            let sustained =
                health.sustained != 0 && now.since(Time(health.sustained - 1)) >= breaker.sleep_after;
            if health.consec429 >= breaker.n_cacheonly {
                sleep(m, health, breaker, TransitionCause::Consec429, wait, now);
            } else if sustained {
                sleep(m, health, breaker, TransitionCause::SustainedErrors, wait, now);
            } else if confirmed {
                enter(m, health, BreakerState::HalfOpen, TransitionCause::SuccessWindowOk, now);
            }
        }
        BreakerState::HalfOpen if class != OutcomeClass::Ok => {
            if health.has(ATTEMPT) {
                enter(m, health, BreakerState::CacheOnly, TransitionCause::ProbeFailed, now);
            } else {
                sleep(m, health, breaker, TransitionCause::ProbeFailed, wait, now);
            }
        }
        BreakerState::HalfOpen => {
            let well = outcome::is_below(health, breaker.p_recover);
            if health.successes >= breaker.s_probe_ok && well {
                enter(m, health, BreakerState::Normal, TransitionCause::ProbeOk, now);
            }
        }
        // A late outcome changes nothing, except that a longer Retry-After postpones the end of the Sleep
        // (R59).
        BreakerState::Sleep => {
            if let Some(wait) = wait
                && !health.has(OFFLINE)
            {
                health.until = health.until.max(now.plus(wait));
            }
        }
        BreakerState::CacheOnly | BreakerState::Open => {}
    }
}

/// Whether enough evaluations in a row have agreed (R52, R53).
fn agrees(health: &mut Health, breaker: &StoredBreaker, now_too: bool) -> bool {
    health.agreed = if now_too { health.agreed.saturating_add(1) } else { 0 };
    health.agreed >= breaker.hysteresis
}

/// Enters Sleep. Each Sleep since the last Normal is longer than the one before (R57). After too many Sleeps,
/// enters CacheOnly instead (R141).
pub(super) fn sleep<M: Memory>(
    m: &mut M,
    health: &mut Health,
    breaker: &StoredBreaker,
    cause: TransitionCause,
    wait: Option<Nanos>,
    now: Time,
) {
    let limit = breaker.cache_only_after;
    if limit > 0 && health.sleeps >= limit && cause != TransitionCause::Forced {
        return enter(m, health, BreakerState::CacheOnly, cause, now);
    }
    enter(m, health, BreakerState::Sleep, cause, now);
    health.sleeps = health.sleeps.saturating_add(1);
    let cooldown = cooldown(breaker, health.sleeps);
    health.until = now.plus(cooldown.max(wait.unwrap_or_default()));
}

/// The length of the k-th Sleep: sleep_min · factor^(k-1), at most sleep_max.
pub(super) fn cooldown(breaker: &StoredBreaker, k: u32) -> Nanos {
    let StoredBreaker { sleep_min, cooldown_factor, sleep_max, .. } = *breaker;
    Nanos(grown(sleep_min.0, cooldown_factor, k.saturating_sub(1), sleep_max.0))
}
