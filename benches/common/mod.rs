//! Code shared by all benchmarks: a clock, rounds, medians, limiters in memory, and the designs we compare with.

#![allow(dead_code, unused_imports, reason = "each benchmark uses its own part")]

#[path = "../../cli/src/bench/measure.rs"]
pub mod measure;

pub use measure::*;
use shmlimit::{Limiter, Policy};
pub use shmlimit_segment::sys::baselines::{self, clock};
use std::path::Path;
use std::process::ExitCode;

/// A private directory, in memory if possible, so that the disk is not measured.
pub fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("shmlimit-bench-")
        .tempdir_in(directory)
        .expect("a directory for the benchmark")
}

/// Opens a limiter with that policy.
pub fn limiter(directory: &Path, name: &str, policy: Policy) -> Limiter {
    measure::open(directory, name, policy).expect("a limiter")
}

/// Opens one word in a mapped file.
pub fn word(path: &Path) -> baselines::SharedWord {
    baselines::SharedWord::open(path).expect("a file for the baseline")
}

/// The command-line options of a benchmark. `cargo bench` adds `--bench`, which means nothing here.
#[derive(Clone, Default)]
pub struct Options {
    /// Print one JSON object instead of a table.
    pub json: bool,
    /// Exit with code 1 if a required target is missed.
    pub check: bool,
    /// Only check that the benchmark runs: a few short rounds, without judging any target.
    pub smoke: bool,
    /// All other arguments.
    pub rest: Vec<String>,
}

impl Options {
    /// Reads the command line.
    pub fn read() -> Options {
        let mut options = Options::default();
        for argument in std::env::args().skip(1) {
            match argument.as_str() {
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--smoke" => options.smoke = true,
                "--bench" => {}
                other => options.rest.push(other.to_owned()),
            }
        }
        options
    }

    /// The usual number of rounds, or a few in a smoke run.
    pub fn rounds(&self, usual: usize) -> usize {
        if self.smoke { usual.min(3) } else { usual }
    }

    /// The exit code of the benchmark.
    pub fn verdict(&self, met: bool) -> ExitCode {
        if self.check && !self.smoke && !met { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Prints the targets as lines of a table. Returns whether every required one is met, allowing for noise.
pub fn report_targets(targets: &[Target]) -> bool {
    println!("\n{:<44} {:>9}  {:>9}", "target", "measured", "bound");
    for target in targets {
        let (sign, bound) = match target.bound {
            Bound::AtMost(most) => ("<=", most),
            Bound::AtLeast(least) => (">=", least),
        };
        let verdict = match (target.met(), target.required) {
            (true, _) => "ok",
            (false, true) => "MISSED",
            (false, false) => "goal not reached",
        };
        println!("{:<44} {:>9.2}  {sign} {bound:>6.2}  {verdict}", target.name, target.measured);
    }
    all_met(targets)
}

/// Whether every required target is met, allowing for noise.
pub fn all_met(targets: &[Target]) -> bool {
    targets.iter().all(|target| !target.required || target.met_but_for_noise())
}

/// The targets as JSON.
pub fn targets_as_json(targets: &[Target]) -> serde_json::Value {
    let one = |target: &Target| {
        let (kind, bound) = match target.bound {
            Bound::AtMost(most) => ("at_most", most),
            Bound::AtLeast(least) => ("at_least", least),
        };
        serde_json::json!({
            "name": target.name, "measured": target.measured, kind: bound,
            "required": target.required, "met": target.met(),
        })
    };
    targets.iter().map(one).collect()
}
