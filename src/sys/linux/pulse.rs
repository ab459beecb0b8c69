//! The pulse: a byte lock of an open file description, kept alive by a mapping.
//!
//! The kernel gives the lock back when the last reference to the description goes. A mapping is such a reference,
//! and with `MADV_DONTFORK` it goes exactly when this process's memory goes, whatever happens to descriptors or
//! children. Never POSIX `F_SETLK`: closing any descriptor of the file would drop it.
//!
//! One gap remains, and it errs on the safe side: a fork by another thread during the few microseconds in which
//! `hold` has its descriptor open gives the child a copy of it. The slot then counts as alive until that child
//! ends or executes another program (the descriptor is close-on-exec).

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

/// Far past the end of any segment, where no other lock can meet ours, and still within a signed 64-bit offset.
pub const FIRST_PULSE: i64 = 1 << 62;

/// The kernel rounds up to one page, whatever its size.
const ONE_PAGE: NonZeroUsize = NonZeroUsize::new(1).unwrap();

/// The lock of a slot for as long as this process's memory lives; see the contract.
///
/// Kept across a possible fork, it belongs into a [`PulseCell`]: the child must not unmap what it never had.
#[derive(Debug)]
pub(crate) struct Pulse {
    page: NonNull<libc::c_void>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is never read or written.
unsafe impl Send for Pulse {}
// SAFETY: as above.
unsafe impl Sync for Pulse {}

impl Pulse {
    pub(crate) fn hold(fresh: File, slot: u32) -> io::Result<Option<Pulse>> {
        // Mapped before locked, so that an error on the way leaves no lock and no second cleanup.
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing; PROT_NONE: nobody reads it.
        let page = unsafe { mmap(None, ONE_PAGE, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, &fresh, 0) }?;
        let pulse = Pulse { page };
        // SAFETY: the range is the mapping made above.
        unsafe { madvise(page, ONE_PAGE.get(), MmapAdvise::MADV_DONTFORK) }?;
        Ok(try_lock(&fresh, slot)?.then_some(pulse))
    }

    /// Gives up ownership; the word is never 0.
    fn into_word(self) -> u64 {
        std::mem::ManuallyDrop::new(self).page.as_ptr().expose_provenance() as u64
    }

    /// # Safety
    /// `word` is 0, or came from `into_word` in this very process (not in a parent) and is used up here.
    unsafe fn from_word(word: u64) -> Option<Pulse> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(word as usize)).map(|page| Pulse { page })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        // SAFETY: `page` is the mapping of `hold`, which only this value may unmap, and nobody refers into it.
        let _ = unsafe { munmap(self.page, ONE_PAGE.get()) };
    }
}

/// A pulse in memory that a fork wipes: full in the process that put it there, empty in its children.
///
/// Lives only in [`ForkWords`](super::memory::ForkWords), which is what makes it sound: the address in it was put
/// there by `put` of this very process, or it is 0.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct PulseCell(AtomicU64);

impl PulseCell {
    /// Returns what was in it before.
    pub(crate) fn put(&self, pulse: Pulse) -> Option<Pulse> {
        self.exchange(pulse.into_word())
    }

    /// Leaves the cell empty.
    pub(crate) fn take(&self) -> Option<Pulse> {
        self.exchange(0)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    fn exchange(&self, word: u64) -> Option<Pulse> {
        let before = self.0.swap(word, Ordering::AcqRel);
        // SAFETY: only this function writes the cell, always the word of an owned pulse or 0; a fork wipes it; and
        // the swap hands each word to exactly one caller.
        unsafe { Pulse::from_word(before) }
    }
}

/// The lock of a slot whose owner seems dead, held through its descriptor for a short time; see the contract.
#[derive(Debug)]
pub(crate) struct TakenPulse {
    file: File,
    slot: u32,
}

impl TakenPulse {
    pub(crate) fn take(fresh: File, slot: u32) -> io::Result<Option<TakenPulse>> {
        Ok(try_lock(&fresh, slot)?.then_some(TakenPulse { file: fresh, slot }))
    }
}

impl Drop for TakenPulse {
    fn drop(&mut self) {
        // Closing is not enough: a child forked meanwhile has the same description and would keep the lock.
        let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_UNLCK, self.slot)));
    }
}

pub(crate) fn pulse_is_held(file: &File, slot: u32) -> io::Result<bool> {
    let mut lock = byte_lock(libc::F_WRLCK, slot);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
}

fn try_lock(file: &File, slot: u32) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&byte_lock(libc::F_WRLCK, slot))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn byte_lock(kind: libc::c_int, slot: u32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: FIRST_PULSE + i64::from(slot),
        l_len: 1,
        // Must be 0 for open-file-description locks.
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests;
