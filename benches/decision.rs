//! Measures the cost of one decision in a single process, in nanoseconds and as a multiple of one precise clock
//! read.
//!
//! `cargo bench --bench decision [-- --json] [-- --check]`; `--check` may take three passes. `-- --loop
//! granted|denied|release N` runs one operation alone, for profilers.

mod common;

#[path = "../cli/src/bench/operations.rs"]
mod operations;

use common::baselines::{FileLock, Rate};
use common::measure;
use common::{Bound, Budget, Options, Target, clock, limiter, word};
use governor::clock::{DefaultClock, MonotonicClock};
use governor::{Quota, RateLimiter};
use operations::{BATCH, Figure, denied, granted_in_place, measure, one, take_and_give_back};
use shmlimit::{Grant, Limiter, Outcome, Request};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;

/// How many rounds to run. The subjects take turns, so a disturbance of the machine affects all of them.
const ROUNDS: usize = 301;
fn targets(figures: &[Figure]) -> Vec<Target> {
    let find = |name: &str| figures.iter().find(|figure| figure.name == name).expect("a figure of that name");
    let against_clock = |name: &'static str, figure: &str, most: f64, required: bool| Target {
        name,
        measured: find(figure).ratio,
        bound: Bound::AtMost(most),
        required,
    };
    let quotient = |name: &'static str, over: &str, under: &str, bound: Bound, required: bool| Target {
        name,
        measured: find(over).median / find(under).median,
        bound,
        required,
    };
    vec![
        against_clock("granted / clock", "granted", 2.0, true),
        against_clock("denied (rate) / clock", "denied: rate", 1.3, true),
        against_clock("denied (concurrency) / clock", "denied: concurrency", 1.3, true),
        against_clock("release / clock", "release", 2.0, true),
        against_clock("granted, all on / clock", "granted, all on", 2.0, true),
        against_clock("record / clock", "record", 2.5, true),
        against_clock("record / clock, goal", "record", 1.5, false),
        against_clock("granted / clock, goal", "granted", 1.0, false),
        against_clock("denied (rate) / clock, goal", "denied: rate", 0.7, false),
        quotient("flock+mmap / granted", "flock + mmap", "granted", Bound::AtLeast(10.0), true),
        quotient("granted, 8 rules / 1 rule, goal", "granted, 8 rules", "granted", Bound::AtMost(2.0), false),
    ]
}

fn per_second(count: u32) -> Quota {
    Quota::per_second(NonZeroU32::new(count).expect("not zero"))
}

/// A target is missed only if it is missed in each of these passes. A neighbour on the same physical core can slow
/// everything except the clock for seconds.
const PASSES: usize = 3;

fn compare(options: &Options) -> ExitCode {
    let passes = if options.check && !options.smoke { PASSES } else { 1 };
    let met = (0..passes).any(|_| pass(options));
    options.verdict(met)
}

