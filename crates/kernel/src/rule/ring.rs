//! The words of a sliding log: a ring of runs, and sums over blocks of runs.
//!
//! A *run* is the set of units charged at one instant. Runs are numbered. Run `s` has place `s % runs`, with
//! its time and its count. Above the counts there are sums over aligned blocks of 16, 256 … places. So the sum
//! over any stretch, or the unit at which a sum passes a number, takes a few dozen reads. A charge writes one
//! word for each height.
//!
//! Nothing is ever cleared, because that would be too much for one transaction. A place is written when a run
//! is put there, and a block's sum starts again with the run at its first place. Only blocks that lie wholly in
//! the stretch in use are read, and every place of such a block has been written since its sum started. Earlier
//! contents of the words (another log, damage) are never read. Times are stored inverted: a zero, which only
//! damage leaves in a stretch, is then a time that is never over, and its run continues to count.

use crate::state::{Memory, View};
use crate::terms::Terms;
use crate::time::Time;
use bytemuck::{Pod, Zeroable};

/// Binary logarithm of the number of blocks in one block of the next height.
const FANOUT: u32 = 4;
/// Number of heights, including the counts themselves. Enough for 16^5 runs.
const HEIGHTS: usize = 5;

/// The positions of the words of one log.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    times: usize,
    sums: [usize; HEIGHTS],
    heights: usize,
    runs: u64,
}

/// A stretch of runs, from `first` up to but not including `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) next: u64,
}

impl Stretch {
    #[inline]
    pub(super) const fn len(self) -> u64 {
        self.next.wrapping_sub(self.first)
    }

    /// The newest run.
    #[inline]
    pub(super) const fn last(self) -> u64 {
        self.next.wrapping_sub(1)
    }
}

impl Ring {
    pub(super) fn of(terms: &Terms) -> Ring {
        // Each run needs two words and 1/15 word for sums, and each height may be rounded up.
        let words = terms.log_words().max(64);
        let runs = (words - 2 * HEIGHTS) * 15 / 31;
        let mut ring = Ring { times: terms.log_at(), sums: [0; HEIGHTS], heights: 0, runs: runs as u64 };
        let mut at = ring.times.saturating_add(runs);
        for (height, sums) in ring.sums.iter_mut().enumerate() {
            let block = 1 << (FANOUT * height as u32);
            if block > runs {
                break;
            }
            *sums = at;
            at = at.saturating_add(runs.div_ceil(block));
            ring.heights += 1;
        }
        ring
    }

    /// Maximum number of runs.
    #[inline]
    pub(super) const fn runs(&self) -> u64 {
        self.runs
    }

    #[inline]
    const fn place(&self, run: u64) -> u64 {
        run % self.runs
    }

    #[inline]
    fn sum_at(&self, height: usize, place: u64) -> usize {
        self.sums[height].saturating_add((place >> (FANOUT * height as u32)) as usize)
    }

    #[inline]
    pub(super) fn time<V: View>(&self, v: &V, run: u64) -> Time {
        Time(!v.log(self.times.saturating_add(self.place(run) as usize)))
    }

    /// The number of units of run `run`.
    pub(super) fn count<V: View>(&self, v: &V, run: u64) -> u64 {
        v.log(self.sum_at(0, self.place(run)))
    }

    /// The first run of a stretch that is later than `time`. Times never decrease. The search starts at the
    /// front, because the run is usually near it.
    pub(super) fn first_after<V: View>(&self, v: &V, stretch: Stretch, time: Time) -> u64 {
        let after = |i: u64| self.time(v, stretch.first.wrapping_add(i)) > time;
        let len = stretch.len().min(self.runs);
        let (mut low, mut high, mut step) = (0, len, 1);
        while low < high {
            let probe = (low + step - 1).min(low + (high - low) / 2);
            if after(probe) {
                high = probe;
            } else {
                low = probe + 1;
            }
            step *= 2;
        }
        stretch.first.wrapping_add(low)
    }

    /// The sum over a stretch.
    pub(super) fn sum<V: View>(&self, v: &V, stretch: Stretch) -> u64 {
        self.walk(v, stretch, None).1
    }

    /// The time of the `k`th oldest unit of a stretch with at least `k` units.
    pub(super) fn time_of_unit<V: View>(&self, v: &V, stretch: Stretch, k: u64) -> Time {
        self.time(v, self.walk(v, stretch, Some(k)).0)
    }

    /// Goes through a stretch in the largest possible steps, until the sum is at least `enough` if that is
    /// given. Returns the run at which the sum reaches it, or the end, and the sum before that run.
    fn walk<V: View>(&self, v: &V, stretch: Stretch, enough: Option<u64>) -> (u64, u64) {
        let (mut run, mut sum) = (stretch.first, 0u64);
        let mut left = stretch.len().min(self.runs);
        let mut place = self.place(run);
        while left > 0 {
            let fits = left.min(self.runs - place);
            let mut height = self.heights - 1;
            let width = loop {
                let width = 1 << (FANOUT * height as u32);
                if height == 0 || (place.is_multiple_of(width) && width <= fits) {
                    let with = sum.wrapping_add(v.log(self.sum_at(height, place)));
                    match enough {
                        Some(enough) if with >= enough && height == 0 => return (run, sum),
                        Some(enough) if with >= enough => {}
                        _ => {
                            sum = with;
                            break width;
                        }
                    }
                }
                height -= 1;
            };
            run = run.wrapping_add(width);
            left -= width;
            place = if place + width == self.runs { 0 } else { place + width };
        }
        (run, sum)
    }

    /// Adds a new run after the newest one.
    pub(super) fn push<M: Memory>(&self, m: &mut M, run: u64, time: Time, count: u64) {
        let place = self.place(run);
        m.set_log(self.times.saturating_add(place as usize), !time.0);
        for height in 0..self.heights {
            let begins = place.is_multiple_of(1 << (FANOUT * height as u32));
            let word = self.sum_at(height, place);
            let before = if begins { 0 } else { m.log(word) };
            m.set_log(word, before.wrapping_add(count));
        }
    }

    /// Adds to the newest run, and sets its time to `time`.
    pub(super) fn grow<M: Memory>(&self, m: &mut M, run: u64, time: Time, count: u64) {
        let place = self.place(run);
        m.set_log(self.times.saturating_add(place as usize), !time.0);
        for height in 0..self.heights {
            let word = self.sum_at(height, place);
            let before = m.log(word);
            m.set_log(word, before.wrapping_add(count));
        }
    }

    /// Removes units from a run of a stretch.
    pub(super) fn shrink<M: Memory>(&self, m: &mut M, stretch: Stretch, run: u64, count: u64) {
        let place = self.place(run);
        for height in 0..self.heights {
            // If the next round has already started a block, its sum is about the runs of that round.
            let begin = run.wrapping_sub(place % (1 << (FANOUT * height as u32)));
            if stretch.next.wrapping_sub(begin) > self.runs {
                return;
            }
            let word = self.sum_at(height, place);
            let before = m.log(word);
            // A sum that is smaller than `count` is damaged. If it went below zero, it would look like a large
            // sum.
            m.set_log(word, before.saturating_sub(count));
        }
    }
}
