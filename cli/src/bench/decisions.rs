//! Measures one process: each operation as a multiple of one clock read.

use super::measure::{Bound, Budget, open};
use super::operations::{self, BATCH, Figure, denied, granted_in_place, one, take_and_give_back};
use super::report::Row;
use super::{BenchDirectory, Effort};
use crate::ui::failure::Failure;
use shmlimit::{Outcome, Request};
use shmlimit_segment::sys::baselines::{FileLock, Rate, SharedWord, clock};
use std::hint::black_box;

/// Fewer operations for a file lock, which takes much longer.
const FEW: u32 = BATCH / 10;

pub fn measure(effort: Effort, bench: &BenchDirectory) -> Result<Vec<Row>, Failure> {
    let path = bench.directory();
    let plenty = open(path, "one-rule", Budget::Plenty.policy(1, None))?;
    let plenty_8 = open(path, "eight-rules", Budget::Plenty.policy(8, None))?;
    let guarded = open(path, "all-on", Budget::Plenty.guarded())?;
    let scarce = open(path, "spent", Budget::Scarce.policy(1, None))?;
    let crowded = open(path, "crowded", Budget::Plenty.policy(1, Some(1)))?;
    drop(scarce.try_acquire(&Request::new()));
    let _permit = crowded.try_acquire(&Request::new());
    let file = path.join("one-word");
    let word = SharedWord::open(&file).map_err(|source| shmlimit::Error::Io {
        action: "map",
        path: file,
        source,
    })?;
    let figures = operations::measure(
        effort.rounds,
        vec![
            one(&["clock"], BATCH, || {
                black_box(clock());
            }),
            granted_in_place(&["granted", "release", "both"], &plenty),
            granted_in_place(&["granted, all on", "release, all on", "both, all on"], &guarded),
            take_and_give_back(&["granted, and moved", "record"], &guarded, |grant| {
                drop(grant.record(black_box(&Outcome::http(200, &[]))));
            }),
            denied(&["denied: rate"], &scarce),
            denied(&["denied: permit"], &crowded),
            granted_in_place(&["granted, 8 rules", "release, 8 rules", "both, 8 rules"], &plenty_8),
            one(&["lock-free CAS"], BATCH, || {
                black_box(black_box(&word).decide_lock_free(Rate::PLENTY));
            }),
            one(&["flock"], FEW, || {
                black_box(word.decide_under(FileLock::Flock, Rate::PLENTY));
            }),
        ],
    );
    let nothing = Figure { name: "", median: 0.0, low: 0.0, high: 0.0, ratio: 0.0, quiet: 0.0 };
    let find = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap_or(&nothing);
    let row = |key, what, name: &str| Row::new(key, what, find(name).median, "ns");
    let to_clock = |key, what, name: &str, most| {
        row(key, what, name).against("clock", find(name).ratio, Bound::AtMost(most))
    };
    let quotient = |over: &str, under: &str| find(over).median / find(under).median;
    Ok(vec![
        row("clock", "one clock read", "clock"),
        to_clock("granted", "try_acquire, granted", "granted", 2.0),
        to_clock("granted_all_on", "the same, breaker and permits on", "granted, all on", 2.0),
        to_clock("denied_rate", "try_acquire, refused for the rate", "denied: rate", 1.3),
        to_clock("denied_permit", "try_acquire, refused for a permit", "denied: permit", 1.3),
        to_clock("release", "release", "release", 2.0),
        to_clock("record", "record of a success", "record", 2.5),
        row("granted_8_rules", "try_acquire, granted, eight rules", "granted, 8 rules")
            .against("one rule", quotient("granted, 8 rules", "granted"), Bound::AtMost(2.0))
            .into_goal(),
        row("cas", "lock-free CAS on one word", "lock-free CAS").beside("clock", find("lock-free CAS").ratio),
        row("flock", "flock(2) around one mapped word", "flock").against(
            "granted",
            quotient("flock", "granted"),
            Bound::AtLeast(10.0),
        ),
    ])
}
