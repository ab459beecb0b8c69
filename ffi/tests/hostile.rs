//! C programs that misuse the library: each call returns a specific code, and nothing stays allocated. Each program
//! prints nothing if it succeeds, and otherwise the place of the failure. scripts/languages/c-tests runs the same
//! programs with other compilers and under checking tools.

// These tests use this machine's compiler. scripts/platforms/windows-c compiles and runs the same programs for
// Windows.
#![cfg(unix)]

#[allow(dead_code)]
mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use support::Program;

#[test]
fn invalid_arguments_are_rejected_with_specific_codes() {
    Program::new("ffi/tests/c/arguments.c").run();
}

#[test]
fn closed_and_invalid_handles_return_an_error() {
    Program::new("ffi/tests/c/handles.c").run();
}

#[test]
fn r140_grants_do_not_cross_a_fork_and_handles_do() {
    Program::new("ffi/tests/c/forks.c").run();
}

#[test]
fn processes_share_a_limiter_and_killed_ones_give_back_their_permits() {
    Program::new("ffi/tests/c/processes.c").run();
}

#[test]
fn directories_may_have_any_name_that_is_utf8() {
    Program::new("ffi/tests/c/paths.c").run();
}

#[test]
fn a_wait_can_be_stopped_or_stepped_and_a_stopped_one_takes_nothing() {
    Program::new("ffi/tests/c/waits.c").run();
}

#[test]
fn counts_are_exact_and_messages_are_separate_among_threads() {
    Program::new("ffi/tests/c/threads.c").run();
}

#[test]
fn cancelled_threads_neither_abort_the_program_nor_keep_a_permit() {
    Program::new("ffi/tests/c/cancel.c").run();
}

#[test]
fn test_clock_moves_instead_of_making_calls_sleep() {
    Program::new("ffi/tests/c/test_clock.c").run();
}

#[test]
fn codes_and_their_names_never_change() {
    Program::new("ffi/tests/c/codes.c").run();
}

#[test]
fn thousands_of_errors_leave_nothing_behind() {
    Program::new("ffi/tests/c/nothing_left.c").run();
}

/// The snapshot in C has the same values as the tool's output. Time passes between the two, so times are compared
/// only as present or absent.
#[test]
fn a_snapshot_equals_the_tools_status() {
    let tool = support::tool();
    let program = Program::new("ffi/tests/c/snapshot.c");
    let mut running = program
        .command()
        .arg(&program.limiters)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    for limiter in ["tmdb", "binance"] {
        let line = lines.next().unwrap_or_else(|| panic!("nothing about {limiter}")).unwrap();
        let shown: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(shown["name"], limiter);
        let compared = compare(limiter, &shown, &status(&tool, &program.limiters, limiter));
        assert!(compared > 40, "{compared} values were compared");
    }
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
}

fn status(tool: &Path, limiters: &Path, name: &str) -> Value {
    let said = Command::new(tool).args(["status", name, "--json", "--dir"]).arg(limiters).output().unwrap();
    assert!(said.status.success(), "{}", support::text(&said));
    serde_json::from_slice(&said.stdout).unwrap()
}

/// Checks that every value of `shown` is in `said`. Returns the number of values.
fn compare(at: &str, shown: &Value, said: &Value) -> usize {
    match (shown, said) {
        (Value::Object(fields), Value::Object(others)) => {
            let one = |(key, value): (&String, &Value)| {
                let at = format!("{at}.{key}");
                compare(&at, value, others.get(key).unwrap_or_else(|| panic!("status has no {at}")))
            };
            fields.iter().map(one).sum()
        }
        (Value::Array(values), Value::Array(others)) => {
            assert_eq!(values.len(), others.len(), "{at}: {shown} {said}");
            values.iter().zip(others).map(|(value, other)| compare(at, value, other)).sum()
        }
        _ if at.ends_with("_ns") && !at.ends_with("period_ns") => {
            assert_eq!(shown.is_null(), said.is_null(), "{at}: {shown} {said}");
            1
        }
        (Value::Number(number), Value::Number(other)) => {
            assert_eq!(number.as_f64(), other.as_f64(), "{at}");
            1
        }
        _ => {
            assert_eq!(shown, said, "{at}");
            1
        }
    }
}
