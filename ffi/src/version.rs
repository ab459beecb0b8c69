//! The versions of the library and of the files it can open.

use crate::guard::guard;
use shmlimit_segment::layout;
use std::ffi::{CStr, c_char};

/// The layout version of limiters' files that this header describes. Compare it with shmlimit_layout_version().
pub const SHMLIMIT_LAYOUT_VERSION: u32 = 6;

/// The size of a limiter's file without sliding logs, in bytes. Compare it with shmlimit_segment_size().
pub const SHMLIMIT_SEGMENT_SIZE: u64 = 294912;

const _: () = {
    assert!(SHMLIMIT_LAYOUT_VERSION == layout::LAYOUT_VERSION, "the header must say what the library does");
    assert!(SHMLIMIT_SEGMENT_SIZE == layout::SIZE as u64, "the header must say what the library does");
};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"unknown",
};

/// The version of the library that the program runs with, such as "0.1.0". Compare it with SHMLIMIT_VERSION.
///
/// Never NULL. Static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_version() -> *const c_char {
    guard(c"unknown".as_ptr(), || VERSION.as_ptr())
}

/// The layout version of the files that the library creates and opens. It refuses all others and does not change them.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_layout_version() -> u32 {
    guard(0, || layout::LAYOUT_VERSION)
}

/// The size of a limiter's file without sliding logs, in bytes. A file with sliding logs is larger.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_segment_size() -> u64 {
    guard(0, || layout::SIZE as u64)
}
