//! The texts that people read, word by word: the help, the answers, the refusals and the errors of each verb.
//!
//! After an intended change run `INSTA_UPDATE=always cargo test --test tool`, then read the difference.

use crate::cli::Home;
use std::fmt::Write;

/// These commands with their output and exit codes, as a terminal shows them.
fn transcript(home: &Home, commands: &[&[&str]]) -> String {
    let mut text = String::new();
    for arguments in commands {
        let answer = home.tool(arguments);
        let typed: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        writeln!(text, "$ shmlimit {}", typed.join(" ")).unwrap();
        text += &answer.out;
        for line in answer.err.lines() {
            writeln!(text, "2> {line}").unwrap();
        }
        writeln!(text, "exit {}\n", answer.code).unwrap();
    }
    text
}

fn quoted(word: &str) -> String {
    if word.is_empty() || word.contains([' ', '\'', '"']) { format!("{word:?}") } else { word.to_owned() }
}

/// Compares with the reviewed snapshot, without directories and values that depend on the moment.
macro_rules! as_agreed {
    ($name:literal, $home:expr, $commands:expr) => {
        let home: &Home = $home;
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(&regex_of(home.path().to_str().unwrap()), "[DIR]");
        settings.add_filter(r"in \d[\d.hms]*s\b", "in [TIME]");
        settings.add_filter(r"paused by Retry-After for \d[\d.hms]*s\b", "paused by Retry-After for [TIME]");
        settings.add_filter(r"wait \d[\d.hms]*s\b", "wait [TIME]");
        settings.add_filter(r"\(\d+\) \d[\d.hmns]*s ago", "([PID]) [TIME] ago");
        if cfg!(windows) {
            settings.add_filter(r"\[DIR\]\\", "[DIR]/");
            settings.add_filter(
                r"%ProgramData%\\AniVault",
                "/var/run/shmlimit, /var/tmp/shmlimit-UID, /dev/shm/shmlimit-UID",
            );
            settings.add_filter(r": [^:]+ \(os error [23]\)", ": No such file or directory (os error 2)");
            settings.add_filter(r"net localgroup ([a-z-]+) /add", "groupadd $1");
        }
        settings.set_prepend_module_to_snapshot(true);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($name, transcript(home, $commands)));
    };
}

/// A regular expression that matches exactly this path.
pub fn regex_of(path: &str) -> String {
    path.replace('\\', r"\\").replace('.', r"\.")
}

/// A limiter with one rule and a consecutive breaker.
const CONSECUTIVE: &str =
    "[breaker]\nkind = 'consecutive'\n[[rules]]\nalgorithm = 'gcra'\nlimit = 5\nperiod = '1m'\n";

#[test]
fn the_help_of_each_verb_is_as_reviewed() {
    let home = Home::new();
    as_agreed!("help_acquire", &home, &[&["acquire", "--help"]]);
    as_agreed!("help_init", &home, &[&["init", "--help"]]);
    as_agreed!("help_set", &home, &[&["set", "--help"]]);
    as_agreed!("help_force", &home, &[&["force", "--help"]]);
    as_agreed!("help_pause", &home, &[&["pause", "--help"]]);
    as_agreed!("help_resume", &home, &[&["resume", "--help"]]);
    as_agreed!("help_presets", &home, &[&["presets", "--help"]]);
    as_agreed!("help_record", &home, &[&["record", "--help"]]);
    as_agreed!("help_simulate", &home, &[&["simulate", "--help"]]);
}

#[test]
fn acquire_prints_nothing_or_the_reason_of_the_refusal() {
    let home = Home::with(&["two", "--rate", "2/day", "--concurrency", "1"]);
    as_agreed!(
        "acquire",
        &home,
        &[
            &["acquire", "two"],
            &["acquire", "two", "--now"],
            &["acquire", "two", "--now"],
            &["acquire", "two", "--timeout", "5s"],
            &["acquire", "two", "--cost", "3"],
            &["acquire", "two", "--cost", "tokens=3"],
            &["acquire", "two", "--cost", "many"],
            &["acquire", "two", "--priority", "vip"],
            &["acquire", "two", "--now", "--timeout", "5s"],
            &["acquire", "tow"],
            &["acquire", "a b"],
            &["acquire"],
        ]
    );
}

#[test]
fn acquire_names_the_cause_of_a_refusal_and_the_remedy() {
    let home = Home::new();
    as_agreed!(
        "acquire_blocked",
        &home,
        &[
            &["force", "tmdb", "offline"],
            &["acquire", "tmdb"],
            &["force", "tmdb", "online"],
            // Longer than any machine takes for the next command.
            &["set", "tmdb", "breaker.sleep_min", "5m"],
            &["force", "tmdb", "sleep"],
            &["acquire", "tmdb", "--now"],
            &["force", "tmdb", "cache_only"],
            &["acquire", "tmdb"],
            &["force", "tmdb", "normal"],
            &["record", "tmdb", "--status", "503", "--retry-after", "3600"],
            &["acquire", "tmdb", "--now"],
            &["force", "tmdb", "clear-gate"],
            &["acquire", "tmdb", "--now"],
        ]
    );
}

