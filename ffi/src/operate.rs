//! What an operator does to a limiter: change settings, force the breaker, read the configuration.

use crate::boundary::{Failure, call};
use crate::code::SHMLIMIT_NO_SUCH_STATE;
use crate::guard::guard;
use crate::input::{self, Slot};
use crate::limiter::{self, shmlimit_limiter};
use shmlimit::BreakerCommand;
use std::ffi::{CString, c_char};

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
/// "cache_only", "offline", "online", "closed" or "open". "offline" refuses every call, also the waiting ones;
/// shmlimit_pause() keeps them waiting. "clear_gate" ends a Retry-After and forgets the pace that headers asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_force(
    limiter: *const shmlimit_limiter,
    state: *const c_char,
) -> i32 {
    call(|| {
        let limiter = limiter::limiter(limiter)?;
        let state = input::text("state", state)?;
        let force = BreakerCommand::parse(state).ok_or_else(|| {
            let known: Vec<&str> = BreakerCommand::ALL.into_iter().map(BreakerCommand::as_str).collect();
            let message = format!("there is no state {state:?}; there are: {}", known.join(", "));
            Failure::new(SHMLIMIT_NO_SUCH_STATE, message)
        })?;
        limiter.force(force)?;
        Ok(())
    })
}

/// Writes the effective configuration as the text of a configuration file. Free it with shmlimit_text_free(). `*text` is
/// NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_config(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let place = Slot::new("text", text, std::ptr::null_mut())?;
        let policy = limiter::limiter(limiter)?.policy()?;
        place.write(CString::new(shmlimit::config::to_toml(&policy)).unwrap_or_default().into_raw());
        Ok(())
    })
}

/// Lists what environment variables, such as SHMLIMIT_RATE_BASE, changed in the limiter when this handle opened it: one
/// line per change, or an empty text. Free it with shmlimit_text_free(). `*text` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_environment_changes(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let place = Slot::new("text", text, std::ptr::null_mut())?;
        let limiter = limiter::limiter(limiter)?;
        let lines: Vec<String> = limiter.environment_changes().iter().map(ToString::to_string).collect();
        place.write(CString::new(lines.join("\n")).unwrap_or_default().into_raw());
        Ok(())
    })
}

/// Frees a text that this library returned in a `char **`. NULL is allowed and does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_text_free(text: *mut c_char) {
    guard((), || {
        if !text.is_null() {
            // SAFETY: the caller's word that it came from here, and is freed once.
            drop(unsafe { CString::from_raw(text) });
        }
    });
}
