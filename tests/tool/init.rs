//! `shmlimit init` creates a limiter; repeating it is harmless.

use crate::cli;
use crate::cli::Home;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn repeating_init_succeeds_and_changes_nothing() {
    let home = Home::with(&["api", "--rate", "40/10s", "--burst", "5", "--concurrency", "2"]);
    home.tool(&["acquire", "api"]).succeeds();
    let again = home.tool(&["init", "api", "--rate", "40/10s", "--burst", "5", "--concurrency", "2"]);
    assert!(again.succeeds().contains("already exists"));
    assert!(home.tool(&["init", "api"]).succeeds().contains("already exists"));
    let status = home.status("api");
    let rule = &status["rules"][0];
    assert_eq!((&rule["limit"], &rule["capacity"]), (&40.into(), &5.into()));
    assert_eq!((&rule["period_ns"], &status["concurrency"]), (&10_000_000_000_u64.into(), &2.into()));
}

#[test]
fn r144_other_settings_are_refused_and_both_are_shown() {
    let home = Home::with(&["api", "--rate", "40/10s"]);
    let refused = home.tool(&["init", "api", "--rate", "50/10s"]);
    refused.fails(
        2,
        &[
            "rules.0.limit: now 40, given 50",
            "init api --rate 50/10s --update",
            "init api --rate 50/10s --replace",
        ],
    );
    assert_eq!(home.status("api")["rules"][0]["limit"], 40);
    home.tool(&["init", "api", "--rate", "50/10s", "--replace"]).succeeds();
    assert_eq!(home.status("api")["rules"][0]["limit"], 50);
}

#[test]
fn r147_the_answer_names_the_algorithm_and_the_most_calls_of_any_period() {
    let home = Home::new();
    for (flags, answer) in [
        (&["--rate", "1000/day"][..], "at most 1000 in any day (sliding_log)"),
        (&["--rate", "20/s", "--concurrency", "2"], "at most 20 in any second (sliding_log); 2 in flight"),
        (
            &["--rate", "1000/day", "--burst", "20"],
            "at most 1020 in any day (token_bucket: 1000/day and a burst of 20)",
        ),
        (&["--rate", "1M/10s"], "at most 1000000 in any 10s (token_bucket: 990000/10s and a burst of 10000)"),
        (
            &["--rate", "9/min", "--algorithm", "fixed_window"],
            "at most 18 in any minute (fixed_window: 9 in each of the UTC clock)",
        ),
    ] {
        let made = home.tool(&[&["init", "api", "--replace"], flags].concat());
        assert!(made.succeeds().trim_end().ends_with(answer), "{}", made.out);
    }
}

#[test]
fn r147_a_rate_alone_grants_its_limit_and_no_more() {
    for flags in [&["--rate", "3/day"][..], &["--rate", "3/day", "--burst", "2"]] {
        let home = Home::with(&[&["api"], flags].concat());
        let granted = (0..9).filter(|_| home.tool(&["acquire", "api", "--now"]).code == 0).count();
        assert_eq!(granted, if flags.len() == 2 { 3 } else { 2 }, "{flags:?}");
        // The bucket has a token again after a third of a day; the log has no room before the day is over.
        let next = home.status("api")["rules"][0]["next_in_ns"].as_u64().unwrap();
        assert_eq!(next > 80_000_000_000_000, flags.len() == 2, "{flags:?}: {next}");
    }
}

#[test]
fn r144_an_update_keeps_the_counts_of_the_rules() {
    let home = Home::with(&["api", "--rate", "10/day", "--concurrency", "2"]);
    home.tool(&["acquire", "api", "--cost", "4"]).succeeds();
    let updated = home.tool(&["init", "api", "--rate", "30/day", "--update"]);
    assert!(updated.succeeds().contains("api: updated in"), "{}", updated.out);
    let status = home.status("api");
    assert_eq!((&status["rules"][0]["remaining"], &status["concurrency"]), (&26.into(), &2.into()));
    assert!(
        home.tool(&["init", "api", "--rate", "30/day", "--update"]).succeeds().contains("already exists")
    );
    assert!(home.tool(&["init", "new", "--rate", "3/s", "--update"]).succeeds().contains("new: created in"));
    home.tool(&["init", "api", "--update", "--replace"]).fails(2, &["--update", "--replace"]);
    // Starts afresh with the present settings.
    assert!(home.tool(&["init", "api", "--replace"]).succeeds().contains("at most 30 in any day"));
    assert_eq!(home.status("api")["rules"][0]["remaining"], 30);
}

