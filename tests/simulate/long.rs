//! R124: simulates hours of traffic in seconds; memory does not grow.

use super::{MS, SECOND, Simulation, TMDB};
use std::fmt::Write as _;

/// Mixed traffic of three hours: calls of all priorities, good and bad answers, an outage each hour, changed
/// settings.
fn ops(from: u64, count: u64) -> String {
    let mut script = String::new();
    for i in from..from + count {
        let t = i * 90 * MS;
        let priority = ["background", "user", "webhook"][(i % 3) as usize];
        let _ = writeln!(script, "{{\"op\":\"acquire\",\"t\":{t},\"priority\":\"{priority}\"}}");
        let down = t % (3600 * SECOND) > 3500 * SECOND;
        let status = match i % 50 {
            _ if down => 429,
            0 => 404,
            1 => 500,
            _ => 200,
        };
        let _ = writeln!(script, "{{\"op\":\"record\",\"t\":{},\"status\":{status}}}", t + 30 * MS);
        if i % 1000 == 0 {
            let _ =
                writeln!(script, "{{\"op\":\"set\",\"key\":\"concurrency\",\"value\":{}}}", 2 + i / 1000 % 5);
        }
    }
    script
}

#[cfg(target_os = "linux")]
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn r124_three_hours_of_mixed_traffic_take_no_memory() {
    use serde_json::Value;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    const CALLS: u64 = 3 * 3600 * 1000 / 90;
    let simulation = Simulation::new(TMDB);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("shmlimit"))
        .args(["simulate", "--summary", "--plot"])
        .arg(simulation.path("p.svg"))
        .arg("--config")
        .arg(simulation.path("c.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let writer = std::thread::spawn(move || {
        for from in (0..CALLS).step_by(1000) {
            input.write_all(ops(from, 1000.min(CALLS - from)).as_bytes()).unwrap();
        }
    });
    let (mut early, mut late, mut refused, mut states) = (0, 0, 0, std::collections::BTreeSet::new());
    let mut last = Value::Null;
    for (i, line) in output.lines().enumerate() {
        let line = line.unwrap();
        if i == 20_000 {
            early = resident(pid);
        }
        if i == 230_000 {
            late = resident(pid);
        }
        refused += u64::from(line.contains("\"allowed\":false"));
        if i % 10 == 0 || line.contains("\"from\"") {
            last = serde_json::from_str(&line).unwrap();
            states.insert(last["state"].as_str().unwrap().to_owned());
        }
    }
    writer.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(last["t"].as_u64().unwrap() > 10_790 * SECOND, "{last}");
    assert!(refused > 100 && states.len() >= 4, "the traffic was not mixed: {refused}, {states:?}");
    assert!(early > 0 && late > 0 && late < early + 1024, "grew from {early} kB to {late} kB");
}

#[test]
fn the_same_script_gives_the_same_bytes() {
    let simulation = Simulation::new(TMDB);
    let once = || simulation.command().write_stdin(ops(38_000, 3000)).output().unwrap().stdout;
    let first = once();
    assert!(first.len() > 100_000);
    assert!(first == once(), "two runs differ");
}
