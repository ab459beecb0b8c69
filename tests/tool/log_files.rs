//! The files of the log: rotation, many writers, links and files that cannot be written (R117).

use crate::cli::{Home, binary};
use crate::log::{SENSITIVE, home, log_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The system kills a program that writes beyond the limit (SIGXFSZ).
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

/// All parts of a log, the newest first.
fn parts(log: &Path) -> Vec<String> {
    let older = (1..).map(|number| PathBuf::from(format!("{}.{number}", log.display())));
    let all = std::iter::once(log.to_owned()).chain(older);
    all.map_while(|path| std::fs::read_to_string(path).ok()).collect()
}

/// Eight loops write `each` lines at the same time, each line from its own process. Returns the lines by limiter.
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
fn r117_eight_processes_lose_and_tear_no_line_while_files_rotate() {
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
fn a_log_that_cannot_be_written_is_noted_once_and_stops_nothing() {
    let home = home("api", SENSITIVE);
    let missing = home.path().join("no-such-place").join("log");
    let mut logs = vec![missing.to_str().unwrap(), home.path().to_str().unwrap()];
    if cfg!(unix) {
        logs.push("/dev/full");
    }
    for log in logs {
        // Two lines that cannot be written cause one note.
        let answer = home.tool(&["--log", log, "record", "api", "--status", "429", "--retry-after", "1"]);
        answer.succeeds();
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(answer.err.contains(&format!("note: cannot write the log {log}: ")), "{}", answer.err);
        home.tool(&["force", "api", "clear-gate"]).succeeds();
    }
}

#[test]
fn no_log_is_written_without_an_option_or_variable() {
    let home = home("api", SENSITIVE);
    let answer = home.tool(&["record", "api", "--status", "429"]);
    answer.succeeds();
    assert_eq!(answer.err, "");
}

#[test]
fn wrong_options_are_refused_and_wrong_variables_only_noted() {
    let home = home("api", SENSITIVE);
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
fn the_level_selects_the_logged_events() {
    let home = home("api", SENSITIVE);
    let record = ["record", "api", "--status", "429", "--retry-after", "1"];
    let answer = home.tool(&[&["--log", "-", "--log-level", "warn"], &record[..]].concat());
    assert!(answer.err.contains("gate_closed") && !answer.err.contains("event=backoff"), "{}", answer.err);
    let answer = home.tool(&[&["--log", "-", "--log-level", "error"], &record[..]].concat());
    assert_eq!(answer.err, "");
}

/// A user who may write to the directory of a log could redirect the log to any file of the user who logs.
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
        assert!(answer.status.success(), "a bad variable does not stop the tool");
        assert!(String::from_utf8_lossy(&answer.stderr).contains("symbolic link"), "{answer:?}");
    }
    assert_eq!(
        home.status("api")["outcomes"]["429"],
        2,
        "a bad option stops the tool before it does anything"
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    assert!(!home.path().join("made").exists());
}

/// Rotation gives a full log the name of an older part, whatever file has that name.
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
