//! Shared mappings, and words that a fork wipes.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use nix::sys::mman::{
    MRemapFlags, MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, mremap, munmap,
};

use super::liveness::LivenessCell;

/// A whole file, mapped shared; see the contract.
///
/// It holds an address and a length, because other processes write to the memory: no reference to plain memory may
/// ever be created from it.
#[derive(Debug)]
pub struct SharedMap {
    base: NonNull<u64>,
    len: NonZeroUsize,
}

/// The protection of a mapped segment, and of the private memory that replaces it.
const ACCESS: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

// SAFETY: the mapping belongs to the process, not to a thread; `base` is an address that stays valid until drop,
// and the memory behind it is only ever accessed atomically.
unsafe impl Send for SharedMap {}
// SAFETY: as above; `&SharedMap` exposes only the address and the length.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    pub fn new(file: &File, len: usize) -> io::Result<SharedMap> {
        let unfit = || io::Error::new(io::ErrorKind::InvalidInput, "the file is too short to be mapped");
        let whole = NonZeroUsize::new(len).ok_or_else(unfit)?;
        // Access to a page beyond the end of the file would raise SIGBUS instead of returning an error.
        if file.metadata()?.len() != len as u64 {
            return Err(unfit());
        }
        // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
        let base = unsafe { mmap(None, whole, ACCESS, MapFlags::MAP_SHARED, file, 0) }?;
        Ok(SharedMap { base: base.cast(), len: whole })
    }

    /// The kernel removes the old pages and puts the new ones in their place under one lock of the address space.
    /// An access in between waits for that lock and then finds the new pages.
    pub fn replace(&self, words: &[(usize, u64)]) -> io::Result<SharedMap> {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new private mapping at an address of the kernel's choice replaces nothing.
        let new = unsafe { mmap_anonymous(None, self.len, ACCESS, flags) }?;
        let new = SharedMap { base: new.cast(), len: self.len };
        for (index, value) in words.iter().filter(|(index, _)| *index < self.len.get() / 8) {
            // SAFETY: the index is within the mapping made above, which is page-aligned and known to no other code.
            unsafe { new.base.add(*index).write(*value) };
        }
        // SAFETY: for a shared mapping, an old size of 0 makes a second mapping of the same pages, at an address of
        // the kernel's choice, and leaves the first one unchanged.
        let second = unsafe { mremap(self.base.cast(), 0, self.len(), MRemapFlags::MREMAP_MAYMOVE, None) }?;
        let second = SharedMap { base: second.cast(), len: self.len };
        match new.move_to(self) {
            Ok(()) => Ok(second),
            Err(error) => {
                // If the kernel ran out of memory, it may have unmapped the old pages without mapping the new ones.
                let _ = second.move_to(self);
                Err(error)
            }
        }
    }

    /// Moves this mapping to the address of another one of the same length.
    fn move_to(self, target: &SharedMap) -> io::Result<()> {
        let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
        let to = Some(target.base.cast());
        // SAFETY: both ranges are mappings of this process and equally long. The replaced range stays mapped, so
        // every address in it stays valid, and both are accessed through atomics only (I1).
        unsafe { mremap(self.base.cast(), self.len(), self.len(), flags, to) }?;
        // `target` unmaps the memory from now on.
        std::mem::forget(self);
        Ok(())
    }

    pub fn forget_pages(&self) {
        // SAFETY: the range is this mapping, which is alive. It is shared, so its content stays in the file and is
        // mapped again when it is touched.
        let _ = unsafe { madvise(self.base.cast(), self.len(), MmapAdvise::MADV_DONTNEED) };
    }

    /// The start of the mapping, page-aligned.
    #[inline]
    pub fn base(&self) -> NonNull<u64> {
        self.base
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    pub fn is_of_deleted_file(&self) -> bool {
        let start = format!("{:x}-", self.base.as_ptr().addr());
        std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| {
            maps.lines().any(|line| line.starts_with(&start) && line.ends_with(" (deleted)"))
        })
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: the range is a mapping that this value owns, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.base.cast(), self.len()) };
    }
}

/// The smallest page size of any Linux; the kernel rounds up to its page size.
const FORK_PAGE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// The content of the page; the rest is unused.
#[repr(C)]
struct ForkPage {
    words: [AtomicU64; ForkWords::WORDS],
    liveness_lock: LivenessCell,
    user_lock: LivenessCell,
}

const _: () = assert!(size_of::<ForkPage>() <= FORK_PAGE.get());

/// Words that are 0 in every forked child; see the contract.
#[derive(Debug)]
pub struct ForkWords {
    page: NonNull<ForkPage>,
}

// SAFETY: the page belongs to the process and is only ever accessed through atomics.
unsafe impl Send for ForkWords {}
// SAFETY: as above.
unsafe impl Sync for ForkWords {}

impl ForkWords {
    pub const WORDS: usize = 64;

    pub fn new() -> io::Result<ForkWords> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice replaces nothing.
        let page = unsafe { mmap_anonymous(None, FORK_PAGE, access, MapFlags::MAP_PRIVATE) }?;
        let words = ForkWords { page: page.cast() };
        // SAFETY: the range is the mapping made above; the advice only changes what a child sees.
        unsafe { madvise(page, FORK_PAGE.get(), MmapAdvise::MADV_WIPEONFORK) }?;
        Ok(words)
    }

    /// Returns a word; `index` must be below `WORDS`. Callers pass constants, for which the bounds check costs
    /// nothing.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        &self.page().words[index]
    }

    /// A cell for this process's liveness lock that a forked child finds empty.
    #[inline]
    pub fn liveness_lock(&self) -> &LivenessCell {
        &self.page().liveness_lock
    }

    /// A cell for the lock of `LivenessLock::register_user`, under the same rule.
    pub fn user_lock(&self) -> &LivenessCell {
        &self.page().user_lock
    }

    #[inline]
    fn page(&self) -> &ForkPage {
        // SAFETY: the mapping lives until drop, is page-aligned and large enough; a ForkPage consists of atomics
        // only, for which all bits zero (new, or wiped by a fork) is a valid value.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for ForkWords {
    fn drop(&mut self) {
        drop((self.liveness_lock().take(), self.user_lock().take()));
        // SAFETY: `page` is the mapping of `new`, which no other code unmaps, and no reference into it outlives
        // `self`. A failed unmap is harmless: the page would merely stay mapped.
        let _ = unsafe { munmap(self.page.cast(), FORK_PAGE.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::testing::{exit_code_of, in_forked_child, raw_fork};
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
}
