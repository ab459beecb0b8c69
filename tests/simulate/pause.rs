//! Pauses: no call until the pause ends or the limiter is resumed (R148).

use super::{SECOND, Simulation, keys, moves, simulate, times};
use serde_json::{Value, json};

const RATE: &str =
    "concurrency = 2\n[[rules]]\nalgorithm = \"token_bucket\"\nlimit = 1\nperiod = \"1s\"\nburst = 3\n";

/// Whether the call was allowed, the reason of a refusal, and when to try again.
fn answer(line: &Value) -> (bool, Value, Value) {
    (line["allowed"] == true, line["reason"].clone(), line["retry_after_ns"].clone())
}

#[test]
fn r148_a_timed_pause_refuses_until_exactly_its_end() {
    let script = format!(
        r#"{{"op":"pause","for_ns":{SECOND},"reason":"database migration"}}
           {{"op":"acquire"}}
           {{"op":"acquire","t":{}}}
           {{"op":"acquire","t":{SECOND}}}"#,
        SECOND - 1
    );
    let lines = simulate(RATE, &script);
    assert_eq!(keys(&lines[0]), ["i", "op", "state", "t", "transitions"]);
    assert_eq!(answer(&lines[1]), (false, json!("paused"), json!(SECOND)));
    assert_eq!(answer(&lines[2]), (false, json!("paused"), json!(1)));
    assert_eq!(answer(&lines[3]), (true, Value::Null, json!(0)));
    assert_eq!((&lines[1]["remaining"], &lines[1]["rule"]), (&json!(3), &Value::Null), "nothing was taken");
}

#[test]
fn r148_a_pause_without_an_end_lasts_until_resume() {
    let lines = simulate(
        RATE,
        &format!(
            r#"{{"op":"pause"}}
               {{"op":"acquire","t":{}}}
               {{"op":"acquire","cost":0}}
               {{"op":"resume"}}
               {{"op":"acquire","cost":0}}
               {{"op":"acquire","n":5}}
               {{"op":"resume"}}"#,
            1_000_000 * SECOND
        ),
    );
    assert_eq!(answer(&lines[1]), (false, json!("paused"), Value::Null));
    assert_eq!(answer(&lines[2]), (false, json!("paused"), Value::Null), "a peek is refused as well");
    assert_eq!(answer(&lines[4]), (true, Value::Null, json!(0)));
    assert_eq!(lines[5]["admitted"], 2, "permits still limit the calls after a pause");
}

#[test]
fn r148_a_second_pause_replaces_the_first() {
    let pause = |length: u64| format!("{{\"op\":\"pause\",\"for_ns\":{length}}}\n");
    let acquire = "{\"op\":\"acquire\"}\n";
    let lines = simulate(RATE, &[&pause(100), &pause(50), acquire, "{\"op\":\"pause\"}\n", acquire].concat());
    assert_eq!(lines[2]["retry_after_ns"], 50, "a shorter pause replaces a longer one, too");
    assert_eq!(lines[4]["retry_after_ns"], Value::Null);
}

#[test]
fn r148_paused_is_the_first_layer_in_the_way() {
    let config =
        "[[rules]]\nalgorithm = \"token_bucket\"\nlimit = 1\nperiod = \"1h\"\n[breaker]\nkind = \"fsm\"\n";
    let script = r#"{"op":"acquire"}
        {"op":"record","status":503,"retry_after":"100"}
        {"op":"force","state":"offline"}
        {"op":"pause","for_ns":7}
        {"op":"acquire"}
        {"op":"acquire","cost":2}
        {"op":"resume"}
        {"op":"acquire"}"#;
    let lines = simulate(config, script);
    assert_eq!(answer(&lines[4]), (false, json!("paused"), json!(7)));
    assert_eq!(
        answer(&lines[5]),
        (false, json!("cost_exceeds_limit"), Value::Null),
        "a pause does not change this reason"
    );
    assert_eq!(
        answer(&lines[7]),
        (false, json!("sleep"), Value::Null),
        "a pause does not change the breaker"
    );
}

#[test]
fn r148_outcomes_and_timers_go_on_while_paused() {
    let config = "[breaker]\nkind = \"consecutive\"\nreset_timeout = \"1s\"\n";
    let script = times(2, r#"{"op":"acquire"}"#)
        + "{\"op\":\"pause\"}\n"
        + "{\"op\":\"release\"}\n"
        + &times(5, r#"{"op":"record","status":500}"#)
        + &format!("{{\"op\":\"acquire\",\"t\":{}}}\n", 2 * SECOND)
        + "{\"op\":\"resume\"}\n{\"op\":\"acquire\"}\n";
    let lines = simulate(config, &script);
    assert_eq!(lines[3]["in_flight"], 1);
    assert_eq!(answer(&lines[9]), (false, json!("paused"), Value::Null));
    let expected = ["closed>open consecutive_failures @0", "open>half_open reset_timeout @1000000000"];
    assert_eq!(moves(&lines), expected);
    assert_eq!(answer(&lines[11]), (true, Value::Null, json!(0)), "the probe is granted after the pause");
}

#[test]
fn r148_passthrough_refuses_nothing_while_paused() {
    let config = format!("mode = \"passthrough\"\n{RATE}");
    let lines = simulate(&config, "{\"op\":\"pause\"}\n{\"op\":\"acquire\",\"n\":9}\n");
    assert_eq!((&lines[1]["allowed"], &lines[1]["admitted"]), (&json!(true), &json!(9)));
}

#[test]
fn r148_an_invalid_pause_is_a_bad_op() {
    let long = format!("{{\"op\":\"pause\",\"reason\":\"{}\"}}", "x".repeat(65));
    let bad = [
        "{\"op\":\"pause\",\"for_ns\":0}",
        "{\"op\":\"pause\",\"for_ns\":-1}",
        "{\"op\":\"pause\",\"for\":\"10m\"}",
        "{\"op\":\"pause\",\"reason\":\"two\\nlines\"}",
        "{\"op\":\"resume\",\"for_ns\":1}",
        &long,
    ];
    let script = bad.join("\n") + "\n{\"op\":\"acquire\"}\n";
    let output = Simulation::new(RATE).run_with(&[], script);
    assert_eq!(output.code, 1);
    for line in &output.lines[..bad.len()] {
        assert_eq!(line["error"]["error"], "bad_op", "{line}");
    }
    assert_eq!(output.lines[bad.len()]["allowed"], true, "nothing was paused");
}

#[test]
fn r148_the_summary_counts_what_a_pause_refused() {
    let script = "{\"op\":\"pause\"}\n{\"op\":\"acquire\"}\n{\"op\":\"acquire\"}\n";
    let output = Simulation::new(RATE).run_with(&["--summary"], script);
    assert!(output.err.contains("refused      2 (paused 2)"), "{}", output.err);
}
