//! Shared mappings, and words that would be wiped by a fork if there were one.

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use super::deferred_unlink::has_no_name;
use super::files::facts;
use super::liveness::LivenessCell;

/// A whole file, mapped shared; see the contract.
///
/// A raw mapping, because other processes write to it: no reference to plain memory may ever be made of it.
#[derive(Debug)]
pub struct SharedMap {
    map: MmapRaw,
    base: NonNull<u64>,
    /// To ask what has become of its name.
    file: File,
}

// SAFETY: the mapping belongs to the process, not to a thread; `base` is an address that stays valid while `map`
// lives and is never dereferenced here.
unsafe impl Send for SharedMap {}
// SAFETY: as above; `&SharedMap` gives out nothing but the address and the length.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    pub fn new(file: &File, len: usize) -> io::Result<SharedMap> {
        if len == 0 || file.metadata()?.len() != len as u64 {
            // A mapping that is longer than the file would make the file longer.
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the file has not the length to be mapped",
            ));
        }
        let map = MmapOptions::new().len(len).map_raw(file)?;
        let base = NonNull::new(map.as_mut_ptr().cast::<u64>())
            .ok_or_else(|| io::Error::other("the system mapped a file at address 0"))?;
        Ok(SharedMap { map, base, file: file.try_clone()? })
    }

    /// The system takes pages of a mapped file back by itself.
    pub fn forget_pages(&self) {}

    /// There is no call that puts one mapping in the place of another at once.
    pub fn replace(&self, _words: &[(usize, u64)]) -> io::Result<SharedMap> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Aligned to 64 KiB.
    #[inline]
    pub fn base(&self) -> NonNull<u64> {
        self.base
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub fn is_of_deleted_file(&self) -> bool {
        facts(&self.file).is_ok_and(|facts| facts.links == 0) || has_no_name(&self.file)
    }
}

/// Words of this process; see the contract.
#[derive(Debug)]
pub struct ForkWords {
    words: Box<[AtomicU64; ForkWords::WORDS]>,
    liveness_lock: LivenessCell,
    user_lock: LivenessCell,
}

impl ForkWords {
    pub const WORDS: usize = 64;

    pub fn new() -> io::Result<ForkWords> {
        let words = Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
        Ok(ForkWords { words, liveness_lock: LivenessCell::default(), user_lock: LivenessCell::default() })
    }

    /// `index` below `WORDS`; meant for constants, where the check costs nothing.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    /// A place for this process's liveness lock.
    #[inline]
    pub fn liveness_lock(&self) -> &LivenessCell {
        &self.liveness_lock
    }

    /// A place for what `LivenessLock::register_user` gives.
    pub fn user_lock(&self) -> &LivenessCell {
        &self.user_lock
    }
}
