//! The output of `status` for people, with limiters as real commands leave them, and `--watch`.

use crate::cli::commands;
use crate::cli::queue::{Holder, start_waiting};
#[cfg(unix)]
use crate::cli::tmux::Window;
use crate::cli::{Home, binary};
use crate::texts::regex_of;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Compares with the reviewed snapshot, without process ids, times and the directory, which differ from run to run.
macro_rules! screen {
    ($home:expr, $name:expr, $text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(true);
        settings.add_filter(&regex_of($home.path().to_str().unwrap()), "DIRECTORY");
        settings.add_filter(r"\b(for|in|every) [0-9.]+(ms|s|m|h|d)([0-9]+[smh])?", "$1 TIME");
        settings.add_filter(r"[0-9]+(ms|s|m) ago", "TIME ago");
        settings.add_filter(r"by shmlimit \([0-9]+\)", "by shmlimit (PID)");
        // The lengths of an id and of a time decide where the line breaks.
        settings.add_filter(r"Retry-After, [0-9dhms]+ left\s+recorded", "Retry-After, TIME left  recorded");
        // The rows of participants: with a waiting call, and without one.
        let row = r"(?m)^ +[0-9]+  (\w+) +[0-9]+(?:ms|s|m)";
        settings.add_filter(
            &format!(r"{row}  (\w+) +(?:late|[0-9]+(?:ms|s))( .*)$"),
            "PID  $1  TIME  $2  TIME$3",
        );
        settings.add_filter(&format!(r"{row}( .*) +[0-9]+$"), "PID  $1  TIME$2  LOOKS");
        if cfg!(windows) {
            // On Windows the commands are those of another shell.
            settings.add_filter(r"(?m)^PID  cmd  TIME  (user|background)", "PID  true  TIME  $1");
            settings.add_filter(r"(?m)^PID  cmd  TIME   ", "PID  sh  TIME   ");
        }
        settings.bind(|| insta::assert_snapshot!($name, $text));
    };
}

fn shown(home: &Home, name: &str) -> String {
    home.tool(&["status", name]).succeeds().to_owned()
}

#[test]
fn an_unused_limiter_is_shown_in_a_few_lines() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "3"]);
    home.tool(&["init", "api", "--rate", "5000/h", "--algorithm", "gcra"]).succeeds();
    home.tool(&["init", "pass", "--rate", "1/day", "--offline"]).fails(2, &["breaker"]);
    let all = home.tool(&["status"]).succeeds().to_owned();
    screen!(home, "unused", all);
    assert!(all.lines().all(|line| line.chars().count() <= 80), "{all}");
    assert!(shown(&home, "web").lines().count() <= 4);
}

#[test]
fn status_lists_permit_holders_and_waiting_calls() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "1"]);
    let holder = Holder::new(&home, "web");
    let nothing: &[&str] = if cfg!(unix) { &["true"] } else { &commands::NOTHING };
    let waiting = [&["run", "web", "--priority", "user", "--"], nothing].concat();
    let mut first = start_waiting(&home, "web", &waiting, &[]);
    let long = [&["run", "web", "--cost", "3", "--timeout", "1h", "--"], nothing].concat();
    let mut second = start_waiting(&home, "web", &long, &[]);
    let text = shown(&home, "web");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    screen!(home, "queue", text);
    holder.let_go();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
}

#[test]
fn status_shows_the_time_and_reason_of_the_state_and_the_next_change() {
    let home = Home::new();
    for state in ["throttle", "sleep", "half_open", "cache_only", "offline"] {
        home.tool(&["force", "tmdb", state]).succeeds();
        // The remainder of a rule depends on how long ago the last call was.
        let text: Vec<String> =
            shown(&home, "tmdb").lines().filter(|line| !line.contains("rps")).map(str::to_owned).collect();
        screen!(home, state, text.join("\n"));
    }
    home.tool(&["force", "tmdb", "cache_only", "--auto-recover", "15"]).succeeds();
    assert!(shown(&home, "tmdb").contains("tries to recover in 15m00s"));
    assert_eq!(home.status("tmdb")["next_change"]["what"], "sleep");
    home.tool(&["force", "tmdb", "online"]).succeeds();
    home.tool(&["force", "tmdb", "normal"]).succeeds();
    home.tool(&["force", "tvdb", "open"]).succeeds();
    assert!(shown(&home, "tvdb").contains("probes (half_open) in "));
    assert_eq!(home.status("tvdb")["next_change"]["what"], "half_open");
}

