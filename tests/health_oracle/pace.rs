//! The pace as R83 to R91 say it.

use super::policy::PaceNumbers;

#[derive(Clone, Debug)]
struct Seen {
    limit: u64,
    remaining: u64,
    reset: u64,
    at: u64,
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
}

impl Pace {
    pub fn new(numbers: PaceNumbers) -> Pace {
        let seen = vec![None; numbers.windows.len()];
        let taught = vec![None; numbers.windows.len()];
        Pace { numbers, seen, taught, admitted: Vec::new(), interval: 0, tightened_at: 0, bottleneck: None }
    }

    pub fn observe(
        &mut self,
        window: usize,
        limit: Option<u64>,
        remaining: u64,
        reset_after: Option<u64>,
        now: u64,
    ) {
        let (configured, interval, _) = self.numbers.windows[window];
        // What headers taught stays known.
        let taught = limit.filter(|limit| *limit > 0).or(self.taught[window]);
        self.taught[window] = taught;
        self.seen[window] = Some(Seen {
            limit: taught.unwrap_or(configured),
            remaining,
            // The wall clock starts with the limiter's.
            reset: reset_after.map_or((now / interval + 1) * interval, |after| now + after),
            at: now,
        });
    }

    /// Limit and what is left, as a status query shows them (R91, R93).
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
        if longest.0 > self.interval {
            (self.interval, self.bottleneck) = longest;
            self.tightened_at = now;
        } else if longest.0 < self.interval && now.saturating_sub(self.tightened_at) >= self.interval {
            (self.interval, self.bottleneck) = longest;
        }
    }

    /// R90: last admission + interval.
    pub fn open_at(&self) -> u64 {
        match self.admitted.last() {
            Some(last) if self.interval > 0 => last + self.interval,
            _ => 0,
        }
    }

    pub fn admit(&mut self, now: u64) {
        self.admitted.push(now);
    }
}
