//! `acquire`, `status` and features that all verbs share.

use crate::cli::commands::{READY, SHELL, run};
use crate::cli::{Home, binary};
use std::process::{Command, Stdio};

#[test]
fn acquire_charges_the_budget_and_holds_no_permit() {
    let home = Home::with(&["two", "--rate", "2/day", "--concurrency", "1"]);
    assert_eq!(home.tool(&["acquire", "two"]).succeeds(), "");
    assert_eq!(home.tool(&["acquire", "two", "--now"]).succeeds(), "");
    home.tool(&["acquire", "two", "--now"]).fails(75, &["two: refused", "sliding_log", "try again in"]);
    home.tool(&["acquire", "two", "--timeout", "0s"]).fails(75, &["refused"]);
    let status = home.status("two");
    assert_eq!((&status["in_flight"], &status["rules"][0]["remaining"]), (&0.into(), &0.into()));
}

#[test]
fn r128_costs_are_counted_by_unit() {
    let home = Home::new();
    let file = home.path().join("llm.toml");
    std::fs::write(
        &file,
        r#"
        [[rules]]
        algorithm = "token_bucket"
        limit = 10
        period = "1d"
        [[rules]]
        name = "tpd"
        algorithm = "gcra"
        unit = "tokens"
        limit = 1000
        period = "1d"
        "#,
    )
    .unwrap();
    home.tool(&["init", "llm", "--config", file.to_str().unwrap()]).succeeds();
    home.tool(&["acquire", "llm", "--cost", "tokens=900", "--cost", "2"]).succeeds();
    let status = home.status("llm");
    assert_eq!(status["rules"][0]["remaining"], 8);
    assert_eq!(status["rules"][1]["remaining"], 100);
    home.tool(&["acquire", "llm", "--cost", "tokens=900", "--now"]).fails(75, &["rule tpd"]);
    home.tool(&["acquire", "llm", "--cost", "tokens=1001"]).fails(2, &["rule tpd", "ever allows", "1000"]);
    home.tool(&["acquire", "llm", "--cost", "weight=1"]).fails(2, &["weight", "requests, tokens"]);
}

#[test]
fn r107_the_reserve_is_for_high_priority() {
    let home = Home::new();
    let file = home.path().join("reserve.toml");
    let text = "[[rules]]\nalgorithm = 'token_bucket'\nlimit = 2\nperiod = '1d'\nreserve = 1\n";
    std::fs::write(&file, text).unwrap();
    home.tool(&["init", "kept", "--config", file.to_str().unwrap()]).succeeds();
    home.tool(&["acquire", "kept", "--now"]).succeeds();
    home.tool(&["acquire", "kept", "--now"]).fails(75, &["refused"]);
    home.tool(&["acquire", "kept", "--now", "--priority", "user"]).succeeds();
}

#[test]
fn status_without_limiters_gives_a_hint_and_creates_nothing() {
    let home = Home::new();
    let directory = home.path().join("not-yet");
    for arguments in
        [&["--dir", directory.to_str().unwrap()][..], &["--dir", directory.to_str().unwrap(), "status"]]
    {
        let answer = home.tool(arguments);
        assert!(answer.succeeds().contains("shmlimit run tmdb"), "{}", answer.out);
    }
    assert_eq!(home.tool(&["--dir", directory.to_str().unwrap(), "status", "--json"]).succeeds(), "");
    home.tool(&["--dir", directory.to_str().unwrap(), "status", "tmdb"]).fails(2, &["tmdb"]);
    assert!(!directory.exists());
}

#[test]
fn status_shows_rules_permits_and_participants() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "3"]);
    let (mut child, _out, _) = home.start(&run("web", READY));
    let screen = home.tool(&["status", "web"]);
    let screen = screen.succeeds();
    for part in [
        "web",
        "sliding_log",
        "9 of 10 requests left",
        "10 per 1d",
        "1 of 3",
        "PID",
        &format!(" {SHELL} "),
        "██",
    ] {
        assert!(screen.contains(part), "{part:?} is not in: {screen}");
    }
    assert!(screen.contains(&child.id().to_string()) && screen.contains(home.path().to_str().unwrap()));
    assert!(!screen.contains('\x1b'), "colours are for terminals");
    assert!(!screen.lines().any(|line| line.contains("shmlimit")), "the observer is not listed");
    let bare = home.tool(&[]);
    assert!(bare.succeeds().contains("9 of 10 requests left"));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!home.tool(&["status"]).succeeds().contains("PID"), "no process is attached any more");
}

#[test]
fn permits_of_exited_processes_do_not_look_lost() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "1"]);
    let (mut child, _out, _) = home.start(&run("web", READY));
    assert_eq!(home.status("web")["held_by_exited"], 0);
    assert!(!home.tool(&["status", "web"]).succeeds().contains("dead"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(home.status("web")["held_by_exited"], 1);
    assert!(
        home.tool(&["status", "web"])
            .succeeds()
            .contains("(1 held by exited processes, free for the next call)")
    );
    home.tool(&["acquire", "web", "--now"]).succeeds();
    assert_eq!(home.status("web")["held_by_exited"], 0);
}

#[test]
fn the_keys_of_json_are_stable_and_documented() {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "3"]);
    home.tool(&["init", "api", "--rate", "5000/h", "--algorithm", "gcra"]).succeeds();
    let (mut child, _out, _) = home.start(&run("web", READY));
    let answer = home.tool(&["status", "--json"]);
    let lines: Vec<serde_json::Value> =
        answer.succeeds().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["api", "web"]);
    let document = include_str!("../../docs/status-json.md");
    let keys =
        |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let web = &lines[1];
    let expected = [
        (
            web,
            "background_share concurrency concurrency_background concurrency_now consec429 counts directory error_ratio eta_ns failures fairness gate held_by_exited in_flight in_flight_background name next_change offline outcomes pace participants paused provider queue rate reason resets rules samples state state_for_ns transitions warnings",
        ),
        (&web["outcomes"], "429 5xx ignored net ok"),
        (&web["counts"], "cache_hits cache_misses codes granted looked refused"),
        (
            &web["rules"][0],
            "algorithm capacity full_in_ns limit name next_in_ns period_ns remaining remaining_background reserve unit",
        ),
        (&web["next_change"], "in_ns rule what"),
        (&web["participants"][0], "attached_for_ns granted held held_for_ns looked pid program refused"),
    ];
    for (object, wanted) in expected {
        assert_eq!(keys(object).join(" "), wanted);
        for key in keys(object) {
            assert!(document.contains(&format!("`{key}`")), "{key} is not documented");
        }
    }
    assert_eq!(web["participants"][0]["pid"], child.id());
    assert_eq!(web["participants"][0]["held"], 1);
    assert_eq!(lines[0]["concurrency"], serde_json::Value::Null);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_closed_pipe_is_success() {
    let home = Home::with(&["web", "--rate", "10/day"]);
    for arguments in [&["status"][..], &["status", "--json"], &["init", "web"], &["--help"], &["--version"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(binary())
            .args(arguments)
            .env("SHMLIMIT_DIR", home.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[cfg(unix)] // needs a device that is always full
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let home = Home::with(&["web", "--rate", "10/day"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        Command::new(binary()).arg("status").env("SHMLIMIT_DIR", home.path()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_version_and_the_exit_codes_are_shown() {
    let home = Home::new();
    assert_eq!(home.tool(&["--version"]).succeeds(), format!("shmlimit {}\n", env!("CARGO_PKG_VERSION")));
    assert!(home.tool(&["--help"]).succeeds().contains("75 refused for now"));
}
