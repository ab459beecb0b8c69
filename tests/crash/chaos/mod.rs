//! Chaos: many processes on limiters in several file systems, while files are deleted and replaced, settings change,
//! wall clocks step, boots change, privileges are dropped, and processes are killed, stopped and forked.
//!
//! The check trusts nothing that a limiter reports. Every worker writes each grant into its own log, with the clock
//! read before and after the call; [`log_check`] reads only these logs. `scripts/proofs/chaos` runs longer than
//! `cargo test`.

mod log_check;
mod site;
mod worker;

use crate::util::{Random, boot_time};
use site::{Event, Site};
use std::time::{Duration, Instant};

/// The value of an environment variable, or a default.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The test that serves as the entry point of worker and operator processes.
const ROLE: &str = concat!(module_path!(), "::role");

/// The entry point of worker and operator processes; checks nothing by itself.
#[test]
fn role() {
    worker::run_role();
}

#[test]
fn no_limit_is_exceeded_under_faults_of_files_clocks_boots_and_processes() {
    let seconds = number("SHMLIMIT_CHAOS_SECONDS", 4);
    let seed = number("SHMLIMIT_CHAOS_SEED", boot_time());
    println!("chaos: seed {seed}, {seconds} s (scripts/proofs/chaos --seconds {seconds} --seed {seed})");
    let mut random = Random(seed);
    let mut sites = Site::all();
    let names: Vec<_> = sites.iter().map(|site| site.name).collect();
    println!("chaos: sites {}", names.join(", "));
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        // This sleep sets the pace of the run; it synchronises nothing.
        std::thread::sleep(Duration::from_micros(1000 + random.below(40_000)));
        let which = random.below(sites.len() as u64) as usize;
        let event = Event::draw(&mut random);
        sites[which].suffer(event, &mut random);
    }
    let mut wrong = Vec::new();
    for site in &mut sites {
        wrong.extend(site.finish());
        wrong.extend(log_check::verdicts(site));
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
}
