//! `shmlimit bench` measures every figure of the design in a temporary directory, which it removes afterwards.

use crate::cli::{Home, binary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The benchmark, with a temporary directory in which it must leave nothing.
fn bench(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", binary(), "bench"]).args(arguments).process_group(0);
    command.env("TMPDIR", directory.path());
    command
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const FIGURES: [&str; 38] = [
    "clock",
    "granted",
    "denied_rate",
    "denied_permit",
    "denied_3_rules",
    "snapshot",
    "granted_all_on",
    "release",
    "record",
    "cas",
    "flock",
    "token_bucket",
    "gcra",
    "leaky_bucket",
    "fixed_window",
    "sliding_counter",
    "sliding_log",
    "rules_2",
    "rules_3",
    "rules_mixed",
    "rules_8",
    "llm",
    "llm_record",
    "llm_settle",
    "alone",
    "two",
    "eight",
    "eight_p99",
    "flock_contended",
    "processor_share",
    "attach",
    "process_acquire",
    "process_status",
    "process_flock",
    "process_true",
    "rate_reached",
    "jain",
    "looks",
];

#[test]
fn every_figure_of_the_design_has_a_line_with_its_target() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::new();
    let output = bench(&directory, &["--quick", "--json"]).env("SHMLIMIT_DIR", home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&output);
    assert_eq!(lines[0]["bench"], "machine");
    assert_eq!(lines[0]["debug_build"], cfg!(debug_assertions));
    assert_eq!(lines[0]["quick"], true);
    for key in FIGURES {
        let found: Vec<&Value> = lines.iter().filter(|line| line["bench"] == key).collect();
        let [line] = found[..] else { panic!("{key}: {found:?}") };
        assert!(line["value"].as_f64().unwrap() > 0.0, "{line}");
        for text in ["what", "unit"] {
            assert!(line[text].is_string(), "{line}");
        }
        if line["met"].is_boolean() {
            assert!(line["at_most"].is_number() != line["at_least"].is_number(), "{line}");
            let measured = line["ratio"].as_f64().or(line["value"].as_f64()).unwrap();
            let most = line["at_most"].as_f64().is_none_or(|most| measured <= most);
            let least = line["at_least"].as_f64().is_none_or(|least| measured >= least);
            assert_eq!(line["met"], most && least, "{line}");
            if let Some(goal) = line["goal"].as_f64() {
                assert!(goal < line["at_most"].as_f64().unwrap(), "a goal is stricter: {line}");
                assert_eq!(line["goal_met"], measured <= goal, "{line}");
            }
        }
    }
    // The users' own limiters are not touched, and no file is left.
    assert_eq!(home.names(), [""; 0]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_table_for_people_names_the_build_and_fits_80_columns() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench(&directory, &["--quick"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("shmlimit 0."), "{text}");
    assert_eq!(text.contains("a debug build"), cfg!(debug_assertions), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    for part in ["one process", "several processes at once", "coming and going", "eight processes that wait"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The first lines may be longer: processors have long names.
    assert!(text.lines().skip(2).all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn only_check_makes_a_missed_target_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench(&directory, &["--quick", "--json", "--check"]).output().unwrap();
    let missed = lines(&output).into_iter().any(|line| {
        let measured = line["ratio"].as_f64().or(line["value"].as_f64()).unwrap_or(0.0);
        let most = line["at_most"].as_f64().is_some_and(|most| measured > most * 1.1);
        let least = line["at_least"].as_f64().is_some_and(|least| measured < least / 1.1);
        line["required"] == true && (most || least)
    });
    assert_eq!(output.status.code(), Some(i32::from(missed)));
}

#[test]
fn a_bench_ended_by_any_signal_leaves_no_file_and_no_worker() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let directory = tempfile::tempdir().unwrap();
        let mut child =
            bench(&directory, &["--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        // After the first figure of one process, the figures of several processes are measured.
        assert!(out.any(|line| line.unwrap().contains("\"flock\"")));
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        child.wait().unwrap();
        let by = Instant::now() + Duration::from_secs(20);
        while let Some(left) = left_behind(&directory) {
            assert!(Instant::now() < by, "{signal}: {left}");
            sleep(Duration::from_millis(20));
        }
    }
}

/// Looks for leftovers: a file, or a process whose environment names the directory.
fn left_behind(directory: &TempDir) -> Option<String> {
    if let Some(file) = fs::read_dir(directory.path()).unwrap().next() {
        return Some(format!("{file:?}"));
    }
    let mark = directory.path().to_str().unwrap().as_bytes();
    let knows = |path: &std::path::PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark)
    };
    let mut processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    processes.find(knows).map(|path| format!("{path:?}"))
}
