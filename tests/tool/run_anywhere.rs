//! The parts of `shmlimit run` that are the same on every platform.

use crate::cli::commands::{NOTHING, READY, READY_THEN_ALIVE, SAYS_HELLO, run, script, steps};
use crate::cli::{Answer, Home, ONE, binary};
use serde_json::{Value, json};
use std::io::Read;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How often each code was recorded.
fn codes(home: &Home) -> Value {
    let status = home.status("one");
    assert_eq!(status["in_flight"], 0);
    status["counts"]["codes"].clone()
}

/// Runs a line of shell as the command.
fn run_with(home: &Home, options: &[&str], line: &str) -> Answer {
    home.tool(&[&["run", "one"], options, &["--"], &script(line)].concat())
}

/// Checks what one run with these options records.
#[track_caller]
fn records(options: &[&str], line: &str, wanted: Value) -> Answer {
    let home = Home::with(&ONE);
    let answer = run_with(&home, options, line);
    assert_eq!(codes(&home), wanted, "{options:?} {line:?}: {}", answer.err);
    answer
}

#[test]
fn on_a_fresh_machine_the_preset_just_works() {
    let home = Home::new();
    let directory = home.path().join("new");
    let answer =
        home.tool(&[&["--dir", directory.to_str().unwrap(), "run", "tmdb", "--"][..], &SAYS_HELLO].concat());
    assert_eq!(answer.succeeds().trim_end(), "hello");
    let answer = home.tool(&["--dir", directory.to_str().unwrap(), "status", "--json"]);
    let line: serde_json::Value = serde_json::from_str(answer.succeeds()).unwrap();
    assert_eq!(line["concurrency"], 4);
    let rule = &line["rules"][0];
    assert_eq!((&rule["limit"], &rule["capacity"]), (&35.into(), &35.into()));
    assert_eq!(rule["period_ns"], 1_000_000_000_u64);
}

#[test]
fn run_exits_with_the_code_of_the_command() {
    let home = Home::with(&ONE);
    for code in [0, 1, 2, 75, 255] {
        let answer = home.tool(&run("one", script(&format!("exit {code}"))));
        assert_eq!(answer.code, code);
        assert_eq!(answer.err, "");
    }
}

#[test]
fn a_command_that_cannot_be_started_returns_its_permit_and_cost() {
    let home = Home::with(&["few", "--rate", "2/day", "--concurrency", "1"]);
    let bad = home.path().join("script.exe");
    std::fs::write(&bad, "no program").unwrap();
    for _ in 0..3 {
        home.tool(&["run", "few", "--", "no-such-command"]).fails(127, &["no-such-command"]);
        home.tool(&["run", "few", "--", bad.to_str().unwrap()]).fails(126, &["script"]);
    }
    let status = home.status("few");
    assert_eq!(status["rules"][0]["remaining"], 2);
    assert_eq!(status["in_flight"], 0);
}

#[test]
fn r113_a_killed_run_returns_its_permit_and_ends_its_command() {
    let home = Home::with(&ONE);
    let (mut child, mut out, _) = home.start(&run("one", READY_THEN_ALIVE));
    home.tool(&["acquire", "one", "--now"])
        .fails(75, &["one", "1 call is in flight, and no more are allowed at a time"]);
    // Keep the input open, so that only the death of its parent ends the command.
    let stdin = child.stdin.take();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    home.tool(&["acquire", "one", "--timeout", "60s"]).succeeds();
    let (send, said) = channel();
    let reader = std::thread::spawn(move || {
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let _ = send.send(rest);
    });
    let rest = said.recv_timeout(Duration::from_secs(30));
    drop(stdin);
    reader.join().unwrap();
    assert_eq!(rest.as_deref(), Ok(""), "the command is still running");
}

