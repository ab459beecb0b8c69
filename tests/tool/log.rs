//! The log of the tool, written by real processes (R114, R115, R117).

use crate::cli::{Answer, Home, binary};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEYS: [&str; 8] =
    ["state", "event", "sleep", "consec429", "err_rate_30s", "rate", "sem", "retry_after"];

/// Every timer is short, and few outcomes are needed.
const NERVOUS: &str = r#"
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

/// The system ends a program that writes beyond the limit (SIGXFSZ).
#[cfg(unix)]
#[test]
fn r117_a_limit_on_file_sizes_rotates_the_log_and_does_not_end_the_tool() {
    let home = Home::with(&["x", "--rate", "1/s"]);
    let log = home.path().join("limited.log");
    let script = r#"ulimit -f 2; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        "$0" --dir "$1" --log "$2" force x clear-gate >"$2.out" || exit $?; done"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(binary()).arg(home.path()).arg(&log);
    assert_eq!(shell.status().unwrap().code(), Some(0));
    // Two blocks: of 512 bytes, or of 1024 in some shells.
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&log) <= 2048 && size(&home.path().join("limited.log.1")) <= 2048);
}

fn home(name: &str, config: &str) -> Home {
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

fn log_of(home: &Home) -> PathBuf {
    home.path().join("log.ndjson")
}

fn lines(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(log_of(home)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The changes of state that were logged: from, to, reason.
fn transitions(home: &Home) -> Vec<String> {
    let of = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let changes = lines(home).into_iter().filter(|line| line["event"] == "state_transition");
    changes
        .map(|line| {
            assert_eq!(line["state"], line["to"], "the state is the one that was reached");
            format!("{} {} {}", of(&line, "from"), of(&line, "to"), of(&line, "reason"))
        })
        .collect()
}

fn record(home: &Home, statuses: &[u16]) {
    for status in statuses {
        logged(home, &["record", "api", "--status", &status.to_string()]).succeeds();
    }
}

/// Asks until the log has so many transitions: a timer must be due for that.
fn until_there_are(home: &Home, count: usize) {
    let until = Instant::now() + Duration::from_secs(30);
    while transitions(home).len() < count {
        assert!(Instant::now() < until, "{:?}", transitions(home));
        // A look is enough to find that a timer is due.
        logged(home, &["acquire", "api", "--now"]);
    }
}

#[test]
fn r114_a_line_of_logfmt_is_as_in_the_sample() {
    let home = home("api", NERVOUS);
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
    let home = home("api", NERVOUS);
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

/// Also a line that nothing more is known of.
#[test]
fn r114_damage_that_was_repaired_is_logged_with_all_keys() {
    let home = home("api", NERVOUS);
    // The newest time, far in the future.
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
    let home = home("api", NERVOUS);
    // Each in a process of its own, so more than a millisecond later.
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
    let config = NERVOUS.replace("sleep_after = \"1ms\"", "sleep_after = \"1h\"").replace("50ms", "5m");
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

/// Four processes find at the same time that a sleep is over: one of them ends it, and it alone says so.
#[test]
fn r115_what_four_processes_race_for_is_logged_once() {
    let home = home("api", NERVOUS);
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

/// Variables of the environment are put in force when a limiter is opened: that a sleep is over may be found then.
#[test]
fn r115_a_change_that_the_environment_finds_is_logged() {
    let home = home("api", &NERVOUS.replace("\"50ms\"", "\"1ms\""));
    let log = log_of(&home);
    for round in 0..10 {
        logged(&home, &["force", "api", "sleep"]).succeeds();
        // It starts later than a millisecond.
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

fn metrics(home: &Home) -> Value {
    serde_json::from_str(home.tool(&["metrics", "api", "--json"]).succeeds()).unwrap()
}

/// All parts of a log, the newest first.
fn parts(log: &Path) -> Vec<String> {
    let older = (1..).map(|number| PathBuf::from(format!("{}.{number}", log.display())));
    let all = std::iter::once(log.to_owned()).chain(older);
    all.map_while(|path| std::fs::read_to_string(path).ok()).collect()
}

/// Eight processes at a time write `each` lines, each in a process of its own; how many lines of each are there.
fn write_in_eight(home: &Home, size: &str, keep: &str, each: usize) -> BTreeMap<String, usize> {
    let log = log_of(home);
    let loops = (0..8).map(|number| {
        let name = format!("p{number}");
        home.tool(&["init", &name, "--concurrency", "1"]).succeeds();
        let mut command = Command::new(binary());
        command
            .args(["record", &name, "--status", "500", "--quiet"])
            .env("SHMLIMIT_DIR", home.path())
            .env("SHMLIMIT_LOG", &log)
            .envs([
                ("SHMLIMIT_LOG_SIZE", size),
                ("SHMLIMIT_LOG_KEEP", keep),
                ("SHMLIMIT_LOG_FORMAT", "json"),
            ]);
        std::thread::spawn(move || (0..each).all(|_| command.status().unwrap().success()))
    });
    for one in loops.collect::<Vec<_>>() {
        assert!(one.join().unwrap());
    }
    let mut counts = BTreeMap::new();
    for line in parts(&log).iter().flat_map(|part| part.lines()) {
        let line: Value = serde_json::from_str(line).expect("a whole line");
        *counts.entry(line["limiter"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn r117_eight_processes_lose_no_line_and_tear_none_while_files_are_full() {
    let home = Home::new();
    let counts = write_in_eight(&home, "2kB", "500", 25);
    assert_eq!(counts.len(), 8);
    assert!(counts.values().all(|count| *count == 25), "{counts:?}");
    let parts = parts(&log_of(&home));
    assert!(parts.len() > 10, "{} parts", parts.len());
    assert!(parts.iter().all(|part| part.len() <= 2000 && part.ends_with('\n')));
}

#[test]
fn r117_the_volume_is_bounded() {
    let home = Home::new();
    write_in_eight(&home, "1kB", "2", 10);
    let parts = parts(&log_of(&home));
    assert_eq!(parts.len(), 3);
    assert!(
        parts.iter().all(|part| part.len() <= 1000),
        "{:?}",
        parts.iter().map(String::len).collect::<Vec<_>>()
    );
    let others = home.names().into_iter().filter(|name| name.starts_with("log"));
    assert_eq!(others.collect::<Vec<_>>(), ["log.ndjson", "log.ndjson.1", "log.ndjson.2"]);
}

#[test]
fn a_log_that_cannot_be_written_is_said_once_and_stops_nothing() {
    let home = home("api", NERVOUS);
    let missing = home.path().join("no-such-place").join("log");
    let mut logs = vec![missing.to_str().unwrap(), home.path().to_str().unwrap()];
    if cfg!(unix) {
        logs.push("/dev/full");
    }
    for log in logs {
        // Two lines, one note.
        let answer = home.tool(&["--log", log, "record", "api", "--status", "429", "--retry-after", "1"]);
        answer.succeeds();
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(answer.err.contains(&format!("note: cannot write the log {log}: ")), "{}", answer.err);
        home.tool(&["force", "api", "clear-gate"]).succeeds();
    }
}

#[test]
fn without_a_wish_there_is_no_log() {
    let home = home("api", NERVOUS);
    let answer = home.tool(&["record", "api", "--status", "429"]);
    answer.succeeds();
    assert_eq!(answer.err, "");
}

#[test]
fn wrong_options_are_refused_and_wrong_variables_are_only_said() {
    let home = home("api", NERVOUS);
    home.tool(&["--log", "-", "--log-level", "loud", "status"]).fails(2, &["error, warn, info or debug"]);
    home.tool(&["--log", "-", "--log-format", "xml", "status"]).fails(2, &["logfmt or json"]);
    home.tool(&["--log", "-", "--log-size", "3 parsecs", "status"]).fails(2, &["10MB"]);
    home.tool(&["--log", "-", "--log-size", "10", "status"]).fails(2, &["at least 1000 bytes"]);
    let output = Command::new(binary())
        .args(["record", "api", "--status", "500", "--quiet"])
        .envs([("SHMLIMIT_LOG", "-"), ("SHMLIMIT_LOG_LEVEL", "loud")])
        .env("SHMLIMIT_DIR", home.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("note: $SHMLIMIT_LOG_LEVEL is not used"), "{said}");
    assert!(said.contains("event=backoff"), "{said}");
}

#[test]
fn the_level_decides_what_is_in_it() {
    let home = home("api", NERVOUS);
    let record = ["record", "api", "--status", "429", "--retry-after", "1"];
    let answer = home.tool(&[&["--log", "-", "--log-level", "warn"], &record[..]].concat());
    assert!(answer.err.contains("gate_closed") && !answer.err.contains("event=backoff"), "{}", answer.err);
    let answer = home.tool(&[&["--log", "-", "--log-level", "error"], &record[..]].concat());
    assert_eq!(answer.err, "");
}

/// Whoever may write to the directory of a log could let it lead to any file of the user who logs.
#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let [victim, link, dangling] = ["victim", "link.log", "dangling.log"].map(|name| home.path().join(name));
    std::fs::write(&victim, "precious\n").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    std::os::unix::fs::symlink(home.path().join("made"), &dangling).unwrap();
    let record = ["record", "api", "--status", "429"];
    for link in [&link, &dangling] {
        let link = link.to_str().unwrap();
        home.tool(&[&["--log", link][..], &record].concat())
            .fails(2, &[link, "symbolic link", "the file itself"]);
        let answer = assert_cmd::Command::cargo_bin("shmlimit").unwrap();
        let answer = { answer }
            .args(record)
            .env("SHMLIMIT_DIR", home.path())
            .env("SHMLIMIT_LOG", link)
            .output()
            .unwrap();
        assert!(answer.status.success(), "a variable does not keep anybody from working");
        assert!(String::from_utf8_lossy(&answer.stderr).contains("symbolic link"), "{answer:?}");
    }
    assert_eq!(home.status("api")["outcomes"]["429"], 2, "with the option nothing was done");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    assert!(!home.path().join("made").exists());
}

/// Rotation gives a full log the name of an older part, whatever has that name.
#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_an_older_part_is_replaced() {
    let home = Home::with(&["api", "--rate", "5/s"]);
    let [victim, log, part] = ["victim", "log", "log.1"].map(|name| home.path().join(name));
    std::fs::write(&victim, "precious\n").unwrap();
    std::os::unix::fs::symlink(&victim, &part).unwrap();
    let record = [
        "--log",
        log.to_str().unwrap(),
        "--log-size",
        "1000",
        "--log-keep",
        "1",
        "record",
        "api",
        "--status",
        "429",
    ];
    for _ in 0..12 {
        home.tool(&record).succeeds();
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    assert!(std::fs::symlink_metadata(&part).unwrap().is_file());
}

/// In a directory where every user can write, a file with a second name may be another user's trick.
#[cfg(unix)]
#[test]
fn a_file_with_a_second_name_is_not_written_where_every_user_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with(&["api", "--rate", "5/s"]);
    let open = home.path().join("open");
    std::fs::create_dir(&open).unwrap();
    let [victim, log] = [home.path().join("victim"), open.join("log")];
    std::fs::write(&victim, "precious\n").unwrap();
    std::fs::hard_link(&victim, &log).unwrap();
    let record = ["--log", log.to_str().unwrap(), "record", "api", "--status", "429"];
    for (mode, refused) in [(0o1777, true), (0o755, false)] {
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
        let answer = home.tool(&record);
        answer.succeeds();
        assert_eq!(answer.err.contains("has a second name"), refused, "{}", answer.err);
        assert_eq!(std::fs::read_to_string(&victim).unwrap() == "precious\n", refused);
    }
}
