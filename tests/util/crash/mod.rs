//! The limiter of the crash tests, the processes that use it and are killed, ptrace, and images of a segment.

pub mod child_process;
pub mod image;
pub mod ptrace;
pub mod storm;
pub mod walk;

use shmlimit::{Algorithm, Builder, Limiter, Policy, PolicyDraft, RuleDraft};
use shmlimit_segment::AttachOptions;
use std::path::Path;
use std::time::Duration;

/// The limiter of every test.
pub const NAME: &str = "victim";
/// Its permits.
pub const CONCURRENCY: u64 = 4;
/// The time after which a test gives up: far above every documented bound.
pub const WATCHDOG: Duration = Duration::from_secs(20);

/// One token bucket and one GCRA, each with this limit per period, which is also its burst.
fn two_rules(provider: &str, [bucket, gcra]: [u64; 2], period: Duration, concurrency: u64) -> Policy {
    let rules = [
        RuleDraft::new(Algorithm::TokenBucket, bucket, period),
        RuleDraft::new(Algorithm::Gcra, gcra, period),
    ];
    let concurrency = Some(concurrency);
    Policy::new(&PolicyDraft { provider, concurrency, rules: &rules, ..Default::default() }).unwrap()
}

/// Two rules with these limits per hour, which are also their bursts.
pub fn policy(bucket: u64, gcra: u64) -> Policy {
    two_rules("test", [bucket, gcra], Duration::from_secs(3600), CONCURRENCY)
}

/// Rules that no test can exhaust: only permits and the lock can delay a call.
pub fn fast_policy(concurrency: u64) -> Policy {
    fast_policy_of("test", concurrency)
}

/// The same rules under another name, so it is another policy.
pub fn fast_policy_of(provider: &str, concurrency: u64) -> Policy {
    two_rules(provider, [100_000_000, 50_000_000], Duration::from_secs(1), concurrency)
}

/// Room for every grant that a test makes, but so few units that an hour's refill cannot hide a charge.
pub fn usual_policy() -> Policy {
    policy(100, 50)
}

/// The options with which the tests open the limiter. Dead processes are reclaimed at once, and the place of the
/// file is never checked, so an operation takes the same path each time.
pub fn builder(directory: &Path) -> Builder {
    let bounds = AttachOptions {
        lock: Duration::from_secs(5),
        reclaim: Duration::ZERO,
        place: Duration::from_secs(3600),
        ..AttachOptions::default()
    };
    Limiter::builder(NAME).directory(directory).bounds(bounds)
}

/// Prints durations, for people and for the long version of the tests. The tests only check that everything ended.
pub fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let part = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    if let (Some(median), Some(late), Some(most)) = (part(50), part(95), part(100)) {
        println!("{what}: median {median:.2?}, 95 % {late:.2?}, at most {most:.2?}, {} times", times.len());
    }
}
