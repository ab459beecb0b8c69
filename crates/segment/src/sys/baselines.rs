//! Baseline designs that benchmarks compare with: a single word, enough for one GCRA rule, without anything else
//! that a limiter has (no other rules, no permits, no owners, no recovery).

use super::platform::{Clock, hold_whole_file};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the precise clock once, as a limiter does. Benchmark ratios are in units of this call.
#[inline(always)]
pub fn clock() -> u64 {
    Clock::read()
}

/// One GCRA word in a mapped file.
#[derive(Debug)]
pub struct SharedWord {
    file: File,
    map: memmap2::MmapRaw,
}

/// The rate of a baseline.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Nanoseconds per call.
    pub step: u64,
    /// How far ahead of the clock the word may be, in nanoseconds.
    pub tau: u64,
}

impl Rate {
    /// Grants every call for as long as a benchmark runs.
    pub const PLENTY: Rate = Rate { step: 1000, tau: u64::MAX / 4 };
    /// Grants one call per hour.
    pub const SCARCE: Rate = Rate { step: 3_600_000_000_000, tau: 3_600_000_000_000 };
}

/// How the baselines with a file lock exclude other processes. Windows has only one kind of lock, and both variants
/// mean it there.
#[derive(Debug, Clone, Copy)]
pub enum FileLock {
    /// `flock(2)`.
    Flock,
    /// An open-file-description lock of the whole file.
    Ofd,
}

impl SharedWord {
    /// Maps the file, and creates it if it does not exist.
    pub fn open(path: &Path) -> io::Result<SharedWord> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(4096)?;
        let map = memmap2::MmapOptions::new().len(4096).map_raw(&file)?;
        Ok(SharedWord { file, map })
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the mapping is page aligned, 4096 bytes long, lives as long as `self`, and every process accesses
        // this word atomically.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast()) }
    }

    /// Decides once without any lock: clock, GCRA, compare-and-swap.
    #[inline(always)]
    pub fn decide_lock_free(&self, rate: Rate) -> bool {
        let now = clock();
        let mut at = self.word().load(Ordering::Relaxed);
        loop {
            let Some(next) = charge(at, now, rate) else { return false };
            match self.word().compare_exchange_weak(at, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => at = found,
            }
        }
    }

    /// Decides once under a lock of the file, as programs without a library do.
    #[inline(always)]
    pub fn decide_under(&self, lock: FileLock, rate: Rate) -> bool {
        hold_whole_file(&self.file, lock, true);
        let at = self.word().load(Ordering::Relaxed);
        let next = charge(at, clock(), rate);
        if let Some(next) = next {
            self.word().store(next, Ordering::Relaxed);
        }
        hold_whole_file(&self.file, lock, false);
        next.is_some()
    }
}

/// The new value of the word if the call is granted.
#[inline(always)]
fn charge(at: u64, now: u64, rate: Rate) -> Option<u64> {
    let next = at.max(now) + rate.step;
    (next - now <= rate.tau).then_some(next)
}
