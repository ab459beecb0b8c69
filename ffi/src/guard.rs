//! The net at the border between Rust and C: no panic crosses it, and no thread is cancelled behind it.

use crate::cancel::Cancellation;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; if it panics, the caller gets `otherwise` instead of an unwinding stack or an abort. Meanwhile the thread
/// cannot be cancelled. What is `Copy` has no destructor, so that a cancelled thread can be unwound before and after.
///
/// The library is written not to panic. This is the net below it: a program in C has no way to catch one.
#[inline(always)]
pub(crate) fn guard<R: Copy>(otherwise: R, work: impl FnOnce() -> R + Copy) -> R {
    let cancellation = Cancellation::off();
    let value = contained(otherwise, work);
    cancellation.restore();
    value
}

/// Never inlined, as `boundary::answer`: the frames of the exported functions must not catch anything, because a cancelled thread
/// is unwound through them (see `cancel`).
#[inline(never)]
fn contained<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    caught(otherwise, work)
}

#[inline]
pub(crate) fn caught<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    // What a panic may leave half done is the library's shared state, which is whole after any kill.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(panic) => {
            // A payload may itself panic when it is dropped; one leaked box is the lesser evil.
            std::mem::forget(panic);
            otherwise
        }
    }
}
