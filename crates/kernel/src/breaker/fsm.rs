//! The five states: what an outcome leads to (R51 to R61).

use super::enter::enter;
use crate::growth::grown;
use crate::health_state::{ATTEMPT, Health, OFFLINE};
use crate::outcome::{self, OutcomeClass};
use crate::policy::StoredBreaker;
use crate::state::{BreakerState, Memory, TransitionCause};
use crate::time::{Nanos, Time};

/// Judges the window after an outcome was added to it. `was_empty`: it had run empty before.
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
    // While Normal nobody asks for them.
    if class == OutcomeClass::Ok && health.state() != BreakerState::Normal {
        health.successes = health.successes.saturating_add(1);
    }
    // "For five minutes" means at every evaluation since then; an empty window breaks it (R56).
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
        // Late: nothing moves, but a longer Retry-After puts the end off (R59).
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

/// Goes to sleep, each time since the last Normal for longer (R57); where that was too often, to CacheOnly (R141).
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

/// How long the k-th Sleep lasts: sleep_min · factor^(k-1), at most sleep_max.
pub(super) fn cooldown(breaker: &StoredBreaker, k: u32) -> Nanos {
    let StoredBreaker { sleep_min, cooldown_factor, sleep_max, .. } = *breaker;
    Nanos(grown(sleep_min.0, cooldown_factor, k.saturating_sub(1), sleep_max.0))
}
