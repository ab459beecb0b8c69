//! Rounds, medians, limiters and bounds for all measurements. The benchmarks in `benches/` use this file too.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use shmlimit::{Algorithm, Error, Limiter, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use shmlimit_segment::sys::baselines::clock;
use std::path::Path;
use std::time::Duration;

/// Returns the nanoseconds per operation over `count` operations. The first few are not timed, so that the caches are
/// warm again after the other operations of the round.
#[inline(always)]
pub fn per_operation(count: u32, mut operation: impl FnMut()) -> f64 {
    for _ in 0..count / 8 {
        operation();
    }
    let start = clock();
    for _ in 0..count {
        operation();
    }
    (clock() - start) as f64 / f64::from(count)
}

/// Returns the median, or 0 if there are no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the value below which the given part of the values lies.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * part).round() as usize).copied().unwrap_or(0.0)
}

/// The rules the benchmarks need.
#[derive(Clone, Copy)]
pub enum Budget {
    /// 35 per second and a burst that outlasts any benchmark: every call is granted.
    Plenty,
    /// One per hour.
    Scarce,
}

impl Budget {
    fn rule(self) -> RuleDraft<'static> {
        match self {
            Budget::Plenty => RuleDraft {
                burst: Some(1 << 32),
                ..RuleDraft::new(Algorithm::TokenBucket, 35, Duration::from_secs(1))
            },
            Budget::Scarce => RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(3600)),
        }
    }

    /// Returns a policy of `count` such rules.
    pub fn policy(self, count: usize, concurrency: Option<u64>) -> Policy {
        let rules = vec![self.rule(); count];
        let draft = PolicyDraft { concurrency, rules: &rules, ..PolicyDraft::default() };
        Policy::new(&draft).expect("a valid policy")
    }

    /// Returns a policy of one such rule with every feature on: the five-state breaker, permits, a reserve, a
    /// background bound.
    pub fn guarded(self) -> Policy {
        let rule = RuleDraft { algorithm: Algorithm::TokenBucket, reserve: 1, ..self.rule() };
        let draft = PolicyDraft {
            concurrency: Some(4096),
            concurrency_background: Some(4096),
            rules: &[rule],
            breaker: Breaker::of(BreakerKind::Fsm),
            ..PolicyDraft::default()
        };
        Policy::new(&draft).expect("a valid policy")
    }
}

/// Opens a limiter with the given policy.
pub fn open(directory: &Path, name: &str, policy: Policy) -> Result<Limiter, Error> {
    Limiter::builder(name).directory(directory).ignore_environment().policy(policy).open()
}

/// A bound on a figure, and the measured figure.
pub struct Target {
    /// The name of the figure.
    pub name: &'static str,
    /// The measured figure.
    pub measured: f64,
    pub bound: Bound,
    /// A goal is only printed. A requirement is checked.
    pub required: bool,
}

/// Which side of a limit is good.
#[derive(Clone, Copy)]
pub enum Bound {
    /// The figure must not be above this.
    AtMost(f64),
    /// The figure must not be below this.
    AtLeast(f64),
}

impl Target {
    /// Returns whether the figure keeps the bound.
    pub fn met(&self) -> bool {
        self.met_within(1.0)
    }

    /// Returns whether the figure keeps the bound, with an allowance for other work on the machine.
    pub fn met_but_for_noise(&self) -> bool {
        self.met_within(NOISE)
    }

    /// Returns whether the figure keeps the bound widened by a factor.
    fn met_within(&self, slack: f64) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.measured <= most * slack,
            Bound::AtLeast(least) => self.measured >= least / slack,
        }
    }
}

/// The factor by which other work on the machine may change a median.
const NOISE: f64 = 1.1;
