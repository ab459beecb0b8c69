//! `shmlimit run --retries` runs the command again after the backoff that the limiter advises, each time with a new
//! grant.

use crate::cli::commands::{NOTHING, script, steps, variable};
use crate::cli::{Answer, Home, binary};
use serde_json::json;
use std::time::{Duration, Instant};

/// How a command reports its status to `run`: by a descriptor where programs can choose descriptor numbers.
#[cfg(unix)]
const HEARD: [&str; 2] = ["--status-fd", "3"];
#[cfg(windows)]
const HEARD: [&str; 2] = ["--status-from", "^said ([0-9a-z_]+)"];

fn says(status: &str) -> String {
    if cfg!(unix) { format!(">&3 echo {status}") } else { format!("echo said {status}") }
}

/// A limiter with short waits: the tests check how often and why it retries, not how long it waits.
pub fn hasty() -> Home {
    let home = Home::new();
    let file = home.path().join("one.toml");
    let text = "concurrency = 1\n[backoff]\nbase = \"1ms\"\ncap = \"2ms\"\n";
    std::fs::write(&file, text).unwrap();
    home.tool(&["init", "one", "--config", file.to_str().unwrap()]).succeeds();
    home
}

pub fn run(home: &Home, options: &[&str], line: &str) -> Answer {
    home.tool(&[&["run", "one"], options, &["--"], &script(line)].concat())
}

pub fn granted(home: &Home) -> u64 {
    let status = home.status("one");
    assert_eq!((&status["in_flight"], &status["queue"]), (&json!(0), &json!([])));
    status["counts"]["granted"].as_u64().unwrap()
}

#[test]
fn r76_the_number_of_retries_comes_from_the_priority_or_from_the_option() {
    for (options, attempts) in [
        (&["--retries"][..], 6),
        (&["--retries", "--priority", "user"], 3),
        (&["--retries", "--priority", "webhook"], 3),
        (&["--retries", "1"], 2),
        (&["--retries=0"], 1),
        (&["--exit", "75=throttled"], 1),
    ] {
        let home = hasty();
        let show = format!("echo {}", variable("SHMLIMIT_ATTEMPT"));
        let answer = run(&home, options, &steps(&[&show, "exit 75"]));
        assert_eq!(answer.code, 75, "{}", answer.err);
        let shown: Vec<usize> = answer.out.lines().filter_map(|line| line.parse().ok()).collect();
        if options[0].starts_with("--retries") {
            assert_eq!(shown, (1..=attempts).collect::<Vec<_>>(), "{options:?}");
        }
        assert_eq!(answer.out.lines().count(), attempts, "{options:?}");
        assert_eq!(granted(&home), attempts as u64);
        // One line for each retry: the attempt, the reason, the wait.
        assert_eq!(answer.err.lines().count(), attempts - 1, "{}", answer.err);
        for (number, line) in answer.err.lines().enumerate() {
            let start =
                format!("shmlimit: one: attempt {} of {attempts}: 429; next attempt in 0.00", number + 1);
            assert!(line.starts_with(&start) && line.ends_with("s (backoff)"), "{line}");
        }
        assert_eq!(home.status("one")["outcomes"]["429"], attempts);
    }
}

#[test]
fn the_limiters_number_of_retries_can_be_changed_in_use() {
    let home = hasty();
    home.tool(&["set", "one", "backoff.retries_background", "2"]).succeeds();
    let answer = run(&home, &["--retries"], &steps(&["echo x", "exit 75"]));
    assert_eq!(answer.out.lines().collect::<Vec<_>>(), ["x"; 3]);
}

#[test]
fn the_code_of_the_last_attempt_counts_and_a_success_ends_the_retries() {
    let home = hasty();
    let third = if cfg!(unix) {
        "[ $SHMLIMIT_ATTEMPT = 3 ] || exit 75"
    } else {
        "(if not %SHMLIMIT_ATTEMPT%==3 exit 75)"
    };
    let attempt = variable("SHMLIMIT_ATTEMPT");
    let answer = run(&home, &["--retries"], &steps(&[third, &format!("echo {attempt}")]));
    assert_eq!(answer.succeeds().trim_end(), "3");
    assert_eq!(home.status("one")["counts"]["codes"], json!({"200": 1, "429": 2}));
    let answer = run(&home, &["--retries", "1", "--exit", "1=500,2=503"], &format!("exit {attempt}"));
    assert_eq!(answer.code, 2);
}

