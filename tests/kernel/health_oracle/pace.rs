//! The pace as R83 to R91 define it.

use super::policy::PaceNumbers;

#[derive(Clone, Debug)]
struct Seen {
    limit: u64,
    remaining: u64,
    reset: u64,
    at: u64,
    /// The headers named a reset that is not believed.
    absurd: bool,
}

#[derive(Clone, Debug)]
pub struct Pace {
    pub numbers: PaceNumbers,
    seen: Vec<Option<Seen>>,
    taught: Vec<Option<u64>>,
    admitted: Vec<u64>,
    pub interval: u64,
    tightened_at: u64,
    pub bottleneck: Option<u8>,
    /// The interval results from a reset that is not believed.
    absurd: bool,
}

impl Pace {
    pub fn new(numbers: PaceNumbers) -> Pace {
        let seen = vec![None; numbers.windows.len()];
        let taught = vec![None; numbers.windows.len()];
        Pace {
            numbers,
            seen,
            taught,
            admitted: Vec::new(),
            interval: 0,
            tightened_at: 0,
            bottleneck: None,
            absurd: false,
        }
    }

    /// R142: removes everything that headers taught.
    pub fn forget(&mut self) {
        let admitted = std::mem::take(&mut self.admitted);
        *self = Pace { admitted, ..Pace::new(self.numbers.clone()) };
    }

    pub fn observe(
        &mut self,
        window: usize,
        limit: Option<u64>,
        remaining: u64,
        reset_after: Option<u64>,
        now: u64,
    ) {
        let (configured, interval, sliding) = self.numbers.windows[window];
        // A limit that headers taught is kept.
        let taught = limit.filter(|limit| *limit > 0).or(self.taught[window]);
        self.taught[window] = taught;
        // R142: a reset further away than the length of the window is not believed. R84: the window boundary of the
        // limiter's clock applies instead.
        let believed = reset_after.filter(|after| *after <= interval);
        let named = believed.map(|after| now + after);
        let limit = taught.unwrap_or(configured);
        let boundary = (now / interval + 1) * interval;
        let used_up = |seen: &&Seen| !sliding && seen.remaining == 0 && now < seen.reset && !seen.absurd;
        self.seen[window] = Some(match self.seen[window].as_ref().filter(used_up) {
            // R127: a late answer gives nothing back.
            Some(before) if remaining > 0 => {
                let reset = before.reset.min(named.unwrap_or(u64::MAX));
                Seen { limit, remaining: 0, reset, at: now, absurd: false }
            }
            _ => {
                let absurd = reset_after != believed;
                Seen { limit, remaining, reset: named.unwrap_or(boundary), at: now, absurd }
            }
        });
        // R142: a good header replaces everything that followed from an absurd one. A header without a reset is
        // good, too.
        let good = reset_after == believed;
        if good && self.absurd && self.bottleneck == Some(window as u8) {
            (self.interval, self.tightened_at, self.bottleneck, self.absurd) = (0, 0, None, false);
        }
    }

    /// Limit and remaining calls, as a status query shows them (R91, R93).
    pub fn status(&self, window: usize, now: u64) -> (u64, u64) {
        let (configured, interval, sliding) = self.numbers.windows[window];
        match &self.seen[window] {
            None => (configured, configured),
            Some(seen) if sliding && now.saturating_sub(seen.at) > interval => (seen.limit, seen.limit),
            Some(seen) if !sliding && now >= seen.reset => (seen.limit, seen.limit),
            Some(seen) => (seen.limit, seen.remaining),
        }
    }

    fn wanted(&self, window: usize, now: u64) -> u64 {
        let (_, interval, sliding) = self.numbers.windows[window];
        let (limit, remaining) = self.status(window, now);
        let used = limit.saturating_sub(remaining);
        // usage < threshold
        if u128::from(used) * 1_000_000 < u128::from(self.numbers.threshold) * u128::from(limit) {
            return 0;
        }
        let left = match &self.seen[window] {
            Some(seen) if !sliding && now < seen.reset => seen.reset - now,
            _ => interval,
        };
        if interval <= self.numbers.short_window {
            return if sliding { interval.div_ceil(2) } else { left };
        }
        let gaps: Vec<u64> = self.admitted.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let newest = &gaps[gaps.len().saturating_sub(self.numbers.history as usize)..];
        if newest.len() >= self.numbers.min_samples as usize {
            // expected = left / (sum / count) <= remaining
            let sum: u64 = newest.iter().sum();
            if u128::from(left) * newest.len() as u128 <= u128::from(remaining) * u128::from(sum) {
                return 0;
            }
        }
        if remaining == 0 { left } else { left.div_ceil(remaining) }
    }

    /// R88, R89.
    pub fn evaluate(&mut self, now: u64) {
        let mut longest = (0, None);
        for window in 0..self.numbers.windows.len() {
            let wanted = self.wanted(window, now);
            if wanted > longest.0 {
                longest = (wanted, Some(window as u8));
            }
        }
        let waited = now.saturating_sub(self.tightened_at) >= self.interval;
        if longest.0 > self.interval || (longest.0 < self.interval && waited) {
            if longest.0 > self.interval {
                self.tightened_at = now;
            }
            (self.interval, self.bottleneck) = longest;
            let window = longest.1.and_then(|window| self.seen[usize::from(window)].as_ref());
            self.absurd = window.is_some_and(|seen| seen.absurd);
        }
    }

    /// R90: last admission + interval, but not before the reset of any fixed window in which nothing is left. Also
    /// returns the window that determines this time.
    pub fn open_at(&self, now: u64) -> (u64, Option<u8>) {
        let mut latest = match self.admitted.last() {
            Some(last) if self.interval > 0 => {
                // R89: from `eased` on, a shorter interval is accepted.
                let eased = (self.tightened_at + self.interval).max(now);
                let shorter = (0..self.numbers.windows.len()).map(|window| self.wanted(window, eased)).max();
                let then = eased.max(last + shorter.unwrap_or(0));
                ((last + self.interval).min(then), self.bottleneck)
            }
            _ => (0, None),
        };
        let fixed = |window: &usize| !self.numbers.windows[*window].2;
        let used_up = |window: &usize| self.status(*window, now).1 == 0;
        let mut resets: Vec<(u64, Option<u8>)> = (0..self.numbers.windows.len())
            .filter(fixed)
            .filter(used_up)
            .filter_map(|window| Some((self.seen[window].as_ref()?.reset, Some(window as u8))))
            .collect();
        // The latest reset; among equal resets, the first window.
        resets.sort_by_key(|(reset, window)| (std::cmp::Reverse(*reset), *window));
        if let Some(reset) = resets.first()
            && reset.0 >= latest.0
        {
            latest = *reset;
        }
        latest
    }

    pub fn admit(&mut self, now: u64) {
        self.admitted.push(now);
    }
}
