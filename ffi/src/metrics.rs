//! The metrics of a limiter as text.

use crate::boundary::call;
use crate::input::Slot;
use crate::limiter::{self, shmlimit_limiter};
use crate::text;
use std::ffi::c_char;

/// Writes the metrics of a limiter in the text format of Prometheus, for programs that serve them: the text that
/// `shmlimit metrics` prints (docs/metrics.md). Free it with shmlimit_text_free(). `*text` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_metrics(
    limiter: *const shmlimit_limiter,
    text: *mut *mut c_char,
) -> i32 {
    call(|| {
        let place = Slot::new("text", text, std::ptr::null_mut())?;
        let snapshot = limiter::limiter(limiter)?.snapshot()?;
        place.write(text::text(shmlimit::metrics::prometheus([&snapshot])));
        Ok(())
    })
}
