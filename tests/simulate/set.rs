//! `set` changes a setting of a running simulation and leaves the rest as it is (R110).

use super::{TMDB, simulate};
use serde_json::json;

fn set(key: &str, value: &str) -> String {
    format!("{{\"op\":\"set\",\"key\":\"{key}\",\"value\":{value}}}\n")
}

#[test]
fn r110_the_answer_names_the_key_and_the_change_holds_at_once() {
    let script = "{\"op\":\"acquire\",\"n\":4}\n".to_owned()
        + &set("concurrency", "6")
        + "{\"op\":\"acquire\",\"n\":9}\n";
    let lines = simulate(TMDB, &script);
    let expected = json!({
        "i": 1, "t": 0, "op": "set", "state": "normal", "transitions": [], "key": "concurrency",
        "rate": 35.0, "concurrency": 6, "eta_ns": 0,
    });
    assert_eq!(lines[1], expected);
    assert_eq!(lines[2]["admitted"], 2);
}

#[test]
fn r110_tokens_are_clipped_to_a_smaller_capacity_and_a_larger_one_adds_none() {
    let peek = "{\"op\":\"acquire\",\"cost\":0}\n";
    let script = set("rules.0.burst", "10") + peek + &set("rules.0.burst", "50") + peek;
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[1]["remaining"], &lines[3]["remaining"]), (&json!(10), &json!(10)));
}

#[test]
fn r110_a_lower_limit_holds_at_once_because_its_burst_follows() {
    let config = "[[rules]]\nname = 'rpm'\nalgorithm = 'token_bucket'\nlimit = 1000\nperiod = '1m'\n";
    let all = "{\"op\":\"acquire\",\"n\":5000}\n";
    for change in [set("rules.0.limit", "100"), set("rules.rpm.limit", "100"), set("rate", "\"100/m\"")] {
        let lines = simulate(config, &(change + all));
        assert_eq!(lines[1]["admitted"], 100, "tokens above the new capacity are lost");
    }
}

#[test]
fn r110_r25_a_leaky_bucket_keeps_its_level() {
    let config = "[[rules]]\nalgorithm = 'leaky_bucket'\nlimit = 2\nperiod = '1s'\nburst = 4\n";
    let (peek, three) = ("{\"op\":\"acquire\",\"cost\":0}\n", "{\"op\":\"acquire\",\"n\":3}\n");
    let acquire = "{\"op\":\"acquire\"}\n";
    let larger = simulate(config, &(set("rules.0.burst", "9") + acquire));
    assert_eq!((&larger[1]["delay_ns"], &larger[1]["remaining"]), (&json!(0), &json!(8)), "it was empty");
    let larger = simulate(config, &(three.to_owned() + &set("rules.0.burst", "9") + peek));
    assert_eq!((&larger[2]["delay_ns"], &larger[2]["remaining"]), (&json!(1_500_000_000), &json!(6)));
    let smaller = simulate(config, &(three.to_owned() + &set("rules.0.burst", "2") + peek + acquire));
    assert_eq!((&smaller[2]["delay_ns"], &smaller[2]["remaining"]), (&json!(1_500_000_000), &json!(0)));
    // 3 + 1 - 2 units exceed the capacity.
    assert_eq!(smaller[3]["retry_after_ns"], 1_000_000_000);
    let faster = simulate(config, &(three.to_owned() + &set("rules.0.limit", "4") + peek));
    assert_eq!(faster[2]["delay_ns"], 750_000_000, "three units at four a second");
}

#[test]
fn r110_counters_keep_their_values() {
    let bad = "{\"op\":\"record\",\"status\":429}\n";
    let script =
        bad.repeat(2) + &set("breaker.n_throttle", "5") + bad + &set("breaker.n_throttle", "4") + bad;
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[3]["consec429"], &lines[3]["state"]), (&json!(3), &json!("normal")));
    assert_eq!((&lines[5]["consec429"], &lines[5]["state"]), (&json!(4), &json!("throttle")));
    let script =
        "{\"op\":\"record\",\"status\":500}\n".repeat(3) + &set("window.min_samples", "1") + &bad.repeat(2);
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[5]["samples"], &lines[5]["state"]), (&json!(5), &json!("throttle")));
}

#[test]
fn r110_another_probe_rate_holds_for_the_next_probes() {
    let (probe, bad) =
        ("{\"op\":\"force\",\"state\":\"half_open\"}\n", "{\"op\":\"record\",\"status\":500}\n");
    let script = set("breaker.probe_rate", "1") + probe + bad + &set("breaker.probe_rate", "3") + probe;
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[2]["state"], &lines[4]["rate"]), (&json!("sleep"), &json!(3.0)));
}

#[test]
fn durations_and_parts_are_written_as_in_the_file() {
    let script = set("breaker.sleep_min", "\"7s\"")
        + &set("breaker.p_throttle", "0.5")
        + "{\"op\":\"force\",\"state\":\"sleep\"}\n"
        + &set("breaker.sleep_min", "9")
        + "{\"op\":\"force\",\"state\":\"normal\"}\n{\"op\":\"force\",\"state\":\"sleep\"}";
    let lines = simulate(TMDB, &script);
    assert_eq!(
        (&lines[2]["eta_ns"], &lines[5]["eta_ns"]),
        (&json!(7_000_000_000_u64), &json!(9_000_000_000_u64))
    );
}
