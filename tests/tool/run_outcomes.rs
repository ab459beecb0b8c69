//! `shmlimit run` reports how a command ends, or the status that it prints, to all users of the limiter.

use crate::cli::web::Web;
use crate::cli::{Answer, Home, ONE, binary};
use crate::util::raw;
use serde_json::{Value, json};
use shmlimit_kernel::health_state::{HEALTH_AT, Health};
use shmlimit_segment::layout;
use std::process::{Command, Stdio};

const SECOND: u64 = 1_000_000_000;
/// How often each code was recorded.
fn codes(home: &Home) -> Value {
    let status = home.status("one");
    assert_eq!(status["in_flight"], 0);
    status["counts"]["codes"].clone()
}

/// Runs a shell script as the command.
fn run(home: &Home, options: &[&str], script: &str) -> Answer {
    home.tool(&[&["run", "one"], options, &["--", "sh", "-c", script]].concat())
}

/// Checks what one run with these options records.
#[track_caller]
fn records(options: &[&str], script: &str, wanted: Value) -> Answer {
    let home = Home::with(&ONE);
    let answer = run(&home, options, script);
    assert_eq!(codes(&home), wanted, "{options:?} {script:?}: {}", answer.err);
    answer
}

#[test]
fn a_refused_connection_of_curl_is_recorded_and_its_404_is_ignored() {
    let home = Home::with(&ONE);
    let web = Web::start(&[
        "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ]);
    let curl = |url: &str| home.tool(&["run", "one", "--exit", "curl", "--", "curl", "-fsS", url]).code;
    assert_eq!(curl(&web.url()), 22);
    assert_eq!(codes(&home), json!({}));
    assert_eq!(curl(&web.url()), 0);
    assert_eq!(curl("http://127.0.0.1:1/"), 7);
    assert_eq!(codes(&home), json!({"200": 1, "connection": 1}));
}

#[test]
fn r73_the_headers_that_curl_dumps_close_the_gate() {
    let home = Home::with(&ONE);
    let web = Web::start(&["HTTP/1.1 429 No\r\nRetry-After: 30\r\nContent-Length: 3\r\n\r\nno\n"]);
    let answer =
        home.tool(&["run", "one", "--status-fd", "3", "--", "curl", "-s", "-D", "/dev/fd/3", &web.url()]);
    assert_eq!((answer.succeeds(), answer.err.as_str()), ("no\n", ""));
    assert_eq!(codes(&home), json!({"429": 1}));
    home.tool(&["acquire", "one", "--now"]).fails(75, &["Retry-After", "recorded by curl ("]);
}

#[test]
fn a_status_descriptor_takes_bare_statuses_or_response_heads_and_the_last_counts() {
    let fd = ["--status-fd", "3"];
    records(&fd, "echo 503 >&3", json!({"503": 1}));
    records(&fd, "printf 204 >&3", json!({"204": 1}));
    records(&fd, "echo dns >&3; exit 1", json!({"dns": 1}));
    records(
        &fd,
        "printf 'HTTP/1.1 301 M\\r\\nA: b\\r\\n\\r\\nHTTP/2 404\\r\\n\\r\\n' >&3",
        json!({"404": 1}),
    );
    records(&fd, "echo nonsense 12 >&3; echo 999 >&3", json!({}));
    records(&fd, "exit 75", json!({}));
    records(&["--status-fd", "9"], "echo 500 >&9", json!({"500": 1}));
    // The exit code counts only if the descriptor gets no status.
    records(&["--status-fd", "3", "--exit", "curl"], "exit 6", json!({"dns": 1}));
    records(&["--status-fd", "3", "--exit", "22=500"], "echo 404 >&3; exit 22", json!({"404": 1}));
    // An answer that begins well and is cut off is not a success.
    records(
        &["--status-fd", "3", "--exit", "curl"],
        "echo 'HTTP/1.1 200 OK' >&3; exit 28",
        json!({"read_timeout": 1}),
    );
}

#[test]
fn output_to_the_status_descriptor_neither_blocks_the_command_nor_fills_the_memory() {
    let script = "yes 'X-Filler: abcdefghijklmnopqrstuvwxyz' | head -c 20000000 >&3; printf 'HTTP/1.1 503 No\\n\\n' >&3; \
                  grep VmHWM /proc/$PPID/status";
    let answer = records(&["--status-fd", "3"], script, json!({}));
    let most: u64 = answer.out.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(most < 40_000, "{most} KiB");
    // The buffer starts over at each response, so a large number of them fits.
    let script = "i=0; while [ $i -lt 30 ]; do printf 'HTTP/1.1 200 OK\\n'; yes 'X: yyyyyyyyyyyyyyyyyy' | head -c 100000; \
                  i=$((i+1)); done >&3; printf '\\nHTTP/1.1 503 No\\n\\n' >&3";
    records(&["--status-fd", "3"], script, json!({"503": 1}));
    // Of any number of bare statuses the last one counts.
    let script = "yes 200 | head -c 3000000 >&3; echo 503 >&3";
    records(&["--status-fd", "3"], script, json!({"503": 1}));
}

#[test]
fn run_does_not_wait_for_a_daemon_that_the_command_left_behind() {
    let home = Home::with(&ONE);
    // The daemon keeps the status descriptor, and ends when this test closes its input.
    let mut child = home
        .as_a_shell_would()
        .args([
            "run",
            "one",
            "--status-fd",
            "3",
            "--",
            "sh",
            "-c",
            "exec 4<&0; cat <&4 >/dev/null & echo 503 >&3; exit 5",
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let _stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(codes(&home), json!({"503": 1}));
}

/// Prints the target of each descriptor of a program. The script opens no descriptor meanwhile.
const DESCRIPTORS: &str =
    "n=0; while [ $n -lt 20 ]; do printf \"$n \"; readlink /proc/$$/fd/$n || echo closed; n=$((n+1)); done";

#[test]
fn the_command_gets_the_descriptors_of_a_direct_start_and_the_status_descriptor() {
    let home = Home::with(&ONE);
    let passed = |tool: &str| {
        let script = format!("exec 5</etc/passwd 7>/dev/null; {tool} sh -c '{DESCRIPTORS}'");
        let output =
            Command::new("sh").args(["-c", &script]).env("SHMLIMIT_DIR", home.path()).output().unwrap();
        assert!(output.status.success());
        // Each run has a pipe of its own to this test.
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split('[').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let direct = passed("");
    assert!(direct.contains(&"5 /etc/passwd".to_owned()), "{direct:?}");
    assert_eq!(passed(&format!("{} run one --", binary())), direct);
    assert_eq!(passed(&format!("{} run one --retries --exit curl --", binary())), direct);
    let mut with_three = direct.clone();
    with_three[3] = "3 pipe:".to_owned();
    assert_eq!(passed(&format!("{} run one --status-fd 3 --", binary())), with_three);
    // The status descriptor replaces the caller's descriptor of that number.
    let mut with_five = direct;
    with_five[5] = "5 pipe:".to_owned();
    assert_eq!(passed(&format!("{} run one --status-fd 5 --", binary())), with_five);
}

#[test]
fn a_command_that_cannot_be_started_is_reported_with_any_status_descriptor() {
    let home = Home::with(&ONE);
    for number in ["3", "4", "5", "6", "7", "8", "9", "10", "11", "12"] {
        home.tool(&["run", "one", "--status-fd", number, "--retries", "--", "no-such-command"])
            .fails(127, &["no-such"]);
    }
    assert_eq!(codes(&home), json!({}));
}

#[test]
fn a_pattern_finds_the_status_in_the_output_and_passes_it_on_unchanged() {
    let from = ["--status-from", "HTTP/[0-9.]+ ([0-9]+)"];
    let answer = records(&from, "echo 'HTTP/1.1 429 x' >&2; echo body", json!({"429": 1}));
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("body\n", "HTTP/1.1 429 x\n"));
    records(&from, "echo HTTP/1.1 301; echo HTTP/2 200", json!({"200": 1}));
    records(&from, "printf 'HTTP/1.1 503'; exit 3", json!({"503": 1}));
    records(&from, "echo nothing of the kind", json!({}));
    records(&["--status-from", "^(throttled)$|code=([0-9]+)"], "echo throttled >&2", json!({"429": 1}));
    records(&[&from[..], &["--status-in", "stdout"]].concat(), "echo HTTP/1.1 500 >&2", json!({}));
    records(&[&from[..], &["--status-in", "stderr"]].concat(), "echo HTTP/1.1 500", json!({}));
    records(&[&from[..], &["--status-in", "stderr"]].concat(), "echo HTTP/1.1 500 >&2", json!({"500": 1}));
}

#[test]
fn only_the_watched_stream_becomes_a_pipe() {
    let home = Home::with(&ONE);
    let file = home.path().join("out");
    let script = format!(
        "exec {} run one --status-from '([0-9]+)' --status-in stderr -- sh -c 'readlink /proc/$$/fd/1 /proc/$$/fd/2' >'{}'",
        binary(),
        file.display()
    );
    let status = Command::new("sh").args(["-c", &script]).env("SHMLIMIT_DIR", home.path()).status().unwrap();
    assert!(status.success());
    let said = std::fs::read_to_string(&file).unwrap();
    let (out, err) = said.trim_end().split_once('\n').unwrap();
    assert_eq!(out, file.to_str().unwrap());
    assert!(err.starts_with("pipe:"), "{err}");
}

#[test]
fn five_megabytes_of_any_bytes_pass_unchanged_through_both_streams() {
    let home = Home::with(&ONE);
    let file = home.path().join("bytes");
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let script = format!("cat '{0}' & cat '{0}' >&2; wait; exit 9", file.display());
    let output = Command::new(binary())
        // Quiet, because on a slow machine the tool remarks that searching takes too long.
        .args(["run", "one", "--quiet", "--status-from", "(no such thing)", "--", "sh", "-c", &script])
        .env("SHMLIMIT_DIR", home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert!(output.stdout == bytes && output.stderr == bytes);
}

#[test]
fn the_command_knows_its_limiter_and_where_it_lives() {
    let home = Home::with(&ONE);
    let script = "echo $SHMLIMIT_LIMITER ${SHMLIMIT_ATTEMPT-none} ${SHMLIMIT_RUN-none}";
    assert_eq!(run(&home, &[], script).succeeds(), "one none none\n");
    // The variables of an outer run do not reach the command of an inner one.
    let inner = format!("{} run one -- sh -c '{script}'", binary());
    let free = ["init", "any", "--concurrency", "9"];
    home.tool(&free).succeeds();
    let nested = home.tool(&["run", "any", "--retries", "--", "sh", "-c", &inner]);
    assert_eq!(nested.succeeds(), "one none none\n");
    let elsewhere = home.path().join("else where");
    let output = Command::new(binary())
        .current_dir(home.path())
        .args(["--dir", "else where", "run", "tmdb", "--", "sh", "-c", "cd /; echo \"$SHMLIMIT_DIR\"; "])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), elsewhere.to_str().unwrap());
}

/// A limiter with a breaker that probes, because it was put offline and online again.
fn probing(name: &str) -> Home {
    let home = Home::with(&[name]);
    home.tool(&["force", name, "offline"]).succeeds();
    home.tool(&["force", name, "online"]).succeeds();
    assert_eq!(home.status(name)["state"], "half_open");
    home
}

#[test]
fn r146_only_plain_runs_that_succeed_end_the_probing() {
    for (name, probes, end) in [("tmdb", 5, "normal"), ("tvdb", 2, "closed")] {
        let home = probing(name);
        assert_eq!(home.tool(&["run", name, "--", "false"]).code, 1);
        assert_eq!(home.tool(&["run", name, "--", "sh", "-c", "exit 75"]).code, 75);
        assert_eq!(home.status(name)["counts"]["codes"], json!({}), "the meaning of a failure is unknown");
        for _ in 0..probes {
            assert_eq!(home.status(name)["state"], "half_open");
            home.tool(&["run", name, "--", "true"]).succeeds();
        }
        let status = home.status(name);
        assert_eq!((&status["state"], &status["reason"]), (&json!(end), &json!("probe_ok")));
        home.tool(&["run", name, "--", "true"]).succeeds();
        assert_eq!(
            home.status(name)["counts"]["codes"],
            json!({"200": probes}),
            "the breaker is normal again"
        );
    }
}

#[test]
fn r146_an_outcome_option_or_a_record_inside_replaces_the_default_outcome() {
    let home = probing("tmdb");
    home.tool(&["run", "tmdb", "--exit", "0=none", "--", "true"]).succeeds();
    home.tool(&["run", "tmdb", "--status-from", "no ([0-9]+)", "--", "true"]).succeeds();
    assert_eq!(home.status("tmdb")["counts"]["codes"], json!({}));
    let script = format!("{} record --status 404 --quiet", binary());
    home.tool(&["run", "tmdb", "--", "sh", "-c", &script]).succeeds();
    assert_eq!(home.status("tmdb")["counts"]["codes"], json!({"404": 1}), "not counted twice");
}

#[test]
fn r140_r146_a_run_from_before_the_probing_does_not_count_as_a_probe() {
    let home = Home::with(&["tmdb"]);
    let (mut child, _out, first) =
        home.start(&["run", "tmdb", "--", "sh", "-c", "echo here; read end; exit 0"]);
    assert_eq!(first, "here");
    home.tool(&["force", "tmdb", "half_open"]).succeeds();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let status = home.status("tmdb");
    assert_eq!((&status["state"], &status["samples"]), (&json!("half_open"), &json!(0)), "late");
    assert_eq!(status["counts"]["codes"], json!({"200": 1}), "but counted");
}

/// Moves the start of the first probe into the past; waiting a minute would take one.
#[test]
fn r146_status_and_doctor_warn_of_probes_without_an_answer() {
    let home = probing("tmdb");
    assert_eq!(home.status("tmdb")["warnings"], json!([]));
    assert_eq!(home.tool(&["run", "tmdb", "--", "false"]).code, 1);
    assert_eq!(home.status("tmdb")["warnings"], json!([]), "not yet");
    let path = home.path().join("tmdb.shm");
    let word = layout::health_state_word(HEALTH_AT) + std::mem::offset_of!(Health, unanswered) / 8;
    let first = raw::read_word(&path, word);
    assert!(first > 61 * SECOND, "limiter time of this machine");
    raw::write_word(&path, word, first - 61 * SECOND);
    let warnings = home.status("tmdb")["warnings"].clone();
    assert_eq!(warnings[0]["warning"], "unanswered_probes");
    assert!(warnings[0]["for_ns"].as_u64() >= Some(61 * SECOND), "{warnings}");
    for part in ["run tmdb --exit", "record tmdb --status", "force tmdb normal"] {
        assert!(warnings[0]["advice"].as_str().unwrap().contains(part), "{part} is not in {warnings}");
    }
    let shown = home.tool(&["status", "tmdb"]);
    assert!(shown.succeeds().contains("no call has reported how"), "{}", shown.out);
    let doctor = home.tool(&["doctor", "--json"]);
    assert!(doctor.out.contains("no call has reported how it ended for 1m"), "{}", doctor.out);
    home.tool(&["run", "tmdb", "--", "true"]).succeeds();
    assert_eq!(home.status("tmdb")["warnings"], json!([]), "an outcome ends the warning");
}