#[test]
fn r110_a_limit_can_be_set_by_name_and_by_rate_and_holds_at_once() {
    let home = Home::with(&["api", "--rate", "1000/day", "--burst", "1000"]);
    let set = home.tool(&["set", "api", "rules.token_bucket.limit", "100"]);
    assert_eq!(set.succeeds(), "api: rules.0.burst = 100 (was 1000), rules.0.limit = 100 (was 1000)\n");
    home.tool(&["acquire", "api", "--cost", "101", "--now"])
        .fails(2, &["never allows more than 100 at once"]);
    assert_eq!(home.status("api")["rules"][0]["remaining"], 100);
    home.tool(&["init", "log", "--rate", "1000/day"]).succeeds();
    home.tool(&["acquire", "log", "--cost", "500"]).succeeds();
    home.tool(&["set", "log", "rate", "4096/day"]).succeeds();
    assert_eq!(home.status("log")["rules"][0]["remaining"], 3596, "the log is kept");
    home.tool(&["set", "log", "rate", "300/day"]).succeeds();
    assert_eq!(home.status("log")["rules"][0]["remaining"], 0);
    home.tool(&["set", "log", "rate", "4097/day"]).fails(2, &["room for a limit of 4096", "--replace"]);
    let longer = home.tool(&["set", "log", "rate", "300/w"]);
    assert!(
        longer.succeeds().contains("period = 7d") && longer.err.contains("so it starts used up"),
        "{}",
        longer.err
    );
    home.tool(&["set", "tvdb", "rate", "5/s"]).fails(2, &["rules.rps.limit, rules.window.limit"]);
}

#[test]
fn r143_fairness_is_a_setting_like_any_other() {
    let home = Home::new();
    let made =
        home.tool(&["init", "api", "--rate", "9/s", "--fairness", "fifo", "--background-share", "0.1"]);
    assert!(made.succeeds().contains("first come, first served; 0.1 for the background"), "{}", made.out);
    assert!(!home.tool(&["init", "usual", "--rate", "9/s"]).succeeds().contains("first"));
    home.tool(&["init", "api", "--rate", "9/s", "--background-share", "0.100001"])
        .fails(2, &["background_share: now 0.1, given 0.100001"]);
    let status = home.status("api");
    assert_eq!((&status["fairness"], &status["background_share"]), (&"fifo".into(), &0.1.into()));
    for (flag, value, wanted) in [
        ("--fairness", "lifo", "process or fifo"),
        ("--background-share", "1.5", "from 0 to 1"),
        ("--background-share", "-1", "from 0 to 1"),
        ("--background-share", "0.1234567", "6 digits"),
    ] {
        home.tool(&["init", "bad", "--rate", "9/s", flag, value]).fails(2, &[flag, value, wanted]);
    }
    home.tool(&["run", "api", "--group", "", "--", "true"]).fails(2, &["--group", "empty"]);
}

#[test]
fn r104_flags_override_the_preset_of_the_same_name() {
    let home = Home::with(&["tmdb", "--concurrency", "8"]);
    let status = home.status("tmdb");
    assert_eq!((&status["concurrency"], &status["rules"][0]["limit"]), (&8.into(), &35.into()));
    home.tool(&["init", "tmdb", "--rate", "20/s", "--replace"]).succeeds();
    let status = home.status("tmdb");
    let rule = &status["rules"][0];
    assert_eq!((&rule["limit"], &rule["capacity"], &rule["name"]), (&20.into(), &20.into(), &"rps".into()));
    assert_eq!(status["concurrency"], 4);
}

#[test]
fn r111_flags_override_a_file() {
    let home = Home::new();
    let file = home.path().join("api.toml");
    std::fs::write(&file, "concurrency = 3\n[[rules]]\nalgorithm = 'gcra'\nlimit = 4\nperiod = 8\n").unwrap();
    home.tool(&["init", "api", "--config", file.to_str().unwrap(), "--concurrency", "5"]).succeeds();
    let status = home.status("api");
    assert_eq!((&status["concurrency"], &status["rules"][0]["algorithm"]), (&5.into(), &"gcra".into()));
}

#[test]
fn every_sample_file_creates_a_limiter() {
    let samples = std::path::Path::new(cli::ROOT).join("examples");
    let mut count = 0;
    for entry in std::fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            Home::new().tool(&["init", "sample", "--config", path.to_str().unwrap()]).succeeds();
            count += 1;
        }
    }
    assert!(count >= 3);
}

