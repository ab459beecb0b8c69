//! Every algorithm with values calculated by hand: what it admits, what remains, how long to wait.

use super::{MINUTE, SECOND, simulate, times};
use serde_json::{Value, json};

const ACQUIRE: &str = r#"{"op":"acquire"}"#;

fn rule(algorithm: &str, rest: &str) -> String {
    format!("[[rules]]\nalgorithm = \"{algorithm}\"\n{rest}\n")
}

fn at(t: u64) -> String {
    format!("{{\"op\":\"acquire\",\"t\":{t}}}\n")
}

/// Whether the call was allowed, what remains, and how long to wait.
fn seen(line: &Value) -> (bool, u64, u64) {
    let number = |key: &str| line[key].as_u64().unwrap();
    (line["allowed"].as_bool().unwrap(), number("remaining"), number("retry_after_ns"))
}

fn all(config: &str, script: &str) -> Vec<(bool, u64, u64)> {
    simulate(config, script).iter().map(seen).collect()
}

#[test]
fn r12_a_token_bucket_grants_its_burst_and_refills_at_its_rate() {
    let config = rule("token_bucket", "limit = 2\nperiod = \"1s\"\nburst = 3");
    let script = times(4, ACQUIRE) + &at(SECOND / 4) + &at(SECOND / 2) + &at(100 * SECOND);
    let expected = [
        (true, 2, 0),
        (true, 1, 0),
        (true, 0, 0),
        (false, 0, SECOND / 2),
        (false, 0, SECOND / 4),
        (true, 0, 0),
        (true, 2, 0),
    ];
    assert_eq!(all(&config, &script), expected);
}

#[test]
fn r16_gcra_grants_four_at_once_and_then_one_every_two_seconds() {
    let config = rule("gcra", "limit = 4\nperiod = \"8s\"");
    let script = times(5, ACQUIRE) + &at(2 * SECOND - 1) + &at(2 * SECOND) + &at(2 * SECOND);
    let expected = [
        (true, 3, 0),
        (true, 2, 0),
        (true, 1, 0),
        (true, 0, 0),
        (false, 0, 2 * SECOND),
        (false, 0, 1),
        (true, 0, 0),
        (false, 0, 2 * SECOND),
    ];
    assert_eq!(all(&config, &script), expected);
}

#[test]
fn r17_tau_sets_the_tolerance_instead_of_burst() {
    let config = rule("gcra", "limit = 1\nperiod = \"1s\"\ntau = \"2.5s\"");
    assert_eq!(all(&config, &times(3, ACQUIRE)), [(true, 1, 0), (true, 0, 0), (false, 0, SECOND / 2)]);
}

#[test]
fn r23_a_leaky_bucket_names_the_delay_of_each_call() {
    let config = rule("leaky_bucket", "limit = 2\nperiod = \"1s\"\nburst = 3");
    let script = times(4, ACQUIRE) + &at(SECOND / 2) + "{\"op\":\"acquire\",\"cost\":0}\n" + &at(10 * SECOND);
    let lines = simulate(&config, &script);
    let half = SECOND / 2;
    let expected = [
        (true, 2, 0),
        (true, 1, 0),
        (true, 0, 0),
        (false, 0, half),
        (true, 0, 0),
        (true, 0, 0),
        (true, 2, 0),
    ];
    assert_eq!(lines.iter().map(seen).collect::<Vec<_>>(), expected);
    let delays: Vec<_> = lines.iter().map(|line| line.get("delay_ns").and_then(Value::as_u64)).collect();
    let delay = |halves: u64| Some(halves * half);
    assert_eq!(delays, [delay(0), delay(1), delay(2), None, delay(2), delay(3), delay(0)]);
    assert!(simulate(&rule("gcra", "limit = 1"), ACQUIRE)[0].get("delay_ns").is_none());
}

#[test]
fn r125_a_leaky_bucket_loses_no_fraction() {
    let config = rule("leaky_bucket", "limit = 1\nperiod = \"2s\"\nburst = 5");
    let script = "{\"op\":\"acquire\",\"n\":5}\n{\"op\":\"acquire\",\"cost\":0,\"t\":3000000000}\n{\"op\":\"acquire\",\"cost\":0,\"t\":6000000000}";
    let lines = simulate(&config, script);
    assert_eq!((&lines[1]["remaining"], &lines[2]["remaining"]), (&json!(1), &json!(3)));
}

