//! `shmlimit run --retries`: signals between attempts, and descriptors and inputs that attempts share.

use crate::cli::web::Web;
use crate::cli::{Home, binary, pid};
use crate::run_retries::{granted, hasty, run};
use nix::sys::signal::{Signal, kill};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn r73_a_429_with_a_time_delays_the_next_attempt_of_curl() {
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
    assert_eq!(answer.err.matches("429; next attempt in 1.000s (retry_after)").count(), 2, "{}", answer.err);
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(home.status("one")["counts"]["codes"], json!({"200": 1, "429": 2}));
}

#[test]
fn the_next_attempt_reads_the_rest_of_the_input_and_nothing_twice() {
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

/// Starts a run that will wait ten minutes for its second attempt, and reads its message about that.
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
    assert!(line.contains("next attempt in 10m"), "{line}");
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
    // A command that was killed is not run again either, whatever status it reported before.
    let answer = run(&home, &["--retries", "--status-fd", "3"], "echo 429 >&3; kill -KILL $$");
    assert_eq!((answer.code, answer.err.as_str()), (137, ""));
    assert_eq!(granted(&home), 2);
}

#[test]
fn a_signal_that_the_caller_ignores_does_not_cancel_the_retries() {
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
