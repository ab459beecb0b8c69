//! Byte locks of an open file. They are only tried, never waited for. They belong to the handle and end with it.

use std::fs::File;
use std::io;
use std::ops::Range;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    LOCK_FILE_FLAGS, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use super::native::{check, raw};

/// Which locks of the same byte can be held at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A lock that any number of handles can hold together.
    Shared = 0,
    /// A lock that excludes every other lock.
    Exclusive = LOCKFILE_EXCLUSIVE_LOCK as isize,
}

/// Tries to lock a byte and returns whether it is locked now.
pub(super) fn try_lock_byte(file: &File, byte: u64, kind: Kind) -> io::Result<bool> {
    try_lock_bytes(file, byte..byte + 1, kind)
}

/// Tries to lock several bytes with one lock.
pub(super) fn try_lock_bytes(file: &File, bytes: Range<u64>, kind: Kind) -> io::Result<bool> {
    let (mut overlapped, (low, high)) = (at(bytes.start), length(&bytes));
    let flags = kind as LOCK_FILE_FLAGS | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open for synchronous use, so the call is complete when it returns, before
    // `overlapped` is dropped.
    let answer = check(unsafe { LockFileEx(raw(file), flags, 0, low, high, &mut overlapped) });
    match answer.as_ref().map_err(|error| error.raw_os_error().map(i32::cast_unsigned)) {
        // Some file systems answer "pending" if another handle holds the lock.
        Err(Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING)) => Ok(false),
        _ => answer.map(|()| true),
    }
}

/// Releases the lock. This fails only if there is no such lock.
pub(super) fn unlock_byte(file: &File, byte: u64) -> io::Result<()> {
    unlock_bytes(file, byte..byte + 1)
}

/// Releases several bytes that were locked with one lock.
pub(super) fn unlock_bytes(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let (mut overlapped, (low, high)) = (at(bytes.start), length(&bytes));
    // SAFETY: as for locking.
    check(unsafe { UnlockFileEx(raw(file), 0, low, high, &mut overlapped) })
}

/// The number of bytes, as low and high half.
const fn length(bytes: &Range<u64>) -> (u32, u32) {
    let length = bytes.end - bytes.start;
    (length as u32, (length >> 32) as u32)
}

/// A position in a file, in the form that these calls require.
pub(super) fn at(byte: u64) -> OVERLAPPED {
    let mut overlapped = OVERLAPPED::default();
    overlapped.Anonymous.Anonymous.Offset = byte as u32;
    overlapped.Anonymous.Anonymous.OffsetHigh = (byte >> 32) as u32;
    overlapped
}
