//! The liveness lock: a byte lock of an open file description that a mapping keeps open.
//!
//! The kernel releases the lock when the last reference to the description is dropped. A mapping is such a
//! reference. With `MADV_DONTFORK` it is dropped exactly when this process's memory is released, whatever happens
//! to descriptors or children. POSIX `F_SETLK` must not be used: closing any descriptor of the file would drop the
//! lock.
//!
//! Not every file system lets a mapping keep the description open: overlayfs maps the file of the layer below, and
//! closes its own description with the last descriptor. So `hold` checks this. The description also locks a *mark*,
//! a byte that no other description locks. Once the descriptor is closed, a second description must find the mark
//! locked. The lock of the slot itself cannot serve for this check: where locks are lost, another process may have
//! taken it in the meantime.
//!
//! One gap remains. If another thread forks during the few microseconds in which `hold` has its descriptor open,
//! the child gets a copy of the descriptor, until that child ends or executes another program (the descriptor is
//! close-on-exec). Until then the slot counts as alive, which is safe, but the mark is found locked too. Therefore
//! file systems that are known to lose locks are also recognized by their type.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::byte_lock::{byte_lock, is_in_the_way, is_locked, liveness_byte, number_for, try_lock};
use super::file_system::file_system;
use crate::sys::{FileSystem, Hold};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

/// Marks lie in the 2^61 bytes before the liveness locks.
const FIRST_MARK: i64 = 1 << 61;

/// The 2^60 bytes before the marks record which limiters are open; see [`LivenessLock::register_user`]. `flock`
/// locks the creation lock as a whole. Its locks are of another kind and do not conflict with byte locks on a local
/// file system.
const FIRST_USER_BYTE: i64 = 1 << 60;

/// The kernel rounds up to one page, whatever its size.
const ONE_PAGE: NonZeroUsize = NonZeroUsize::new(1).unwrap();

/// The lock of a slot until this process's memory is gone; see the contract.
///
/// If it is kept across a possible fork, it belongs in a `LivenessCell`: the child does not have the mapping and
/// must not unmap it.
#[derive(Debug)]
pub struct LivenessLock {
    page: NonNull<libc::c_void>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is never read or written.
unsafe impl Send for LivenessLock {}
// SAFETY: as above.
unsafe impl Sync for LivenessLock {}

impl LivenessLock {
    pub fn hold(fresh: File, slot: u32, probe: &File) -> io::Result<Hold> {
        if let FileSystem::Lossy(_) = file_system(probe)? {
            return Ok(Hold::Lost);
        }
        let liveness_lock = LivenessLock::mapped(&fresh)?;
        if !try_lock(&fresh, liveness_byte(slot))? {
            return Ok(Hold::Taken);
        }
        Ok(if outlives_its_descriptor(fresh, probe)? { Hold::Held(liveness_lock) } else { Hold::Lost })
    }

    /// Takes a shared lock, because many processes may hold it. `hold` has already checked for the slot, in the
    /// same directory, that a lock outlives its descriptor.
    pub fn register_user(creation_lock: File, number: u64) -> io::Result<Option<LivenessLock>> {
        if !has_own_locks(&creation_lock)? {
            return Ok(None);
        }
        let liveness_lock = LivenessLock::mapped(&creation_lock)?;
        fcntl(&creation_lock, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_RDLCK, user_byte(number))))?;
        Ok(Some(liveness_lock))
    }

    /// Keeps a description open by a mapping. The caller locks only after mapping, so an error leaves no lock
    /// behind and needs no second cleanup.
    fn mapped(file: &File) -> io::Result<LivenessLock> {
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing. With PROT_NONE it is never
        // read.
        let page = unsafe { mmap(None, ONE_PAGE, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, file, 0) }?;
        let liveness_lock = LivenessLock { page };
        // SAFETY: the range is the mapping made above.
        unsafe { madvise(page, ONE_PAGE.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(liveness_lock)
    }

    /// Transfers ownership to the word, which is never 0.
    fn into_word(self) -> u64 {
        std::mem::ManuallyDrop::new(self).page.as_ptr().expose_provenance() as u64
    }

    /// # Safety
    /// `word` is 0, or came from `into_word` in this same process (not in a parent), and is not used again.
    unsafe fn from_word(word: u64) -> Option<LivenessLock> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(word as usize)).map(|page| LivenessLock { page })
    }
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        // SAFETY: `page` is the mapping made by `mapped`, which only this value may unmap, and no reference points
        // into it.
        let _ = unsafe { munmap(self.page, ONE_PAGE.get()) };
    }
}