/// Measures everything once. Returns whether every required target is met.
fn pass(options: &Options) -> bool {
    let directory = common::directory();
    let path = directory.path();
    let plenty = limiter(path, "plenty", Budget::Plenty.policy(1, None));
    let plenty_8 = limiter(path, "plenty-8", Budget::Plenty.policy(8, None));
    let guarded = limiter(path, "guarded", Budget::Plenty.guarded());
    let scarce = limiter(path, "scarce", Budget::Scarce.policy(1, None));
    let scarce_8 = limiter(path, "scarce-8", Budget::Scarce.policy(8, None));
    let crowded = limiter(path, "crowded", Budget::Plenty.policy(1, Some(1)));
    let _spent = (scarce.try_acquire(&Request::new()), scarce_8.try_acquire(&Request::new()));
    let _permit = crowded.try_acquire(&Request::new()).expect("granted");
    let (free, full) = (word(&path.join("free")), word(&path.join("full")));
    full.decide_lock_free(Rate::SCARCE);
    let governor = RateLimiter::direct_with_clock(per_second(1_000_000_000), DefaultClock::default());
    let governor_vdso = RateLimiter::direct_with_clock(per_second(1_000_000_000), MonotonicClock);

    let figures = measure(
        options.rounds(ROUNDS),
        vec![
            one(&["clock"], BATCH, || {
                black_box(clock());
            }),
            granted_in_place(&["granted", "release", "granted + release"], &plenty),
            take_and_give_back(&["granted, and moved", "cancel"], &plenty, |grant| {
                grant.cancel().expect("cancelled");
            }),
            granted_in_place(&["granted, all on", "release, all on", "granted + release, all on"], &guarded),
            take_and_give_back(&["granted, all on, and moved", "record"], &guarded, |grant| {
                grant.record(black_box(&Outcome::http(200, &[]))).expect("recorded");
            }),
            denied(&["denied: rate"], &scarce),
            denied(&["denied: concurrency"], &crowded),
            granted_in_place(
                &["granted, 8 rules", "release, 8 rules", "granted + release, 8 rules"],
                &plenty_8,
            ),
            denied(&["denied: rate, 8 rules"], &scarce_8),
            one(&["snapshot"], 20, || drop(black_box(plenty.snapshot().expect("a snapshot")))),
            one(&["lock-free CAS, granted"], BATCH, || {
                assert!(black_box(&free).decide_lock_free(Rate::PLENTY))
            }),
            one(&["lock-free CAS, denied"], BATCH, || {
                assert!(!black_box(&full).decide_lock_free(Rate::SCARCE))
            }),
            one(&["governor, its own clock"], BATCH, || assert!(governor.check().is_ok())),
            one(&["governor, vDSO clock"], BATCH, || assert!(governor_vdso.check().is_ok())),
            one(&["flock + mmap"], 200, || assert!(free.decide_under(FileLock::Flock, Rate::PLENTY))),
            one(&["OFD lock + mmap"], 200, || assert!(free.decide_under(FileLock::Ofd, Rate::PLENTY))),
        ],
    );
    let targets = targets(&figures);
    if options.json {
        print_json(&figures, &targets);
        common::all_met(&targets)
    } else {
        println!(
            "{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "one process, ns", "median", "10 %", "90 %", "x clock", "quiet"
        );
        for Figure { name, median, low, high, ratio, quiet } in &figures {
            println!("{name:<28} {median:>9.1} {low:>9.1} {high:>9.1} {ratio:>9.2} {quiet:>9.2}");
        }
        common::report_targets(&targets)
    }
}

fn print_json(figures: &[Figure], targets: &[Target]) {
    let figures: serde_json::Map<_, _> = figures
        .iter()
        .map(|f| {
            let value = serde_json::json!({
                "median_ns": f.median, "p10_ns": f.low, "p90_ns": f.high, "ratio_to_clock": f.ratio,
                "ratio_when_quiet": f.quiet,
            });
            (f.name.to_owned(), value)
        })
        .collect();
    let targets = common::targets_as_json(targets);
    println!("{}", serde_json::json!({ "bench": "decision", "figures": figures, "targets": targets }));
}

#[inline(never)]
fn profiled_granted<'l>(limiter: &'l Limiter, request: &Request<'_>) -> Grant<'l> {
    limiter.try_acquire(request).expect("granted")
}

#[inline(never)]
fn profiled_denied(limiter: &Limiter, request: &Request<'_>) {
    assert!(limiter.try_acquire(request).is_err());
}

#[inline(never)]
fn profiled_release(grant: Grant<'_>) {
    drop(grant);
}

/// Runs one operation alone, in a separate function that a profiler can watch.
fn repeat(operation: &str, count: u64) -> ExitCode {
    let directory = common::directory();
    let budget = if operation == "denied" { Budget::Scarce } else { Budget::Plenty };
    let limiter = limiter(directory.path(), "profiled", budget.policy(1, None));
    let request = Request::new();
    if operation == "denied" {
        drop(limiter.try_acquire(&request));
    }
    for _ in 0..count {
        match operation {
            "granted" | "release" => profiled_release(profiled_granted(&limiter, black_box(&request))),
            "denied" => profiled_denied(&limiter, black_box(&request)),
            _ => {
                eprintln!("--loop takes granted, denied or release, and a count");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    let options = Options::read();
    match options.rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--loop", operation, count] => repeat(operation, count.parse().unwrap_or(0)),
        [] => compare(&options),
        _ => {
            eprintln!("unknown argument; known: --json, --check, --smoke, --loop OPERATION COUNT");
            ExitCode::from(2)
        }
    }
}
