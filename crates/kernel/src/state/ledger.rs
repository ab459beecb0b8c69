//! Statistics that are stored for reports only.

use super::health::bucket;
use crate::time::Nanos;
use bytemuck::{Pod, Zeroable};

/// Number of words of [`Ledger`].
pub const LEDGER_WORDS: usize = 24;
/// Number of different result codes that are counted separately. The last place is for all other codes.
pub const CODES: usize = 64;
/// Successes with this code are not counted separately, so that recording a usual call changes one word less.
/// Their number is the rest of all successes.
pub const USUAL: u16 = 200;

/// Counts that outlive every process. An attached process counts in its own slot. When it leaves or is
/// reclaimed, its counts are added here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Ledger {
    /// Calls granted to processes that have left.
    pub granted: u64,
    /// Calls refused to processes that have left.
    pub refused: u64,
    /// Queue checks by waiting calls of processes that have left.
    pub looked: u64,
    /// Answers that were found in a cache, so that no call was needed.
    pub cache_hits: u64,
    /// Answers that were not found in a cache.
    pub cache_misses: u64,
    /// The sum of all waits that callers were told before a retry, in nanoseconds.
    pub sleep_sum: u64,
    /// The number of these waits for each bound of [`LATENCY_BOUNDS`](super::LATENCY_BOUNDS). The last count is
    /// for longer waits.
    pub sleep: [u64; 16],
    unused: [u64; 2],
}

impl Ledger {
    /// Adds the counts of a participant.
    pub fn add(&mut self, granted: u64, refused: u64, looked: u64) {
        self.granted = self.granted.wrapping_add(granted);
        self.refused = self.refused.wrapping_add(refused);
        self.looked = self.looked.wrapping_add(looked);
    }

    /// Counts a wait that a caller was told.
    pub fn sleeps(&mut self, time: Nanos) {
        let place = bucket(time);
        self.sleep[place] = self.sleep[place].wrapping_add(1);
        self.sleep_sum = self.sleep_sum.wrapping_add(time.0);
    }
}
