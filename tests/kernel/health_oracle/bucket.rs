//! A token bucket as R6, R12 and R54 define it: a number of tokens, a rate, and a capacity that may change.

use super::policy::TOKEN;

/// When a cost is available.
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
    /// The time at which `tokens` was true.
    at: u64,
    /// Billionths of a token per second, which is 10^-18 tokens per nanosecond.
    pub rate: u64,
    pub capacity: u64,
    /// The configured capacity.
    pub full: u64,
    /// The configured reserve.
    pub reserve: u64,
}

impl Tokens {
    pub fn new(rate: u64, capacity: u64, reserve: u64) -> Tokens {
        Tokens { tokens: i128::from(capacity) * TOKEN, at: 0, rate, capacity, full: capacity, reserve }
    }

    /// The tokens at `now`.
    pub fn at(&self, now: u64) -> i128 {
        let all = self.tokens + i128::from(now.saturating_sub(self.at)) * i128::from(self.rate);
        all.min(i128::from(self.capacity) * TOKEN)
    }

    /// Sets the tokens at `now`.
    pub fn set(&mut self, tokens: i128, now: u64) {
        (self.tokens, self.at) = (tokens, now);
    }

    pub fn charge(&mut self, cost: u64, now: u64) {
        self.set(self.at(now) - i128::from(cost) * TOKEN, now);
    }

    pub fn check(&self, cost: u64, background: bool, now: u64) -> Room {
        let kept = if background { self.kept() } else { 0 };
        // R6: a cost above a capacity that the breaker state reduced needs a full bucket. A cost above the
        // configured capacity never passes.
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

    /// Whole tokens available to a priority (R7).
    pub fn remaining(&self, background: bool, now: u64) -> u64 {
        let whole = u64::try_from(self.at(now).max(0) / TOKEN).unwrap();
        whole.saturating_sub(if background { self.kept() } else { 0 })
    }

    /// R54: what background calls must leave of the present capacity. Of a reduced capacity, they may use at least
    /// one unit.
    fn kept(&self) -> u64 {
        if self.capacity == self.full {
            return self.reserve;
        }
        let part = u128::from(self.reserve) * u128::from(self.capacity) / u128::from(self.full);
        u64::try_from(part).unwrap().min(self.capacity - 1)
    }

    /// Changes rate and capacity at `at`. Tokens are kept, and clipped to the capacity.
    pub fn change(&mut self, at: u64, rate: u64, capacity: u64) {
        let tokens = self.at(at).min(i128::from(capacity) * TOKEN);
        (self.rate, self.capacity) = (rate, capacity);
        self.set(tokens, at);
    }
}
