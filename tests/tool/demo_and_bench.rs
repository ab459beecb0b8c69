//! `demo` and `bench` on every platform: all programs take part, the figures are shown, and nothing is left behind.

use crate::cli::{Home, binary};
use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Runs the tool with a temporary directory, and waits until the directory is empty.
#[track_caller]
fn run_tool(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    for name in ["TMPDIR", "TMP", "TEMP"] {
        command.env(name, directory.path());
    }
    let output = command.args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    is_empty(&directory);
    output
}

#[track_caller]
fn is_empty(directory: &TempDir) {
    let by = Instant::now() + Duration::from_secs(20);
    while let Some(left) = std::fs::read_dir(directory.path()).unwrap().next() {
        assert!(Instant::now() < by, "left behind: {left:?}");
        std::thread::yield_now();
    }
}

#[test]
fn all_four_programs_of_the_demo_make_calls_in_both_halves() {
    let output = run_tool(&["demo", "--json", "--seconds", "4", "--rate", "10/s"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["held"], &object["with"]["total"]["throttled"]), (&true.into(), &0.into()));
    assert!(object["without"]["total"]["throttled"].as_u64().unwrap() > 0, "{object}");
    for half in ["without", "with"] {
        let programs = object[half]["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 4);
        assert!(programs.iter().all(|one| one["calls"].as_u64().unwrap() > 0), "{half}: {object}");
    }
}

#[test]
fn the_bench_measures_one_process_several_processes_and_waiting_calls() {
    let output = run_tool(&["bench", "--quick", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["bench"], "machine");
    for key in [
        "clock",
        "granted",
        "denied_rate",
        "alone",
        "eight",
        "attach",
        "process_acquire",
        "rate_reached",
        "jain",
    ] {
        let found = lines.iter().find(|line| line["bench"] == key).unwrap_or_else(|| panic!("{key}: {text}"));
        assert!(found["value"].as_f64().unwrap() > 0.0, "{found}");
    }
}

/// Includes the first program, whose connection the later ones may inherit.
#[test]
fn every_program_calls_in_both_halves_and_shmlimit_keeps_the_promise() {
    let answer = Home::new().tool(&["demo", "--json", "--seconds", "4"]);
    let object: Value = serde_json::from_str(answer.succeeds()).unwrap();
    for half in ["without", "with"] {
        let programs = object[half]["programs"].as_array().unwrap();
        assert_eq!(programs.len(), 4);
        assert!(programs.iter().all(|one| one["calls"].as_u64().unwrap() > 0), "{half}: {object}");
    }
    assert_eq!((&object["held"], &object["with"]["total"]["throttled"]), (&true.into(), &0.into()));
}
