//! `shmlimit run --retries`: the command runs again after the backoff that the limiter says, each time with a grant of
//! its own.

use crate::cli::{Answer, Home, binary};
use crate::web::Web;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A limiter whose waits are short: what is asserted is how often and why, not how long.
fn hasty() -> Home {
    let home = Home::new();
    let file = home.path().join("one.toml");
    let text = "concurrency = 1\n[backoff]\nbase = \"1ms\"\ncap = \"2ms\"\n";
    std::fs::write(&file, text).unwrap();
    home.tool(&["init", "one", "--config", file.to_str().unwrap()]).succeeds();
    home
}

fn run(home: &Home, options: &[&str], script: &str) -> Answer {
    home.tool(&[&["run", "one"], options, &["--", "sh", "-c", script]].concat())
}

fn granted(home: &Home) -> u64 {
    let status = home.status("one");
    assert_eq!((&status["in_flight"], &status["queue"]), (&json!(0), &json!([])));
    status["counts"]["granted"].as_u64().unwrap()
}

#[test]
fn r76_the_number_of_retries_is_the_limiters_by_priority_or_the_one_given() {
    for (options, attempts) in [
        (&["--retries"][..], 6),
        (&["--retries", "--priority", "user"], 3),
        (&["--retries", "--priority", "webhook"], 3),
        (&["--retries", "1"], 2),
        (&["--retries=0"], 1),
        (&["--exit", "75=throttled"], 1),
    ] {
        let home = hasty();
        let answer = run(&home, options, "echo $SHMLIMIT_ATTEMPT; exit 75");
        assert_eq!(answer.code, 75, "{}", answer.err);
        assert_eq!(answer.out.lines().count(), attempts, "{options:?}");
        assert_eq!(granted(&home), attempts as u64);
        // One line for each retry: which attempt it was, why, how long.
        assert_eq!(answer.err.lines().count(), attempts - 1, "{}", answer.err);
        for (number, line) in answer.err.lines().enumerate() {
            let start = format!("shmlimit: one: attempt {} of {attempts}: 429; again in 0.00", number + 1);
            assert!(line.starts_with(&start) && line.ends_with("s (backoff)"), "{line}");
        }
        assert_eq!(home.status("one")["outcomes"]["429"], attempts);
    }
}

#[test]
fn the_limiters_own_number_can_be_changed_while_it_is_used() {
    let home = hasty();
    home.tool(&["set", "one", "backoff.retries_background", "2"]).succeeds();
    assert_eq!(run(&home, &["--retries"], "echo x; exit 75").out, "x\nx\nx\n");
}

#[test]
fn the_last_attempts_code_counts_and_a_success_is_the_last() {
    let home = hasty();
    let answer = run(&home, &["--retries"], "[ $SHMLIMIT_ATTEMPT = 3 ] || exit 75; echo $SHMLIMIT_ATTEMPT");
    assert_eq!(answer.succeeds(), "3\n");
    assert_eq!(home.status("one")["counts"]["codes"], json!({"200": 1, "429": 2}));
    let answer = run(&home, &["--retries", "1", "--exit", "3=500,4=503"], "exit $((SHMLIMIT_ATTEMPT + 2))");
    assert_eq!(answer.code, 4);
}

#[test]
fn r68_only_what_may_pass_is_tried_again() {
    for (script, attempts) in [
        ("echo 429 >&3", 3),
        ("echo 500 >&3", 3),
        ("echo 503 >&3; exit 22", 3),
        ("echo connect_timeout >&3; exit 1", 3),
        ("echo read_timeout >&3; exit 1", 3),
        ("echo dns >&3; exit 1", 3),
        ("echo connection >&3; exit 1", 3),
        ("echo 404 >&3; exit 22", 1),
        ("echo 200 >&3; exit 1", 1),
        ("exit 1", 1),
    ] {
        let home = hasty();
        run(&home, &["--retries", "2", "--status-fd", "3"], script);
        assert_eq!(granted(&home), attempts, "{script}");
    }
}

