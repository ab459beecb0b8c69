//! `shmlimit init --update` changes only what is named (R144).

use crate::cli::Home;
use serde_json::{Value, json};

fn answer(home: &Home, arguments: &[&str]) -> Value {
    serde_json::from_str(home.tool(arguments).succeeds()).unwrap()
}

#[test]
fn r144_an_update_by_flags_keeps_the_settings_they_do_not_name() {
    let home = Home::with(&["x", "--rate", "5/h", "--concurrency", "2", "--fairness", "fifo"]);
    home.tool(&["acquire", "x", "--cost", "2"]).succeeds();
    let updated = home.tool(&["init", "x", "--concurrency", "3", "--update"]);
    assert!(
        updated.succeeds().contains(": concurrency = 3 (was 2); now at most 5 in any hour"),
        "{}",
        updated.out
    );
    let status = home.status("x");
    assert_eq!((&status["concurrency"], &status["fairness"]), (&json!(3), &json!("fifo")));
    assert_eq!((&status["rules"][0]["limit"], &status["rules"][0]["remaining"]), (&json!(5), &json!(3)));
    let updated = home.tool(&["init", "x", "--rate", "9/h", "--update"]);
    assert!(updated.succeeds().contains(": rules.0.limit = 9 (was 5); now"), "{}", updated.out);
    let status = home.status("x");
    assert_eq!((&status["concurrency"], &status["rules"][0]["remaining"]), (&json!(3), &json!(7)));
}

/// An update sets the rate and keeps the algorithm that the limiter has, like `set NAME rate`.
#[test]
fn r144_an_update_of_the_rate_keeps_algorithm_and_burst() {
    let home = Home::with(&["x", "--rate", "100/m", "--burst", "7"]);
    home.tool(&["init", "x", "--rate", "50/m", "--update"]).succeeds();
    let rule = &home.status("x")["rules"][0];
    assert_eq!(
        (&rule["algorithm"], &rule["limit"], &rule["capacity"]),
        (&json!("token_bucket"), &json!(50), &json!(7))
    );
    home.tool(&["init", "x", "--burst", "9", "--update"]).succeeds();
    assert_eq!(home.status("x")["rules"][0]["capacity"], 9);
    let by_flag = answer(&home, &["init", "x", "--rate", "20/s", "--update", "--json"])["settings"].clone();
    home.tool(&["set", "x", "rate", "50/m"]).succeeds();
    home.tool(&["set", "x", "rate", "20/s"]).succeeds();
    assert_eq!(by_flag, answer(&home, &["init", "x", "--json"])["settings"]);
}

#[test]
fn r144_an_update_of_a_presets_limiter_keeps_later_settings() {
    let home = Home::with(&["tmdb"]);
    home.tool(&["set", "tmdb", "rate", "20/s"]).succeeds();
    home.tool(&["init", "tmdb", "--concurrency", "8", "--update"]).succeeds();
    let status = home.status("tmdb");
    assert_eq!((&status["concurrency"], &status["rules"][0]["limit"]), (&json!(8), &json!(20)));
    // Without flags the preset's settings apply.
    let back = home.tool(&["init", "tmdb", "--update"]);
    assert!(back.succeeds().contains("concurrency = 4 (was 8)"), "{}", back.out);
    assert_eq!(home.status("tmdb")["rules"][0]["limit"], 35);
    home.tool(&["init", "tvdb"]).succeeds();
    home.tool(&["init", "tvdb", "--rate", "5/s", "--update"])
        .fails(2, &["rules.rps.limit, rules.window.limit"]);
}

#[test]
fn r144_a_file_sets_every_setting_and_the_answer_lists_the_changes() {
    let home = Home::with(&["x", "--rate", "5/h", "--concurrency", "2"]);
    let file = home.path().join("x.toml");
    std::fs::write(
        &file,
        "[[rules]]\nname = 'sliding_log'\nalgorithm = 'sliding_log'\nlimit = 6\nperiod = '1h'\n",
    )
    .unwrap();
    let updated = answer(&home, &["init", "x", "--config", file.to_str().unwrap(), "--update", "--json"]);
    assert_eq!(updated["result"], "updated");
    assert_eq!(
        updated["changes"],
        json!([
            { "key": "concurrency", "was": "2", "is": "unlimited" },
            { "key": "rules.0.limit", "was": "5", "is": "6" },
        ])
    );
    let again = answer(&home, &["init", "x", "--config", file.to_str().unwrap(), "--update", "--json"]);
    assert_eq!((&again["result"], &again["changes"]), (&json!("unchanged"), &json!([])));
}

#[test]
fn r144_an_update_gives_a_limiter_without_rules_its_first_rule_or_names_the_obstacle() {
    let home = Home::with(&["x", "--concurrency", "2"]);
    home.tool(&["init", "x", "--burst", "3", "--update"]).fails(2, &["--burst", "--rate as well"]);
    assert_eq!(home.status("x")["concurrency"], 2);
    let log = Home::with(&["x", "--rate", "5/h"]);
    log.tool(&["init", "x", "--burst", "3", "--update"]).fails(2, &["burst"]);
    assert_eq!(log.status("x")["rules"][0]["limit"], 5);
}

#[test]
fn r144_init_with_flags_compares_only_what_they_name() {
    let home = Home::with(&["x", "--rate", "5/h", "--concurrency", "2"]);
    for same in [&["--rate", "5/h"][..], &["--concurrency", "2"], &["--concurrency", "2", "--rate", "5/h"]] {
        let again = home.tool(&[&["init", "x"], same].concat());
        assert!(again.succeeds().contains("already exists"), "{}", again.out);
    }
    home.tool(&["init", "x", "--rate", "6/h"]).fails(2, &["rules.0.limit: now 5, given 6", "--update"]);
    home.tool(&["init", "x", "--rate", "6/h", "--update"]).succeeds();
    assert!(home.tool(&["init", "x", "--rate", "6/h"]).succeeds().contains("already exists"));
    assert_eq!(home.status("x")["concurrency"], 2);
}

#[test]
fn r144_no_flag_changes_the_algorithm_of_a_limiter_in_use() {
    let home = Home::with(&["x", "--rate", "1000/day"]);
    home.tool(&["acquire", "x"]).succeeds();
    home.tool(&["init", "x", "--algorithm", "fixed_window", "--update"])
        .fails(2, &["--algorithm: cannot be changed in a limiter that is in use", "--replace"]);
    assert_eq!(home.status("x")["rules"][0]["remaining"], 999);
    home.tool(&["init", "x", "--algorithm", "sliding_log", "--update"]).succeeds();
}

#[test]
fn r110_an_update_to_another_algorithm_names_its_cost() {
    let home = Home::with(&["x", "--rate", "1000/day"]);
    let file = home.path().join("x.toml");
    let rule = "[[rules]]\nname = 'sliding_log'\nalgorithm = 'fixed_window'\nlimit = 1000\nperiod = '1d'\n";
    std::fs::write(&file, rule).unwrap();
    let updated = home.tool(&["init", "x", "--config", file.to_str().unwrap(), "--update"]);
    updated.succeeds();
    assert!(updated.err.contains("starts used up; it allows calls again in 1d"), "{}", updated.err);
    home.tool(&["acquire", "x", "--now"]).fails(75, &["try again in"]);
}
