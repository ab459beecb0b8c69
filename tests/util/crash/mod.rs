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
/// The longest that anything may take before a test gives up: far above every documented bound.
pub const WATCHDOG: Duration = Duration::from_secs(20);

/// One bucket and one GCRA of that many requests a period and at once.
fn two_rules(provider: &str, [bucket, gcra]: [u64; 2], period: Duration, concurrency: u64) -> Policy {
    let rules = [
        RuleDraft::new(Algorithm::TokenBucket, bucket, period),
        RuleDraft::new(Algorithm::Gcra, gcra, period),
    ];
    let concurrency = Some(concurrency);
    Policy::new(&PolicyDraft { provider, concurrency, rules: &rules, ..Default::default() }).unwrap()
}

/// So many requests an hour and at once.
pub fn policy(bucket: u64, gcra: u64) -> Policy {
    two_rules("test", [bucket, gcra], Duration::from_secs(3600), CONCURRENCY)
}

/// Rules that no test can exhaust: only permits and the lock are in the way.
pub fn fast_policy(concurrency: u64) -> Policy {
    fast_policy_of("test", concurrency)
}

/// The same under another name, so that it is another policy.
pub fn fast_policy_of(provider: &str, concurrency: u64) -> Policy {
    two_rules(provider, [100_000_000, 50_000_000], Duration::from_secs(1), concurrency)
}

/// Room for every grant a test makes, but few enough that an hour's refill cannot hide a charge.
pub fn usual_policy() -> Policy {
    policy(100, 50)
}

/// How the tests open the limiter: the dead are looked for at once, and the file's place is never checked, so that
/// an operation takes the same way each time.
pub fn builder(directory: &Path) -> Builder {
    let bounds = AttachOptions {
        lock: Duration::from_secs(5),
        reclaim: Duration::ZERO,
        place: Duration::from_secs(3600),
        ..AttachOptions::default()
    };
    Limiter::builder(NAME).directory(directory).bounds(bounds)
}

/// For people and for the long version: how long it took. The tests themselves only mind whether it ended.
pub fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let part = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    if let (Some(median), Some(late), Some(most)) = (part(50), part(95), part(100)) {
        println!("{what}: median {median:.2?}, 95 % {late:.2?}, at most {most:.2?}, {} times", times.len());
    }
}