#[test]
fn r73_curl_and_a_server_that_says_429_with_a_time() {
    let home = Home::with(&["one", "--concurrency", "1"]);
    const BUSY: &str = "HTTP/1.1 429 Too Many\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\nbusy\n";
    let web = Web::start(&[BUSY, BUSY, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n"]);
    let url = web.url();
    let curl = ["curl", "-fsS", "-D", "/dev/fd/3", &url];
    let began = Instant::now();
    let answer = home.tool(
        &[&["run", "one", "--retries", "--status-fd", "3", "--exit", "curl", "--"], &curl[..]].concat(),
    );
    assert_eq!(answer.succeeds(), "hi\n");
    assert_eq!(web.calls(), 3);
    assert_eq!(answer.err.matches("429; again in 1.000s (retry_after)").count(), 2, "{}", answer.err);
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(home.status("one")["counts"]["codes"], json!({"200": 1, "429": 2}));
}

#[test]
fn r132_what_the_timeout_does_not_allow_is_not_waited_for_and_the_commands_code_counts() {
    let home = hasty();
    let script = "printf '429\\nRetry-After: 600\\n' >&3; exit 9";
    let began = Instant::now();
    let answer = run(&home, &["--retries", "--status-fd", "3", "--timeout", "60s"], script);
    assert_eq!(answer.code, 9);
    assert!(answer.err.contains("attempt 1 of 6: 429; not again: the wait of 10m"), "{}", answer.err);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(granted(&home), 1);
    // The next one is refused before anything runs.
    run(&home, &["--retries", "--timeout", "1s"], "echo ran").fails(75, &["Retry-After"]);
}

#[test]
fn a_budget_that_is_used_up_between_attempts_ends_them_with_the_commands_code() {
    let home = Home::with(&["two", "--rate", "2/day"]);
    let file = home.path().join("attempts");
    let script = format!("echo x >>'{}'; exit 75", file.display());
    home.tool(&["set", "two", "backoff.base", "1ms"]).succeeds();
    let answer = home.tool(&["run", "two", "--retries", "--timeout", "10s", "--", "sh", "-c", &script]);
    assert_eq!(answer.code, 75);
    assert!(answer.err.contains("two: refused: rule token_bucket"), "{}", answer.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\nx\n");
}

#[test]
fn a_record_inside_says_whether_to_try_again_and_is_counted_once_an_attempt() {
    let home = hasty();
    let script = format!("{} record --status 503 --json; exit 1", binary());
    let answer = run(&home, &["--retries", "2"], &script);
    assert_eq!(answer.code, 1);
    assert_eq!(answer.err.matches(": 503; again in").count(), 2, "{}", answer.err);
    assert_eq!(home.status("one")["counts"]["codes"], json!({"503": 3}));
    assert_eq!(granted(&home), 3);
    // It knows the attempt, and by that the wait: at most base, then the cap.
    let waits: Vec<u64> = answer
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["sleep_max_ns"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(waits, [1_000_000, 2_000_000, 2_000_000]);
}

#[test]
fn input_is_not_repeated_but_what_is_left_of_it_is_the_next_attempts() {
    let home = hasty();
    let mut child = Command::new(binary())
        .args([
            "run",
            "one",
            "--retries",
            "2",
            "-q",
            "--",
            "sh",
            "-c",
            "read -r line; echo \"$line\"; exit 75",
        ])
        .env("SHMLIMIT_DIR", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"one\ntwo\n\n");
}

#[test]
fn every_attempt_gets_the_signals_of_a_direct_start() {
    let home = hasty();
    let script = "grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 75";
    let ignore =
        ["--ignore-signal=HUP", "--ignore-signal=CHLD", binary(), "run", "one", "--retries", "1", "-q", "--"];
    let output = Command::new("env")
        .args(ignore)
        .args(["sh", "-c", script])
        .env("SHMLIMIT_DIR", home.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[..2], lines[2..]);
}

#[test]
fn output_of_an_attempt_comes_before_what_is_said_of_it() {
    let home = hasty();
    let from = ["--retries", "1", "--status-from", "code ([0-9]+)"];
    let answer = run(&home, &from, "echo code 503 >&2; exit $SHMLIMIT_ATTEMPT");
    assert_eq!(answer.code, 2);
    let lines: Vec<&str> = answer.err.lines().collect();
    assert_eq!((lines[0], lines[2]), ("code 503", "code 503"));
    assert!(lines[1].contains("attempt 1 of 2: 503; again in"), "{lines:?}");
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// Starts a run that will wait ten minutes for its second attempt, and reads that it says so.
fn asleep(home: &Home) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = home
        .as_a_shell_would()
        .args(["run", "one", "--retries", "--status-fd", "3", "--", "sh", "-c"])
        .arg("printf '429\\nRetry-After: 600\\n' >&3; exit 9")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("again in 10m"), "{line}");
    (child, err)
}

#[test]
fn a_signal_between_attempts_ends_it_at_once() {
    let home = hasty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGKILL] {
        let (mut child, mut err) = asleep(&home);
        kill(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal as i32));
        let mut rest = String::new();
        err.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        home.tool(&["force", "one", "clear-gate"]).succeeds();
    }
    assert_eq!(granted(&home), 5);
}

#[test]
fn a_command_that_was_told_to_end_is_not_run_again() {
    let home = hasty();
    let script = "trap 'exit 75' TERM; echo ready; while read -r _; do :; done";
    let (mut child, mut out, ready) = home.start(&["run", "one", "--retries", "--", "sh", "-c", script]);
    assert_eq!(ready, "ready");
    kill(pid(&child), Signal::SIGTERM).unwrap();
    let _stdin = child.stdin.take();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(75), ""));
    // Nor is one that died, whatever it said before.
    let answer = run(&home, &["--retries", "--status-fd", "3"], "echo 429 >&3; kill -KILL $$");
    assert_eq!((answer.code, answer.err.as_str()), (137, ""));
    assert_eq!(granted(&home), 2);
}

#[test]
fn a_signal_that_the_caller_ignores_as_nohup_does_calls_nothing_off() {
    let home = hasty();
    let script = "kill -HUP $PPID; exit 75";
    for (how, wanted) in [("--ignore-signal=HUP", 3), ("--default-signal=HUP", 4)] {
        let output = Command::new("env")
            .args([how, binary(), "run", "one", "--retries", "2", "--", "sh", "-c", script])
            .env("SHMLIMIT_DIR", home.path())
            .output()
            .unwrap();
        assert!(matches!(output.status.code(), Some(75 | 129)), "{output:?}");
        assert_eq!(granted(&home), wanted, "{how}: {output:?}");
    }
}

#[test]
fn retries_must_be_a_number() {
    let home = hasty();
    home.tool(&["run", "--retries", "one", "--", "true"])
        .fails(2, &["--retries", "whole number", "goes before"]);
}
