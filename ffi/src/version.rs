//! Which library this is, and which segments it can open.

use crate::guard::guard;
use shmlimit_segment::layout;
use std::ffi::{CStr, c_char};

/// Layout version of segments at the time a program was compiled; compare with `shmlimit_layout_version()`.
pub const SHMLIMIT_LAYOUT_VERSION: u32 = 6;

/// Bytes that every segment has, before its logs, at the time a program was compiled; compare with `shmlimit_segment_size()`.
pub const SHMLIMIT_SEGMENT_SIZE: u64 = 294912;

const _: () = {
    assert!(SHMLIMIT_LAYOUT_VERSION == layout::LAYOUT_VERSION, "the header must say what the library does");
    assert!(SHMLIMIT_SEGMENT_SIZE == layout::SIZE as u64, "the header must say what the library does");
};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"unknown",
};

/// The version of the library, such as "0.1.0".
///
/// Never NULL; static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_version() -> *const c_char {
    guard(c"unknown".as_ptr(), || VERSION.as_ptr())
}

/// The layout version of the segments this library makes and opens. It refuses all others and leaves them alone.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_layout_version() -> u32 {
    guard(0, || layout::LAYOUT_VERSION)
}

/// How many bytes every segment of that layout has; one with sliding logs is longer.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_segment_size() -> u64 {
    guard(0, || layout::SIZE as u64)
}
