//! Shared mappings, and the words that a fork would wipe, although Windows has no fork.

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
/// It is a raw mapping, because other processes write to the memory: no reference to plain memory may ever be
/// created from it.
#[derive(Debug)]
pub struct SharedMap {
    map: MmapRaw,
    base: NonNull<u64>,
    /// Used to check whether the file has lost its name.
    file: File,
}

// SAFETY: the mapping belongs to the process, not to a thread; `base` is an address that stays valid while `map`
// lives and is never dereferenced here.
unsafe impl Send for SharedMap {}
// SAFETY: as above; `&SharedMap` exposes only the address and the length.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    pub fn new(file: &File, len: usize) -> io::Result<SharedMap> {
        if len == 0 || file.metadata()?.len() != len as u64 {
            // A mapping that is longer than the file would extend the file.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is too short to be mapped"));
        }
        let map = MmapOptions::new().len(len).map_raw(file)?;
        let base = NonNull::new(map.as_mut_ptr().cast::<u64>())
            .ok_or_else(|| io::Error::other("the system mapped a file at address 0"))?;
        Ok(SharedMap { map, base, file: file.try_clone()? })
    }

    /// Does nothing: the system reclaims pages of a mapped file by itself.
    pub fn forget_pages(&self) {}

    /// Not supported: no call replaces one mapping by another in one step.
    pub fn replace(&self, _words: &[(usize, u64)]) -> io::Result<SharedMap> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The start of the mapping, aligned to 64 KiB.
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

    /// Returns a word; `index` must be below `WORDS`. Callers pass constants, for which the bounds check costs
    /// nothing.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    /// A cell for this process's liveness lock.
    #[inline]
    pub fn liveness_lock(&self) -> &LivenessCell {
        &self.liveness_lock
    }

    /// A cell for the lock of `LivenessLock::register_user`.
    pub fn user_lock(&self) -> &LivenessCell {
        &self.user_lock
    }
}
