//! The advice in messages, and how messages are written.

use crate::cli::Home;
use serde_json::{Value, json};

/// Lines of many processes do not mix if each message is one write. A pipe in packet mode keeps writes apart.
#[cfg(target_os = "linux")]
#[test]
fn each_message_is_one_write() {
    use nix::fcntl::OFlag;
    use std::fs::File;
    use std::io::Read;
    use std::process::{Command, Stdio};
    let home = Home::new();
    for arguments in [&["set", "no-such", "rate", "5/s"][..], &["init", "x", "--rate", "35"], &["acquire"]] {
        let (from, to) = nix::unistd::pipe2(OFlag::O_DIRECT | OFlag::O_CLOEXEC).unwrap();
        let mut tool = Command::new(crate::cli::binary())
            .args(arguments)
            .env("SHMLIMIT_DIR", home.path())
            .stdout(Stdio::null())
            .stderr(to)
            .spawn()
            .unwrap();
        tool.wait().unwrap();
        let mut message = [0; 4096];
        let mut from = File::from(from);
        let length = from.read(&mut message).unwrap();
        let message = String::from_utf8_lossy(&message[..length]).into_owned();
        assert!(message.len() > 20 && message.ends_with('\n'), "{message:?}");
        assert_eq!(from.read(&mut [0; 4096]).unwrap(), 0, "{arguments:?} wrote more after {message:?}");
    }
}

#[test]
fn offline_without_a_breaker_is_refused_and_suggests_a_pause() {
    let home = Home::with(&["plain", "--rate", "100/s"]);
    let dir = home.path().to_str().unwrap().to_owned();
    for (arguments, advice) in [
        (&["force", "plain", "offline"][..], "shmlimit pause plain"),
        (
            &["init", "new", "--rate", "1/s", "--offline"],
            "shmlimit init new --rate 1/s\nthen: shmlimit pause new",
        ),
    ] {
        let refused = home.tool(arguments);
        refused.fails(2, &[advice]);
        let at = |text: &str| refused.err.find(text).unwrap_or(usize::MAX);
        assert!(at("shmlimit pause") < at("[breaker]"), "{}", refused.err);
    }
    // The suggestion repeats a directory that was typed, as for all other verbs.
    let refused = home.tool(&["--dir", &dir, "force", "plain", "offline"]);
    refused.fails(2, &[&format!("shmlimit --dir {dir} pause plain")]);
    home.tool(&["force", "plain", "normal"]).fails(2, &["[breaker]"]);
}

/// docs/json.md: null means that the time is unknown.
#[test]
fn an_unknown_time_is_null() {
    let refused = |home: &Home, name: &str| -> Value {
        let answer = home.tool(&["acquire", name, "--now", "--json"]);
        assert_eq!(answer.code, 75, "{}", answer.err);
        serde_json::from_str(&answer.out).unwrap()
    };
    let home = Home::with(&["plain", "--rate", "100/s"]);
    home.tool(&["pause", "plain"]).succeeds();
    let line = refused(&home, "plain");
    assert_eq!((&line["reason"], &line["ready_after_ns"]), (&json!("paused"), &Value::Null));
    home.tool(&["pause", "plain", "--for", "1h"]).succeeds();
    assert!(refused(&home, "plain")["ready_after_ns"].as_u64().unwrap() > 3_000_000_000_000);
    home.tool(&["init", "one", "--concurrency", "1"]).succeeds();
    let limiter = crate::cli::queue::open(&home, "one");
    let _permit = limiter.try_acquire(&shmlimit::Request::new()).unwrap();
    let line = refused(&home, "one");
    assert_eq!((&line["reason"], &line["ready_after_ns"]), (&json!("concurrency"), &Value::Null));
}

/// The suggested command works when it is pasted, and keeps the limiter's other settings.
#[test]
fn a_refused_burst_suggests_a_command_that_creates_a_new_limiter() {
    let home = Home::with(&["b", "--rate", "5/h", "--concurrency", "2"]);
    for key in ["burst", "rules.sliding_log.burst", "rules.0.burst"] {
        let refused = home.tool(&["set", "b", key, "4"]);
        refused.fails(
            2,
            &["sliding_log", "no burst", "shmlimit init b --rate 5/h --burst 4 --concurrency 2 --replace"],
        );
        assert!(!refused.err.contains("did you mean"), "{}", refused.err);
    }
    home.tool(&["init", "b", "--rate", "5/h", "--burst", "4", "--concurrency", "2", "--replace"]).succeeds();
    home.tool(&["set", "b", "burst", "5"]).succeeds();
}

#[test]
fn an_unknown_key_lists_only_the_keys_of_its_table() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let refused = home.tool(&["set", "api", "breaker.foo", "1"]);
    refused.fails(2, &["breaker.foo: unknown key; there are: breaker.", ", breaker.p_throttle,"]);
    assert!(!refused.err.contains("backoff"), "{}", refused.err);
    let refused = home.tool(&["set", "api", "nothing_like_it", "1"]);
    refused.fails(2, &["there are: concurrency, ", ", breaker.…"]);
    assert_eq!(refused.err.matches("rules.…").count(), 1, "{}", refused.err);
}

#[test]
fn removing_an_unknown_limiter_does_not_suggest_to_create_it() {
    let home = Home::new();
    for name in ["web", "tmdb"] {
        let refused = home.tool(&["rm", name]);
        refused.fails(2, &[&format!("no limiter {name:?}")]);
        assert!(
            !refused.err.contains("shmlimit init") && !refused.err.contains("shmlimit run"),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_directory_that_cannot_be_created_names_the_missing_parent() {
    let home = Home::new();
    let parent = home.path().join("no");
    let directory = parent.join("such");
    home.tool(&["--dir", directory.to_str().unwrap(), "init", "api", "--rate", "1/s"])
        .fails(1, &[&format!("create {} first", parent.display()), "--dir"]);
}

#[test]
fn a_refusal_says_what_the_call_needs_and_what_is_left() {
    let home = Home::new();
    let file = home.path().join("llm.toml");
    std::fs::write(&file, "[[rules]]\nname = 'tpm'\nunit = 'tokens'\nlimit = 30000\nperiod = '1d'\n")
        .unwrap();
    home.tool(&["init", "llm", "--config", file.to_str().unwrap()]).succeeds();
    home.tool(&["acquire", "llm", "--cost", "tokens=29000"]).succeeds();
    home.tool(&["acquire", "llm", "--cost", "tokens=29000", "--now"])
        .fails(75, &["llm: refused: needs 29000 tokens, 1000 left in rule tpm; try again in "]);
    home.tool(&["acquire", "llm", "--cost", "tokens=1000"]).succeeds();
    home.tool(&["run", "llm", "--cost", "tokens=1", "--timeout", "0s", "--", "echo"])
        .fails(75, &["needs 1 token, 0 left in rule tpm; try again in "]);
    home.tool(&["acquire", "llm", "--cost", "tokens=30001"])
        .fails(2, &["needs 30001 tokens, but rule tpm never allows more than 30000 at once"]);
}
