//! The answers to `acquire`, field by field; also `release`, `cancel`, `advance`, and the clock.

use super::{MS, SECOND, Simulation, keys, simulate, times};
use serde_json::{Value, json};

/// Ten calls a second, three in flight, one permit reserved for high priorities.
const SMALL: &str = r#"
    concurrency = 3
    [[rules]]
    name = "small"
    algorithm = "token_bucket"
    limit = 10
    period = "1s"
    burst = 3
    reserve = 1
"#;

const UNBOUND: &str = r#"
    [[rules]]
    algorithm = "token_bucket"
    limit = 10
    period = "1s"
    burst = 20000
"#;

#[test]
fn the_answer_to_a_grant_has_exactly_these_fields() {
    let lines = simulate(SMALL, r#"{"op":"acquire"}"#);
    let expected = json!({
        "i": 0, "t": 0, "op": "acquire", "state": "normal", "transitions": [],
        "allowed": true, "remaining": 1, "retry_after_ns": 0, "reason": null, "rule": null,
    });
    assert_eq!(lines[0], expected);
}

#[test]
fn r107_background_calls_leave_the_reserve_and_remaining_depends_on_the_priority() {
    let script = r#"
        {"op":"acquire","n":5}
        {"op":"acquire","priority":"user"}
        {"op":"acquire","prio":"webhook"}
        {"op":"release"}
        {"op":"acquire","t":100000000,"priority":"user"}
    "#;
    let lines = simulate(SMALL, script.trim());
    let refused = json!({
        "i": 0, "t": 0, "op": "acquire", "state": "normal", "transitions": [],
        "allowed": false, "remaining": 0, "retry_after_ns": 100 * MS, "reason": "rate", "rule": "small", "admitted": 2,
    });
    assert_eq!(lines[0], refused);
    assert_eq!((&lines[1]["allowed"], &lines[1]["remaining"]), (&json!(true), &json!(0)));
    assert_eq!((&lines[2]["reason"], &lines[2]["retry_after_ns"]), (&json!("concurrency"), &Value::Null));
    assert_eq!(lines[2]["rule"], Value::Null);
    assert_eq!(
        lines[3],
        json!({"i": 3, "t": 0, "op": "release", "state": "normal", "transitions": [], "in_flight": 2})
    );
    assert_eq!(lines[4]["allowed"], true);
}

#[test]
fn r4_a_refused_call_is_admitted_exactly_at_the_named_time_and_not_before() {
    let config = "[[rules]]\nalgorithm = \"gcra\"\nlimit = 3\nperiod = \"1s\"\nburst = 1\n";
    let lines = simulate(config, "{\"op\":\"acquire\"}\n{\"op\":\"acquire\"}");
    let wait = lines[1]["retry_after_ns"].as_u64().unwrap();
    assert_eq!(wait, 333_333_334);
    let again = format!(
        "{{\"op\":\"acquire\"}}\n{{\"op\":\"acquire\",\"t\":{}}}\n{{\"op\":\"acquire\",\"t\":{wait}}}",
        wait - 1
    );
    let lines = simulate(config, &again);
    assert_eq!((&lines[1]["allowed"], &lines[2]["allowed"]), (&json!(false), &json!(true)));
    assert_eq!(lines[1]["rule"], "gcra", "a rule without a name has the name of its algorithm");
}

#[test]
fn r6_a_peek_takes_nothing_and_no_slot() {
    let script = r#"
        {"op":"acquire","cost":0}
        {"op":"acquire","cost":0,"n":3}
        {"op":"release"}
        {"op":"acquire","cost":0,"priority":"user"}
    "#;
    let lines = simulate(SMALL, script.trim());
    assert_eq!((&lines[0]["allowed"], &lines[0]["remaining"]), (&json!(true), &json!(2)));
    assert_eq!((&lines[1]["admitted"], &lines[1]["remaining"]), (&json!(3), &json!(2)));
    assert_eq!(lines[2]["in_flight"], 0);
    assert_eq!(lines[3]["remaining"], 3);
}

#[test]
fn r6_a_cost_above_the_capacity_is_never_granted() {
    let script = "{\"op\":\"acquire\",\"cost\":3}\n{\"op\":\"acquire\",\"cost\":3,\"priority\":\"user\"}\n\
                  {\"op\":\"acquire\",\"cost\":18446744073709551615,\"priority\":\"user\"}";
    let lines = simulate(SMALL, script);
    assert_eq!(
        (&lines[0]["reason"], &lines[0]["retry_after_ns"]),
        (&json!("cost_exceeds_limit"), &Value::Null)
    );
    assert_eq!(lines[0]["rule"], "small");
    assert_eq!(lines[1]["allowed"], true);
    assert_eq!(lines[2]["reason"], "cost_exceeds_limit");
}

#[test]
fn without_rules_remaining_is_null() {
    let lines = simulate("", "{\"op\":\"acquire\",\"n\":5000}\n{\"op\":\"release\"}");
    assert_eq!((&lines[0]["allowed"], &lines[0]["remaining"]), (&json!(true), &Value::Null));
    assert_eq!((&lines[0]["admitted"], &lines[1]["in_flight"]), (&json!(5000), &json!(4999)));
}

#[test]
fn without_concurrency_any_number_is_in_flight() {
    // More calls than a segment has permits, and more than the simulation remembers one by one.
    let mut script = times(5, r#"{"op":"acquire","n":20000,"t":0}"#).replace("20000", "4000");
    script += &times(70, r#"{"op":"acquire","cost":0}"#);
    let lines = simulate(UNBOUND, &script);
    assert_eq!(lines[4]["admitted"], 4000);
    assert_eq!(lines[4]["remaining"], 0);
}

#[test]
fn calls_beyond_those_remembered_still_end() {
    let script = "{\"op\":\"acquire\",\"n\":100000}\n{\"op\":\"release\"}\n{\"op\":\"cancel\"}\n\
                  {\"op\":\"record\",\"status\":200,\"cost\":7}\n{\"op\":\"release\"}";
    let lines = simulate("concurrency_background = 4096", script);
    assert_eq!(lines[0]["admitted"], 4096);
    let lines = simulate("", script);
    assert_eq!(lines[0]["admitted"], 100_000);
    let in_flight: Vec<_> = [1, 2, 4].map(|i: usize| lines[i]["in_flight"].as_u64().unwrap()).into();
    assert_eq!(in_flight, [99_999, 99_998, 99_996]);
}

#[test]
fn r3_time_never_goes_back() {
    let script = format!(
        "{{\"op\":\"acquire\",\"t\":{SECOND}}}\n{{\"op\":\"acquire\",\"t\":5}}\n{{\"op\":\"advance\",\"t\":7}}\n\
         {{\"op\":\"advance\",\"ns\":3}}\n{{\"op\":\"acquire\"}}\n{{\"op\":\"advance\",\"ns\":0}}"
    );
    let lines = simulate(SMALL, &script);
    let times: Vec<_> = lines.iter().map(|line| line["t"].as_u64().unwrap()).collect();
    assert_eq!(times, [SECOND, SECOND, SECOND, SECOND + 3, SECOND + 3, SECOND + 3]);
    assert_eq!(keys(&lines[2]), ["i", "op", "state", "t", "transitions"]);
}

#[test]
fn r3_a_refusal_moves_the_clock_too() {
    let script = "{\"op\":\"acquire\",\"n\":3,\"priority\":\"user\"}\n\
                  {\"op\":\"acquire\",\"t\":50000000}\n{\"op\":\"acquire\",\"t\":1}";
    let lines = simulate(SMALL, script);
    assert_eq!((&lines[1]["allowed"], &lines[2]["t"]), (&json!(false), &json!(50 * MS)));
}

#[test]
fn the_clock_runs_for_a_century_and_stops_safely_at_its_end() {
    let late = 4_000_000_000_000_000_000_u64;
    let lines =
        simulate(SMALL, &format!("{{\"op\":\"acquire\",\"t\":{late},\"n\":9,\"priority\":\"user\"}}"));
    assert_eq!((&lines[0]["admitted"], &lines[0]["reason"]), (&json!(3), &json!("concurrency")));
    let end = u64::MAX;
    let script = format!(
        "{{\"op\":\"acquire\",\"t\":{end}}}\n{{\"op\":\"advance\",\"ns\":1}}\n{{\"op\":\"acquire\"}}\n\
         {{\"op\":\"record\",\"status\":503,\"retry_after\":\"5\"}}\n{{\"op\":\"acquire\"}}"
    );
    for config in [SMALL, super::TMDB, "epoch_ns = 9000000000000000000\n[breaker]\nkind = \"consecutive\"\n"]
    {
        let output = Simulation::new(config).run_with(&[], script.clone());
        assert_eq!((output.code, output.lines.len()), (1, 5));
        assert_eq!((&output.lines[0]["t"], &output.lines[4]["t"]), (&json!(end), &json!(end)));
        assert_eq!(output.lines[1]["error"]["error"], "bad_op", "no time follows the last one");
    }
}

#[test]
fn r129_cancel_undoes_the_latest_and_a_record_ends_the_oldest() {
    let script = r#"
        {"op":"acquire","cost":1,"priority":"user"}
        {"op":"acquire","cost":2,"priority":"user"}
        {"op":"cancel"}
        {"op":"acquire","cost":0,"priority":"user"}
        {"op":"record","status":200,"cost":3}
        {"op":"acquire","cost":0,"priority":"user"}
        {"op":"cancel"}
        {"op":"acquire","cost":1,"priority":"user"}
        {"op":"acquire","cost":1,"t":100000000,"priority":"user"}
    "#;
    let lines = simulate(SMALL, script.trim());
    let cancelled =
        json!({"i": 2, "t": 0, "op": "cancel", "state": "normal", "transitions": [], "in_flight": 1});
    assert_eq!(lines[2], cancelled);
    assert_eq!(lines[3]["remaining"], 2, "the cancelled call returned its cost, the other call is in flight");
    assert_eq!(lines[5]["remaining"], 0, "the call cost two units more than its estimate");
    assert_eq!(lines[6]["in_flight"], 0, "no call is left to cancel");
    assert_eq!(lines[7]["reason"], "rate");
    assert_eq!(lines[8]["allowed"], true);
}

#[test]
fn r128_costs_by_unit() {
    let config = r#"
        [[rules]]
        name = "rpm"
        algorithm = "token_bucket"
        limit = 60
        period = "60s"
        [[rules]]
        name = "tpm"
        unit = "tokens"
        algorithm = "token_bucket"
        limit = 1000
        period = "60s"
    "#;
    let script = r#"
        {"op":"acquire","cost":{"tokens":900}}
        {"op":"acquire","cost":{"tokens":900}}
        {"op":"acquire"}
        {"op":"acquire","cost":{"requests":0,"tokens":50}}
        {"op":"record","status":200,"cost":{"requests":1,"tokens":400}}
        {"op":"acquire","cost":{"tokens":0,"requests":0}}
        {"op":"acquire","cost":{"tokens":1001}}
    "#;
    let lines = simulate(config, script.trim());
    assert_eq!(lines[0]["remaining"], 59, "the smallest remainder of the requested units");
    assert_eq!((&lines[1]["reason"], &lines[1]["rule"]), (&json!("rate"), &json!("tpm")));
    assert_eq!(lines[1]["retry_after_ns"], 48 * SECOND);
    assert_eq!(lines[1]["remaining"], 59, "no rule is charged if one rule refuses");
    assert_eq!(lines[2]["remaining"], 58);
    assert_eq!(lines[3]["remaining"], 50, "the remainder of tokens alone");
    assert_eq!(lines[5]["remaining"], 58, "500 tokens were returned, so fewer requests than tokens remain");
    assert_eq!((&lines[6]["reason"], &lines[6]["rule"]), (&json!("cost_exceeds_limit"), &json!("tpm")));
}

#[test]
fn r39_a_refusal_names_the_rule_with_the_longest_wait_and_the_first_of_equals() {
    let config = r#"
        [[rules]]
        name = "a"
        algorithm = "token_bucket"
        limit = 1
        period = "1s"
        [[rules]]
        name = "b"
        algorithm = "gcra"
        limit = 1
        period = "5s"
        [[rules]]
        name = "c"
        algorithm = "gcra"
        limit = 1
        period = "5s"
    "#;
    let lines = simulate(config, "{\"op\":\"acquire\",\"n\":2}");
    assert_eq!((&lines[0]["rule"], &lines[0]["retry_after_ns"]), (&json!("b"), &json!(5 * SECOND)));
}

#[test]
fn r41_passthrough_never_refuses_and_still_counts() {
    let config = format!("mode = \"passthrough\"\n{SMALL}");
    let lines = simulate(&config, "{\"op\":\"acquire\",\"n\":10}\n{\"op\":\"acquire\",\"cost\":0}");
    assert_eq!((&lines[0]["allowed"], &lines[0]["admitted"]), (&json!(true), &json!(10)));
    assert_eq!(lines[1]["remaining"], 0);
}

#[test]
fn r41_passthrough_holds_nothing_back_and_a_peek_says_so() {
    let config = "mode = 'passthrough'\n[[rules]]\nalgorithm = 'leaky_bucket'\nlimit = 2\nperiod = '1s'";
    let lines = simulate(config, "{\"op\":\"acquire\",\"n\":3}\n{\"op\":\"acquire\",\"cost\":0}");
    assert_eq!((&lines[0]["delay_ns"], &lines[1]["delay_ns"]), (&json!(0), &json!(0)));
}
