//! Measures how a budget is shared between one program and fifty concurrent commands: each side gets half (R143).

use crate::common::{Bound, Target, directory, limiter, median};
use crate::shares::{call_for, policy};
use crate::{Effort, Figure, Findings};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Low enough for a small machine to start half as many commands.
const RATE: u64 = 100;
const WARM_UP: Duration = Duration::from_secs(2);

/// Runs `yes | xargs -P50 shmlimit run … echo` until its shell is killed.
fn xargs(directory: &str) -> Child {
    let tool = env!("CARGO_BIN_EXE_shmlimit");
    let line = format!("yes go | xargs -n1 -P50 '{tool}' --dir '{directory}' run api -- echo");
    // In a separate process group, so that all of it can be ended at once.
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env_remove("SHMLIMIT_GROUP").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a shell")
}

/// The fraction of the grants that the commands got.
fn round(length: Duration, warm_up: Duration) -> f64 {
    let directory = directory();
    let limiter = limiter(directory.path(), "api", policy(RATE));
    let mut commands = xargs(directory.path().to_str().expect("a path that is text"));
    let output = BufReader::new(commands.stdout.take().expect("piped"));
    let lines = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&lines);
    let reader = std::thread::spawn(move || {
        for _ in output.lines() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    call_for(&limiter, warm_up);
    let before = lines.load(Ordering::Relaxed);
    let ours = call_for(&limiter, length);
    let theirs = lines.load(Ordering::Relaxed) - before;
    let group = nix::unistd::Pid::from_raw(commands.id() as i32);
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).expect("a group of processes");
    commands.wait().expect("an ended shell");
    reader.join().expect("an ended reader");
    theirs as f64 / (ours + theirs) as f64
}

pub fn measure(effort: Effort) -> Findings {
    let warm_up = if effort.smoke { Duration::from_millis(200) } else { WARM_UP };
    let length = Duration::from_secs_f64(2.0 * effort.seconds);
    let parts: Vec<f64> = (0..effort.repeats).map(|_| round(length, warm_up)).collect();
    let percent = 100.0 * median(&parts);
    Findings {
        figures: vec![Figure::new("xargs -P50 shmlimit run beside one program: its share", percent, "%")],
        targets: vec![Target {
            name: "xargs -P50 beside one program: % off half",
            measured: (percent - 50.0).abs(),
            bound: Bound::AtMost(1.0),
            required: true,
        }],
    }
}
