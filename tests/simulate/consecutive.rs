//! The consecutive breaker: closed, open, half open.

use super::{MINUTE, SECOND, keys, moves, simulate, times};
use serde_json::{Value, json};

const CONFIG: &str = "provider = \"tvdb\"\n[breaker]\nkind = \"consecutive\"\n";
const BAD: &str = r#"{"op":"record","status":500}"#;
const OK: &str = r#"{"op":"record","status":200}"#;

#[test]
fn r78_r79_five_failures_open_two_successes_close() {
    let script = times(4, BAD)
        + &times(1, OK)
        + &times(4, BAD)
        + &times(3, r#"{"op":"record","status":404}"#)
        + BAD
        + &format!("\n{{\"op\":\"advance\",\"t\":{}}}\n", 5 * MINUTE - 1)
        + &format!("{{\"op\":\"acquire\",\"t\":{}}}\n", 5 * MINUTE)
        + "{\"op\":\"acquire\"}\n"
        + &times(2, OK);
    let lines = simulate(CONFIG, &script);
    assert_eq!(lines[0]["state"], "closed");
    assert_eq!(lines[13]["state"], "open");
    assert_eq!(lines[14]["allowed"], true);
    assert_eq!(lines[15]["reason"], "concurrency", "one probe at a time");
    assert_eq!(lines[16]["state"], "half_open");
    assert_eq!(
        moves(&lines),
        [
            "closed>open consecutive_failures @0".to_owned(),
            format!("open>half_open reset_timeout @{}", 5 * MINUTE),
            format!("half_open>closed probe_ok @{}", 5 * MINUTE),
        ]
    );
    assert_eq!(
        keys(&lines[13]),
        ["i", "op", "state", "t", "transitions"],
        "rate and eta belong to the other kind of breaker"
    );
}

#[test]
fn r79_a_failed_test_opens_for_the_whole_time_again() {
    let at = |t: u64, line: &str| format!("{},\"t\":{t}}}\n", line.trim_end_matches('}'));
    let script =
        times(5, BAD) + &at(6 * MINUTE, BAD) + &format!("{{\"op\":\"advance\",\"t\":{}}}", 20 * MINUTE);
    assert_eq!(
        moves(&simulate(CONFIG, &script))[1..],
        [
            format!("open>half_open reset_timeout @{}", 5 * MINUTE),
            format!("half_open>open probe_failed @{}", 6 * MINUTE),
            format!("open>half_open reset_timeout @{}", 11 * MINUTE),
        ]
    );
}

#[test]
fn r80_a_refusal_by_an_open_breaker_names_the_provider_and_the_wait() {
    let script = times(5, BAD)
        + &format!("{{\"op\":\"acquire\",\"t\":{MINUTE}}}\n{{\"op\":\"acquire\",\"t\":{}}}\n", MINUTE + 1);
    let lines = simulate(CONFIG, &script);
    let expected = json!({
        "i": 5, "t": MINUTE, "op": "acquire", "state": "open", "transitions": [],
        "allowed": false, "remaining": null, "retry_after_ns": 240 * SECOND, "reason": "open", "rule": null,
        "error": {
            "error": "ProviderUnavailableError", "message": "Circuit breaker is open for tvdb",
            "provider": "tvdb", "state": "open", "failureCount": 5, "resetIn": 240_000,
        },
    });
    assert_eq!(lines[5], expected);
    assert_eq!(lines[6]["error"]["resetIn"], 240_000, "rounded up");
}

#[test]
fn an_operator_opens_and_closes_the_breaker() {
    let script = ["open", "half_open", "closed", "offline", "online"]
        .map(|state| {
            format!("{{\"op\":\"force\",\"state\":\"{state}\"}}\n{{\"op\":\"acquire\",\"cost\":0}}\n")
        })
        .concat();
    let lines = simulate(CONFIG, &script);
    let states: Vec<_> = lines.iter().step_by(2).map(|line| line["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["open", "half_open", "closed", "open", "half_open"]);
    assert_eq!(
        (&lines[1]["error"]["failureCount"], &lines[1]["error"]["resetIn"]),
        (&json!(0), &json!(300_000))
    );
    assert_eq!((&lines[7]["retry_after_ns"], &lines[7]["error"]["resetIn"]), (&Value::Null, &Value::Null));
    assert!(lines[3].get("error").is_none());
}
