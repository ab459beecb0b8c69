//! Atomics from std or, in a model, from loom: the only switch between the two.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub use super::mortal::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// Nothing: loom runs the program's own order and has no compiler to hold back. A kill is modelled by a cut point
/// between two accesses, which already sees them in program order.
#[cfg(loom)]
#[inline]
pub fn compiler_fence(_order: Ordering) {}

/// Tells the processor that this is a spin.
#[cfg(not(loom))]
#[inline]
pub fn spin_hint() {
    std::hint::spin_loop();
}

/// Lets the model run another thread: a spin that never yields is an endless execution to loom.
#[cfg(loom)]
#[inline]
pub fn spin_hint() {
    loom::thread::yield_now();
}
