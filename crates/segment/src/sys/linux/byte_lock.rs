//! Byte locks of open file descriptions, and the byte of each slot.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::clock::Clock;

/// Far past the end of any segment, where no other lock can conflict with ours, and still within a signed 64-bit
/// offset.
pub const FIRST_LIVENESS_BYTE: i64 = 1 << 62;

/// The byte that is the liveness lock of a slot.
pub(super) fn liveness_byte(slot: u32) -> i64 {
    FIRST_LIVENESS_BYTE + i64::from(slot)
}

/// A number that two descriptions share only by chance. It is derived from the time, the process id and an address
/// in the process.
pub(super) fn number_for(file: &File) -> u64 {
    let seed = Clock::read() ^ u64::from(std::process::id()) << 32 ^ (&raw const *file).addr() as u64;
    // The finalizer of splitmix64: each bit of the seed changes half of the bits of the number.
    let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

pub(super) fn is_locked(file: &File, byte: i64) -> io::Result<bool> {
    is_in_the_way(file, byte_lock(libc::F_WRLCK, byte))
}

/// Whether another description holds a lock that conflicts with this one.
pub(super) fn is_in_the_way(file: &File, mut lock: libc::flock) -> io::Result<bool> {
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

pub(super) fn try_lock(file: &File, byte: i64) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_WRLCK, byte))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn byte_lock(kind: libc::c_int, byte: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        // Must be 0 for open-file-description locks.
        l_pid: 0,
    }
}
