//! Measures startup: attaching, and whole processes compared with `flock(1)`.

use super::measure::{Bound, Budget, median, open};
use super::report::Row;
use super::{BenchDirectory, Effort};
use crate::ui::failure::Failure;
use shmlimit::{Error, Limiter};
use shmlimit_segment::sys::baselines::clock;
use std::process::{Command, Stdio};

pub fn measure(effort: Effort, bench: &BenchDirectory) -> Result<Vec<Row>, Failure> {
    let directory = bench.directory();
    let _resident = open(directory, "whole", Budget::Plenty.policy(1, None))?;
    let mut attach = Vec::new();
    for _ in 0..effort.rounds {
        let (attached, time) = timed(|| Limiter::builder("whole").directory(directory).open_existing());
        drop::<Result<Limiter, Error>>(attached);
        attach.push(time);
    }
    let rows =
        vec![Row::new("attach", "attach to a limiter", median(&attach), "us").bounded(Bound::AtMost(200.0))];
    Ok(rows.into_iter().chain(processes(effort, bench)).collect())
}

/// Measures whole processes in turns. Without `flock(1)` there is no comparison.
fn processes(effort: Effort, bench: &BenchDirectory) -> Vec<Row> {
    let file = bench.directory().join("lock-file");
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..effort.process_rounds {
        let mut acquire = bench.tool();
        acquire.args(["acquire", "whole"]);
        let mut status = bench.tool();
        status.args(["status", "whole"]);
        let mut flock = Command::new("flock");
        flock.arg(&file).arg("true");
        let commands = [acquire, status, flock, Command::new("true")];
        for (times, command) in times.iter_mut().zip(commands) {
            times.extend(process(command));
        }
    }
    let [acquire, status, flock, bare] = times.map(|times| (!times.is_empty()).then(|| median(&times)));
    let beside = |key, what, time: Option<f64>| {
        let row = Row::new(key, what, time?, "us");
        Some(match flock {
            Some(flock) => row.against("flock(1)", time? / flock, Bound::AtMost(1.0)),
            None => row,
        })
    };
    let plain = |key, what, time: Option<f64>| Some(Row::new(key, what, time?, "us"));
    let rows = [
        beside("process_acquire", "shmlimit acquire, whole process", acquire),
        beside("process_status", "shmlimit status, whole process", status),
        plain("process_flock", "flock FILE true, whole process", flock),
        plain("process_true", "true, whole process", bare),
    ];
    rows.into_iter().flatten().collect()
}

/// Runs a process to its end and returns the microseconds it took, or `None` if it cannot start or fails.
fn process(mut command: Command) -> Option<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (status, time) = timed(|| command.status());
    status.ok()?.success().then_some(time)
}

/// Returns the result of the work and its duration in microseconds.
fn timed<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let start = clock();
    let done = work();
    (done, (clock() - start) as f64 / 1e3)
}
