//! The numbers of a limiter, in the form that the oracle uses, and the kernel policy made from them.

use shmlimit_kernel::policy::{
    AdaptiveDraft, Backoff, Breaker, BreakerKind, Jitter, MILLION, PaceWindowDraft, PerSecond, StoredBackoff,
    StoredBreaker, StoredWindow, WindowKind,
};
use shmlimit_kernel::*;
use std::time::Duration;

pub const SECOND: u64 = 1_000_000_000;
/// One token, in the unit in which tokens are counted. A rate in billionths per second adds that many of these
/// units per nanosecond.
pub const TOKEN: i128 = 1_000_000_000_000_000_000;
/// Names of the windows in the headers.
pub const WINDOWS: [&str; 3] = ["a", "b", "c"];

/// A token bucket: tokens per second, capacity, reserve that background calls must leave.
#[derive(Clone, Debug)]
pub struct BucketNumbers {
    pub rate: u64,
    pub burst: u64,
    pub reserve: u64,
}

#[derive(Clone, Debug)]
pub struct PaceNumbers {
    pub threshold: u32,
    pub history: u32,
    pub min_samples: u32,
    pub short_window: u64,
    /// Limit, interval, sliding.
    pub windows: Vec<(u64, u64, bool)>,
}

#[derive(Clone, Debug)]
pub struct Numbers {
    pub kind: BreakerKind,
    pub rules: Vec<BucketNumbers>,
    pub concurrency: Option<u32>,
    pub background: Option<u32>,
    pub window: StoredWindow,
    /// Its rates are in billionths per second, its fractions in millionths.
    pub breaker: StoredBreaker,
    pub count_net: bool,
    pub backoff: StoredBackoff,
    pub jitter: bool,
    pub pace: Option<PaceNumbers>,
}

impl Numbers {
    pub fn policy(&self) -> Policy {
        let rules: Vec<RuleDraft<'_>> = self
            .rules
            .iter()
            .zip(["first", "second"])
            .map(|(rule, name)| RuleDraft {
                name: Some(name),
                burst: Some(rule.burst),
                reserve: rule.reserve,
                ..RuleDraft::new(Algorithm::TokenBucket, rule.rate, Duration::from_nanos(SECOND))
            })
            .collect();
        let windows: Vec<PaceWindowDraft<'_>> = self
            .pace
            .iter()
            .flat_map(|pace| pace.windows.iter().zip(WINDOWS))
            .map(|((limit, interval, sliding), name)| PaceWindowDraft {
                name,
                limit: *limit,
                interval: Duration::from_nanos(*interval),
                kind: if *sliding { WindowKind::Sliding } else { WindowKind::Fixed },
            })
            .collect();
        let draft = PolicyDraft {
            concurrency: self.concurrency.map(u64::from),
            concurrency_background: self.background.map(u64::from),
            rules: &rules,
            window: self.window.into(),
            breaker: Breaker::from(self.breaker).with_kind(self.kind).with_network_errors(self.count_net),
            backoff: Backoff::from(self.backoff).with_jitter(if self.jitter {
                Jitter::Full
            } else {
                Jitter::None
            }),
            adaptive: self.pace.as_ref().map(|pace| AdaptiveDraft {
                threshold: pace.threshold,
                history: pace.history,
                min_samples: pace.min_samples,
                short_window: Duration::from_nanos(pace.short_window),
                windows: &windows,
                ..AdaptiveDraft::default()
            }),
            ..PolicyDraft::default()
        };
        Policy::new(&draft).expect("valid")
    }

    /// R50: the stated rate, or what rule 0 allows, or 35; in billionths.
    pub fn rate_base(&self) -> u64 {
        match (self.breaker.rate_base, self.rules.first()) {
            (PerSecond(0), Some(rule)) => rule.rate * SECOND,
            (PerSecond(0), None) => 35 * SECOND,
            (PerSecond(stated), _) => stated,
        }
    }

    /// R54: max(5, floor(rate_base / 2)), never above rate_base.
    pub fn throttle_rate(&self) -> u64 {
        let base = self.rate_base();
        (base / 2 / SECOND * SECOND).max(5 * SECOND).min(base)
    }

    /// min(most, first * factor^(n-1)), rounded down once. Computed by long multiplication and division, in digits
    /// of 32 bits.
    pub fn grown(first: u64, factor: u32, n: u32, most: u64) -> u64 {
        let steps = n - 1;
        // Far above the cap, exactness does not matter.
        let about = first as f64 * (f64::from(factor) / 1e6).powf(f64::from(steps));
        if first == 0 || factor == MILLION || about > 2.0 * most as f64 + 2.0 {
            return if factor == MILLION { first.min(most) } else { first.saturating_mul(most).min(most) };
        }
        let mut digits = vec![first as u32, (first >> 32) as u32];
        for _ in 0..steps {
            let mut carry = 0u64;
            for digit in &mut digits {
                carry += u64::from(*digit) * u64::from(factor);
                *digit = carry as u32;
                carry >>= 32;
            }
            digits.push(carry as u32);
        }
        u64::try_from(Self::divided(&digits, steps)).unwrap().min(most)
    }

    /// Divides by a million, `times` times.
    fn divided(digits: &[u32], times: u32) -> u128 {
        let mut digits = digits.to_vec();
        for _ in 0..times {
            let mut rest = 0u64;
            for digit in digits.iter_mut().rev() {
                rest = rest << 32 | u64::from(*digit);
                *digit = (rest / u64::from(MILLION)) as u32;
                rest %= u64::from(MILLION);
            }
        }
        digits.iter().rev().fold(0, |all, digit| all << 32 | u128::from(*digit))
    }
}
