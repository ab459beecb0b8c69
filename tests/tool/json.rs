//! `--json` gives one object per answer. Its keys are stable, and docs/json.md documents all of them.

use crate::cli::{Answer, Home, binary};
use serde_json::Value;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../docs/json.md");
const STATUS: &str = include_str!("../../docs/status-json.md");

/// The part of the document about one verb.
fn section(verb: &str) -> &'static str {
    let start = DOCUMENT.find(&format!("## `{verb}`")).unwrap_or_else(|| panic!("{verb} is not documented"));
    let rest = &DOCUMENT[start + 3..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

/// The only object of an answer. Its keys must be these, and all must be documented for that verb.
#[track_caller]
fn object(verb: &str, answer: &Answer, code: i32, keys: &str) -> Value {
    assert_eq!((answer.code, answer.out.lines().count()), (code, 1), "{}{}", answer.out, answer.err);
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    has_keys(&value, keys, section(verb));
    value
}

#[track_caller]
fn has_keys(value: &Value, keys: &str, document: &str) {
    let found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found.join(" "), keys);
    for key in found {
        assert!(document.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

const ACQUIRE: &str =
    "allowed delay_ns message name ready_after_ns reason remaining retry_after_ns rule state waited_ns";
const CONDITION: &str = "concurrency_now consec429 error_ratio eta_ns failures gate offline outcomes pace rate reason samples state state_for_ns transitions";

#[test]
fn acquire_has_one_object_for_grants_and_refusals_and_keeps_its_exit_code() {
    let home = Home::with(&["two", "--rate", "2/day", "--concurrency", "1"]);
    let granted = object("acquire", &home.tool(&["acquire", "two", "--json"]), 0, ACQUIRE);
    assert_eq!((&granted["name"], &granted["allowed"]), (&"two".into(), &true.into()));
    assert_eq!((&granted["remaining"], &granted["retry_after_ns"]), (&1.into(), &0.into()));
    assert_eq!(
        (&granted["reason"], &granted["rule"], &granted["message"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    home.tool(&["acquire", "two"]).succeeds();

    let answer = home.tool(&["acquire", "two", "--now", "--json"]);
    let refused = object("acquire", &answer, 75, ACQUIRE);
    assert_eq!(answer.err, "", "an answer, and no error");
    assert_eq!((&refused["allowed"], &refused["remaining"]), (&false.into(), &0.into()));
    assert_eq!((&refused["reason"], &refused["rule"]), (&"rate".into(), &"sliding_log".into()));
    let after = refused["retry_after_ns"].as_u64().unwrap();
    assert!(after > 0 && after <= 86_400_000_000_000, "a day at most: {after}");
    let text = home.tool(&["acquire", "two", "--now"]).err;
    assert!(text.contains("needs 1 request, 0 left in rule sliding_log"), "{text}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .starts_with("needs 1 request, 0 left in rule sliding_log; try again in")
    );

    let never = object("acquire", &home.tool(&["acquire", "two", "--cost", "3", "--json"]), 2, ACQUIRE);
    assert_eq!((&never["reason"], &never["retry_after_ns"]), (&"cost_exceeds_limit".into(), &Value::Null));
    assert_eq!(home.status("two")["in_flight"], 0);
}

#[test]
fn r128_remaining_is_the_least_of_the_requested_units_for_that_priority() {
    let home = Home::new();
    let file = home.path().join("llm.toml");
    std::fs::write(
        &file,
        "[[rules]]\nalgorithm = 'token_bucket'\nlimit = 10\nperiod = '1d'\nreserve = 4\n\
         [[rules]]\nname = 'tpd'\nalgorithm = 'gcra'\nunit = 'tokens'\nlimit = 1000\nperiod = '1d'\n",
    )
    .unwrap();
    home.tool(&["init", "llm", "--config", file.to_str().unwrap()]).succeeds();
    let remaining = |arguments: &[&str]| {
        let answer = home.tool(&[&["acquire", "llm", "--json"], arguments].concat());
        object("acquire", &answer, 0, ACQUIRE)["remaining"].clone()
    };
    assert_eq!(remaining(&[]), 5);
    assert_eq!(remaining(&["--priority", "user"]), 8);
    assert_eq!(remaining(&["--cost", "tokens=998", "--priority", "user"]), 2, "the remainder of the tokens");
    assert_eq!(remaining(&["--cost", "0", "--cost", "tokens=1"]), 1, "requests were not part of this cost");
}

#[test]
fn a_refusal_into_a_closed_pipe_still_has_the_code_of_a_refusal() {
    let home = Home::with(&["one", "--rate", "1/day"]);
    home.tool(&["acquire", "one"]).succeeds();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(binary())
        .args(["acquire", "one", "--now", "--json"])
        .env("SHMLIMIT_DIR", home.path())
        .stdout(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(75));
}

#[test]
fn init_reports_the_settings_and_how_the_limiter_was_created() {
    let home = Home::new();
    let keys = "changes directory name offline result rules settings";
    let made = object("init", &home.tool(&["init", "api", "--rate", "4/s", "--json"]), 0, keys);
    assert_eq!((&made["name"], &made["result"]), (&"api".into(), &"created".into()));
    assert_eq!(made["directory"], home.path().to_str().unwrap());
    assert_eq!(made["settings"]["rules.0.limit"], "4");
    let most =
        |line: &Value| (line["rules"][0]["algorithm"].clone(), line["rules"][0]["most_per_period"].clone());
    assert_eq!(most(&made), ("sliding_log".into(), 4.into()), "R147");
    let bucket = home.tool(&["init", "bucket", "--rate", "1000/day", "--burst", "20", "--json"]);
    assert_eq!(most(&object("init", &bucket, 0, keys)), ("token_bucket".into(), 1020.into()), "R147");
    let again = object("init", &home.tool(&["init", "api", "--json"]), 0, keys);
    assert_eq!((&again["result"], &again["settings"]), (&"unchanged".into(), &made["settings"]));
    let updated = home.tool(&["init", "api", "--rate", "6/s", "--update", "--json"]);
    let updated = object("init", &updated, 0, keys);
    assert_eq!((&updated["result"], &updated["settings"]["rules.0.limit"]), (&"updated".into(), &"6".into()));
    let replaced = home.tool(&["init", "api", "--rate", "5/s", "--replace", "--json"]);
    let replaced = object("init", &replaced, 0, keys);
    assert_eq!((&replaced["result"], &replaced["offline"]), (&"replaced".into(), &false.into()));
    assert_eq!(
        object("init", &home.tool(&["init", "tmdb", "--offline", "--json"]), 0, keys)["offline"],
        true
    );
    // Every reported setting can be set.
    for (key, value) in made["settings"].as_object().unwrap() {
        let value = value.as_str().unwrap();
        let answer = home.tool(&["set", "api", key, value]);
        assert!(
            answer.code == 0 || answer.err.contains("cannot be changed") || answer.err.contains("init"),
            "{key} = {value}: {}",
            answer.err
        );
    }
}

#[test]
fn set_reports_exactly_the_changes() {
    let home = Home::new();
    let set = |value| {
        object("set", &home.tool(&["set", "tmdb", "concurrency", value, "--json"]), 0, "changes name")
    };
    let changed = set("6");
    assert_eq!(changed["changes"].as_array().unwrap().len(), 1);
    has_keys(&changed["changes"][0], "is key was", section("set"));
    assert_eq!(changed["changes"][0], serde_json::json!({"key": "concurrency", "was": "4", "is": "6"}));
    assert_eq!(set("6")["changes"], serde_json::json!([]));
}

#[test]
fn force_reports_the_new_state_with_the_keys_of_status() {
    let home = Home::new();
    let answer = home.tool(&["force", "tmdb", "offline", "--json"]);
    let forced: Value = serde_json::from_str(answer.succeeds()).unwrap();
    let found: Vec<&str> = forced.as_object().unwrap().keys().map(String::as_str).collect();
    let (own, shared): (Vec<&str>, Vec<&str>) =
        found.iter().partition(|key| ["forced", "name"].contains(*key));
    assert_eq!((own.join(" ").as_str(), shared.join(" ").as_str()), ("forced name", CONDITION));
    for key in shared {
        assert!(STATUS.contains(&format!("`{key}`")), "{key} is not documented");
        // Times differ; the other values are those of `status`.
        if !["state_for_ns", "transitions"].contains(&key) {
            assert_eq!(forced[key], home.status("tmdb")[key], "{key}");
        }
    }
    assert!(section("force").contains("`forced`"));
    assert_eq!(
        (&forced["forced"], &forced["state"], &forced["offline"]),
        (&"offline".into(), &"sleep".into(), &true.into())
    );
}

#[test]
fn record_reports_the_advice_and_the_limiter() {
    let home = Home::new();
    let keys = "consec429 error_ratio name outcome_class retry samples state transitions wait_at_most_ns wait_ns wait_source";
    let answer = home.tool(&["record", "tmdb", "--status", "429", "--retry-after", "30", "--json"]);
    let recorded = object("record", &answer, 0, keys);
    assert_eq!(
        (&recorded["name"], &recorded["outcome_class"], &recorded["retry"]),
        (&"tmdb".into(), &"429".into(), &true.into())
    );
    assert_eq!(
        (&recorded["wait_source"], &recorded["wait_ns"]),
        (&"retry_after".into(), &30_000_000_000_u64.into())
    );
}

#[test]
fn presets_are_one_line_each_or_only_the_requested_one() {
    let home = Home::new();
    let keys = "about name notes settings source";
    let all = home.tool(&["presets", "--json"]);
    let lines: Vec<Value> = all.succeeds().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), shmlimit::presets::NAMES.len());
    let one = object("presets", &home.tool(&["presets", "tmdb", "--json"]), 0, keys);
    assert!(lines.contains(&one));
    assert_eq!(one["settings"]["concurrency"], "4");
}

#[test]
fn an_error_leaves_standard_output_empty_and_prints_a_message() {
    let home = Home::new();
    for arguments in [
        &["acquire", "nothing", "--json"][..],
        &["acquire", "nothing", "--cost", "x", "--json"],
        &["init", "nothing", "--json"],
        &["set", "nothing", "concurrency", "4", "--json"],
        &["set", "tmdb", "concurency", "4", "--json"],
        &["force", "nothing", "normal", "--json"],
        &["record", "nothing", "--status", "200", "--json"],
        &["presets", "nothing", "--json"],
        &["status", "nothing", "--json"],
    ] {
        home.tool(arguments).fails(2, &[]);
        assert!(!home.tool(arguments).err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn rm_and_doctor_have_the_keys_that_are_documented() {
    let home = Home::with(&["api", "--rate", "4/s"]);
    for line in home.tool(&["doctor", "--json"]).succeeds().lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        has_keys(&finding, "advice check fixed level message subject", section("doctor"));
    }
    let counted =
        object("record", &home.tool(&["record", "api", "--cache", "hit", "--json"]), 0, "cache name");
    assert_eq!(counted["cache"], "hit");
    let removed = object("rm", &home.tool(&["rm", "api", "--json"]), 0, "name removed users");
    assert_eq!(removed, serde_json::json!({"name": "api", "removed": true, "users": []}));
}
