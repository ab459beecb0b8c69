//! A token bucket as R6, R12 and R54 say it: a number of tokens, a rate and a capacity that may change.

use super::policy::TOKEN;

/// When a cost is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Now,
    At(u64),
    Never,
}

#[derive(Clone, Debug)]
pub struct Tokens {
    /// In 10^-18 tokens; below zero after a settlement.
    tokens: i128,
    /// When that was true.
    at: u64,
    /// Billionths a second, which is 10^-18 tokens a nanosecond.
    pub rate: u64,
    pub capacity: u64,
    /// The capacity that is configured.
    pub full: u64,
    /// The reserve that is configured.
    pub reserve: u64,
}

impl Tokens {
    pub fn new(rate: u64, capacity: u64, reserve: u64) -> Tokens {
        Tokens { tokens: i128::from(capacity) * TOKEN, at: 0, rate, capacity, full: capacity, reserve }
    }

    /// What there is at `now`.
    pub fn at(&self, now: u64) -> i128 {
        let all = self.tokens + i128::from(now.saturating_sub(self.at)) * i128::from(self.rate);
        all.min(i128::from(self.capacity) * TOKEN)
    }

    /// There are so many now.
    pub fn set(&mut self, tokens: i128, now: u64) {
        (self.tokens, self.at) = (tokens, now);
    }

    pub fn charge(&mut self, cost: u64, now: u64) {
        self.set(self.at(now) - i128::from(cost) * TOKEN, now);
    }

    pub fn check(&self, cost: u64, background: bool, now: u64) -> Room {
        let kept = if background { self.kept() } else { 0 };
        // R6: above a capacity that the state reduced, a full bucket is enough; above what is configured nothing is.
        let needed = if cost + kept <= self.capacity {
            cost + kept
        } else if cost + if background { self.reserve } else { 0 } <= self.full {
            self.capacity
        } else {
            return Room::Never;
        };
        let missing = i128::from(needed) * TOKEN - self.at(now);
        if missing <= 0 {
            return Room::Now;
        }
        let rate = i128::from(self.rate);
        Room::At(now + u64::try_from((missing + rate - 1) / rate).unwrap())
    }

    /// Whole tokens for a priority, R7.
    pub fn remaining(&self, background: bool, now: u64) -> u64 {
        let whole = u64::try_from(self.at(now).max(0) / TOKEN).unwrap();
        whole.saturating_sub(if background { self.kept() } else { 0 })
    }

    /// R54: what the background leaves of the present capacity; of a reduced one, it may have one unit at least.
    fn kept(&self) -> u64 {
        if self.capacity == self.full {
            return self.reserve;
        }
        let part = u128::from(self.reserve) * u128::from(self.capacity) / u128::from(self.full);
        u64::try_from(part).unwrap().min(self.capacity - 1)
    }

    /// Another rate and capacity from `at` on: tokens are kept, and clipped.
    pub fn change(&mut self, at: u64, rate: u64, capacity: u64) {
        let tokens = self.at(at).min(i128::from(capacity) * TOKEN);
        (self.rate, self.capacity) = (rate, capacity);
        self.set(tokens, at);
    }
}
