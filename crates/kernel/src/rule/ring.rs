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
    runs: usize,
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
    #[inline(always)]
    pub(super) const fn of(terms: &Terms) -> Ring {
        // Each run needs two words and 1/15 word for sums, and each height may be rounded up.
        let words = if terms.log_words() < 64 { 64 } else { terms.log_words() };
        Ring { times: terms.log_at(), runs: (words - 2 * HEIGHTS) * 15 / 31 }
    }

    /// Maximum number of runs.
    #[inline(always)]
    pub(super) const fn runs(&self) -> u64 {
        self.runs as u64
    }

    /// The place of a run. It takes a division, so use [`Ring::later`] for a run near one whose place is known.
    #[inline(always)]
    pub(super) const fn place(&self, run: u64) -> usize {
        (run % self.runs as u64) as usize
    }

    /// The place of the run that comes `more` runs after the run at `place`. `more` is at most [`Ring::runs`].
    #[inline(always)]
    pub(super) const fn later(&self, place: usize, more: u64) -> usize {
        let sum = place.wrapping_add(more as usize);
        if sum >= self.runs { sum.wrapping_sub(self.runs) } else { sum }
    }

    /// Number of heights, including the counts themselves: each whose blocks are not longer than the ring.
    #[inline(always)]
    const fn heights(&self) -> u32 {
        let heights = self.runs.ilog2() / FANOUT + 1;
        if heights > HEIGHTS as u32 { HEIGHTS as u32 } else { heights }
    }

    /// The first word of each height.
    #[inline(always)]
    fn sums(&self) -> [usize; HEIGHTS] {
        let mut at = self.times.saturating_add(self.runs);
        let mut sums = [0; HEIGHTS];
        for (height, sums) in sums.iter_mut().enumerate() {
            *sums = at;
            at = at.saturating_add(self.runs.div_ceil(1 << (FANOUT * height as u32)));
        }
        sums
    }

    /// The time of the run at `place`.
    #[inline(always)]
    pub(super) fn time<V: View>(&self, v: &V, place: usize) -> Time {
        Time(!v.log(self.times.saturating_add(place)))
    }

    /// The number of units of the run at `place`.
    #[inline(always)]
    pub(super) fn count<V: View>(&self, v: &V, place: usize) -> u64 {
        v.log(self.times.saturating_add(self.runs).saturating_add(place))
    }

    /// The number of runs, of the `len` runs from `place` on, that are not later than `time`. Times never decrease.
    /// The search starts at the front, because the number is usually small.
    #[inline(always)]
    pub(super) fn until<V: View>(&self, v: &V, place: usize, len: u64, time: Time) -> u64 {
        let len = len.min(self.runs());
        let (mut low, mut high, mut step) = (0, len, 1);
        while low < high {
            let probe = (low + step - 1).min(low + (high - low) / 2);
            if self.time(v, self.later(place, probe)) > time {
                high = probe;
            } else {
                low = probe + 1;
            }
            step *= 2;
        }
        low
    }

    /// The sum over `len` runs from `place` on.
    #[inline(always)]
    pub(super) fn sum<V: View>(&self, v: &V, place: usize, len: u64) -> u64 {
        if len == 1 { self.count(v, place) } else { self.walk(v, place, len, None).1 }
    }

    /// The time of the `k`th oldest unit of a stretch with at least `k` units.
    pub(super) fn time_of_unit<V: View>(&self, v: &V, stretch: Stretch, k: u64) -> Time {
        let first = self.place(stretch.first);
        self.time(v, self.walk(v, first, stretch.len(), Some(k)).0)
    }

    /// Goes through `len` runs from `place` on in the largest possible steps, until the sum is at least `enough` if
    /// that is given. Returns the place at which the sum reaches it, or the end, and the sum before that place.
    #[inline(never)]
    fn walk<V: View>(&self, v: &V, mut place: usize, len: u64, enough: Option<u64>) -> (usize, u64) {
        let (sums, heights) = (self.sums(), self.heights());
        let mut sum = 0u64;
        let mut left = len.min(self.runs()) as usize;
        while left > 0 {
            let fits = left.min(self.runs - place);
            let mut height = heights - 1;
            let width = loop {
                let width = 1 << (FANOUT * height);
                if height == 0 || (place.is_multiple_of(width) && width <= fits) {
                    let word = sums[height as usize].saturating_add(place >> (FANOUT * height));
                    let with = sum.wrapping_add(v.log(word));
                    match enough {
                        Some(enough) if with >= enough && height == 0 => return (place, sum),
                        Some(enough) if with >= enough => {}
                        _ => {
                            sum = with;
                            break width;
                        }
                    }
                }
                height -= 1;
            };
            left -= width;
            place = self.later(place, width as u64);
        }
        (place, sum)
    }

    /// Adds units to the newest run, at `place`, and sets its time to `time`. `begins` says whether this run is new.
    #[inline(always)]
    pub(super) fn add<M: Memory>(&self, m: &mut M, place: usize, begins: bool, time: Time, count: u64) {
        m.set_log(self.times.saturating_add(place), !time.0);
        let mut sums = self.times.saturating_add(self.runs);
        for height in 0..self.heights() {
            let width = 1 << (FANOUT * height);
            let word = sums.saturating_add(place / width);
            // A block's sum starts again with the run at its first place.
            let before = if begins && place.is_multiple_of(width) { 0 } else { m.log(word) };
            m.set_log(word, before.wrapping_add(count));
            sums = sums.saturating_add(self.runs.div_ceil(width));
        }
    }

    /// Removes units from a run of a stretch.
    pub(super) fn shrink<M: Memory>(&self, m: &mut M, stretch: Stretch, run: u64, count: u64) {
        let (place, sums) = (self.place(run), self.sums());
        for height in 0..self.heights() {
            // If the next round has already started a block, its sum is about the runs of that round.
            let begin = run.wrapping_sub(place as u64 % (1 << (FANOUT * height)));
            if stretch.next.wrapping_sub(begin) > self.runs() {
                return;
            }
            let word = sums[height as usize].saturating_add(place >> (FANOUT * height));
            let before = m.log(word);
            // A sum that is smaller than `count` is damaged. If it went below zero, it would look like a large
            // sum.
            m.set_log(word, before.saturating_sub(count));
        }
    }
}