#[test]
fn r145_a_refusal_by_the_background_bound_does_not_say_that_all_permits_are_taken() {
    let home = Home::new();
    let file = home.path().join("api.toml");
    std::fs::write(&file, "concurrency = 4\nconcurrency_background = 1\n").unwrap();
    home.tool(&["init", "api", "--config", file.to_str().unwrap()]).succeeds();
    let (mut holder, _out, _) = home.start(&run("api", READY));
    home.tool(&["acquire", "api", "--now"])
        .fails(75, &["as many calls are in flight as allowed", "at most 1 of them background"]);
    home.tool(&["acquire", "api", "--now", "--priority", "user"]).succeeds();
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_timeout_that_cannot_be_met_is_refused_and_nothing_runs() {
    let home = Home::with(&["slow", "--rate", "1/day"]);
    home.tool(&run("slow", NOTHING)).succeeds();
    let refused = home.tool(&[&["run", "slow", "--timeout", "5s", "--"][..], &NOTHING].concat());
    refused.fails(75, &["slow", "refused", "rule sliding_log", "try again in 2"]);
}

/// Checks a lower bound, which holds on a busy machine, too.
#[test]
fn r25_calls_through_a_leaky_bucket_are_evenly_spaced() {
    let gap = Duration::from_millis(200);
    for verb in [run("even", NOTHING), vec!["acquire", "even"]] {
        let home = Home::with(&["even", "--rate", "5/s", "--burst", "5", "--algorithm", "leaky_bucket"]);
        let began = std::time::Instant::now();
        for _ in 0..3 {
            home.tool(&verb).succeeds();
        }
        assert!(began.elapsed() >= 2 * gap, "{verb:?}: {:?}", began.elapsed());
    }
    let home = Home::with(&["even", "--rate", "5/h", "--burst", "5", "--algorithm", "leaky_bucket"]);
    home.tool(&["acquire", "even", "--now"]).succeeds();
    let answer = home.tool(&["acquire", "even", "--now", "--json"]);
    let line: serde_json::Value = serde_json::from_str(answer.succeeds()).unwrap();
    assert!(line["delay_ns"].as_u64().unwrap() > 600_000_000_000, "{line}: --now does not wait");
}

#[test]
fn without_an_option_no_outcome_is_recorded_and_no_message_printed() {
    for code in [0, 1, 6, 7, 22, 28, 75, 255] {
        let answer = records(&[], &format!("exit {code}"), json!({}));
        assert_eq!((answer.code, answer.err.as_str()), (code, ""));
    }
}

#[test]
fn an_exit_code_is_recorded_as_its_mapped_outcome() {
    let map = ["--exit", "3=503", "--exit", "4=dns,5=none", "--exit", "6=404"];
    for (code, wanted) in [
        (0, json!({"200": 1})),
        (1, json!({})),
        (3, json!({"503": 1})),
        (4, json!({"dns": 1})),
        (5, json!({})),
        (6, json!({"404": 1})),
        (75, json!({"429": 1})),
    ] {
        assert_eq!(records(&map, &format!("exit {code}"), wanted).code, code);
    }
    records(&["--exit", "0=none"], "exit 0", json!({}));
    records(&["--exit", "75=none"], "exit 75", json!({}));
    records(&["--exit", "2=ok", "--exit", "2=500"], "exit 2", json!({"500": 1}));
}

#[test]
fn an_invalid_map_is_refused_before_the_command_runs() {
    let home = Home::with(&ONE);
    for wrong in ["22", "22=fine", "256=ok", "wgot"] {
        run_with(&home, &["--exit", wrong], "echo ran").fails(2, &["--exit"]);
    }
    run_with(&home, &["--status-from", "no group"], "echo ran").fails(2, &["group"]);
    run_with(&home, &["--status-from", "(open"], "echo ran").fails(2, &["--status-from"]);
    // Descriptor 2 is not allowed; Windows has no descriptors at all.
    run_with(&home, &["--status-fd", "2"], "echo ran").fails(2, &["--status-fd"]);
    run_with(&home, &["--status-in", "stdout"], "echo ran").fails(2, &["--status-from"]);
    assert_eq!(home.status("one")["counts"]["granted"], 0);
}

/// `record` finds the `run` around it, also through a process in between.
#[test]
fn a_record_inside_the_command_is_not_counted_twice() {
    let home = Home::with(&ONE);
    let arguments = ["run", "one", "--retries", "0", "--", binary(), "record", "--status", "404", "-q"];
    for _ in 0..2 {
        // The command's exit code is 0, which would be recorded as 200.
        home.tool(&arguments).succeeds();
    }
    assert_eq!(codes(&home), json!({"404": 2}));
}

#[test]
fn a_pattern_finds_the_status_in_each_stream_and_passes_it_on() {
    let home = Home::with(&ONE);
    let pattern = ["--status-from", "HTTP/[0-9.]+ ([0-9]+)"];
    let answer = run_with(&home, &pattern, "echo HTTP/1.1 503 no");
    assert_eq!(answer.succeeds().trim_end(), "HTTP/1.1 503 no");
    let answer =
        run_with(&home, &["--status-from", "HTTP/1 ([0-9]+)", "--status-in", "stderr"], "echo HTTP/1 429>&2");
    assert_eq!((answer.succeeds(), answer.err.trim_end()), ("", "HTTP/1 429"));
    assert_eq!(codes(&home), json!({"429": 1, "503": 1}));
}

/// More bytes than any pipe holds.
#[test]
fn a_megabyte_passes_unchanged_through_a_watched_stream() {
    let home = Home::with(&ONE);
    let file = home.path().join("long");
    let line = "0123456789abcdef".repeat(64) + "\n";
    std::fs::write(&file, line.repeat(1000)).unwrap();
    let show = if cfg!(windows) { "type" } else { "cat" };
    let words = format!("{show} {}", file.display());
    let answer = run_with(&home, &["--status-from", "status ([0-9]+)"], &words);
    assert!(answer.succeeds() == line.repeat(1000), "{} bytes", answer.out.len());
}

#[test]
fn r116_cache_answers_are_counted_without_a_status() {
    let home = Home::with(&ONE);
    assert_eq!(home.tool(&["record", "one", "--cache", "hit"]).succeeds(), "one: cache hit counted\n");
    assert_eq!(home.tool(&["record", "one", "--cache", "miss", "--quiet"]).succeeds(), "");
    let hit = home.tool(&["record", "one", "--cache", "hit", "--json"]);
    let hit: Value = serde_json::from_str(hit.succeeds()).unwrap();
    assert_eq!(hit, json!({"name": "one", "cache": "hit"}));
    let both = home.tool(&["record", "one", "--cache", "miss", "--status", "200", "--json"]);
    let both: Value = serde_json::from_str(both.succeeds()).unwrap();
    assert_eq!((&both["cache"], &both["outcome_class"]), (&json!("miss"), &json!("ok")));
    let counts = &home.status("one")["counts"];
    assert_eq!((&counts["cache_hits"], &counts["cache_misses"]), (&json!(2), &json!(2)));
    assert_eq!(counts["codes"], json!({"200": 1}));
}

#[test]
fn a_record_without_a_name_is_refused_and_names_the_variable() {
    let home = Home::new();
    home.tool(&["record", "--status", "200"]).fails(2, &["name the limiter", "$SHMLIMIT_LIMITER"]);
    home.tool(&["record", "tmdb"]).fails(2, &["say how the call ended"]);
}

#[test]
fn quiet_prints_no_message_of_the_tool_and_keeps_the_exit_codes() {
    let home = Home::with(&["slow", "--rate", "1/day"]);
    home.tool(&["acquire", "slow"]).succeeds();
    let said = |options: &[&str], command: &[&str]| {
        let answer = home.tool(&[&["run"], options, &["--"], command].concat());
        (answer.code, answer.err)
    };
    assert_eq!(said(&["slow", "--quiet", "--timeout", "1s"], &NOTHING), (75, String::new()));
    assert_eq!(said(&["slwo", "-q"], &NOTHING), (2, String::new()));
    home.tool(&["init", "one", "--concurrency", "1"]).succeeds();
    assert_eq!(said(&["one", "-q"], &["no-such-command"]), (127, String::new()));
    let answer = run_with(&home, &["-q"], &steps(&[">&2 echo mine", "exit 3"]));
    assert_eq!((answer.code, answer.err.trim_end()), (3, "mine"));
}

#[test]
fn watched_output_is_passed_on_at_once() {
    let home = Home::with(&ONE);
    // The test reads the first line while the command waits for its input.
    let (mut child, _out, ready) =
        home.start(&[&["run", "one", "--status-from", "(x)", "--"][..], &READY].concat());
    assert_eq!(ready, "ready");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn an_outcome_recorded_by_the_command_does_not_count_twice() {
    let home = Home::with(&ONE);
    let record = |what: &str| steps(&[&format!("{} record {what} -q", binary()), "exit 75"]);
    let descriptor: &[&str] = if cfg!(unix) { &["--status-fd", "3"] } else { &["--retries", "0"] };
    for options in [&["--exit", "75=503"][..], &["--status-from", "(x)"], descriptor] {
        assert_eq!(run_with(&home, options, &record("--status 500")).code, 75);
    }
    // A plain run records nothing else.
    assert_eq!(run_with(&home, &[], &record("--status 500")).code, 75);
    assert_eq!(codes(&home), json!({"500": 4}));
    // A record for another limiter says nothing about this call.
    home.tool(&["init", "two", "--concurrency", "1"]).succeeds();
    run_with(&home, &["--exit", "75=503"], &record("two --status 500"));
    assert_eq!(codes(&home), json!({"500": 4, "503": 1}));
    // A cache hit is not an outcome.
    run_with(&home, &["--exit", "75=404"], &record("--cache hit"));
    assert_eq!(codes(&home), json!({"500": 4, "503": 1, "404": 1}));
}

#[test]
fn a_refusal_has_the_requested_exit_code() {
    let home = Home::with(&["one", "--rate", "1/day"]);
    home.tool(&["acquire", "one", "-E", "99"]).succeeds();
    let run = |code: &str| {
        home.tool(
            &[&["run", "one", "--timeout", "1ms", "--conflict-exit-code", code, "--"], &NOTHING[..]].concat(),
        )
    };
    for (code, number) in [("0", 0), ("1", 1), ("99", 99), ("255", 255)] {
        assert_eq!(home.tool(&["acquire", "one", "--now", "-E", code]).code, number);
        assert_eq!(home.tool(&["acquire", "one", "--now", "--json", "-E", code]).code, number);
        let refused = run(code);
        assert_eq!(refused.code, number);
        assert!(refused.err.contains("one: refused: "), "{}", refused.err);
    }
    assert_eq!(run("75").code, 75);
    for wrong in ["256", "-1", "x", ""] {
        home.tool(&["acquire", "one", "-E", wrong]).fails(2, &["--conflict-exit-code"]);
    }
    home.tool(&["acquire", "one", "--cost", "5", "-E", "99"]).fails(2, &["ever allows"]);
}
