//! A token bucket as R12 and R54 say it: a number of tokens, a rate and a capacity that may change.

use super::policy::TOKEN;

/// When a cost is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Now,
    At(u64),
    /// Not with the capacity of this state (R6).
    NotInThisState,
    Never,
}

#[derive(Clone, Debug)]
pub struct Tokens {
    /// In 10^-18 tokens; below zero after a settlement.
    pub tokens: i128,
    /// When that was true.
    pub at: u64,
    /// Billionths a second, which is 10^-18 tokens a nanosecond.
    pub rate: u64,
    pub capacity: u64,
    /// The capacity while all is well.
    pub full: u64,
    pub reserve: u64,
}

impl Tokens {
    pub fn new(rate: u64, capacity: u64, reserve: u64) -> Tokens {
        Tokens { tokens: i128::from(capacity) * TOKEN, at: 0, rate, capacity, full: capacity, reserve }
    }

    /// Refills until `now`.
    pub fn refill(&mut self, now: u64) {
        if now > self.at {
            let all = self.tokens + i128::from(now - self.at) * i128::from(self.rate);
            self.tokens = all.min(i128::from(self.capacity) * TOKEN);
            self.at = now;
        }
    }

    pub fn judge(&self, cost: u64, background: bool) -> Room {
        let needed = cost + if background { self.reserve } else { 0 };
        if needed > self.full {
            return Room::Never;
        }
        if needed > self.capacity {
            return Room::NotInThisState;
        }
        let missing = i128::from(needed) * TOKEN - self.tokens;
        if missing <= 0 {
            return Room::Now;
        }
        let rate = i128::from(self.rate);
        Room::At(self.at + u64::try_from((missing + rate - 1) / rate).unwrap())
    }

    /// Whole tokens for a priority, R7.
    pub fn remaining(&self, background: bool) -> u64 {
        let whole = u64::try_from(self.tokens.max(0) / TOKEN).unwrap();
        whole.saturating_sub(if background { self.reserve } else { 0 })
    }

    /// Another rate and capacity from `at` on: tokens are kept, and clipped.
    pub fn change(&mut self, at: u64, rate: u64, capacity: u64) {
        self.refill(at);
        (self.rate, self.capacity) = (rate, capacity);
        self.tokens = self.tokens.min(i128::from(capacity) * TOKEN);
    }
}