#[test]
fn r28_fixed_window_follows_the_wall_clock() {
    let config =
        format!("epoch_ns = {}\n{}", 59 * SECOND, rule("fixed_window", "limit = 10\nperiod = \"60s\""));
    let script = "{\"op\":\"acquire\",\"n\":11}\n{\"op\":\"acquire\",\"n\":11,\"t\":1000000000}\n{\"op\":\"acquire\",\"t\":60999999999}";
    let lines = simulate(&config, script);
    assert_eq!((&lines[0]["admitted"], &lines[0]["retry_after_ns"]), (&json!(10), &json!(SECOND)));
    assert_eq!(
        (&lines[1]["admitted"], &lines[1]["retry_after_ns"]),
        (&json!(10), &json!(MINUTE)),
        "R30: 20 in a second"
    );
    assert_eq!(lines[2]["retry_after_ns"], 1);
}

#[test]
fn r31_a_sliding_log_frees_each_call_one_period_later() {
    let config = rule("sliding_log", "limit = 3\nperiod = \"10s\"");
    let script = at(0)
        + &at(0)
        + &at(4 * SECOND)
        + &at(5 * SECOND)
        + &at(10 * SECOND - 1)
        + &at(10 * SECOND)
        + &at(10 * SECOND)
        + &at(10 * SECOND);
    let expected = [
        (true, 2, 0),
        (true, 1, 0),
        (true, 0, 0),
        (false, 0, 5 * SECOND),
        (false, 0, 1),
        (true, 1, 0),
        (true, 0, 0),
        (false, 0, 4 * SECOND),
    ];
    assert_eq!(all(&config, &script), expected);
}

#[test]
fn r36_a_sliding_counter_weighs_the_previous_window_by_its_overlap() {
    let config = rule("sliding_counter", "limit = 10\nperiod = \"60s\"");
    let prepare = "{\"op\":\"acquire\",\"n\":8}\n{\"op\":\"acquire\",\"cost\":0,\"t\":60000000000}\n";
    // Half of the previous window counts: 4 of 8, and three more.
    let script = format!("{prepare}{{\"op\":\"acquire\",\"n\":3,\"t\":{}}}\n{}", 90 * SECOND, ACQUIRE);
    let lines = simulate(&config, &script);
    assert_eq!((&lines[1]["remaining"], &lines[2]["remaining"]), (&json!(2), &json!(3)));
    assert_eq!((&lines[3]["allowed"], &lines[3]["remaining"]), (&json!(true), &json!(2)));
    // Nine tenths of the previous window count: 7.2 of 8, and three more are 10.2.
    let script = format!("{prepare}{{\"op\":\"acquire\",\"n\":4,\"t\":{}}}\n", 66 * SECOND);
    let lines = simulate(&config, &script);
    assert_eq!((&lines[2]["admitted"], &lines[2]["remaining"]), (&json!(3), &json!(0)));
    // floor(8 * (60 - e) / 60) <= 6 holds first at e > 7.5 s.
    assert_eq!(lines[2]["retry_after_ns"], 1_500_000_001);
}

#[test]
fn r9_the_default_is_a_sliding_counter() {
    let lines = simulate("[[rules]]\nlimit = 2\nperiod = \"60s\"\n", "{\"op\":\"acquire\",\"n\":3}");
    assert_eq!((&lines[0]["admitted"], &lines[0]["rule"]), (&json!(2), &json!("sliding_counter")));
}

#[test]
fn r22_legacy_bursts_are_free_passes_of_each_minute() {
    let legacy = rule("gcra", "limit = 60\nperiod = \"60s\"\nburst = 3\nburst_mode = \"fixed_window\"");
    let script = "{\"op\":\"acquire\",\"n\":9}\n{\"op\":\"acquire\",\"n\":9,\"t\":1000000000}\n{\"op\":\"acquire\",\"n\":9,\"t\":60000000000}";
    let lines = simulate(&legacy, script);
    // Three calls use the burst; one paced call moves the time of the next.
    assert_eq!((&lines[0]["admitted"], &lines[0]["retry_after_ns"]), (&json!(4), &json!(SECOND)));
    assert_eq!((&lines[1]["admitted"], &lines[2]["admitted"]), (&json!(1), &json!(4)));
}

#[test]
fn r126_the_two_burst_modes_differ_on_one_trace() {
    let rest = "limit = 60\nperiod = \"60s\"\nburst = 10";
    let trace: String = [0, 30, 59, 60, 61]
        .map(|s| format!("{{\"op\":\"acquire\",\"n\":20,\"t\":{}}}\n", s * SECOND))
        .concat();
    let admitted = |config: &str| -> Vec<u64> {
        simulate(config, &trace).iter().map(|line| line["admitted"].as_u64().unwrap()).collect()
    };
    assert_eq!(admitted(&rule("gcra", rest)), [10, 10, 10, 1, 1]);
    assert_eq!(admitted(&rule("gcra", &format!("{rest}\nburst_mode = \"fixed_window\""))), [11, 1, 1, 11, 1]);
}
