//! The C ABI of shmlimit. Thin: it converts, guards the border, and decides nothing.
//!
//! `include/shmlimit.h` is generated from this crate and committed; a test compares the two. The conventions that
//! every function here keeps are written once, at the top of that header (see `cbindgen.toml`).

mod boundary;
pub mod layout;
mod version;

pub use version::{
    SHMLIMIT_LAYOUT_VERSION, SHMLIMIT_SEGMENT_SIZE, shmlimit_layout_version, shmlimit_segment_size,
    shmlimit_version,
};
