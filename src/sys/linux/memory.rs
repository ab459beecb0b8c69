//! Shared mappings, shared futexes, and words that a fork wipes.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::libc;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use super::pulse::PulseCell;
use crate::sys::FileFacts;

/// A whole file, mapped shared; see the contract.
///
/// A raw mapping, because other processes write to it: no reference to plain memory may ever be made of it.
#[derive(Debug)]
pub(crate) struct SharedMap {
    map: MmapRaw,
    base: NonNull<u64>,
}

// SAFETY: the mapping belongs to the process, not to a thread; `base` is an address that stays valid while `map`
// lives and is never dereferenced here.
unsafe impl Send for SharedMap {}
// SAFETY: as above; `&SharedMap` gives out nothing but the address and the length.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    pub(crate) fn new(file: &File, len: usize) -> io::Result<SharedMap> {
        if len == 0 || file.metadata()?.len() != len as u64 {
            // A page beyond the end of the file would be SIGBUS, not an error.
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file has not the length to be mapped",
            ));
        }
        let map = MmapOptions::new().len(len).map_raw(file)?;
        let base = NonNull::new(map.as_mut_ptr().cast::<u64>())
            .ok_or_else(|| io::Error::other("the system mapped a file at address 0"))?;
        Ok(SharedMap { map, base })
    }

    /// Page-aligned.
    #[inline]
    pub(crate) fn base(&self) -> NonNull<u64> {
        self.base
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn is_of_deleted_file(&self) -> bool {
        let start = format!("{:x}-", self.base.as_ptr().addr());
        std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| {
            maps.lines().any(|line| line.starts_with(&start) && line.ends_with(" (deleted)"))
        })
    }
}

/// Where processes meet; see the contract. The kernel knows by the file behind an address who waits at the same word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting;

impl Meeting {
    pub(crate) fn new(_facts: &FileFacts, _map: &SharedMap) -> Meeting {
        Meeting
    }

    pub(crate) fn wait(self, word: &AtomicU32, expected: u32, timeout: Duration) {
        futex_wait(word, expected, timeout);
    }

    /// Timers may be late by the thread's slack, 50 µs by default; it is narrowed for this sleep alone.
    pub(crate) fn wait_in_time(self, word: &AtomicU32, expected: u32, timeout: Duration) {
        // SAFETY: prctl with these operations reads and changes one number of the calling thread, and no memory of ours.
        let usual = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
        // SAFETY: as above.
        let set = |slack: libc::c_int| unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
        // Real-time threads have none to narrow.
        if usual <= 1 {
            return futex_wait(word, expected, timeout);
        }
        set(1);
        futex_wait(word, expected, timeout);
        set(usual);
    }

    pub(crate) fn wake(self, word: &AtomicU32) -> bool {
        futex_wake(word) > 0
    }
}

/// Not `FUTEX_PRIVATE_FLAG`: a private futex never meets a sleeper of another process.
fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: `word` is a live, aligned 32-bit word and `timeout` a live timespec for the whole call. Every outcome
    // (woken, value changed, timed out, interrupted) means "look again" to the caller, so none is reported.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const timeout) };
}

/// Wakes one; says how many that were.
fn futex_wake(word: &AtomicU32) -> libc::c_long {
    // SAFETY: `word` is a live, aligned 32-bit word; waking reads no memory of ours.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) }
}

/// The smallest page of any Linux; the kernel rounds up to its own.
const FORK_PAGE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// What the page holds; the rest of it is unused.
#[repr(C)]
struct ForkPage {
    words: [AtomicU64; ForkWords::WORDS],
    pulse: PulseCell,
}

const _: () = assert!(size_of::<ForkPage>() <= FORK_PAGE.get());

/// Words that every forked child finds 0; see the contract.
#[derive(Debug)]
pub(crate) struct ForkWords {
    page: NonNull<ForkPage>,
}

// SAFETY: the page belongs to the process and is only ever used through atomics.
unsafe impl Send for ForkWords {}
// SAFETY: as above.
unsafe impl Sync for ForkWords {}

impl ForkWords {
    pub(crate) const WORDS: usize = 64;

    pub(crate) fn new() -> io::Result<ForkWords> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice replaces nothing.
        let page = unsafe { mmap_anonymous(None, FORK_PAGE, access, MapFlags::MAP_PRIVATE) }?;
        let words = ForkWords { page: page.cast() };
        // SAFETY: the range is the mapping made above; the advice changes only what a child will see.
        unsafe { madvise(page, FORK_PAGE.get(), MmapAdvise::MADV_WIPEONFORK) }?;
        Ok(words)
    }

    /// `index` below `WORDS`; meant for constants, where the check costs nothing.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        &self.page().words[index]
    }

    /// A place for this process's pulse that a forked child finds empty.
    #[inline]
    pub(crate) fn pulse(&self) -> &PulseCell {
        &self.page().pulse
    }

    #[inline]
    fn page(&self) -> &ForkPage {
        // SAFETY: the mapping lives until drop, is aligned to a page and large enough; a ForkPage is atomics only,
        // for which all bits zero (new, or wiped by a fork) is a value.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for ForkWords {
    fn drop(&mut self) {
        drop(self.pulse().take());
        // SAFETY: `page` is the mapping of `new`, which nobody else unmaps, and no reference into it outlives `self`.
        // Unmapping one's own page cannot fail in a way that matters: the page would merely stay.
        let _ = unsafe { munmap(self.page.cast(), FORK_PAGE.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::testing::{eventually, exit_code_of, in_forked_child, raw_fork};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn fork_words_are_zero_when_new_and_in_every_child() {
        let words = ForkWords::new().unwrap();
        for index in 0..ForkWords::WORDS {
            assert_eq!(words.word(index).swap(u64::MAX, Relaxed), 0);
        }
        let all_zero = || (0..ForkWords::WORDS).all(|index| words.word(index).load(Relaxed) == 0);
        assert_eq!(in_forked_child(|| i32::from(!all_zero())), 0, "fork");
        assert_eq!(exit_code_of(raw_fork(|| i32::from(!all_zero()))), 0, "raw clone");
        assert_eq!(words.word(5).load(Relaxed), u64::MAX);
    }

    #[test]
    fn a_shared_futex_wakes_another_process() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let (ours, theirs) = (SharedMap::new(&file, 4096).unwrap(), SharedMap::new(&file, 4096).unwrap());
        // SAFETY: both addresses are live, aligned words used only atomically.
        let (ours, theirs) = unsafe {
            (
                AtomicU32::from_ptr(ours.base().as_ptr().cast()),
                AtomicU32::from_ptr(theirs.base().as_ptr().cast()),
            )
        };
        let child = raw_fork(|| {
            futex_wait(theirs, 0, Duration::from_secs(60));
            0
        });
        assert!(eventually(|| futex_wake(ours) == 1), "nobody was ever asleep on the word");
        assert_eq!(exit_code_of(child), 0);
    }

    #[test]
    fn a_futex_that_changed_or_timed_out_returns() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0, Duration::MAX);
        futex_wait(&word, 1, Duration::from_millis(1));
        assert_eq!(futex_wake(&word), 0);
    }
}
