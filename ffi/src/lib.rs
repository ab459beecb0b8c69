//! The C ABI of shmlimit. It converts arguments and results, stops panics, and decides nothing.
//!
//! `include/shmlimit.h` is generated from this crate and committed; a test compares the two. The conventions of every
//! function are at the top of that header (see `cbindgen.toml`). Its order is that of `tests/header_order`: a list of
//! groups with their source files. Within a file the order of the source is the order of the header.
//!
//! | what | where |
//! | --- | --- |
//! | numbers and messages of failures; texts for C | `boundary` |
//! | no panic leaves the library, no thread is cancelled inside | `guard` |
//! | the numbers | `code` |
//! | following pointers that C hands over | `input` |
//! | the layout of a segment, for programs that read one without the library | `layout` |
//! | handles that can be checked | `table`, on the atomics of `sync` |
//! | functions, by topic | `version`, `limiter`, `request`, `grant`, `ending`, `outcome`, `pending`, `operate`, `pause`, `remove`, `snapshot`, `listing`, `metrics`, `test_clock`, `text` |

// The conventions of the header say once what callers must do.
#![allow(clippy::missing_safety_doc)]
// Types have the names that C programs use.
#![allow(non_camel_case_types)]

mod boundary;
mod code;
mod ending;
mod grant;
mod guard;
mod handle_table;
mod input;
pub mod layout;
mod limiter;
mod listing;
mod metrics;
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
pub use ending::*;
pub use grant::*;
pub use limiter::*;
pub use listing::*;
pub use metrics::*;
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