#[cfg(unix)] // Windows has no in-memory file system
#[test]
fn a_daily_rule_in_memory_causes_a_warning() {
    if !std::path::Path::new("/dev/shm").is_dir() {
        return;
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let home = Home::new();
    let directory = directory.path().to_str().unwrap();
    let daily = home.tool(&["--dir", directory, "init", "omdb", "--rate", "1000/day"]);
    assert!(daily.err.contains("warning") && daily.err.contains(directory), "{}", daily.err);
    assert_eq!(daily.code, 0);
    assert_eq!(home.tool(&["--dir", directory, "init", "fast", "--rate", "10/s"]).err, "");
}

#[test]
fn p4_a_file_that_is_not_a_segment_is_not_replaced() {
    let home = Home::new();
    for content in [b"not a limiter".to_vec(), vec![7; 73_728]] {
        std::fs::write(home.path().join("video.shm"), &content).unwrap();
        cli::make_private(&home.path().join("video.shm"));
        home.tool(&["init", "video", "--rate", "1/s", "--replace"])
            .fails(1, &["was not changed", "move it away"]);
        assert_eq!(std::fs::read(home.path().join("video.shm")).unwrap(), content);
    }
}

#[test]
fn p4_a_segment_of_another_version_is_replaced_on_demand() {
    let home = Home::with(&["x", "--rate", "1/s"]);
    let path = home.path().join("x.shm");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[12] = 9;
    std::fs::write(&path, &bytes).unwrap();
    home.tool(&["init", "x", "--rate", "1/s"]).fails(1, &["layout version 9", "rm x --force"]);
    bytes.truncate(4096);
    std::fs::write(&path, &bytes).unwrap();
    home.tool(&["init", "x", "--rate", "1/s"]).fails(1, &["4096 bytes", "rm x --force"]);
    home.tool(&["init", "x", "--rate", "1/s", "--replace"]).succeeds();
}

#[test]
fn a_limiter_that_limits_nothing_causes_a_warning() {
    let home = Home::new();
    let file = home.path().join("empty.toml");
    std::fs::write(&file, "provider = 'web'\n").unwrap();
    let empty = home.tool(&["init", "web", "--config", file.to_str().unwrap()]);
    assert!(empty.err.contains("warning: web limits nothing") && empty.code == 0, "{}", empty.err);
    assert_eq!(home.tool(&["init", "few", "--concurrency", "2"]).err, "");
}

#[cfg(unix)] // modes; the library tests access control lists
#[test]
fn files_are_private_unless_shared_with_a_group() {
    let home = Home::with(&["mine", "--rate", "1/s"]);
    let mode = |name: &str| std::fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("mine.shm"), mode(".")), (0o600, 0o700));
    let group = std::fs::metadata(home.path()).unwrap().gid().to_string();
    // An existing limiter is not shared without an explicit request.
    home.tool(&["init", "mine", "--shared-with", &group]).fails(2, &["--replace"]);
    assert_eq!((mode("mine.shm"), mode(".")), (0o600, 0o700));
    home.tool(&["init", "ours", "--rate", "1/s", "--shared-with", &group]).succeeds();
    assert_eq!((mode("ours.shm"), mode(".")), (0o660, 0o2770));
    home.tool(&["init", "ours", "--shared-with", &group]).succeeds();
    home.tool(&["init", "other", "--rate", "1/s", "--shared-with", "no-such-group"])
        .fails(2, &["no-such-group"]);
}

/// A replacement that fails for lack of space must fail before anything has happened to the existing limiter.
#[cfg(unix)] // needs mounts
#[test]
fn a_replacement_that_does_not_fit_the_disk_leaves_the_limiter_alone() {
    let home = Home::new();
    let script = r#"
        mount -t tmpfs -o size=80k,mode=700 none "$SHMLIMIT_DIR" || exit 99
        "$0" init x --rate 1/day || exit 98
        "$0" acquire x || exit 97
        "$0" init x --rate 1/day --replace
        echo "replaced: $?"
        "$0" acquire x --now
        echo "more: $?"
    "#;
    let run = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, cli::binary()])
        .env("SHMLIMIT_DIR", home.path())
        .output();
    let Some(output) = run.ok().filter(|output| output.status.success()) else {
        eprintln!("not tested: mounting a small tmpfs is not permitted here");
        return;
    };
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains("replaced: 1") && err.contains("free some space"), "{out}{err}");
    assert!(out.contains("more: 75"), "the budget of the day is spent, whatever was tried: {out}{err}");
}