#[test]
fn init_prints_the_resulting_limiter() {
    let home = Home::new();
    as_agreed!(
        "init",
        &home,
        &[
            &["init", "api", "--rate", "40/10s", "--burst", "5", "--concurrency", "2"],
            &["init", "api"],
            &["init", "api", "--rate", "50/10s"],
            &["init", "api", "--rate", "50/10s", "--fairness", "fifo", "--replace"],
            &["init", "tmdb", "--offline"],
            &["init", "new"],
            &["init", "new", "--rate", "35"],
            &["init", "new", "--rate", "0/s"],
            &["init", "new", "--rate", "1/s", "--burst", "0"],
            &["init", "new", "--burst", "3"],
            &["init", "new", "--rate", "1/s", "--algorithm", "leaky"],
            &["init", "new", "--rate", "1/s", "--offline"],
            &["init", "new", "--config", "/no/such/file.toml"],
            &["init", "new", "--rate", "1/s", "--shared-with", "no-such-group"],
            &["init", "../new", "--rate", "1/s"],
        ]
    );
}

#[test]
fn set_prints_the_change() {
    let home = Home::with(&["api", "--rate", "4/s"]);
    as_agreed!(
        "set",
        &home,
        &[
            &["set", "tmdb", "concurrency", "6"],
            &["set", "tmdb", "concurrency", "6"],
            &["set", "tmdb", "breaker.auto_recover", "15m"],
            &["set", "api", "breaker.p_throttle", "0.3"],
            &["set", "tmdb", "breaker.p_throttel", "0.3"],
            &["set", "tmdb", "breaker.p_throttle", "1.5"],
            &["set", "tmdb", "concurrency", "-1"],
            &["set", "tmbd", "concurrency", "6"],
            &["set", "tmdb", "concurrency"],
        ]
    );
}

#[test]
fn force_prints_the_new_state() {
    let home = Home::with(&["api", "--rate", "4/s"]);
    let file = home.path().join("consecutive.toml");
    std::fs::write(&file, CONSECUTIVE).unwrap();
    as_agreed!(
        "force",
        &home,
        &[
            &["force", "tmdb", "throttle"],
            &["force", "tmdb", "offline"],
            &["force", "tmdb", "cache_only", "--auto-recover", "15"],
            &["record", "tmdb", "--status", "429", "--retry-after", "3600"],
            &["force", "tmdb", "normal"],
            &["force", "tmdb", "clear-gate"],
            &["init", "row", "--config", file.to_str().unwrap()],
            &["force", "row", "open"],
            &["acquire", "row", "--now"],
            &["force", "row", "throttle"],
            &["force", "api", "sleep"],
            &["force", "tmdb", "asleep"],
            &["force", "tmdb", "normal", "--auto-recover", "15m"],
            &["force", "tmbd", "normal"],
        ]
    );
}

#[test]
fn presets_are_listed_and_written() {
    let home = Home::new();
    as_agreed!(
        "presets",
        &home,
        &[&["presets"], &["presets", "musicbrainz"], &["presets", "tmbd"], &["presets", "nothing-like-it"]]
    );
}

#[test]
fn record_prints_the_advice() {
    let home = Home::with(&["api", "--rate", "4/s"]);
    let answer = home.path().join("answer.txt");
    std::fs::write(&answer, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7200\r\n\r\n").unwrap();
    as_agreed!(
        "record",
        &home,
        &[
            &["record", "tmdb", "--status", "200", "--latency", "120ms"],
            &["record", "tmdb", "--status", "404"],
            &["record", "tmdb", "--error", "read_timeout", "--attempt", "1"],
            &["record", "tmdb", "--status", "500", "--attempt", "6"],
            &["record", "tmdb", "--headers", answer.to_str().unwrap()],
            &["record", "tmdb", "--status", "429", "--quiet"],
            &["record", "api", "--status", "200"],
            &["record", "tmdb"],
            &["record", "tmdb", "--status", "99"],
            &["record", "tmdb", "--error", "sad"],
            &["record", "tmdb", "--status", "200", "--header", "nonsense"],
            &["record", "tmdb", "--headers", "/no/such/file"],
            &["record", "tmbd", "--status", "200"],
        ]
    );
}

#[test]
fn simulate_answers_each_line_and_reports_errors() {
    let home = Home::new();
    let (config, script) = (home.path().join("limiter.toml"), home.path().join("script.ndjson"));
    std::fs::write(&config, "concurrency = 2\n[[rules]]\nalgorithm = 'gcra'\nlimit = 3\nperiod = '1s'\n")
        .unwrap();
    let operations = [
        r#"{"op":"acquire","n":5}"#,
        r#"{"op":"record","status":200}"#,
        r#"{"op":"advance","ns":1000000000}"#,
        r#"{"op":"acquire","cost":9}"#,
        r#"{"op":"aquire"}"#,
        "not JSON",
    ];
    std::fs::write(&script, operations.join("\n")).unwrap();
    let (config, script) = (config.to_str().unwrap(), script.to_str().unwrap());
    as_agreed!(
        "simulate",
        &home,
        &[
            &["simulate", "--config", config, "--script", script, "--summary"],
            &["simulate", "--config", config, "--script", "/no/such/script"],
            &["simulate", "--config", "/no/such/config", "--script", script],
            &["simulate", "--config", script, "--script", script],
            &["simulate"],
        ]
    );
}
