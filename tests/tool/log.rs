//! The log of the tool, written by real processes (R114, R115, R117).

use crate::cli::{Answer, Home, binary};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEYS: [&str; 8] =
    ["state", "event", "sleep", "consec429", "err_rate_30s", "rate", "sem", "retry_after"];

/// Every timer is short, and few outcomes are needed.
pub const SENSITIVE: &str = r#"
    concurrency = 4
    [[rules]]
    algorithm = "token_bucket"
    limit = 35
    period = "1s"
    [window]
    min_samples = 2
    [breaker]
    kind = "fsm"
    n_throttle = 3
    n_cacheonly = 5
    sleep_after = "1ms"
    sleep_min = "50ms"
    sleep_max = "50ms"
    s_recover = 1
    s_probe_ok = 1
    auto_recover = "50ms"
"#;

pub fn home(name: &str, config: &str) -> Home {
    let home = Home::new();
    let file = home.path().join("config.toml");
    std::fs::write(&file, config).unwrap();
    home.tool(&["init", name, "--config", file.to_str().unwrap()]).succeeds();
    home
}

/// Runs the tool with a log of JSON lines.
fn logged(home: &Home, arguments: &[&str]) -> Answer {
    let log = log_of(home);
    let log = ["--log", log.to_str().unwrap(), "--log-format", "json"];
    home.tool(&[&log[..], arguments].concat())
}

pub fn log_of(home: &Home) -> PathBuf {
    home.path().join("log.ndjson")
}

