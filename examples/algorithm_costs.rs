//! Measures the cost of a decision for each algorithm, in private memory: `cargo run --release --example
//! algorithm_costs`.

use std::hint::black_box;
use std::time::Instant;

use shmlimit_kernel::*;
use std::time::Duration;

/// Short, so that some chunks are not interrupted on a busy machine.
const CHUNK: u64 = 5_000;
const CHUNKS: u64 = 120;

/// Nanoseconds per call in the best chunk of the second half, and the percentage of calls that were granted.
fn measure(rule: RuleDraft<'_>, apart: u64) -> (f64, u64) {
    let draft = PolicyDraft { rules: &[rule], ..PolicyDraft::default() };
    let policy = Policy::new(&draft).expect("valid");
    let ask = AcquireRequest::one(Priority::User);
    let mut m = LocalMemory::new(&policy);
    let (mut best, mut granted) = (f64::MAX, 0);
    for chunk in 0..CHUNKS {
        let start = Instant::now();
        for i in 0..CHUNK {
            let now = Time((chunk * CHUNK + i) * apart);
            if let Ok(ticket) = decide::acquire(black_box(&mut m), 0, &ask, now) {
                granted += 1;
                decide::release(&mut m, 0, &ticket);
            }
        }
        if chunk >= CHUNKS / 2 {
            best = best.min(start.elapsed().as_nanos() as f64 / CHUNK as f64);
        }
    }
    (best, granted * 100 / (CHUNK * CHUNKS))
}

fn main() {
    let second = Duration::from_secs(1);
    let gcra = RuleDraft::new(Algorithm::Gcra, 1_000, second);
    let rules = [
        ("token_bucket", RuleDraft::new(Algorithm::TokenBucket, 1_000, second)),
        ("gcra", gcra),
        ("gcra, free passes", RuleDraft { burst_mode: BurstMode::FixedWindow, ..gcra }),
        ("leaky_bucket", RuleDraft::new(Algorithm::LeakyBucket, 1_000, second)),
        ("fixed_window", RuleDraft::new(Algorithm::FixedWindow, 1_000, second)),
        ("sliding_counter", RuleDraft::new(Algorithm::SlidingCounter, 1_000, second)),
        ("sliding_log, 1 000", RuleDraft::new(Algorithm::SlidingLog, 1_000, second)),
        ("sliding_log, 100 000", RuleDraft::new(Algorithm::SlidingLog, 100_000, second)),
    ];
    println!("| algorithm | ns a call, at the rate | granted | ns a call, at twice the rate | granted |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, rule) in rules {
        let step = second.as_nanos() as u64 / rule.limit;
        let ((grant, all), (mixed, half)) = (measure(rule, step), measure(rule, step / 2));
        println!("| {name} | {grant:.0} | {all} % | {mixed:.0} | {half} % |");
    }
}
