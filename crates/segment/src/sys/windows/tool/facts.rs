//! Facts about files and about this process.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Storage::FileSystem::{
    GetDiskFreeSpaceExW, LOCKFILE_EXCLUSIVE_LOCK, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

use crate::sys::baselines::FileLock;
use crate::sys::windows::byte_lock::{Kind, at, try_lock_byte, unlock_byte};
use crate::sys::windows::native::{check, raw, wide_path};

/// A byte past the end of any file. A lock on Windows prevents other handles from reading and writing the bytes it
/// covers, and a writer that could not take the lock must still be able to write.
const WRITING: u64 = 1 << 62;

/// Tries to take the lock that the writers of a file share; `false` if another handle holds it. The lock belongs to
/// this `file`.
pub fn try_lock_writing(file: &File) -> io::Result<bool> {
    try_lock_byte(file, WRITING, Kind::Exclusive)
}

/// Releases the lock of [`try_lock_writing`].
pub fn unlock_writing(file: &File) -> io::Result<()> {
    unlock_byte(file, WRITING)
}

/// Waits for a lock of the whole file, or releases it.
pub fn hold_whole_file(file: &File, _lock: FileLock, hold: bool) {
    let mut overlapped = at(0);
    let done = if hold {
        // SAFETY: the handle is open for synchronous use, so the call is complete when it returns; `overlapped`
        // outlives it.
        check(unsafe {
            LockFileEx(raw(file), LOCKFILE_EXCLUSIVE_LOCK, 0, u32::MAX, u32::MAX, &mut overlapped)
        })
    } else {
        // SAFETY: as above.
        check(unsafe { UnlockFileEx(raw(file), 0, u32::MAX, u32::MAX, &mut overlapped) })
    };
    done.expect("a file lock");
}

/// Whether the file at this path is the open file.
pub fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = crate::sys::facts(&OpenOptions::new().read(true).open(path)?)?;
    let here = crate::sys::facts(file)?;
    Ok((there.dev, there.ino) == (here.dev, here.ino))
}

/// How many bytes this user may still write to the disk of a directory.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let path = wide_path(directory)?;
    let mut free = 0;
    // SAFETY: the path ends with a zero, `free` is alive and writable, and the other answers are not requested.
    check(unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut free, null_mut(), null_mut()) })?;
    Ok(free)
}

/// The processor time of this process, in nanoseconds.
pub fn processor_time() -> io::Result<u64> {
    let mut times = [FILETIME::default(); 4];
    let [created, ended, system, own] = &mut times;
    // SAFETY: the pseudo-handle needs no closing, and the four times are alive and writable.
    check(unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, system, own) })?;
    let ticks = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Ok((ticks(times[2]) + ticks(times[3])) * 100)
}
