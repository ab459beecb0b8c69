//! The guard at the boundary between Rust and C: it stops panics and keeps threads from being cancelled inside the
//! library.
//!
//! glibc ends a cancelled thread by unwinding its stack. That unwinding must not meet a Rust frame that catches
//! panics or has destructors to run: it would abort the program, or leave the handle table in a broken state. So
//! every exported function first turns cancellation off and restores it at the end. A request that arrives in
//! between stays pending and takes effect at the caller's next cancellation point.
//!
//! A thread with asynchronous cancellation can still be unwound before cancellation is off and while it is being
//! restored. Only frames without destructors and without a personality routine are on the stack at these moments:
//! the exported functions are `extern "C-unwind"`, they hold only `Copy` values, and the code that catches panics
//! is a separate function (`contained`).

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`. If it panics, the caller gets `otherwise` instead of an unwinding stack or an abort. The thread
/// cannot be cancelled meanwhile. `Copy` values have no destructor, so a cancelled thread can be unwound before and
/// after.
///
/// The library is written not to panic. This guard is a second line of defence, because a C program cannot catch a
/// panic.
#[inline(always)]
pub(crate) fn guard<R: Copy>(otherwise: R, work: impl FnOnce() -> R + Copy) -> R {
    let cancellation = Cancellation::off();
    let value = contained(otherwise, work);
    cancellation.restore();
    value
}

/// Never inlined, like `boundary::answer`: the frames of the exported functions must not catch anything, because a
/// cancelled thread is unwound through them (see the module's description).
#[inline(never)]
fn contained<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    caught(otherwise, work)
}

#[inline]
pub(crate) fn caught<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    // A panic can leave only the library's shared state half changed, and that state survives a kill at any
    // instruction.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(panic) => {
            // Dropping the payload could panic again. Leaking one box is the smaller harm.
            std::mem::forget(panic);
            otherwise
        }
    }
}

/// The cancellation state of the calling thread before the call. It has no `Drop`, so a frame that holds it can be
/// unwound.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation {
    #[cfg(cancellable)]
    state: std::ffi::c_int,
    #[cfg(cancellable)]
    kind: std::ffi::c_int,
}

/// The functions of the C library. Neither makes a system call: they change a word of the calling thread.
/// cbindgen:ignore
#[cfg(cancellable)]
mod posix {
    use std::ffi::c_int;

    #[cfg(target_vendor = "apple")]
    pub(super) const DISABLE: c_int = 0;
    #[cfg(not(target_vendor = "apple"))]
    pub(super) const DISABLE: c_int = 1;
    #[cfg(target_vendor = "apple")]
    pub(super) const DEFERRED: c_int = 2;
    #[cfg(not(target_vendor = "apple"))]
    pub(super) const DEFERRED: c_int = 0;

    unsafe extern "C-unwind" {
        pub(super) fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
        pub(super) fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    }
}

impl Cancellation {
    /// Turns cancellation of the calling thread off.
    #[inline(always)]
    pub(crate) fn off() -> Cancellation {
        #[cfg(cancellable)]
        {
            let (mut state, mut kind) = (posix::DISABLE, posix::DEFERRED);
            // SAFETY: the arguments are valid values, and places for the old values. The functions fail only for
            // invalid values. The cancellation type is changed too, because in glibc before 2.41 the signal handler
            // checks only the type when a signal arrives that was sent before this call.
            unsafe {
                posix::pthread_setcanceltype(posix::DEFERRED, &raw mut kind);
                posix::pthread_setcancelstate(posix::DISABLE, &raw mut state);
            }
            Cancellation { state, kind }
        }
        #[cfg(not(cancellable))]
        Cancellation {}
    }

    /// Restores the saved state. A thread with asynchronous cancellation may end here.
    #[inline(always)]
    pub(crate) fn restore(self) {
        #[cfg(cancellable)]
        {
            let mut ignored = 0;
            // SAFETY: the values came from the system. If the thread ends here, the frames above belong to the
            // exported function and to its caller: neither has anything to drop.
            unsafe {
                posix::pthread_setcancelstate(self.state, &raw mut ignored);
                posix::pthread_setcanceltype(self.kind, &raw mut ignored);
            }
        }
    }
}
