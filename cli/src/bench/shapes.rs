//! The limiters and calls whose cost the design bounds. `shmlimit bench`, the benchmarks in `benches/` and the tests
//! in `tests/cost` share this list.

#![allow(dead_code, reason = "each program uses its own part")]

use shmlimit::{
    AcquireError, Algorithm, Grant, Limiter, Outcome, Policy, PolicyDraft, Reason, Request, RuleDraft,
};
use std::time::Duration;

/// A burst that outlasts every measurement.
const PLENTY: u64 = 1 << 32;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const TOKENS: &str = "tokens";
/// The requested cost of a call of a language model, and its actual cost.
const REQUESTED: u64 = 900;
const ACTUAL: &[(&str, u64)] = &[(TOKENS, 700)];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `try_acquire` alone, granted.
    Acquire,
    /// `try_acquire` and release.
    Release,
    /// `try_acquire` and `record` of a success.
    Record,
    /// `try_acquire` and `record` of a success whose actual cost is lower than requested.
    Settle,
    /// `try_acquire`, refused.
    Refused(Reason),
    /// A snapshot.
    Snapshot,
}

/// One limiter and what is measured on it.
#[derive(Debug)]
pub struct Shape {
    /// The stable name.
    pub key: &'static str,
    /// A description of at most 31 characters.
    pub what: &'static str,
    pub call: Call,
    policy: fn() -> Policy,
    /// The cost in tokens.
    tokens: u64,
    /// The required and the desired upper bound: in microseconds for a snapshot, and otherwise as a multiple of one
    /// clock read.
    pub targets: Option<(f64, f64)>,
}

/// All shapes.
pub static SHAPES: &[Shape] = &[
    shape("granted", "try_acquire, granted", Call::Acquire, buckets::<1>).at_most(1.8, 1.5),
    shape("denied_rate", "refused for the rate", Call::Refused(Reason::Rate), scarce::<1>).at_most(1.3, 1.2),
    shape("denied_permit", "refused for a permit", Call::Refused(Reason::Concurrency), one_permit)
        .at_most(1.3, 1.2),
    shape("denied_3_rules", "refused, three rules", Call::Refused(Reason::Rate), scarce::<3>),
    shape("snapshot", "snapshot", Call::Snapshot, buckets::<1>).at_most(5.0, 2.0),
    shape("token_bucket", "token bucket", Call::Release, buckets::<1>).at_most(2.8, 2.3),
    shape("gcra", "GCRA", Call::Release, || rules(&[plenty(Algorithm::Gcra)])).at_most(2.8, 2.3),
    shape("leaky_bucket", "leaky bucket", Call::Release, || rules(&[plenty(Algorithm::LeakyBucket)]))
        .at_most(2.8, 2.3),
    shape("fixed_window", "fixed window", Call::Release, || rules(&[plenty(Algorithm::FixedWindow)]))
        .at_most(2.8, 2.3),
    shape("sliding_counter", "sliding counter", Call::Release, || {
        rules(&[plenty(Algorithm::SlidingCounter)])
    })
    .at_most(2.8, 2.3),
    shape("sliding_log", "sliding log", Call::Release, sliding_log).at_most(3.5, 2.8),
    shape("rules_2", "2 token buckets", Call::Release, buckets::<2>).at_most(3.2, 2.6),
    shape("rules_3", "3 token buckets", Call::Release, buckets::<3>).at_most(3.2, 2.6),
    shape("rules_mixed", "3 rules, three algorithms", Call::Release, mixed).at_most(3.2, 2.6),
    shape("rules_8", "8 token buckets", Call::Release, buckets::<8>).at_most(4.5, 3.5),
    shape("llm", "LLM: 2 units, permits, cost", Call::Release, llm).costs(REQUESTED).at_most(3.2, 2.6),
    shape("llm_record", "LLM, with record", Call::Record, llm).costs(REQUESTED),
    shape("llm_settle", "LLM, record and settlement", Call::Settle, llm).costs(REQUESTED).at_most(6.0, 4.5),
];

const fn shape(key: &'static str, what: &'static str, call: Call, policy: fn() -> Policy) -> Shape {
    Shape { key, what, call, policy, tokens: 0, targets: None }
}