#[test]
fn r68_only_transient_failures_are_retried() {
    for (status, code, attempts) in [
        ("429", 0, 3),
        ("500", 0, 3),
        ("503", 22, 3),
        ("connect_timeout", 1, 3),
        ("read_timeout", 1, 3),
        ("dns", 1, 3),
        ("connection", 1, 3),
        ("404", 22, 1),
        ("200", 1, 1),
    ] {
        let home = hasty();
        let line = steps(&[&says(status), &format!("exit {code}")]);
        run(&home, &[&["--retries", "2"], &HEARD[..]].concat(), &line);
        assert_eq!(granted(&home), attempts, "{line}");
    }
    let home = hasty();
    run(&home, &[&["--retries", "2"], &HEARD[..]].concat(), "exit 1");
    assert_eq!(granted(&home), 1, "nothing was said");
}

/// A call that fails with a time before which no other call should be made.
pub fn wants_ten_minutes() -> String {
    steps(&[&format!("{} record --status 429 --retry-after 600 -q", binary()), "exit 9"])
}

#[test]
fn r132_a_wait_beyond_the_timeout_is_skipped_and_the_commands_code_counts() {
    let home = hasty();
    let began = Instant::now();
    let answer = run(&home, &["--retries", "--timeout", "60s"], &wants_ten_minutes());
    assert_eq!(answer.code, 9);
    assert!(
        answer.err.contains("attempt 1 of 6: 429; no further attempt: --timeout ends before the wait of 10m"),
        "{}",
        answer.err
    );
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(granted(&home), 1);
    // The next run is refused before its command starts.
    run(&home, &["--retries", "--timeout", "1s"], "echo ran").fails(75, &["Retry-After"]);
}

#[test]
fn a_budget_used_up_between_attempts_ends_the_retries_with_the_commands_code() {
    let home = Home::with(&["two", "--rate", "2/day"]);
    let file = home.path().join("attempts");
    let line = steps(&[&format!("echo x>>{}", file.display()), "exit 75"]);
    home.tool(&["set", "two", "backoff.base", "1ms"]).succeeds();
    let options = ["run", "two", "--retries", "--timeout", "10s", "--"];
    let answer = home.tool(&[&options[..], &script(&line)].concat());
    assert_eq!(answer.code, 75);
    assert!(answer.err.contains("two: refused: needs 1 request, 0 left"), "{}", answer.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().collect::<Vec<_>>(), ["x"; 2]);
}

#[test]
fn a_record_inside_decides_about_the_retry_and_is_counted_once_per_attempt() {
    let home = hasty();
    let line = steps(&[&format!("{} record --status 503 --json", binary()), "exit 1"]);
    let answer = run(&home, &["--retries", "2"], &line);
    assert_eq!(answer.code, 1);
    assert_eq!(answer.err.matches(": 503; next attempt in").count(), 2, "{}", answer.err);
    assert_eq!(home.status("one")["counts"]["codes"], json!({"503": 3}));
    assert_eq!(granted(&home), 3);
    // The record knows the attempt, and thus the wait: at most base, then the cap.
    let waits: Vec<u64> = answer
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["wait_at_most_ns"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(waits, [1_000_000, 2_000_000, 2_000_000]);
}

#[test]
fn the_output_of_an_attempt_comes_before_the_message_about_it() {
    let home = hasty();
    let from = ["--retries", "1", "--status-from", "code ([0-9]+)"];
    let fail = format!("exit {}", variable("SHMLIMIT_ATTEMPT"));
    let answer = run(&home, &from, &steps(&[">&2 echo code 503", &fail]));
    assert_eq!(answer.code, 2);
    let lines: Vec<&str> = answer.err.lines().collect();
    assert_eq!((lines[0], lines[2]), ("code 503", "code 503"));
    assert!(lines[1].contains("attempt 1 of 2: 503; next attempt in"), "{lines:?}");
}

#[test]
fn retries_must_be_a_number() {
    let home = hasty();
    home.tool(&[&["run", "--retries", "one", "--"][..], &NOTHING].concat())
        .fails(2, &["--retries", "whole number", "--retries -- CMD"]);
}
