//! Strings about a limiter that the library allocates for C.

use crate::boundary::call;
use crate::guard::guard;
use crate::input::OutValue;
use crate::limiter::{self, shmlimit_limiter};
use std::ffi::{CString, c_char};

/// Allocates a string that C frees with [`shmlimit_text_free`].
pub(crate) fn text(text: String) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// Writes the effective configuration as the text of a configuration file. Free it with shmlimit_text_free(). `*text` is
/// NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_config(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let out = OutValue::new("text", text, std::ptr::null_mut())?;
        let policy = limiter::limiter(limiter)?.policy()?;
        out.write(self::text(shmlimit::config::to_toml(&policy)));
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
        let out = OutValue::new("text", text, std::ptr::null_mut())?;
        let limiter = limiter::limiter(limiter)?;
        let lines: Vec<String> = limiter.environment_changes().iter().map(ToString::to_string).collect();
        out.write(self::text(lines.join("\n")));
        Ok(())
    })
}

/// Writes the metrics of a limiter in the text format of Prometheus, for programs that serve them: the text that
/// `shmlimit metrics` prints (docs/metrics.md). Free it with shmlimit_text_free(). `*text` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_metrics(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let out = OutValue::new("text", text, std::ptr::null_mut())?;
        let snapshot = limiter::limiter(limiter)?.snapshot()?;
        out.write(self::text(shmlimit::metrics::prometheus([&snapshot])));
        Ok(())
    })
}

/// Frees a text that this library returned in a `char **`. NULL is allowed and does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_text_free(text: *mut c_char) {
    guard((), || {
        if !text.is_null() {
            // SAFETY: by the caller's contract the pointer came from this module and is freed once.
            drop(unsafe { CString::from_raw(text) });
        }
    });
}
