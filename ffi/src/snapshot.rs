//! A snapshot of a limiter in plain C structs.

// Borrows a `String` and a `&'static str` in the same way, for the generated code.
#[allow(clippy::needless_borrow)]
#[rustfmt::skip] // generated
mod fill;
#[rustfmt::skip] // generated
mod structs;

use crate::boundary::{Owned, call};
use crate::guard::guard;
use crate::input::OutValue;
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{SHMLIMIT_PRIORITY_BACKGROUND, SHMLIMIT_PRIORITY_USER, SHMLIMIT_PRIORITY_WEBHOOK};
use shmlimit::Priority;
pub use structs::*;

/// The allocation behind a snapshot. C gets a pointer to its first field.
#[repr(C)]
struct Kept {
    shown: shmlimit_snapshot,
    _owned: Owned,
}

/// Takes a snapshot of a limiter: settings, counts, processes, queue, breaker. Free it with shmlimit_snapshot_free().
/// `*snapshot` is NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_snapshot_take(
    limiter: *const shmlimit_limiter,
    snapshot: *mut *const shmlimit_snapshot,
) -> i32 {
    call(|| {
        let out = OutValue::new("snapshot", snapshot, std::ptr::null())?;
        let taken = limiter::limiter(limiter)?.snapshot()?;
        let mut owned = Owned::default();
        let kept = Box::new(Kept { shown: fill::snapshot(&taken, &mut owned), _owned: owned });
        out.write(Box::into_raw(kept).cast_const().cast::<shmlimit_snapshot>());
        Ok(())
    })
}

/// Frees a snapshot with everything in it. NULL is allowed and does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_snapshot_free(snapshot: *const shmlimit_snapshot) {
    guard((), || {
        if !snapshot.is_null() {
            // SAFETY: by the caller's contract the pointer came from this module, as the first field of a `Kept`,
            // and is freed once.
            drop(unsafe { Box::from_raw(snapshot.cast_mut().cast::<Kept>()) });
        }
    });
}

/// The number of a priority.
fn priority(priority: Priority) -> u32 {
    match priority {
        Priority::Background => SHMLIMIT_PRIORITY_BACKGROUND,
        Priority::User => SHMLIMIT_PRIORITY_USER,
        Priority::Webhook => SHMLIMIT_PRIORITY_WEBHOOK,
    }
}