pub fn lines(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(log_of(home)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The logged transitions: from, to, reason.
fn transitions(home: &Home) -> Vec<String> {
    let of = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let changes = lines(home).into_iter().filter(|line| line["event"] == "state_transition");
    changes
        .map(|line| {
            assert_eq!(line["state"], line["to"], "`state` is the new state");
            format!("{} {} {}", of(&line, "from"), of(&line, "to"), of(&line, "reason"))
        })
        .collect()
}

fn metrics(home: &Home) -> Value {
    serde_json::from_str(home.tool(&["metrics", "api", "--json"]).succeeds()).unwrap()
}

fn record(home: &Home, statuses: &[u16]) {
    for status in statuses {
        logged(home, &["record", "api", "--status", &status.to_string()]).succeeds();
    }
}

/// Makes calls until the log has `count` transitions; a timer must be due for the next one.
fn until_there_are(home: &Home, count: usize) {
    let until = Instant::now() + Duration::from_secs(30);
    while transitions(home).len() < count {
        assert!(Instant::now() < until, "{:?}", transitions(home));
        // Any call finds that a timer is due.
        logged(home, &["acquire", "api", "--now"]);
    }
}

#[test]
fn r114_a_line_of_logfmt_matches_the_sample() {
    let home = home("api", SENSITIVE);
    let answer = home.tool(&["--log", "-", "record", "api", "--status", "429", "--retry-after", "30"]);
    answer.succeeds();
    let lines: Vec<&str> = answer.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", answer.err);
    let stamp = lines[0].strip_prefix("ts=").unwrap().split(' ').next().unwrap();
    assert!(stamp.len() == 24 && stamp.ends_with('Z') && stamp.as_bytes()[10] == b'T', "{stamp}");
    let after = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    assert_eq!(
        after(lines[0]),
        "lvl=INFO comp=ratelimiter state=normal event=backoff sleep=30s consec429=1 err_rate_30s=1.00 rate=35rps \
         sem=4 retry_after=30s limiter=api code=429 retry=true"
    );
    assert!(
        after(lines[1]).starts_with("lvl=WARN comp=ratelimiter state=normal event=gate_closed sleep=30s")
    );
}

#[test]
fn r114_every_event_has_all_keys() {
    let home = home("api", SENSITIVE);
    record(&home, &[500, 429, 404, 200, 429, 429, 429]);
    logged(&home, &["--log-level", "debug", "force", "api", "offline"]).succeeds();
    assert_eq!(logged(&home, &["--log-level", "debug", "acquire", "api", "--now"]).code, 75);
    logged(&home, &["record", "api", "--status", "503", "--retry-after", "9"]).succeeds();
    logged(&home, &["force", "api", "clear-gate"]).succeeds();
    logged(&home, &["set", "api", "concurrency", "6"]).succeeds();
    let log = log_of(&home);
    let patched = Command::new(binary())
        .args(["acquire", "api", "--now"])
        .envs([("SHMLIMIT_CONCURRENCY", "5"), ("SHMLIMIT_LOG_FORMAT", "json")])
        .env("SHMLIMIT_LOG", &log)
        .env("SHMLIMIT_DIR", home.path())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(patched.code(), Some(75));
    let mut events = Vec::new();
    for line in lines(&home) {
        for key in ["ts", "lvl", "comp", "limiter"].into_iter().chain(KEYS) {
            assert!(line.get(key).is_some(), "{key} is not in {line}");
        }
        assert_eq!((&line["comp"], &line["limiter"]), (&"ratelimiter".into(), &"api".into()));
        assert!(line["rate"].as_str().unwrap().ends_with("rps") && line["consec429"].is_u64(), "{line}");
        events.push(line["event"].as_str().unwrap().to_owned());
    }
    events.sort();
    events.dedup();
    let all =
        ["backoff", "environment", "forced", "gate_cleared", "gate_closed", "policy_changed", "refused"];
    assert_eq!(events, [&all[..], &["state_transition"]].concat());
}

/// Includes a line with only the required fields.
#[test]
fn r114_repaired_damage_is_logged_with_all_keys() {
    let home = home("api", SENSITIVE);
    // The newest time of the limiter, far in the future.
    let mut bytes = std::fs::read(home.path().join("api.shm")).unwrap();
    let at = shmlimit_segment::layout::CORE * 8;
    bytes[at..at + 8].copy_from_slice(&u64::MAX.to_ne_bytes());
    std::fs::write(home.path().join("api.shm"), bytes).unwrap();
    let answer = home.tool(&["--log", "-", "acquire", "api", "--timeout", "9s"]);
    answer.succeeds();
    let (_, line) = answer.err.trim_end().split_once(' ').unwrap();
    assert_eq!(
        line,
        "lvl=WARN comp=ratelimiter state=- event=reset sleep=- consec429=- err_rate_30s=- rate=- sem=- retry_after=- \
         limiter=api msg=\"damaged state: starting empty\""
    );
    assert_eq!(metrics(&home)["resets_total"], 1);
}

#[test]
fn r115_every_reason_of_the_five_states_is_logged() {
    let home = home("api", SENSITIVE);
    // Each outcome comes from its own process, so more than a millisecond after the previous one.
    record(&home, &[429, 429, 429, 429]);
    until_there_are(&home, 3);
    record(&home, &[500]);
    until_there_are(&home, 5);
    record(&home, &[200]);
    let first = [
        "normal throttle consec_429",
        "throttle sleep sustained_errors",
        "sleep half_open sleep_expired",
        "half_open sleep probe_failed",
        "sleep half_open sleep_expired",
        "half_open normal probe_ok",
    ];
    assert_eq!(transitions(&home), first);
    logged(&home, &["force", "api", "throttle"]).succeeds();
    record(&home, &[200, 200]);
    assert_eq!(transitions(&home)[6..], ["normal throttle forced", "throttle half_open success_window_ok"]);
    logged(&home, &["force", "api", "cache_only"]).succeeds();
    until_there_are(&home, 11);
    assert_eq!(
        transitions(&home)[8..],
        ["half_open cache_only forced", "cache_only sleep auto_recover", "sleep half_open sleep_expired"]
    );
}

#[test]
fn r115_the_other_reasons_are_logged() {
    // The sleep outlasts the test, however long a program takes to start.
    let config = SENSITIVE.replace("sleep_after = \"1ms\"", "sleep_after = \"1h\"").replace("50ms", "5m");
    let home = home("api", &config);
    record(&home, &[500, 500, 500, 429, 429, 429, 429, 429]);
    assert_eq!(transitions(&home), ["normal throttle error_ratio", "throttle sleep consec_429"]);
}

#[test]
fn r115_every_reason_of_a_consecutive_breaker_is_logged() {
    let config = "concurrency = 2\n[breaker]\nkind = 'consecutive'\nfailure_threshold = 2\nreset_timeout = '50ms'\n\
                  required_successes = 1\n";
    let home = home("api", config);
    record(&home, &[500, 500]);
    until_there_are(&home, 2);
    record(&home, &[200]);
    let all =
        ["closed open consecutive_failures", "open half_open reset_timeout", "half_open closed probe_ok"];
    assert_eq!(transitions(&home), all);
}

/// Four processes find at the same time that a sleep is over: one of them ends it, and only that one logs it.
#[test]
fn r115_a_transition_that_four_processes_race_for_is_logged_once() {
    let home = home("api", SENSITIVE);
    for _ in 0..10 {
        logged(&home, &["force", "api", "normal"]).succeeds();
        logged(&home, &["force", "api", "sleep"]).succeeds();
        let log = log_of(&home);
        let racers = (0..4).map(|_| {
            Command::new(binary())
                .args(["--log", log.to_str().unwrap(), "--log-format", "json", "acquire", "api"])
                .args(["--timeout", "20s", "--priority", "user"])
                .env("SHMLIMIT_DIR", home.path())
                .spawn()
                .unwrap()
        });
        for mut racer in racers.collect::<Vec<_>>() {
            racer.wait().unwrap();
        }
    }
    let (logged, made) = (transitions(&home), metrics(&home)["transitions_total"].as_u64().unwrap());
    assert_eq!(logged.len() as u64, made, "{logged:?}");
    assert_eq!(logged.iter().filter(|line| line.ends_with("sleep_expired")).count(), 10);
}

/// Opening a limiter applies environment variables. That may be the moment at which a sleep is found to be over.
#[test]
fn r115_a_transition_found_while_applying_the_environment_is_logged() {
    let home = home("api", &SENSITIVE.replace("\"50ms\"", "\"1ms\""));
    let log = log_of(&home);
    for round in 0..10 {
        logged(&home, &["force", "api", "sleep"]).succeeds();
        // The process starts more than a millisecond later.
        let concurrency = if round % 2 == 0 { "5" } else { "6" };
        let status = Command::new(binary())
            .args([
                "--log",
                log.to_str().unwrap(),
                "--log-format",
                "json",
                "acquire",
                "api",
                "--timeout",
                "9s",
            ])
            .env("SHMLIMIT_CONCURRENCY", concurrency)
            .env("SHMLIMIT_DIR", home.path())
            .status();
        assert!(status.unwrap().success());
    }
    let logged = transitions(&home);
    assert_eq!(logged.len() as u64, metrics(&home)["transitions_total"].as_u64().unwrap(), "{logged:?}");
    assert_eq!(lines(&home).iter().filter(|line| line["event"] == "environment").count(), 10);
}