/// A liveness lock in memory that a fork wipes: full in the process that put it there, empty in its children.
///
/// It exists only in [`ForkWords`](super::memory::ForkWords), which makes it sound: the address in it is 0, or
/// `put` stored it in this same process.
#[derive(Debug)]
#[repr(transparent)]
pub struct LivenessCell(AtomicU64);

impl LivenessCell {
    /// Stores the lock and returns the previous content.
    pub fn put(&self, liveness_lock: LivenessLock) -> Option<LivenessLock> {
        self.exchange(liveness_lock.into_word())
    }

    /// Empties the cell and returns its content.
    pub fn take(&self) -> Option<LivenessLock> {
        self.exchange(0)
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    fn exchange(&self, word: u64) -> Option<LivenessLock> {
        let before = self.0.swap(word, Ordering::AcqRel);
        // SAFETY: only this function writes the cell, always the word of an owned liveness lock or 0; a fork wipes
        // it; and the swap hands each word to exactly one caller.
        unsafe { LivenessLock::from_word(before) }
    }
}

pub fn liveness_lock_is_held(file: &File, slot: u32) -> io::Result<bool> {
    is_locked(file, liveness_byte(slot))
}

pub fn has_users(creation_lock: &File, numbers: Range<u64>) -> io::Result<bool> {
    // A length of zero would mean all bytes up to the end.
    if numbers.is_empty() || !has_own_locks(creation_lock)? {
        return Ok(false);
    }
    let length = (numbers.end - numbers.start).cast_signed();
    let lock = libc::flock { l_len: length, ..byte_lock(libc::F_WRLCK, user_byte(numbers.start)) };
    is_in_the_way(creation_lock, lock)
}

pub fn try_lock_creation(creation_lock: &File) -> io::Result<bool> {
    match fs4::FileExt::try_lock(creation_lock) {
        Ok(()) => Ok(true),
        Err(fs4::TryLockError::WouldBlock) => Ok(false),
        Err(fs4::TryLockError::Error(error)) => Err(error),
    }
}

pub fn unlock_creation(creation_lock: &File) {
    let _ = fs4::FileExt::unlock(creation_lock);
}

fn user_byte(number: u64) -> i64 {
    FIRST_USER_BYTE | number.cast_signed() & (FIRST_USER_BYTE - 1)
}

/// Whether `flock` and byte locks are independent. NFS implements both as byte locks, so a registered user would
/// keep all others from the creation lock.
fn has_own_locks(file: &File) -> io::Result<bool> {
    Ok(matches!(file_system(file)?, FileSystem::Local | FileSystem::Volatile))
}

/// Whether a mapped description keeps its locks when its only descriptor is closed.
fn outlives_its_descriptor(mapped: File, probe: &File) -> io::Result<bool> {
    let mark = lock_mark(&mapped)?;
    drop(mapped);
    is_locked(probe, mark)
}

/// Locks a byte that no other description locks, and returns it.
fn lock_mark(file: &File) -> io::Result<i64> {
    loop {
        let mark = FIRST_MARK | number_for(file).cast_signed() & (FIRST_MARK - 1);
        // A byte that is already locked is not used.
        if try_lock(file, mark)? {
            return Ok(mark);
        }
    }
}

#[cfg(test)]
mod tests;
