//! Measures the cost of attaching, detaching and first creation, and of whole processes: `shmlimit acquire` and
//! `status`, compared with `flock(1)`.
//!
//! `cargo bench --bench attach [-- --json] [-- --check]`.

mod common;

use common::{Bound, Budget, Options, Target, clock, limiter, median, quantile};
use shmlimit::{Limiter, Request};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const ROUNDS: usize = 301;
/// Processes take a thousand times longer than an attachment.
const PROCESS_ROUNDS: usize = 101;

struct Figure {
    name: &'static str,
    microseconds: Vec<f64>,
}

fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = clock();
    let done = work();
    (done, (clock() - start) as f64 / 1e3)
}

fn in_process(rounds: usize, directory: &Path) -> Vec<Figure> {
    let policy = Budget::Plenty.policy(1, None);
    let resident = limiter(directory, "resident", policy);
    let names = ["create and attach", "attach", "detach", "attach, 32 other handles"];
    let mut figures = names.map(|name| Figure { name, microseconds: Vec::new() });
    let attach = |name: &str| {
        Limiter::builder(name).directory(directory).open_existing().expect("an attached limiter")
    };
    let busy = limiter(directory, "busy", policy);
    let _others: Vec<Limiter> = (1..32).map(|_| attach("busy")).collect();
    for round in 0..rounds {
        let fresh = format!("fresh-{round}");
        let (created, create) = timed(|| limiter(directory, &fresh, policy));
        drop(created);
        std::fs::remove_file(directory.join(format!("{fresh}.shm"))).expect("the new segment");
        let (attached, attach_alone) = timed(|| attach("resident"));
        let ((), detach) = timed(|| drop(attached));
        let (crowded, attach_busy) = timed(|| attach("busy"));
        drop(crowded);
        for (figure, value) in figures.iter_mut().zip([create, attach_alone, detach, attach_busy]) {
            figure.microseconds.push(value);
        }
    }
    drop((resident, busy));
    figures.into()
}

/// Runs a process to its end and returns the time in microseconds; `None` if it cannot be run or fails.
fn process(program: &str, arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (status, time) = timed(|| command.status());
    status.ok()?.success().then_some(time)
}

/// Runs `shmlimit acquire` and `flock FILE true` in turns; `None` if one of them is missing here.
fn as_processes(rounds: usize, directory: &Path) -> Option<Vec<Figure>> {
    let program = env!("CARGO_BIN_EXE_shmlimit");
    let directory_text = directory.to_str()?;
    // A program that succeeds without doing its work would be too fast. So check afterwards that the permit is taken.
    let probe = limiter(directory, "probe", Budget::Scarce.policy(1, None));
    process(program, &["--dir", directory_text, "acquire", "probe"])?;
    if probe.try_acquire(&Request::new()).is_ok() {
        return None;
    }
    drop(limiter(directory, "whole", Budget::Plenty.policy(1, None)));
    let file = directory.join("flock-file");
    let acquire = ["--dir", directory_text, "acquire", "whole"];
    let status = ["--dir", directory_text, "status", "whole"];
    let flock = [file.to_str()?, "true"];
    let names = ["shmlimit acquire", "shmlimit status", "flock FILE true", "true"];
    let mut figures = names.map(|name| Figure { name, microseconds: Vec::new() });
    for _ in 0..rounds {
        let ours = [process(program, &acquire)?, process(program, &status)?];
        let times = [ours[0], ours[1], process("flock", &flock)?, process("true", &[])?];
        for (figure, time) in figures.iter_mut().zip(times) {
            figure.microseconds.push(time);
        }
    }
    Some(figures.into())
}

fn targets(figures: &[Figure]) -> Vec<Target> {
    let of = |name: &str| figures.iter().find(|f| f.name == name).map(|f| median(&f.microseconds));
    let mut targets = Vec::new();
    if let Some(attach) = of("attach") {
        let bound = Bound::AtMost(200.0);
        targets.push(Target { name: "attach, microseconds", measured: attach, bound, required: true });
    }
    let whole = [
        ("shmlimit acquire", "shmlimit acquire / flock FILE true"),
        ("shmlimit status", "shmlimit status / flock FILE true"),
    ];
    for (ours, name) in whole {
        if let (Some(ours), Some(theirs)) = (of(ours), of("flock FILE true")) {
            let (measured, bound) = (ours / theirs, Bound::AtMost(1.0));
            targets.push(Target { name, measured, bound, required: true });
        }
    }
    targets
}

fn print_json(figures: &[Figure], targets: &[Target]) {
    let figures: serde_json::Map<_, _> = figures
        .iter()
        .map(|f| {
            let part = |part| quantile(&f.microseconds, part);
            let value =
                serde_json::json!({ "median_us": part(0.5), "p10_us": part(0.1), "p90_us": part(0.9) });
            (f.name.to_owned(), value)
        })
        .collect();
    let targets = common::targets_as_json(targets);
    println!("{}", serde_json::json!({ "bench": "attach", "figures": figures, "targets": targets }));
}

fn main() -> ExitCode {
    let options = Options::read();
    let directory = common::directory();
    let mut figures = in_process(options.rounds(ROUNDS), directory.path());
    match as_processes(options.rounds(PROCESS_ROUNDS), directory.path()) {
        Some(processes) => figures.extend(processes),
        None => eprintln!("not measured: `shmlimit acquire` or flock(1) does not work here"),
    }
    let targets = targets(&figures);
    let met = if options.json {
        print_json(&figures, &targets);
        common::all_met(&targets)
    } else {
        println!("{:<28} {:>9} {:>9} {:>9}", "microseconds", "median", "10 %", "90 %");
        for Figure { name, microseconds } in &figures {
            let [low, middle, high] = [0.1, 0.5, 0.9].map(|part| quantile(microseconds, part));
            println!("{name:<28} {middle:>9.1} {low:>9.1} {high:>9.1}");
        }
        common::report_targets(&targets)
    };
    options.verdict(met)
}
