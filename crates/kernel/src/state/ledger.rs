//! Counts that are stored for people only.

use super::health::bucket;
use crate::time::Nanos;
use bytemuck::{Pod, Zeroable};

/// How many words [`Ledger`] takes.
pub const LEDGER_WORDS: usize = 24;
/// How many different codes are counted apart; the last place is for all others.
pub const CODES: usize = 64;
/// Successes of this code are not counted here, so that the usual record changes one word less: they are what remains
/// of all successes.
pub const USUAL: u16 = 200;

/// Counts that outlive every process. Those who are attached count in their own slots; what they counted is added here
/// when they leave, or are reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Ledger {
    /// Calls granted to those who have left.
    pub granted: u64,
    /// Calls refused to those who have left.
    pub refused: u64,
    /// Looks of the waiting calls of those who have left.
    pub looked: u64,
    /// Answers that were found in a cache, so that no call was needed.
    pub cache_hits: u64,
    /// Answers that were not.
    pub cache_misses: u64,
    /// Nanoseconds that callers were told to wait before they try again, all together.
    pub sleep_sum: u64,
    /// How many were told to wait up to [`LATENCY_BOUNDS`](super::LATENCY_BOUNDS), each; the last: longer.
    pub sleep: [u64; 16],
    unused: [u64; 2],
}

impl Ledger {
    /// Adds what a participant counted.
    pub fn add(&mut self, granted: u64, refused: u64, looked: u64) {
        self.granted = self.granted.wrapping_add(granted);
        self.refused = self.refused.wrapping_add(refused);
        self.looked = self.looked.wrapping_add(looked);
    }

    /// Counts how long a caller was told to wait.
    pub fn sleeps(&mut self, time: Nanos) {
        let place = bucket(time);
        self.sleep[place] = self.sleep[place].wrapping_add(1);
        self.sleep_sum = self.sleep_sum.wrapping_add(time.0);
    }
}
