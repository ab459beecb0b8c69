//! Checks on what a server saw: budget, shares, gaps.

use crate::util::server::Seen;
use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
use std::time::Duration;

/// One second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// A token bucket and a number of concurrent calls.
pub struct Budget {
    /// Tokens per second.
    pub rate: u64,
    /// Tokens of a full bucket.
    pub burst: u64,
    /// The maximum number of calls in flight.
    pub concurrency: u64,
}

impl Budget {
    /// The limiter policy that enforces this budget.
    pub fn policy(&self) -> Policy {
        let rule = RuleDraft {
            burst: Some(self.burst),
            ..RuleDraft::new(Algorithm::TokenBucket, self.rate, Duration::from_secs(1))
        };
        let draft =
            PolicyDraft { concurrency: Some(self.concurrency), rules: &[rule], ..PolicyDraft::default() };
        Policy::new(&draft).unwrap()
    }

    /// Checks every window between two requests. It may hold what the bucket allows, plus the calls that were granted
    /// before the window and arrive in it: at most `concurrency`. Returns the largest excess over the bucket.
    pub fn is_kept(&self, seen: &[Seen]) -> u64 {
        let mut excess = 0;
        for (i, first) in seen.iter().enumerate() {
            for (count, last) in (1..).zip(&seen[i..]) {
                let refilled = u128::from(self.rate) * u128::from(last.at - first.at) / u128::from(SECOND);
                let bucket = self.burst + refilled as u64;
                excess = excess.max(u64::saturating_sub(count, bucket));
                let most = bucket + self.concurrency;
                assert!(count <= most, "{count} calls in {} ns, {most} at most", last.at - first.at);
            }
        }
        excess
    }
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one party has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// How far the worst share is from the equal share, in percent.
pub fn worst(shares: &[f64]) -> f64 {
    let equal = shares.iter().sum::<f64>() / shares.len() as f64;
    shares.iter().map(|share| (share / equal - 1.0).abs() * 100.0).fold(0.0, f64::max)
}

/// The median; NaN without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How long after `moment` the server sees calls at the full rate again: nine tenths of the rate within half a
/// second. `None` if that does not happen before `end`.
pub fn recovery(seen: &[Seen], rate: u64, moment: u64, end: u64) -> Option<u64> {
    let enough = (rate as usize * 9).div_ceil(20);
    let later = &seen[seen.partition_point(|seen| seen.at <= moment)..];
    if moment + SECOND / 2 > end {
        return None;
    }
    // A window that begins at `moment`, or just after the last call that was too slow.
    let full =
        |from: u64, rest: &[Seen]| rest.get(enough - 1).is_some_and(|last| last.at <= from + SECOND / 2);
    if full(moment, later) {
        return Some(0);
    }
    (0..later.len()).find(|i| full(later[*i].at, &later[*i..])).map(|i| later[i].at - moment)
}
