//! The C ABI of shmlimit. Thin: it converts, guards the border, and decides nothing.
//!
//! `include/shmlimit.h` is generated from this crate and committed; a test compares the two. The conventions that
//! every function here keeps are written once, at the top of that header (see `cbindgen.toml`).
//!
//! | what | where |
//! | --- | --- |
//! | failures leave number and words; texts for C | `boundary` |
//! | no panic crosses the border, no thread is cancelled inside | `guard` |
//! | the numbers | `code` |
//! | following pointers that C hands over | `input` |
//! | the layout of a segment, for those who read one without the library | `layout` |
//! | handles that can be checked | `table`, on the atomics of `sync` |
//! | functions, by what they are about | `limiter`, `request`, `grant`, `pending`, `outcome`, `pause`, `snapshot`, `listing`, `test_clock`, `version` |

// What callers must keep is said once, in the conventions of the header, and not at every function.
#![allow(clippy::missing_safety_doc)]
// Types have the names that C programs use.
#![allow(non_camel_case_types)]

mod boundary;
mod code;
mod grant;
mod guard;
mod handle_table;
mod input;
pub mod layout;
mod limiter;
mod listing;
mod outcome;
mod pause;
mod pending;
mod request;
mod snapshot;
mod test_clock;
mod version;

pub use boundary::{shmlimit_last_errno, shmlimit_last_error};
pub use code::*;
pub use grant::*;
pub use limiter::*;
pub use listing::*;
pub use outcome::*;
pub use pause::*;
pub use pending::*;
pub use request::*;
pub use snapshot::*;
pub use test_clock::*;
pub use version::*;

/// What the table of handles is made of. The models in `loom-tests` compile the table with loom's in place of these.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// A place that is reached by pointer, for a moment that a model can see.
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
            look(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
            change(self.0.get())
        }
    }
}
