//! The net at the border between Rust and C: no panic crosses it, and no thread is cancelled behind it.
//!
//! glibc ends a cancelled thread by unwinding its stack. That unwinding must not meet a Rust frame which catches panics or
//! has destructors to run: it would abort the program, or leave the table of handles locked. So every exported function
//! turns cancellation off first and restores it last. A request that arrives meanwhile stays pending, and takes effect at
//! the caller's next cancellation point.
//!
//! A thread whose cancellation is asynchronous can be unwound before it is off, and when it is restored. Only frames
//! without destructors and without a personality routine are on the stack then: the exported functions are
//! `extern "C-unwind"`, they hold nothing but what is `Copy`, and what catches panics is a function of its own
//! (`contained`).

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
/// is unwound through them (see above).
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

/// How the calling thread could be cancelled. It has no `Drop`, so that a frame which holds it can be unwound.
#[derive(Clone, Copy)]
pub(crate) struct Cancellation {
    #[cfg(cancellable)]
    state: std::ffi::c_int,
    #[cfg(cancellable)]
    kind: std::ffi::c_int,
}

/// The system's functions. Neither makes a system call: they change a word of the calling thread.
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
            // SAFETY: known values, and places for those before. They fail only for other values. The type as well, because
            // the handler of glibc before 2.41 asks only for that when a signal arrives that was sent before this.
            unsafe {
                posix::pthread_setcanceltype(posix::DEFERRED, &raw mut kind);
                posix::pthread_setcancelstate(posix::DISABLE, &raw mut state);
            }
            Cancellation { state, kind }
        }
        #[cfg(not(cancellable))]
        Cancellation {}
    }

    /// Restores what was before. A thread whose cancellation is asynchronous may end here.
    #[inline(always)]
    pub(crate) fn restore(self) {
        #[cfg(cancellable)]
        {
            let mut ignored = 0;
            // SAFETY: values that the system named. If the thread ends here, the frames above are the exported function
            // and its caller's: neither has anything to drop.
            unsafe {
                posix::pthread_setcancelstate(self.state, &raw mut ignored);
                posix::pthread_setcanceltype(self.kind, &raw mut ignored);
            }
        }
    }
}
