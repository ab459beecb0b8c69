//! Linux functions for the baselines and their report.

use crate::sys::baselines::FileLock;
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Waits for a lock of the whole file, or releases it.
#[inline]
pub fn hold_whole_file(file: &File, lock: FileLock, hold: bool) {
    let fd = file.as_raw_fd();
    let status = match lock {
        FileLock::Flock => {
            // SAFETY: the descriptor is open as long as `file`.
            unsafe { libc::flock(fd, if hold { libc::LOCK_EX } else { libc::LOCK_UN }) }
        }
        FileLock::Ofd => {
            let kind = if hold { libc::F_WRLCK } else { libc::F_UNLCK };
            let whence = libc::SEEK_SET as i16;
            let range = libc::flock { l_type: kind as i16, l_whence: whence, l_start: 0, l_len: 0, l_pid: 0 };
            // SAFETY: the descriptor is open as long as `file`, and `range` outlives the call.
            unsafe { libc::fcntl(fd, libc::F_OFD_SETLKW, &raw const range) }
        }
    };
    assert_eq!(status, 0, "a file lock");
}

/// The processor time of this process, in nanoseconds.
pub fn processor_time() -> io::Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
