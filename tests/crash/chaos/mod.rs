//! Chaos: many processes on limiters in several file systems, while files are deleted and replaced, settings change, wall
//! clocks step, boots change, privileges are dropped, and processes are killed, stopped and forked.
//!
//! The judge trusts nothing that a limiter says. Every worker writes each grant into a log of its own, with the clock read
//! before and after the call; [`log_check`] reads these logs alone. `scripts/proofs/chaos` runs it for longer than `cargo test` does.

mod log_check;
mod place;
mod worker;

use crate::util::{Random, boot_time};
use place::{Event, Place};
use std::time::{Duration, Instant};

/// The value of an environment variable, or a default.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The test that is a worker or an operator when it is started as one.
const ROLE: &str = concat!(module_path!(), "::role");

/// The entry point of worker and operator processes; checks nothing by itself.
#[test]
fn role() {
    worker::run_role();
}

#[test]
fn no_limit_is_exceeded_whatever_happens_to_files_clocks_boots_and_processes() {
    let seconds = number("SHMLIMIT_CHAOS_SECONDS", 4);
    let seed = number("SHMLIMIT_CHAOS_SEED", boot_time());
    println!("chaos: seed {seed}, {seconds} s (scripts/proofs/chaos --seconds {seconds} --seed {seed})");
    let mut random = Random(seed);
    let mut places = Place::all();
    let names: Vec<_> = places.iter().map(|place| place.name).collect();
    println!("chaos: places {}", names.join(", "));
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        // The pace of the run, not a synchronisation.
        std::thread::sleep(Duration::from_micros(1000 + random.below(40_000)));
        let which = random.below(places.len() as u64) as usize;
        let event = Event::draw(&mut random);
        places[which].suffer(event, &mut random);
    }
    let mut wrong = Vec::new();
    for place in &mut places {
        wrong.extend(place.settle());
        wrong.extend(log_check::verdicts(place));
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}
