//! Measures the cost of one decision in a single process, in nanoseconds and as a multiple of one precise clock
//! read.
//!
//! `cargo bench --bench decision [-- --json] [-- --check]`; `--check` may take three passes. `-- --rules` prints the
//! curve of 1 to 8 rules instead.

mod common;

#[path = "../cli/src/bench/operations.rs"]
mod operations;
#[path = "../cli/src/bench/shapes.rs"]
mod shapes;

use common::baselines::{FileLock, Rate};
use common::measure;
use common::{Bound, Budget, Options, Target, clock, limiter, word};
use governor::clock::{DefaultClock, MonotonicClock};
use governor::{Quota, RateLimiter};
use operations::{BATCH, Figure, granted_in_place, measure, of_shape, one, take_and_give_back};
use shapes::{Call, SHAPES};
use shmlimit::{Limiter, Outcome, Request};
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
    let mut targets = vec![
        against_clock("release / clock", "release", 2.0, true),
        against_clock("granted, all on / clock", "granted, all on", 2.0, true),
        against_clock("record / clock", "record", 2.5, true),
        against_clock("record / clock, goal", "record", 1.5, false),
        quotient("flock+mmap / granted", "flock + mmap", "granted", Bound::AtLeast(10.0), true),
    ];
    for shape in SHAPES {
        let figure = find(shape.key);
        let (name, measured) = match shape.call {
            Call::Snapshot => ("snapshot, microseconds", figure.median / 1e3),
            _ => (shape.what, figure.ratio),
        };
        if let Some((most, goal)) = shape.targets {
            let target = |most, required| Target { name, measured, bound: Bound::AtMost(most), required };
            targets.extend([target(most, true), target(goal, false)]);
        }
    }
    targets
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
    let guarded = limiter(path, "guarded", Budget::Plenty.guarded());
    let scarce_8 = limiter(path, "scarce-8", Budget::Scarce.policy(8, None));
    let request = Request::new();
    let _spent = scarce_8.try_acquire(&request);
    let limiters: Vec<Limiter> =
        SHAPES.iter().map(|shape| limiter(path, shape.key, shape.policy())).collect();
    let (free, full) = (word(&path.join("free")), word(&path.join("full")));
    full.decide_lock_free(Rate::SCARCE);
    let governor = RateLimiter::direct_with_clock(per_second(1_000_000_000), DefaultClock::default());
    let governor_vdso = RateLimiter::direct_with_clock(per_second(1_000_000_000), MonotonicClock);

    let mut operations = vec![one(&["clock"], BATCH, || {
        black_box(clock());
    })];
    operations.extend(SHAPES.iter().zip(&limiters).map(|(shape, limiter)| of_shape(shape, limiter)));
    operations.extend([
        take_and_give_back(&["granted, and moved", "cancel"], &plenty, |grant| {
            grant.cancel().expect("cancelled");
        }),
        granted_in_place(&["granted, all on", "release, all on", "granted + release, all on"], &guarded),
        take_and_give_back(&["granted, all on, and moved", "record"], &guarded, |grant| {
            grant.record(black_box(&Outcome::http(200, &[]))).expect("recorded");
        }),
        one(&["denied: rate, 8 rules"], BATCH, || {
            assert!(scarce_8.try_acquire(black_box(&request)).is_err());
        }),
        one(&["lock-free CAS, granted"], BATCH, || assert!(black_box(&free).decide_lock_free(Rate::PLENTY))),
        one(&["lock-free CAS, denied"], BATCH, || assert!(!black_box(&full).decide_lock_free(Rate::SCARCE))),
        one(&["governor, its own clock"], BATCH, || assert!(governor.check().is_ok())),
        one(&["governor, vDSO clock"], BATCH, || assert!(governor_vdso.check().is_ok())),
        one(&["flock + mmap"], 200, || assert!(free.decide_under(FileLock::Flock, Rate::PLENTY))),
        one(&["OFD lock + mmap"], 200, || assert!(free.decide_under(FileLock::Ofd, Rate::PLENTY))),
    ]);
    let figures = measure(options.rounds(ROUNDS), operations);
    report(options, &figures, &targets(&figures))
}

/// Measures grant and release, and a refusal, with 1 to 8 rules.
fn curve(options: &Options) -> ExitCode {
    const MOST: usize = 8;
    static GRANTED: [&str; MOST] = [
        "granted + release, 1 rule",
        "granted + release, 2 rules",
        "granted + release, 3 rules",
        "granted + release, 4 rules",
        "granted + release, 5 rules",
        "granted + release, 6 rules",
        "granted + release, 7 rules",
        "granted + release, 8 rules",
    ];
    static REFUSED: [&str; MOST] = [
        "denied: rate, 1 rule",
        "denied: rate, 2 rules",
        "denied: rate, 3 rules",
        "denied: rate, 4 rules",
        "denied: rate, 5 rules",
        "denied: rate, 6 rules",
        "denied: rate, 7 rules",
        "denied: rate, 8 rules",
    ];
    let directory = common::directory();
    let open = |names: &[&str; MOST], budget: Budget| {
        let one = |(i, name): (usize, &&str)| {
            limiter(directory.path(), &name.replace([' ', ':', ',', '+'], "-"), budget.policy(i + 1, None))
        };
        names.iter().enumerate().map(one).collect::<Vec<Limiter>>()
    };
    let (plenty, scarce) = (open(&GRANTED, Budget::Plenty), open(&REFUSED, Budget::Scarce));
    let request = Request::new();
    let mut operations = vec![one(&["clock"], BATCH, || {
        black_box(clock());
    })];
    operations.extend(GRANTED.iter().zip(&plenty).map(|(name, limiter)| {
        one(std::slice::from_ref(name), BATCH, || drop(limiter.try_acquire(black_box(&request))))
    }));
    operations.extend(REFUSED.iter().zip(&scarce).map(|(name, limiter)| {
        drop(limiter.try_acquire(&request));
        one(std::slice::from_ref(name), BATCH, || assert!(limiter.try_acquire(black_box(&request)).is_err()))
    }));
    let met = report(options, &measure(options.rounds(ROUNDS), operations), &[]);
    options.verdict(met)
}

/// Prints the figures. Returns whether every required target is met.
fn report(options: &Options, figures: &[Figure], targets: &[Target]) -> bool {
    if options.json {
        print_json(figures, targets);
        return common::all_met(targets);
    }
    println!(
        "{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "one process, ns", "median", "10 %", "90 %", "x clock", "quiet"
    );
    for Figure { name, median, low, high, ratio, quiet } in figures {
        println!("{name:<28} {median:>9.1} {low:>9.1} {high:>9.1} {ratio:>9.2} {quiet:>9.2}");
    }
    targets.is_empty() || common::report_targets(targets)
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

fn main() -> ExitCode {
    let options = Options::read();
    match options.rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--rules"] => curve(&options),
        [] => compare(&options),
        _ => {
            eprintln!("unknown argument; known: --json, --check, --smoke, --rules");
            ExitCode::from(2)
        }
    }
}
