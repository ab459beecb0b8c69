//! A handle that survives many replacements of its limiter: later calls cost what the first ones did.
//!
//! Only on Linux, where such a handle closes the old files. On Windows it keeps them: under Wine, one of the 500
//! replacements failed with "Too many open files".

use crate::util::{builder, counted, directory, take};
use shmlimit::{Limiter, Request};
use std::time::{Duration, Instant};

/// The shortest time of a thousand calls. There are enough tries that most of them are undisturbed.
fn cost_of_calls(limiter: &Limiter) -> Duration {
    let thousand = || {
        let began = Instant::now();
        (0..1000).for_each(|_| drop(std::hint::black_box(limiter.acquire_at_once(&Request::new()))));
        began.elapsed()
    };
    (0..200).map(|_| thousand()).min().unwrap()
}

/// A search through all former segments would take about twenty times as long after 500 replacements, and a hundred
/// times as long after 2000. The bound is far from both ends.
#[test]
fn calls_after_hundreds_of_replacements_cost_the_same_as_the_first() {
    let home = directory();
    let policy = counted(1_000_000, None);
    let limiter = builder(home.path()).policy(policy).create().unwrap();
    let replace = |times: usize| {
        for _ in 0..times {
            drop(builder(home.path()).policy(policy).replace().unwrap());
            assert!(take(&limiter), "the handle has gone over");
        }
        cost_of_calls(&limiter)
    };
    let few = replace(1);
    let many = replace(500);
    assert!(many < 4 * few, "a thousand calls: {few:?} after 1 replacement, {many:?} after 501");
}