#[test]
fn r142_status_shows_which_process_closed_the_gate_and_when_it_opens() {
    let home = Home::new();
    home.tool(&["record", "tmdb", "--status", "429", "--retry-after", "3600"]).succeeds();
    let text = shown(&home, "tmdb");
    assert!(text.contains("Retry-After ends in 1h00m") || text.contains("Retry-After ends in 59m"), "{text}");
    screen!(home, "gate", text);
    let next = &home.status("tmdb")["next_change"];
    assert_eq!((&next["what"], &next["rule"]), (&"gate_opens".into(), &serde_json::Value::Null));
    assert!(next["in_ns"].as_u64().unwrap() > 3_500_000_000_000);
}

#[test]
fn status_shows_when_a_rule_has_more_and_when_it_is_full() {
    let home = Home::with(&["web", "--rate", "2/day", "--burst", "2"]);
    assert_eq!(home.status("web")["next_change"], serde_json::Value::Null);
    home.tool(&["acquire", "web"]).succeeds();
    let day = 86_400_000_000_000_u64;
    let near = |value: &serde_json::Value, wanted: u64| {
        let nanos = value.as_u64().unwrap();
        assert!(nanos <= wanted && nanos > wanted - day / 24, "{nanos} is not about {wanted}");
    };
    let status = home.status("web");
    assert_eq!(
        (&status["next_change"]["what"], &status["next_change"]["rule"]),
        (&"full".into(), &"token_bucket".into())
    );
    near(&status["rules"][0]["next_in_ns"], day / 2);
    near(&status["rules"][0]["full_in_ns"], day / 2);
    assert!(shown(&home, "web").contains("token_bucket full again in 1"));
    home.tool(&["acquire", "web"]).succeeds();
    home.tool(&["acquire", "web", "--now"]).fails(75, &[]);
    let status = home.status("web");
    assert_eq!(status["next_change"]["what"], "next_unit");
    near(&status["rules"][0]["next_in_ns"], day / 2);
    near(&status["rules"][0]["full_in_ns"], day);
    screen!(home, "used_up", shown(&home, "web"));
}

#[test]
fn status_does_not_mention_a_rule_that_is_full_again_in_a_moment() {
    let home = Home::with(&["fast", "--rate", "100/s"]);
    home.tool(&["acquire", "fast", "--cost", "50"]).succeeds();
    assert!(!shown(&home, "fast").contains("full again"));
}

