//! Pausing and resuming a limiter.

use crate::boundary::call;
use crate::input::{self, Growing};
use crate::limiter::{limiter, shmlimit_limiter};
use shmlimit::PauseRequest;
use std::ffi::c_char;
use std::time::Duration;

/// How to pause a limiter. With `size` alone: until shmlimit_resume(), without a reason.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_pause_options {
    /// sizeof(shmlimit_pause_options).
    pub size: usize,
    /// How long, in nanoseconds; 0 = until the limiter is resumed.
    pub duration_ns: u64,
    /// The reason that `shmlimit status` shows: one line of up to 64 bytes; NULL = none.
    pub reason: *const c_char,
}

// SAFETY: the struct is a `usize` followed by an integer and a pointer: zeros are a valid value.
unsafe impl Growing for shmlimit_pause_options {
    const NAME: &'static str = "shmlimit_pause_options";
    const FIRST: usize = 24;
}

/// Stops all calls of all programs that share the limiter. Waiting calls keep waiting, and new calls join them. Calls that do
/// not wait, and calls whose deadline comes before the end of the pause, are refused with SHMLIMIT_REASON_PAUSED. The pause
/// goes on when this process ends. A second pause replaces the first.
///
/// `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_pause(
    limiter: *const shmlimit_limiter,
    options: *const shmlimit_pause_options,
) -> i32 {
    call(|| {
        let limiter = self::limiter(limiter)?;
        let mut request = PauseRequest::new();
        if let Some(options) = input::growing(options)? {
            if options.duration_ns > 0 {
                request = request.duration(Duration::from_nanos(options.duration_ns));
            }
            if let Some(reason) = input::text_or_none("shmlimit_pause_options.reason", options.reason)? {
                request = request.reason(reason);
            }
        }
        limiter.pause(&request)?;
        Ok(())
    })
}

/// Ends a pause. Waiting calls continue in their order. A limiter that is not paused stays as it is.
///
/// `was_paused` may be NULL. `*was_paused` is 1 if there was a pause, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_resume(
    limiter: *const shmlimit_limiter,
    was_paused: *mut i32,
) -> i32 {
    call(|| {
        let out = input::OutValue::optional(was_paused, 0);
        let ended = self::limiter(limiter)?.resume()?;
        if let Some(out) = out {
            out.write(i32::from(ended.is_some()));
        }
        Ok(())
    })
}
