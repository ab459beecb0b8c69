//! The C ABI of shmlimit. It converts arguments and results and stops panics. It makes no decisions.
//!
//! `include/shmlimit.h` is generated from this crate and committed; a test compares the two. The conventions that
//! hold for every function are at the top of that header (see `cbindgen.toml`). `tests/header_order` defines the
//! header's order: a list of groups with their source files. Within a file, the order of the source is the order of
//! the header.
//!
//! | what | where |
//! | --- | --- |
//! | codes and messages of failures; strings for C | `boundary` |
//! | stops panics and thread cancellation at the boundary | `guard` |
//! | the codes | `code` |
//! | following pointers that C passes in | `input` |
//! | the layout of a segment, for programs that read one without the library | `layout` |
//! | checked handles | `handle_table`, on the atomics of `sync` |
//! | functions, by topic | `version`, `limiter`, `request`, `grant`, `outcome`, `pending`, `operate`, `pause`, `remove`, `snapshot`, `listing`, `test_clock`, `text` |

// The conventions at the top of the header state once what callers must do.
#![allow(clippy::missing_safety_doc)]
// The types have the names that C programs use.
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
mod operate;
mod outcome;
mod pause;
mod pending;
mod remove;
mod request;
mod snapshot;
mod test_clock;
mod text;
mod version;

pub use boundary::{shmlimit_last_errno, shmlimit_last_error};
pub use code::*;
pub use grant::*;
pub use limiter::*;
pub use listing::*;
pub use operate::*;
pub use outcome::*;
pub use pause::*;
pub use pending::*;
pub use remove::*;
pub use request::*;
pub use snapshot::*;
pub use test_clock::*;
pub use text::*;
pub use version::*;

/// The atomics of the handle table. The models in `loom-tests` compile the table with loom's types instead.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

    /// A cell that is reached by pointer inside a closure, so that a loom model can see when.
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
