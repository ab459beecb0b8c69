//! `record`, `force`, `set` and `init --offline`: messages about wrong use, and the reasons of refusals.

use crate::cli::{Home, binary};
use std::process::Command;

/// A limiter without a breaker, and one limiter with each kind of breaker.
fn home() -> Home {
    let home = Home::with(&["plain", "--rate", "10/day"]);
    for preset in ["tmdb", "tvdb"] {
        home.tool(&["init", preset]).succeeds();
    }
    home
}

#[test]
fn r142_a_refusal_names_the_recorder_of_the_retry_after_and_when_to_try_again() {
    let home = home();
    home.tool(&["record", "plain", "--status", "429", "--retry-after", "3570"]).succeeds();
    let refused = home.tool(&["acquire", "plain", "--now"]);
    refused.fails(75, &["Retry-After", "recorded by shmlimit (", "ago; try again in 59m"]);
}

#[test]
fn r63_a_refusal_distinguishes_an_operators_command_from_failures() {
    let home = home();
    home.tool(&["set", "tmdb", "breaker.sleep_min", "5m"]).succeeds();
    for (name, blocked) in [("tmdb", "sleep"), ("tvdb", "open")] {
        home.tool(&["force", name, "offline"]).succeeds();
        let way_out = format!("end it with: shmlimit force {name} online");
        home.tool(&["acquire", name]).fails(75, &["an operator put the limiter offline", &way_out]);
        assert!(home.tool(&["status", name]).succeeds().contains(&format!("offline; {way_out}")));
        home.tool(&["force", name, blocked]).succeeds();
        let refused = home.tool(&["acquire", name, "--now"]);
        refused.fails(75, &["an operator", "try again in"]);
        assert!(!refused.err.contains("failures"), "{}", refused.err);
    }
    home.tool(&["force", "tvdb", "closed"]).succeeds();
    for _ in 0..5 {
        home.tool(&["record", "tvdb", "--status", "500"]).succeeds();
    }
    home.tool(&["acquire", "tvdb", "--now"]).fails(75, &["open after too many failures; try again in"]);
}

#[test]
fn r64_a_refusal_in_cache_only_says_how_it_ends() {
    let home = home();
    home.tool(&["force", "tmdb", "cache_only"]).succeeds();
    home.tool(&["acquire", "tmdb"])
        .fails(75, &["use cached answers", "end it with: shmlimit force tmdb online"]);
    home.tool(&["force", "tmdb", "cache_only", "--auto-recover", "15"]).succeeds();
    let refused = home.tool(&["acquire", "tmdb", "--now"]);
    refused.fails(75, &["(use cached answers); try again in"]);
    assert!(!refused.err.contains("end it with"), "{}", refused.err);
}

#[test]
fn r142_clear_gate_during_a_sleep_names_the_command_that_ends_the_sleep() {
    let home = home();
    for _ in 0..5 {
        home.tool(&["record", "tmdb", "--status", "429", "--retry-after", "3600"]).succeeds();
    }
    let said = home.tool(&["force", "tmdb", "clear-gate"]);
    assert!(said.succeeds().starts_with("tmdb: sleep for "), "{}", said.out);
    assert!(said.out.contains("shmlimit force tmdb half_open"), "{}", said.out);
    assert_eq!(home.tool(&["force", "tmdb", "half_open"]).succeeds(), "tmdb: half_open\n");
}

#[test]
fn force_prints_whether_the_gate_is_open() {
    let home = home();
    home.tool(&["record", "tmdb", "--status", "429", "--retry-after", "3600"]).succeeds();
    let said = home.tool(&["force", "tmdb", "normal"]);
    assert!(said.succeeds().contains("normal, paused by Retry-After for"), "{}", said.out);
    assert!(said.out.contains("shmlimit force tmdb clear-gate"), "{}", said.out);
    assert_eq!(
        home.tool(&["force", "tmdb", "clear-gate"]).succeeds(),
        "tmdb: normal, not paused by Retry-After\n"
    );
    assert_eq!(home.tool(&["force", "plain", "clear-gate"]).succeeds(), "plain: not paused by Retry-After\n");
}

#[test]
fn an_operation_that_needs_a_breaker_is_refused_completely_without_one() {
    let home = home();
    home.tool(&["init", "new", "--rate", "1/s", "--offline"])
        .fails(2, &["--offline needs a breaker", "[breaker]"]);
    home.tool(&["init", "new", "--rate", "1/s", "--auto-recover", "15"])
        .fails(2, &["five-state breaker", "would have no breaker"]);
    home.tool(&["init", "tvdb", "--auto-recover", "15"])
        .fails(2, &["five-state breaker", "would have the consecutive one"]);
    assert!(!home.names().iter().any(|name| name == "new.shm"), "{:?}", home.names());
    home.tool(&["force", "plain", "offline"])
        .fails(2, &["has no breaker", "clear_gate", "--config plain.settings.toml --replace"]);
    home.tool(&["force", "tmdb", "open"]).fails(2, &["five-state breaker", "half_open", "cache_only"]);
    home.tool(&["force", "tvdb", "cache_only", "--auto-recover", "15"]).fails(2, &["consecutive breaker"]);
    let set = home.tool(&["set", "tvdb", "breaker.auto_recover", "15m"]);
    assert!(set.succeeds().contains("was 0s"), "force had already set it: {}", set.out);
    home.tool(&["force", "tmdb", "sleep", "--auto-recover", "15"])
        .fails(2, &["for cache_only", "shmlimit set tmdb breaker.auto_recover"]);
    let note = home.tool(&["set", "plain", "breaker.p_throttle", "0.3"]);
    note.succeeds();
    assert!(note.err.contains("no breaker"), "{}", note.err);
}

