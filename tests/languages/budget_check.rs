//! What a server saw, judged: budget, shares, gaps.

use crate::util::server::Seen;
use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
use std::time::Duration;

/// Nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// A token bucket, and so many calls at once.
pub struct Budget {
    /// A second.
    pub rate: u64,
    /// At once, after a rest.
    pub burst: u64,
    /// In flight.
    pub concurrency: u64,
}

impl Budget {
    /// The limiter's.
    pub fn policy(&self) -> Policy {
        let rule = RuleDraft {
            burst: Some(self.burst),
            ..RuleDraft::new(Algorithm::TokenBucket, self.rate, Duration::from_secs(1))
        };
        let draft =
            PolicyDraft { concurrency: Some(self.concurrency), rules: &[rule], ..PolicyDraft::default() };
        Policy::new(&draft).unwrap()
    }

    /// Judges every window between two requests: what the bucket allows within it, and what was granted before it and
    /// arrives in it, which is no more than may be in flight. Returns the most there was in excess of the bucket.
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

/// Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// How far the worst share is from the equal one, in percent.
pub fn worst(shares: &[f64]) -> f64 {
    let equal = shares.iter().sum::<f64>() / shares.len() as f64;
    shares.iter().map(|share| (share / equal - 1.0).abs() * 100.0).fold(0.0, f64::max)
}

/// The middle one.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How long after a moment the server sees calls at the full rate again: within half a second nine tenths of what the
/// rate allows. `None` if it does not until the end.
pub fn recovery(seen: &[Seen], rate: u64, moment: u64, end: u64) -> Option<u64> {
    let enough = (rate as usize * 9).div_ceil(20);
    let later = &seen[seen.partition_point(|seen| seen.at <= moment)..];
    if moment + SECOND / 2 > end {
        return None;
    }
    // A window that begins at the moment itself, or just after a call that was the last of those too slow.
    let full =
        |from: u64, rest: &[Seen]| rest.get(enough - 1).is_some_and(|last| last.at <= from + SECOND / 2);
    if full(moment, later) {
        return Some(0);
    }
    (0..later.len()).find(|i| full(later[*i].at, &later[*i..])).map(|i| later[i].at - moment)
}
