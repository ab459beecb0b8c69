//! Atomics from std or, in a model, from loom. This module is the only switch between the two.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub use killable::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// Does nothing. Loom runs the program's own order, so there is no compiler to hold back. A kill is modelled by a
/// cut point between two accesses, which already sees them in program order.
#[cfg(loom)]
#[inline]
pub(crate) fn compiler_fence(_order: Ordering) {}

/// Tells the processor that this is a spin loop.
#[cfg(not(loom))]
#[inline]
pub(crate) fn spin_hint() {
    std::hint::spin_loop();
}

/// Lets the model run another thread. To loom, a spin loop that never yields is an endless execution.
#[cfg(loom)]
#[inline]
pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

#[cfg(loom)]
pub mod killable {
    //! Atomics for models only, which a killed thread no longer reaches.
    //!
    //! A kill is exact: all accesses before it have happened, and none after it. A model thread sets the number of
    //! shared accesses after which it dies ([`die_after`]). From then on its code runs to its end without any effect.
    //! No other thread can tell that from not running at all. Nothing unwinds, and destructors need no special
    //! treatment.

    use loom::sync::atomic::Ordering;
    use std::cell::Cell;

    loom::thread_local! {
        /// How many accesses this thread still has; `None` if it is never killed.
        static LIFE: Cell<Option<usize>> = Cell::new(None);
        static DEAD: Cell<bool> = Cell::new(false);
    }

    /// The calling model thread dies after this many more shared accesses.
    pub fn die_after(accesses: usize) {
        LIFE.with(|life| life.set(Some(accesses)));
    }

    /// Whether the calling model thread has died: at least one access did not happen.
    pub fn is_dead() -> bool {
        DEAD.with(Cell::get)
    }

    /// Counts an access, and returns whether it happens.
    pub fn reaches() -> bool {
        LIFE.with(|life| match life.get() {
            None => true,
            Some(0) => {
                DEAD.with(|dead| dead.set(true));
                false
            }
            Some(left) => {
                life.set(Some(left - 1));
                true
            }
        })
    }

    macro_rules! killable {
        ($name:ident, $int:ty, $dependency:expr) => {
            /// A loom atomic on which a killed thread has no effect.
            #[derive(Debug)]
            pub struct $name {
                cell: loom::sync::atomic::$name,
                dependency: Option<loom::sync::Condvar>,
            }

            impl $name {
                /// A new atomic.
                pub fn new(value: $int) -> Self {
                    Self { cell: loom::sync::atomic::$name::new(value), dependency: $dependency }
                }

                fn reached(&self) -> bool {
                    let reached = reaches();
                    if let (true, Some(dependency)) = (reached, &self.dependency) {
                        dependency.notify_all();
                    }
                    reached
                }

                /// The value as the system sees it, which is never killed.
                pub fn peek(&self) -> $int {
                    self.cell.load(Ordering::Relaxed)
                }

                /// Like the method of the standard library.
                pub fn load(&self, order: Ordering) -> $int {
                    if self.reached() { self.cell.load(order) } else { 0 }
                }

                /// Like the method of the standard library.
                pub fn store(&self, value: $int, order: Ordering) {
                    if self.reached() {
                        self.cell.store(value, order);
                    }
                }

                /// Like the method of the standard library.
                pub fn swap(&self, value: $int, order: Ordering) -> $int {
                    if self.reached() { self.cell.swap(value, order) } else { 0 }
                }

                /// Like the method of the standard library.
                pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                    if self.reached() { self.cell.fetch_add(value, order) } else { 0 }
                }

                /// Like the method of the standard library.
                pub fn compare_exchange(
                    &self,
                    current: $int,
                    new: $int,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$int, $int> {
                    if self.reached() {
                        self.cell.compare_exchange(current, new, success, failure)
                    } else {
                        Ok(current)
                    }
                }

                /// Like the method of the standard library.
                pub fn compare_exchange_weak(
                    &self,
                    current: $int,
                    new: $int,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$int, $int> {
                    self.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    // loom 0.7 treats a load and another thread's later store as independent if that thread has itself loaded the
    // word in between. Then it never tries them in the other order. A dependency (a condition variable) makes all
    // accesses to a word depend on each other. Unlike a second atomic or a mutex, it orders nothing in the model's
    // memory. The 64-bit words need none: they are changed under the lock, and a model in which the reader comes
    // last sees every value they ever had.
    killable!(AtomicU32, u32, Some(loom::sync::Condvar::new()));
    killable!(AtomicU64, u64, None);
}
