//! Measures how well programs wait together, compared with simpler methods in the same run.
//!
//! `cargo bench --bench waiting [-- --json] [-- --check] [-- --repeats=N] [-- PART…]`, where the parts are
//! `shares`, `parties`, `precision`, `idle` and `growth`. By default all of them run. The workers are this same
//! program, started again.

#[path = "../common/mod.rs"]
mod common;
mod growth;
mod idle;
#[cfg(unix)] // process groups, and a shell
mod parties;
#[cfg(unix)] // how exact the system's timers are
mod precision;
mod shares;
mod workers;

use common::{Options, Target};
use std::process::ExitCode;

/// One measured number.
pub struct Figure {
    /// The name of the measurement.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

impl Figure {
    fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure { name: name.into(), value, unit }
    }
}

/// The results of one part of this benchmark.
#[derive(Default)]
pub struct Findings {
    /// All numbers to print.
    pub figures: Vec<Figure>,
    /// The numbers that have a bound.
    pub targets: Vec<Target>,
}

/// How much to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// How often a measurement in real time is repeated; the median counts.
    pub repeats: usize,
    /// How long one measurement takes, in seconds.
    pub seconds: f64,
    /// Only check that the benchmark runs.
    pub smoke: bool,
}

type Part = (&'static str, fn(Effort) -> Findings);

const PARTS: &[Part] = &[
    ("shares", shares::measure),
    #[cfg(unix)]
    ("parties", parties::measure),
    #[cfg(unix)]
    ("precision", precision::measure),
    ("idle", idle::measure),
    ("growth", growth::measure),
];

fn main() -> ExitCode {
    let options = Options::read();
    if let Some((flag, worker)) = options.rest.split_first()
        && flag == workers::FLAG
    {
        work(worker);
        return ExitCode::SUCCESS;
    }
    let repeats = options.rest.iter().find_map(|word| word.strip_prefix("--repeats="));
    let repeats = repeats.map_or(5, |number| number.parse().expect("a number of repeats"));
    let effort = if options.smoke {
        Effort { repeats: 1, seconds: 0.2, smoke: true }
    } else {
        Effort { repeats, seconds: 3.0, smoke: false }
    };
    let wanted: Vec<&String> = options.rest.iter().filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|word| PARTS.iter().all(|(name, _)| *name != word.as_str())) {
        eprintln!(
            "no part {unknown:?}; there are {:?}",
            PARTS.iter().map(|(name, _)| name).collect::<Vec<_>>()
        );
        return ExitCode::FAILURE;
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|word| *word == name);
    let mut all = Findings::default();
    for (name, measure) in PARTS.iter().filter(|(name, _)| chosen(name)) {
        let found = measure(effort);
        if !options.json {
            println!("{name}");
            for Figure { name, value, unit } in &found.figures {
                println!("  {name:<72} {value:>10.3} {unit}");
            }
        }
        all.figures.extend(found.figures);
        all.targets.extend(found.targets);
    }
    let met = if options.json {
        print_json(&all);
        common::all_met(&all.targets)
    } else {
        common::report_targets(&all.targets)
    };
    options.verdict(met)
}

fn print_json(all: &Findings) {
    let one = |figure: &Figure| serde_json::json!({ "name": figure.name, "value": figure.value, "unit": figure.unit });
    let figures: Vec<_> = all.figures.iter().map(one).collect();
    let targets = common::targets_as_json(&all.targets);
    println!("{}", serde_json::json!({ "bench": "waiting", "figures": figures, "targets": targets }));
}

fn work(words: &[String]) {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["caller", directory, threads, seconds, way] => shares::work(directory, threads, seconds, way),
        #[cfg(unix)]
        ["rung", directory] => precision::work(directory),
        ["sleeper", directory, threads] => idle::work(directory, threads),
        ref other => panic!("no such worker: {other:?}"),
    }
}
