//! Limiters for the tests with a server.

use crate::util::crash::builder;
use crate::util::directory;
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use std::time::Duration;
use tempfile::TempDir;

/// So many calls a second and at once; a five-state breaker with what `change` makes of its defaults.
pub fn breaker(per_second: u64, concurrency: Option<u64>, change: impl FnOnce(&mut Breaker)) -> Policy {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    change(&mut breaker);
    let rule = RuleDraft::new(Algorithm::TokenBucket, per_second, Duration::from_secs(1));
    Policy::new(&PolicyDraft { concurrency, rules: &[rule], breaker, ..PolicyDraft::default() }).unwrap()
}

/// The same without limits that a test could meet.
pub fn roomy(change: impl FnOnce(&mut Breaker)) -> Policy {
    breaker(100_000, None, change)
}

/// A limiter in a directory of its own.
pub fn limiter(policy: Policy) -> (TempDir, Limiter) {
    let directory = directory();
    let limiter = builder(directory.path()).policy(policy).create().unwrap();
    (directory, limiter)
}