#[test]
fn mistyped_arguments_are_answered_with_the_valid_ones() {
    let home = home();
    for (arguments, parts) in [
        (&["record", "tmdb"][..], &["--status CODE", "--error KIND", "--headers FILE"][..]),
        (&["record", "tmdb", "--status", "abc"], &["100 to 599"]),
        (&["record", "tmdb", "--status", "99"], &["100 to 599"]),
        (&["record", "tmdb", "--error", "x"], &["connect_timeout", "dns"]),
        (&["record", "tmdb", "--header", "x"], &["Name: value"]),
        (&["record", "tmbd", "--status", "200"], &["did you mean \"tmdb\"?", "shmlimit init tmbd"]),
        (&["force", "tmdb", "opne"], &["normal", "clear_gate"]),
        (&["set", "tmdb", "breaker.p_throttl", "1"], &["did you mean \"breaker.p_throttle\"?"]),
        (&["set", "tmdb", "breaker.p_throttle", "3"], &["from 0 to 1"]),
        (&["set", "tmdb", "breaker.kind", "none"], &["--replace"]),
        (&["presets", "tmbd"], &["did you mean \"tmdb\"?"]),
    ] {
        home.tool(arguments).fails(2, parts);
    }
}

#[test]
fn r109_looking_changes_nothing_and_using_does() {
    let home = home();
    let tool = |variable: &str, arguments: &[&str]| {
        let mut tool = Command::new(binary());
        tool.args(arguments).env("SHMLIMIT_DIR", home.path()).env("SHMLIMIT_RATE_BASE", variable);
        tool.output().unwrap().status.code()
    };
    assert_eq!(tool("20", &["status", "tmdb"]), Some(0));
    assert_eq!(tool("nonsense", &["status"]), Some(0));
    assert_eq!(home.status("tmdb")["rate"], 35.0);
    assert_eq!(tool("nonsense", &["acquire", "tmdb"]), Some(2));
    assert_eq!(home.status("tmdb")["rate"], 35.0);
    assert_eq!(tool("20", &["acquire", "tmdb"]), Some(0));
    assert_eq!(home.status("tmdb")["rate"], 20.0);
}

#[test]
fn the_first_state_is_as_old_as_the_limiter() {
    let started = std::time::Instant::now();
    let home = home();
    let age = home.status("tmdb")["state_for_ns"].as_u64().unwrap();
    assert!(u128::from(age) <= started.elapsed().as_nanos() + 1_000_000_000, "{age} ns");
}

#[test]
fn r41_r54_status_shows_the_permits_of_the_state_and_passthrough() {
    let home = home();
    assert!(home.tool(&["status", "tmdb"]).succeeds().contains("  0 of 4\n"));
    home.tool(&["force", "tmdb", "throttle"]).succeeds();
    assert!(home.tool(&["status", "tmdb"]).succeeds().contains("  0 of 4, 2 allowed now\n"));
    let file = home.path().join("pass.toml");
    std::fs::write(&file, "mode = 'passthrough'\n[[rules]]\nlimit = 1\nperiod = '1d'\n").unwrap();
    let made = home.tool(&["init", "pass", "--config", file.to_str().unwrap()]);
    assert!(made.succeeds().contains("passthrough, so nothing is refused"), "{}", made.out);
    for _ in 0..3 {
        home.tool(&["acquire", "pass", "--now"]).succeeds();
    }
    assert!(home.tool(&["status", "pass"]).succeeds().contains("passthrough: nothing is refused"));
}

#[test]
fn r149_a_typed_retry_after_is_checked_strictly_and_a_servers_leniently() {
    let home = home();
    let opens =
        || home.status("plain")["gate"]["opens_in_ns"].as_u64().map(|nanos| nanos.div_ceil(1_000_000_000));
    for (typed, seconds) in [("40", 40), ("50s", 50), ("1m30s", 90), ("1.5h", 5400), (" 2 h ", 7200)] {
        home.tool(&["record", "plain", "--status", "429", "--retry-after", typed]).succeeds();
        assert_eq!(opens(), Some(seconds), "{typed:?}");
    }
    let date = httpdate::fmt_http_date(std::time::SystemTime::now() + std::time::Duration::from_secs(10_000));
    home.tool(&["record", "plain", "--status", "503", "--retry-after", &date]).succeeds();
    assert!(opens().is_some_and(|seconds| (9_990..=10_001).contains(&seconds)), "{date}: {:?}", opens());
    let before = home.status("plain")["counts"].clone();
    for nonsense in ["soon", "", "-5", "30x", "1e3", "30 31", "s", "Wed, 21 Oct"] {
        let answer = home.tool(&["record", "plain", "--status", "429", "--retry-after", nonsense]);
        answer.fails(2, &["1m30s", "--header 'Retry-After"]);
    }
    home.tool(&["record", "plain", "--status", "429", "--header", "no name: x"])
        .fails(2, &["without spaces"]);
    home.tool(&["record", "plain", "--status", "429", "--header", ": x"]).fails(2, &["Name: value"]);
    assert_eq!(home.status("plain")["counts"], before, "nothing was recorded");
    home.tool(&["force", "plain", "clear-gate"]).succeeds();
    home.tool(&["record", "plain", "--status", "429", "--header", "Retry-After: soon"]).succeeds();
    assert_eq!(
        (opens(), &home.status("plain")["outcomes"]["429"]),
        (None, &6.into()),
        "recorded, without the header"
    );
    let unused = home.tool(&["record", "plain", "--status", "200", "--retry-after", "5s"]);
    unused.succeeds();
    assert!(unused.err.contains("was ignored"), "{}", unused.err);
}
