//! `pause` and `resume` with real processes (R148).

use crate::cli::Home;
use crate::cli::commands::{NOTHING, SAYS_HELLO, run};
use crate::cli::queue::{open, start_waiting, wait_until, waiting};
use serde_json::Value;
use shmlimit::Request;
use std::process::Child;
use std::time::Duration;

/// A limiter without a breaker.
const PLAIN: [&str; 3] = ["plain", "--rate", "100/s"];

fn json(home: &Home, arguments: &[&str]) -> Value {
    let answer = home.tool(arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

fn granted(home: &Home, name: &str) -> u64 {
    home.status(name)["counts"]["granted"].as_u64().unwrap()
}

fn said(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The user of these tests, shortened to the length of a program name in a slot.
fn user() -> String {
    #[cfg(unix)]
    let uid = nix::unistd::geteuid();
    #[cfg(unix)]
    let name = nix::unistd::User::from_uid(uid).unwrap().map_or_else(|| uid.to_string(), |user| user.name);
    #[cfg(windows)]
    let name = std::env::var("USERNAME").unwrap();
    let sudo =
        std::env::var("SUDO_USER").ok().filter(|sudo| cfg!(unix) && name == "root" && !sudo.is_empty());
    sudo.unwrap_or(name).chars().take(15).collect()
}

#[test]
fn r148_a_pause_is_reported_shown_and_ended() {
    let home = Home::with(&PLAIN);
    let answer = home.tool(&["pause", "plain", "--for", "10m", "--reason", "database migration"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.starts_with("plain: paused for 10m"), "{}", answer.out);
    assert!(answer.out.contains("shmlimit resume plain"), "{}", answer.out);
    let shown = home.tool(&["status", "plain"]).out;
    assert!(shown.starts_with("plain  paused"), "{shown}");
    assert!(shown.contains("database migration") && shown.contains("pause ends in"), "{shown}");
    let status = home.status("plain");
    assert_eq!(status["paused"]["reason"], "database migration");
    let user = user();
    assert_eq!(status["paused"]["program"], user.as_str());
    assert!(status["paused"]["ends_in_ns"].as_u64().unwrap() <= 600_000_000_000);
    assert_eq!(status["next_change"]["what"], "pause_ends");
    let replaced = json(&home, &["pause", "plain", "--json"]);
    assert_eq!(replaced["replaced"]["reason"], "database migration");
    assert_eq!(
        (&replaced["paused"]["ends_in_ns"], &replaced["paused"]["reason"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(home.status("plain")["next_change"], Value::Null, "nothing changes by itself");
    let ended = json(&home, &["resume", "plain", "--json"]);
    assert_eq!((&ended["ended"]["program"], &ended["waiting"]), (&Value::from(user), &Value::from(0)));
    assert_eq!(home.status("plain")["paused"], Value::Null);
    let again = home.tool(&["resume", "plain"]);
    assert_eq!((again.code, again.out.trim()), (0, "plain: not paused"));
    assert_eq!(json(&home, &["resume", "plain", "--json"])["ended"], Value::Null);
}

#[test]
fn r148_a_call_that_does_not_wait_is_refused_with_the_reason() {
    let home = Home::with(&PLAIN);
    home.tool(&["pause", "plain", "--reason", "database migration"]);
    let now = home.tool(&["acquire", "plain", "--now"]);
    assert_eq!(now.code, 75);
    assert!(
        now.err.contains(&format!("paused by {} (", user())) && now.err.contains("database migration"),
        "{}",
        now.err
    );
    assert!(now.err.contains("end it with: shmlimit resume plain"), "{}", now.err);
    let line = home.tool(&["acquire", "plain", "--now", "--json"]);
    let line: Value = serde_json::from_str(&line.out).unwrap();
    assert_eq!((&line["reason"], &line["retry_after_ns"]), (&Value::from("paused"), &Value::Null));
}

/// A call whose deadline is before a known end of the pause is refused at once. If the end is unknown, a resume may
/// come, so the call waits, and is granted after the resume.
#[test]
fn r148_a_deadline_before_a_known_end_is_refused_and_before_an_unknown_one_waits() {
    let home = Home::with(&PLAIN);
    home.tool(&["pause", "plain", "--for", "10m"]);
    let hopeless = home.tool(&["acquire", "plain", "--timeout", "1m"]);
    assert_eq!(hopeless.code, 75, "{}", hopeless.err);
    assert!(hopeless.err.contains("paused by"), "{}", hopeless.err);
    // A call that could wait for the end waits until the end is postponed.
    let hopeful = start_waiting(&home, "plain", &["acquire", "plain", "--timeout", "20m"], &[]);
    home.tool(&["pause", "plain", "--for", "1h"]);
    let (code, _, err) = said(hopeful);
    assert_eq!(code, Some(75), "{err}");
    home.tool(&["pause", "plain"]);
    let gives_up = home.tool(&["acquire", "plain", "--timeout", "50ms", "--json"]);
    let line: Value = serde_json::from_str(&gives_up.out).unwrap();
    assert_eq!((gives_up.code, &line["reason"]), (75, &Value::from("paused")));
    assert!(line["waited_ns"].as_u64().unwrap() >= 50_000_000, "it waited for its whole time");
    let waits = start_waiting(&home, "plain", &["acquire", "plain", "--timeout", "10m"], &[]);
    home.tool(&["resume", "plain"]);
    assert_eq!(said(waits).0, Some(0));
}

#[test]
fn r148_waiting_runs_go_after_resume_and_no_more_than_the_limit() {
    let home = Home::with(&["few", "--concurrency", "3"]);
    home.tool(&["pause", "few"]);
    let command = run("few", SAYS_HELLO);
    let runs: Vec<Child> = (0..20).map(|_| start_waiting(&home, "few", &command, &[])).collect();
    let looked = |status: &Value| status["counts"]["looked"].as_u64().unwrap();
    let before = looked(&home.status("few"));
    assert_eq!((waiting(&home.status("few")).len(), granted(&home, "few")), (20, 0));
    let ended = json(&home, &["resume", "few", "--json"]);
    assert_eq!(ended["waiting"], 20);
    assert!(ended["ended"]["ends_in_ns"].is_null());
    for child in runs {
        assert_eq!(said(child), (Some(0), "hello".to_owned(), String::new()));
    }
    let after = home.status("few");
    assert_eq!(after["counts"]["granted"], 20);
    assert_eq!((&after["in_flight"], waiting(&after).len()), (&Value::from(0), 0));
    // Calls are woken one at a time, in the order of their turns.
    assert!(looked(&after) - before <= 20 * 12, "{} looks", looked(&after) - before);
}

#[test]
fn r148_a_timed_pause_ends_by_itself() {
    let home = Home::with(&PLAIN);
    home.tool(&["pause", "plain", "--for", "300ms"]);
    let answer = home.tool(&run("plain", SAYS_HELLO));
    assert_eq!((answer.code, answer.out.trim()), (0, "hello"), "{}", answer.err);
    assert_eq!(home.status("plain")["paused"], Value::Null);
    let again = home.tool(&["acquire", "plain", "--now"]);
    assert_eq!(again.code, 0, "{}", again.err);
}

/// Shortening a pause wakes calls that sleep until its former end.
#[test]
fn r148_a_shorter_pause_wakes_the_first_waiting_call() {
    let home = Home::with(&PLAIN);
    home.tool(&["pause", "plain", "--for", "1h"]);
    let waits = start_waiting(&home, "plain", &run("plain", NOTHING), &[]);
    home.tool(&["pause", "plain", "--for", "1ms"]);
    assert_eq!(said(waits).0, Some(0));
}

#[test]
fn r148_offline_refuses_calls_that_wait_and_says_that_pause_does_not() {
    let home = Home::new();
    home.tool(&["pause", "tmdb"]);
    let waits = start_waiting(&home, "tmdb", &run("tmdb", NOTHING), &[]);
    let answer = home.tool(&["force", "tmdb", "offline"]);
    assert!(answer.out.contains("shmlimit pause tmdb"), "{}", answer.out);
    let (code, _, err) = said(waits);
    assert_eq!(code, Some(75));
    assert!(err.contains("offline"), "why it was refused at once: {err}");
    assert!(home.tool(&["help", "force"]).out.contains("shmlimit pause"));
    assert!(home.tool(&["help", "pause"]).out.contains("shmlimit force NAME offline"));
}

#[test]
fn r148_a_handle_in_this_process_waits_for_the_tool_to_resume() {
    let home = Home::with(&PLAIN);
    home.tool(&["pause", "plain"]);
    let limiter = open(&home, "plain");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| limiter.acquire(&Request::new()).unwrap().release().unwrap());
        wait_until(&home, "plain", |status| waiting(status).len() == 1);
        home.tool(&["resume", "plain"]);
        call.join().unwrap();
    });
    let late = limiter.acquire(&Request::new().timeout(Duration::from_secs(60)));
    late.unwrap().release().unwrap();
}

#[test]
fn r148_invalid_pauses_are_refused_with_the_remedy() {
    let home = Home::with(&PLAIN);
    let long = "x".repeat(65);
    for (arguments, says) in [
        (["--for", "0s"], "longer than 0"),
        (["--for", "soon"], "soon"),
        (["--reason", &long], "64"),
        (["--reason", "two\nlines"], "control characters"),
    ] {
        let answer = home.tool(&[&["pause", "plain"], &arguments[..]].concat());
        assert_eq!(answer.code, 2, "{arguments:?}");
        assert!(answer.err.contains(says), "{}", answer.err);
    }
    assert_eq!(home.status("plain")["paused"], Value::Null);
    assert_eq!(home.tool(&["resume", "nothere"]).code, 2);
    assert_eq!(home.tool(&["resume", "tmdb"]).code, 2, "resuming creates no limiter, not even from a preset");
}

#[test]
fn r148_pauses_are_logged_counted_and_noted() {
    let home = Home::with(&PLAIN);
    let paused = home.tool(&["--log", "-", "pause", "plain", "--for", "10m", "--reason", "why not"]).err;
    let keys = [
        "state=",
        "event=paused",
        "sleep=600s",
        "consec429=",
        "err_rate_30s=",
        "rate=",
        "sem=",
        "retry_after=",
    ];
    for key in keys {
        assert!(paused.contains(key), "{key}: {paused}");
    }
    let by = format!("by={}", user());
    assert!(paused.contains(&by) && paused.contains("reason=\"why not\""), "{paused}");
    let metrics = home.tool(&["metrics", "plain"]).out;
    assert!(metrics.contains("shmlimit_paused{limiter=\"plain\"} 1"), "{metrics}");
    assert!(metrics.contains("shmlimit_pause_left_seconds{limiter=\"plain\"} 5"), "{metrics}");
    assert!(
        !home.tool(&["doctor", "plain"]).out.contains("paused without an end"),
        "a pause with an end is not a problem"
    );
    let resumed = home.tool(&["--log", "-", "resume", "plain"]).err;
    assert!(resumed.contains("event=resumed") && resumed.contains("cause=operator"), "{resumed}");
    assert!(home.tool(&["metrics", "plain"]).out.contains("shmlimit_paused{limiter=\"plain\"} 0"));
    home.tool(&["pause", "plain"]);
    let noted = home.tool(&["doctor", "plain"]);
    assert_eq!(noted.code, 0);
    assert!(noted.out.contains("paused without an end"), "{}", noted.out);
    // The pause is over before the tool counts how many calls wait.
    let expired = home.tool(&["--log", "-", "pause", "plain", "--for", "1ns"]).err;
    assert!(expired.contains("event=resumed") && expired.contains("cause=expired"), "{expired}");
}
