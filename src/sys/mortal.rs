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

macro_rules! mortal {
    ($name:ident, $int:ty) => {
        /// loom's atomic, for as long as the calling thread lives.
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            /// A new atomic.
            pub fn new(value: $int) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            /// The value as the system sees it, which is never killed.
            pub fn peek(&self) -> $int {
                self.0.load(Ordering::Relaxed)
            }

            /// As the standard library's.
            pub fn load(&self, order: Ordering) -> $int {
                if reaches() { self.0.load(order) } else { 0 }
            }

            /// As the standard library's.
            pub fn store(&self, value: $int, order: Ordering) {
                if reaches() {
                    self.0.store(value, order);
                }
            }

            /// As the standard library's.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                if reaches() { self.0.swap(value, order) } else { 0 }
            }

            /// As the standard library's.
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                if reaches() { self.0.fetch_or(value, order) } else { 0 }
            }

            /// As the standard library's.
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                if reaches() { self.0.compare_exchange(current, new, success, failure) } else { Ok(current) }
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

mortal!(AtomicU32, u32);
mortal!(AtomicU64, u64);
