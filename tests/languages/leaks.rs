//! Calls, refusals and errors from C and from Python, many times in one process: neither memory nor descriptors grow.
//!
//! A few thousand rounds here; `scripts/languages/one-limiter --leaks` runs enough rounds for more than 200 000
//! calls.

use crate::programs::{Built, setting};
use crate::util::crash::NAME;
use crate::util::server::limiter;
use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
use std::process::Command;
use std::time::Duration;

/// How much an allocator may keep without a leak, in kilobytes.
const SLACK_KB: u64 = 128;

/// Runs a program that reports its memory. The first fifth of the reports is for warming up.
fn does_not_grow(language: &str, mut command: Command) {
    let rounds = setting("SHMLIMIT_LANGUAGES_ROUNDS", 5000);
    let rule = RuleDraft {
        burst: Some(1000),
        ..RuleDraft::new(Algorithm::TokenBucket, 1_000_000, Duration::from_secs(1))
    };
    let draft = PolicyDraft { concurrency: Some(1), rules: &[rule], ..PolicyDraft::default() };
    let (directory, limiter) = limiter(Policy::new(&draft).unwrap());
    command.args([NAME, &rounds.to_string()]).env("SHMLIMIT_DIR", directory.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let reports: Vec<(u64, u64)> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(resident, descriptors)| (resident.parse().unwrap(), descriptors.parse().unwrap()))
        .collect();
    let (warm, end) = (reports[reports.len() / 5], reports[reports.len() - 1]);
    println!("{language}: {rounds} rounds, {} to {} KB, {} to {} descriptors", warm.0, end.0, warm.1, end.1);
    assert!(end.0 <= warm.0 + SLACK_KB, "memory grew: {reports:?}");
    assert!(end.1 <= warm.1, "descriptors grew: {reports:?}");
    let now = limiter.snapshot().unwrap();
    assert_eq!((now.in_flight, now.queue.len(), now.participants.len()), (0, 0, 1), "{now:?}");
}

#[test]
fn r124_calls_from_c_leak_nothing() {
    does_not_grow("C", Command::new(Built::get().program("soak-c")));
}

#[test]
fn r124_calls_from_python_leak_nothing() {
    does_not_grow("Python", Built::get().python("soak.py"));
}
