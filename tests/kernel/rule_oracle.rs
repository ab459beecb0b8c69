//! Slow implementations of the algorithms, computed from the list of everything that was charged.

use shmlimit_kernel::*;

/// Units charged by one call.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub at: u64,
    /// The number of its calendar window.
    pub id: u64,
    pub units: u64,
    /// Whether it was charged to pacing, not to the window burst.
    pub paced: bool,
}

/// One rule and its history.
#[derive(Clone, Debug)]
pub struct Oracle {
    pub rule: RuleDraft<'static>,
    pub entries: Vec<Entry>,
}

/// The clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub time: u64,
    pub epoch: u64,
}

impl Now {
    fn later(self, by: u64) -> Now {
        Now { time: self.time + by, ..self }
    }
}

impl Oracle {
    pub fn new(rule: RuleDraft<'static>) -> Oracle {
        Oracle { rule, entries: Vec::new() }
    }

    fn passes(&self) -> bool {
        self.rule.burst_mode == BurstMode::FixedWindow
    }

    /// The capacity of a window, of a bucket, or of a window burst.
    fn capacity(&self) -> u64 {
        if self.rule.algorithm.has_burst() {
            self.rule.burst.unwrap_or(self.rule.limit)
        } else {
            self.rule.limit
        }
    }

    /// The number of the window, and how much of it has passed.
    fn window(&self, now: Now) -> (u64, u64) {
        let wall = now.epoch + now.time;
        (
            wall / shmlimit_kernel::Nanos::of(self.rule.period).0,
            wall % shmlimit_kernel::Nanos::of(self.rule.period).0,
        )
    }

    fn used(&self, id: u64) -> u64 {
        self.entries.iter().filter(|e| e.id == id && !e.paced).map(|e| e.units).sum()
    }

    /// The units that count against the capacity, rounded down.
    fn counted(&self, now: Now) -> u64 {
        let (id, elapsed) = self.window(now);
        let period = shmlimit_kernel::Nanos::of(self.rule.period).0;
        match self.rule.algorithm {
            Algorithm::SlidingLog => {
                let young = |e: &&Entry| e.at + period > now.time;
                self.entries.iter().filter(young).map(|e| e.units).sum()
            }
            Algorithm::SlidingCounter => {
                let prev = if id == 0 { 0 } else { self.used(id - 1) };
                let weighted = u128::from(prev) * u128::from(period - elapsed) / u128::from(period);
                weighted as u64 + self.used(id)
            }
            _ => self.used(id),
        }
    }

    /// The level of a leaky bucket, in 1/period of a unit, drained from call to call (R24).
    pub fn level(&self, now: u64) -> u128 {
        let (mut level, mut last) = (0u128, 0);
        for e in &self.entries {
            level = level.saturating_sub(u128::from(e.at - last) * u128::from(self.rule.limit));
            level += u128::from(e.units) * u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
            last = e.at;
        }
        level.saturating_sub(u128::from(now - last) * u128::from(self.rule.limit))
    }

    /// Whether the pacing after the window burst admits: the time of every paced call has passed.
    fn pace_is_free(&self, now: Now) -> bool {
        let over = |e: &Entry| {
            let promised = u128::from(e.units) * u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
            u128::from(now.time - e.at) * u128::from(self.rule.limit) >= promised
        };
        self.entries.iter().filter(|e| e.paced).all(over)
    }

    fn fits(&self, now: Now, c: u64) -> bool {
        if self.rule.algorithm == Algorithm::LeakyBucket {
            let c = u128::from(c) * u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
            return self.level(now.time) + c
                <= u128::from(self.capacity()) * u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
        }
        self.counted(now) + c <= self.capacity()
    }

    fn reserve(&self, background: bool) -> u64 {
        if background { self.rule.reserve } else { 0 }
    }

    pub fn admits(&self, now: Now, cost: u64, background: bool) -> bool {
        self.fits(now, cost + self.reserve(background)) || (self.passes() && self.pace_is_free(now))
    }

    /// The wait until it admits; `None` means never. Found by search, because a call that fits once keeps fitting.
    pub fn wait(&self, now: Now, cost: u64, background: bool) -> Option<u64> {
        if cost + self.reserve(background) > self.capacity() {
            return None;
        }
        if self.admits(now, cost, background) {
            return Some(0);
        }
        let mut high = 1;
        while !self.admits(now.later(high), cost, background) {
            high *= 2;
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.admits(now.later(middle), cost, background) { high = middle } else { low = middle }
        }
        Some(high)
    }

    pub fn charge(&mut self, now: Now, cost: u64, background: bool) {
        let (id, _) = self.window(now);
        let paced = self.passes() && !self.fits(now, cost + self.reserve(background));
        self.entries.push(Entry { at: now.time, id, units: cost, paced });
    }

    /// Takes units back. If their window is over, this changes nothing that still counts.
    pub fn refund(&mut self, entry: usize, units: u64) {
        self.entries[entry].units -= units;
    }

    pub fn remaining(&self, now: Now, background: bool) -> u64 {
        let reserve = self.reserve(background);
        if self.rule.algorithm == Algorithm::LeakyBucket {
            let full =
                u128::from(self.capacity()) * u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
            let left = full.saturating_sub(self.level(now.time))
                / u128::from(shmlimit_kernel::Nanos::of(self.rule.period).0);
            return (left as u64).saturating_sub(reserve);
        }
        let left = (self.capacity() - reserve).saturating_sub(self.counted(now));
        left + u64::from(self.passes() && self.capacity() > reserve && self.pace_is_free(now))
    }
}
