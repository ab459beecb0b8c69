//! Limiters for the tests with a server.

use crate::util::crash::builder;
use crate::util::directory;
use shmlimit::{Algorithm, Limiter, Nanos, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use tempfile::TempDir;

/// A policy with this limit per second, which is also its burst, and a five-state breaker. `change` modifies the
/// breaker's defaults.
pub fn breaker(per_second: u64, concurrency: Option<u64>, change: impl FnOnce(&mut Breaker)) -> Policy {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    change(&mut breaker);
    let rule = RuleDraft::new(Algorithm::TokenBucket, per_second, Nanos::from_secs(1));
    Policy::new(&PolicyDraft { concurrency, rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap()
}

/// The same with limits that no test reaches.
pub fn roomy(change: impl FnOnce(&mut Breaker)) -> Policy {
    breaker(100_000, None, change)
}

/// A limiter in a temporary directory.
pub fn limiter(policy: Policy) -> (TempDir, Limiter) {
    let directory = directory();
    let limiter = builder(directory.path()).policy(policy).create().unwrap();
    (directory, limiter)
}
