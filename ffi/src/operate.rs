//! Functions for operators: change settings, force the breaker into a state.

use crate::boundary::{Failure, call};
use crate::code::SHMLIMIT_NO_SUCH_STATE;
use crate::input;
use crate::limiter::{self, shmlimit_limiter};
use shmlimit::{BreakerCommand, UnknownName};
use std::ffi::c_char;

/// Changes one setting while the limiter is in use, for all programs that share it. Key and value are those of
/// docs/configuration.md: "concurrency", "rules.rpm.limit" for the rule named rpm, or "rate" ("100/min") for the limit and
/// period of the one rule that counts requests.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_set(
    limiter: *const shmlimit_limiter,
    key: *const c_char,
    value: *const c_char,
) -> i32 {
    call(|| {
        let limiter = limiter::limiter(limiter)?;
        limiter.set(input::text("key", key)?, input::text("value", value)?)?;
        Ok(())
    })
}

/// Puts the breaker into a state, for all programs that share the limiter: "normal", "throttle", "sleep", "half_open",
/// "cache_only", "offline", "online", "closed" or "open". "online" ends "offline" and probes first. "offline" refuses
/// every call, also the waiting ones; shmlimit_pause() keeps them waiting. "clear_gate" ends a Retry-After and forgets the
/// pace that headers asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_force(
    limiter: *const shmlimit_limiter,
    state: *const c_char,
) -> i32 {
    call(|| {
        let limiter = limiter::limiter(limiter)?;
        let state = input::text("state", state)?;
        let force = state.parse().map_err(|_: UnknownName| {
            let known: Vec<&str> = BreakerCommand::ALL.into_iter().map(BreakerCommand::as_str).collect();
            let message = format!("there is no state {state:?}; there are: {}", known.join(", "));
            Failure::new(SHMLIMIT_NO_SUCH_STATE, message)
        })?;
        limiter.force(force)?;
        Ok(())
    })
}