#[test]
fn status_shows_the_window_of_a_pace_and_the_outcomes() {
    let home = Home::new();
    for arguments in [
        &["--status", "200", "--header", "X-MBX-USED-WEIGHT-1M: 5000"][..],
        &["--status", "404"],
        &["--error", "dns"],
    ] {
        home.tool(&[&["record", "binance"], arguments].concat()).succeeds();
    }
    let text = shown(&home, "binance");
    for part in [
        "pace",
        "one call every",
        "because of REQUEST_WEIGHT:1M",
        "1000 of 6000 left",
        "1 × 200",
        "1 × 404",
        "1 × dns",
        "50.0% errors in the last 2 calls",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn a_preset_without_a_limiter_is_reported_as_a_preset() {
    let home = Home::new();
    home.tool(&["status", "tmdb"])
        .fails(2, &["no limiter \"tmdb\"", "it is a preset, and the first use creates it"]);
    home.tool(&["status", "tmbd"]).fails(2, &["did you mean \"tmdb\"?"]);
    assert!(home.names().is_empty());
}

/// The lines of about a minute; a line that has not come by then does not come.
const MOST: usize = 2000;

/// Starts `status --watch …` with a pipe to read from.
fn watch(home: &Home, arguments: &[&str]) -> (std::process::Child, impl Iterator<Item = String>) {
    let mut command = Command::new(binary());
    command.args(["status", "--watch", "0.1"]).args(arguments).env("SHMLIMIT_DIR", home.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

#[test]
fn watching_follows_new_and_removed_limiters_and_ends_with_a_closed_pipe() {
    let home = Home::new();
    let (mut child, mut lines) = watch(&home, &[]);
    let mut until =
        |part: &str| assert!(lines.by_ref().take(MOST).any(|line| line.contains(part)), "no {part:?}");
    until("No limiters yet");
    home.tool(&["init", "web", "--rate", "10/day"]).succeeds();
    until("web  ready");
    home.tool(&["acquire", "web"]).succeeds();
    until("9 of 10 requests left");
    home.delete("web");
    until("No limiters yet");
    assert!(!home.names().contains(&"web.shm".to_owned()), "the observer created the limiter again");
    std::fs::write(home.path().join("bad.shm"), "no segment at all").unwrap();
    until("bad  cannot be shown");
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn watching_a_deleted_limiter_reports_it_and_does_not_recreate_it() {
    let home = Home::with(&["web", "--rate", "10/day"]);
    let (mut child, mut lines) = watch(&home, &["web"]);
    let mut until =
        |part: &str| assert!(lines.by_ref().take(MOST).any(|line| line.contains(part)), "no {part:?}");
    until("10 of 10 requests left");
    home.delete("web");
    until("no limiter \"web\"");
    assert!(!home.names().contains(&"web.shm".to_owned()), "the observer created the limiter again");
    home.tool(&["init", "web", "--rate", "7/day"]).succeeds();
    until("7 of 7 requests left");
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn watching_as_json_is_a_line_for_each_limiter_each_time() {
    let home = Home::with(&["web", "--rate", "10/day"]);
    let (mut child, mut lines) = watch(&home, &["--json", "web"]);
    let mut next = || serde_json::from_str::<serde_json::Value>(&lines.next().unwrap()).unwrap();
    for _ in 0..3 {
        assert_eq!(next()["name"], "web");
    }
    home.tool(&["acquire", "web"]).succeeds();
    while next()["counts"]["granted"] != 1 {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn watch_takes_an_interval_and_tells_it_from_a_name() {
    let home = Home::with(&["web", "--rate", "10/day"]);
    for (often, parts) in [("0", "at least 100ms"), ("1ms", "at least 100ms"), ("1x", "1x")] {
        home.tool(&["status", "web", "--watch", often]).fails(2, &["--watch", parts]);
    }
    home.tool(&["status", "--watch", "not/a/name"]).fails(2, &["not/a/name"]);
    let mut command = Command::new(binary());
    command.args(["status", "--json", "--watch", "web"]).env("SHMLIMIT_DIR", home.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"name\":\"web\""), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)] // tmux
#[test]
fn watching_on_a_terminal_draws_in_place_fits_any_window_and_leaves_it_clean() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "3"]);
    let window = Window::new(&home, (80, 24), &[]);
    let modes = window.modes();
    window.line("clear; shmlimit status --watch; echo code=$?");
    let text = window.until("web  ready");
    assert!(text.starts_with("every 1s, Ctrl-C ends\n"), "{text}");
    home.tool(&["acquire", "web"]).succeeds();
    let text = window.until("9 of 10 requests left");
    assert_eq!(text.matches("web  ").count(), 1, "in place:\n{text}");
    window.keys(&["C-c"]);
    window.wait("the prompt", |text| text.trim_end().ends_with('$'));
    window.is_clean(&modes);
    // Another size is drawn at once, not only at the next interval.
    window.line("clear; shmlimit status --watch 1h");
    window.until("web  ready");
    window.resize(40, 12);
    let text = window.wait("no bar", |text| text.contains("9 of 10") && !text.contains('█'));
    assert_eq!(text.matches("every 1h").count(), 1, "{text}");
    window.resize(60, 4);
    window.until("more lines");
    window.resize(80, 24);
    window.wait("all of it", |text| text.contains("calls") && !text.contains("more lines"));
    window.keys(&["C-c"]);
    window.wait("the prompt", |text| text.trim_end().ends_with('$'));
    window.is_clean(&modes);
    home.tool(&["record", "web", "--status", "429"]).succeeds();
    window.line("clear; LANG=C shmlimit status");
    let text = window.until("in all: 1 x 429");
    assert!(text.is_ascii() && text.contains("###"), "{text}");
    window.line("clear; bash -c 'shmlimit status --watch & sleep 0.2; kill -TERM $!; wait $!; echo code=$?'");
    window.until("code=143");
}

#[test]
fn a_rate_set_by_the_breaker_replaces_the_rules_rate_in_the_output() {
    let home = Home::with(&["tmdb"]);
    home.tool(&["set", "tmdb", "breaker.rate_base", "5"]).succeeds();
    let shown = home.tool(&["status", "tmdb"]);
    assert!(
        shown.succeeds().contains("5/s by breaker.rate_base") && !shown.out.contains("35 per 1s"),
        "{}",
        shown.out
    );
    let there = home.tool(&["init", "tmdb"]);
    let expected = "at most 40 in any second (token_bucket: 5/s by breaker.rate_base, and a burst of 35)";
    assert!(there.succeeds().contains(expected), "{}", there.out);
}