impl Shape {
    const fn at_most(mut self, required: f64, goal: f64) -> Shape {
        self.targets = Some((required, goal));
        self
    }

    const fn costs(mut self, tokens: u64) -> Shape {
        self.tokens = tokens;
        self
    }

    /// Returns the shape with the given key.
    pub fn find(key: &str) -> Option<&'static Shape> {
        SHAPES.iter().find(|shape| shape.key == key)
    }

    pub fn policy(&self) -> Policy {
        (self.policy)()
    }

    pub fn request(&self) -> Request<'static> {
        if self.tokens == 0 { Request::new() } else { Request::new().cost(TOKENS, self.tokens) }
    }

    /// Brings the limiter into the state that the call needs: for a refusal, takes what there is. The grant must be
    /// kept.
    pub fn prepare<'l>(&self, limiter: &'l Limiter) -> Option<Grant<'l>> {
        matches!(self.call, Call::Refused(_))
            .then(|| limiter.try_acquire(&self.request()).expect("the first call is granted"))
    }

    /// Makes the call once, and panics if it has another result than the shape says.
    pub fn call_once(&self, limiter: &Limiter, request: &Request<'_>) {
        match (self.call, limiter.try_acquire(request)) {
            (Call::Acquire | Call::Release, Ok(grant)) => drop(grant),
            (Call::Record, Ok(grant)) => drop(grant.record(&success()).expect("recorded")),
            (Call::Settle, Ok(grant)) => drop(grant.record(&settled()).expect("recorded")),
            (Call::Snapshot, Ok(grant)) => {
                drop(grant);
                drop(limiter.snapshot().expect("a snapshot"));
            }
            (Call::Refused(reason), Err(AcquireError::Refused(refusal))) if refusal.reason() == reason => {}
            (_, other) => panic!("{}: {other:?}", self.key),
        }
    }
}

/// The outcome of [`Call::Record`].
pub fn success() -> Outcome<'static> {
    Outcome::http(200, &[])
}

/// The outcome of [`Call::Settle`].
pub fn settled() -> Outcome<'static> {
    success().cost(ACTUAL)
}

fn policy(rules: &[RuleDraft<'_>], concurrency: Option<u64>) -> Policy {
    Policy::new(&PolicyDraft { concurrency, rules, ..PolicyDraft::default() }).expect("a valid policy")
}

fn rules(rules: &[RuleDraft<'_>]) -> Policy {
    policy(rules, None)
}

/// A rule that never refuses.
fn plenty(algorithm: Algorithm) -> RuleDraft<'static> {
    if algorithm.has_burst() {
        RuleDraft { burst: Some(PLENTY), ..RuleDraft::new(algorithm, 35, SECOND) }
    } else {
        RuleDraft::new(algorithm, PLENTY, SECOND)
    }
}

/// `COUNT` token buckets that never refuse.
pub fn buckets<const COUNT: usize>() -> Policy {
    rules(&[plenty(Algorithm::TokenBucket); COUNT])
}

/// `COUNT` rules that grant one call.
fn scarce<const COUNT: usize>() -> Policy {
    rules(&[RuleDraft::new(Algorithm::Gcra, 1, HOUR); COUNT])
}

fn one_permit() -> Policy {
    policy(&[plenty(Algorithm::TokenBucket)], Some(1))
}

/// A log that never refuses, because 1000 calls take longer than its period. Some 400 runs of units are in use.
fn sliding_log() -> Policy {
    rules(&[RuleDraft::new(Algorithm::SlidingLog, 1000, Duration::from_micros(20))])
}

fn mixed() -> Policy {
    rules(&[
        plenty(Algorithm::TokenBucket),
        plenty(Algorithm::FixedWindow),
        plenty(Algorithm::SlidingCounter),
    ])
}

/// The limiter of a language model: requests and tokens per minute, and permits.
fn llm() -> Policy {
    let requests =
        RuleDraft { burst: Some(10_000_000_000), ..RuleDraft::new(Algorithm::TokenBucket, 500, MINUTE) };
    let tokens = RuleDraft {
        unit: Some(TOKENS),
        burst: Some(1_000_000_000_000),
        ..RuleDraft::new(Algorithm::TokenBucket, 30_000, MINUTE)
    };
    policy(&[requests, tokens], Some(64))
}
