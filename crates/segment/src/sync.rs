//! Atomics from std or, in a model, from loom: the only switch between the two.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub use killable::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// Nothing: loom runs the program's own order and has no compiler to hold back. A kill is modelled by a cut point
/// between two accesses, which already sees them in program order.
#[cfg(loom)]
#[inline]
pub(crate) fn compiler_fence(_order: Ordering) {}

/// Tells the processor that this is a spin.
#[cfg(not(loom))]
#[inline]
pub(crate) fn spin_hint() {
    std::hint::spin_loop();
}

/// Lets the model run another thread: a spin that never yields is an endless execution to loom.
#[cfg(loom)]
#[inline]
pub(crate) fn spin_hint() {
    loom::thread::yield_now();
}

#[cfg(loom)]
pub mod killable {
    //! For models only: atomics that a killed thread no longer reaches.
    //!
    //! A kill is precise: accesses before it happened, accesses after it did not. A model thread that is to die says
    //! after how many shared accesses ([`die_after`]); from then on its code runs to its end without any effect, which
    //! no other thread can tell from not running at all. Nothing unwinds and nothing is special about its destructors.

    use loom::sync::atomic::Ordering;
    use std::cell::Cell;

    loom::thread_local! {
        /// How many accesses this thread still has; `None` if it lives for ever.
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

    /// Counts an access; whether it happens.
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
            /// loom's atomic, for as long as the calling thread lives.
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

                /// As the standard library's.
                pub fn load(&self, order: Ordering) -> $int {
                    if self.reached() { self.cell.load(order) } else { 0 }
                }

                /// As the standard library's.
                pub fn store(&self, value: $int, order: Ordering) {
                    if self.reached() {
                        self.cell.store(value, order);
                    }
                }

                /// As the standard library's.
                pub fn swap(&self, value: $int, order: Ordering) -> $int {
                    if self.reached() { self.cell.swap(value, order) } else { 0 }
                }

                /// As the standard library's.
                pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                    if self.reached() { self.cell.fetch_add(value, order) } else { 0 }
                }

                /// As the standard library's.
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

                /// As the standard library's.
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

    // loom 0.7 takes a load and another thread's later store for independent if that thread has itself loaded the word
    // in between, and then never tries them the other way round. A dependency (a condition variable) makes all accesses to a word depend on each
    // other; unlike a second atomic or a mutex it orders nothing in the model's memory. The 64-bit words need none: they
    // are changed under the lock, and a model in which the reader comes last sees every value they ever had.
    killable!(AtomicU32, u32, Some(loom::sync::Condvar::new()));
    killable!(AtomicU64, u64, None);
}
