//! A capacity that a breaker state reduces, and its effect on the reserve and on large costs (R6, R54).

use super::{SECOND, simulate, times};
use serde_json::{Value, json};

/// 10/s with a burst of 50, of which 40 are reserved for high priorities.
const RESERVE: &str = r#"
    [[rules]]
    name = "rps"
    algorithm = "token_bucket"
    limit = 10
    period = "1s"
    burst = 50
    reserve = 40
    [breaker]
    kind = "fsm"
"#;

const E429: &str = r#"{"op":"record","status":429}"#;

fn request(t: u64, cost: u64, priority: &str) -> String {
    format!("{{\"op\":\"acquire\",\"t\":{t},\"cost\":{cost},\"priority\":\"{priority}\"}}\n")
}

fn force(state: &str) -> String {
    format!("{{\"op\":\"force\",\"state\":\"{state}\"}}\n")
}

fn answer(line: &Value) -> (bool, Value, Value, Value) {
    (
        line["allowed"].as_bool().unwrap(),
        line["reason"].clone(),
        line["retry_after_ns"].clone(),
        line["remaining"].clone(),
    )
}

fn granted(remaining: u64) -> (bool, Value, Value, Value) {
    (true, Value::Null, json!(0), json!(remaining))
}

#[test]
fn r54_the_reserve_is_reduced_with_the_capacity() {
    // In Throttle: 5/s, a capacity of 25 instead of 50, and thus a reserve of 20 instead of 40.
    let script = times(3, E429)
        + &request(0, 1, "background")
        + &request(0, 4, "background")
        + &request(0, 1, "background");
    let lines =
        simulate(RESERVE, &(script + &request(0, 1, "user") + &request(86_400 * SECOND, 1, "background")));
    assert_eq!(lines[2]["state"], "throttle");
    assert_eq!(answer(&lines[3]), granted(4));
    assert_eq!(answer(&lines[4]), granted(0));
    assert_eq!(answer(&lines[5]), (false, json!("rate"), json!(SECOND / 5), json!(0)));
    assert_eq!(answer(&lines[6]), granted(19));
    assert_eq!(answer(&lines[7]), granted(4), "a day later");
}

#[test]
fn r54_background_probes_have_room_beside_the_reserve() {
    // Half open: 3/s, a capacity of 15 of 50, and thus a reserve of 12 of 40. A capacity of 1 has no reserve.
    let lines = simulate(RESERVE, &(force("half_open") + &request(0, 1, "background")));
    assert_eq!(answer(&lines[1]), granted(2));
    let slow = format!("{RESERVE}probe_rate = 0.1\n");
    let lines = simulate(&slow, &(force("half_open") + &request(0, 1, "background")));
    assert_eq!(answer(&lines[1]), granted(0));
    let all = RESERVE.replace("reserve = 40", "reserve = 50");
    let script = request(0, 1, "background")
        + &force("throttle")
        + &request(0, 1, "background")
        + &request(0, 1, "background");
    let lines = simulate(&all, &script);
    assert_eq!(lines[0]["reason"], "cost_exceeds_limit", "the configured reserve takes the whole capacity");
    assert_eq!(answer(&lines[2]), granted(0), "a reduced capacity leaves at least one unit");
    assert_eq!(answer(&lines[3]), (false, json!("rate"), json!(SECOND / 5), json!(0)));
}

#[test]
fn r62_the_reserve_grows_with_the_ramp() {
    let ok = "{\"op\":\"record\",\"status\":200}";
    let mut script = force("half_open") + &times(5, ok);
    for step in 0..9_u64 {
        script += &format!("{{\"op\":\"acquire\",\"cost\":0,\"t\":{}}}\n", (300 * step + 299) * SECOND);
    }
    let lines = simulate(RESERVE, &script);
    let left: Vec<u64> = lines[6..].iter().map(|line| line["remaining"].as_u64().unwrap()).collect();
    // 5/s with a capacity of 25, then steps of a tenth: 27, 30, 33, 36, 40, 44, 48, 50, each less a reserve of
    // four fifths.
    assert_eq!(left, [5, 6, 6, 7, 8, 8, 9, 10, 10]);
}

#[test]
fn r6_a_cost_above_the_reduced_capacity_is_granted_when_the_bucket_is_full() {
    let script = force("throttle")
        + &request(0, 5, "user")
        + &request(0, 40, "user")
        + &request(SECOND - 1, 40, "user")
        + &request(SECOND, 40, "user")
        + &request(SECOND, 1, "user")
        + &request(4 * SECOND, 1, "user")
        + &request(4 * SECOND + SECOND / 5, 1, "user")
        + &request(5 * SECOND, 51, "user");
    let lines = simulate(RESERVE, &script);
    assert_eq!(answer(&lines[1]), granted(20));
    assert_eq!(answer(&lines[2]), (false, json!("rate"), json!(SECOND), json!(20)));
    assert_eq!(answer(&lines[3]), (false, json!("rate"), json!(1), json!(24)));
    assert_eq!(answer(&lines[4]), granted(0), "25 - 40 is 15 below zero");
    assert_eq!(answer(&lines[5]), (false, json!("rate"), json!(3 * SECOND + SECOND / 5), json!(0)));
    assert_eq!(answer(&lines[6]), (false, json!("rate"), json!(SECOND / 5), json!(0)));
    assert_eq!(answer(&lines[7]), granted(0));
    assert_eq!(answer(&lines[8]), (false, json!("cost_exceeds_limit"), Value::Null, json!(4)));
}

#[test]
fn r6_a_large_background_cost_is_granted_when_the_bucket_is_full() {
    // Beside the whole reserve, 10 units fit; in a capacity of 25 with a reserve of 20, only 5 fit.
    let script = force("throttle")
        + &request(0, 1, "user")
        + &request(0, 10, "background")
        + &request(SECOND / 5, 10, "background")
        + &request(SECOND / 5, 11, "background")
        + &request(SECOND / 5, 1, "background");
    let lines = simulate(RESERVE, &script);
    assert_eq!(answer(&lines[2]), (false, json!("rate"), json!(SECOND / 5), json!(4)));
    assert_eq!(answer(&lines[3]), granted(0));
    assert_eq!(lines[4]["reason"], "cost_exceeds_limit", "11 beside 40 never fit");
    assert_eq!(
        answer(&lines[5]),
        (false, json!("rate"), json!(6 * SECOND / 5), json!(0)),
        "15 left, 21 needed"
    );
}

#[test]
fn r6_debts_are_kept_when_the_state_changes_and_paid_back_by_a_cancel() {
    let script = force("throttle")
        + &request(0, 50, "user")
        + &force("normal")
        + &request(0, 1, "user")
        + &request(0, 1, "background");
    let lines = simulate(RESERVE, &script);
    assert_eq!(
        answer(&lines[3]),
        (false, json!("rate"), json!(26 * SECOND / 10), json!(0)),
        "25 below zero, at 10/s"
    );
    assert_eq!(answer(&lines[4]), (false, json!("rate"), json!(66 * SECOND / 10), json!(0)));
    let script = force("throttle")
        + &request(1, 50, "user")
        + &format!("{{\"op\":\"cancel\",\"t\":{}}}\n", 6 * SECOND)
        + &request(6 * SECOND, 0, "user");
    let lines = simulate(RESERVE, &script);
    assert_eq!(answer(&lines[3]), granted(25), "a cancelled call leaves a full bucket");
}

#[test]
fn r4_a_large_cost_is_granted_after_the_named_wait_in_every_state() {
    for state in ["normal", "throttle", "half_open"] {
        for cost in [16, 26, 48, 50] {
            let before = force(state) + &request(7, 3, "user") + "{\"op\":\"release\"}\n";
            let lines = simulate(RESERVE, &(before.clone() + &request(7, cost, "user")));
            let wait = lines[3]["retry_after_ns"].as_u64().unwrap();
            if wait == 0 {
                assert!(state != "half_open" && cost < 48, "{state} {cost}");
                continue;
            }
            let lines = simulate(
                RESERVE,
                &(before + &request(6 + wait, cost, "user") + &request(7 + wait, cost, "user")),
            );
            let allowed = [&lines[3]["allowed"], &lines[4]["allowed"]];
            assert_eq!(allowed, [&json!(false), &json!(true)], "{state} {cost}");
        }
    }
}

/// A ramp step raises both capacity and reserve. A call that needs one of them then waits longer than the rate before
/// the step suggests.
#[test]
fn r4_a_wait_that_a_ramp_step_interrupts_is_neither_too_short_nor_too_long() {
    let ok = "{\"op\":\"record\",\"status\":200}";
    // 5/s with a capacity of 25 of 50 and a reserve of 20; from 300 s on 5.5/s with 27 and 21. At 300 s the bucket
    // holds 20.5, or 24.5.
    for (taken_at, cost, priority, ready) in [
        (295_900_000_000, 1, "background", 300 * SECOND + 1_500_000_000 * 10 / 55 + 1),
        (295_100_000_000, 40, "user", 300 * SECOND + 2_500_000_000 * 10 / 55 + 1),
    ] {
        let script = force("half_open")
            + &times(5, ok)
            + &request(taken_at, 25, "user")
            + &request(taken_at, cost, priority)
            + &request(ready - 1, cost, priority)
            + &request(ready, cost, priority);
        let lines = simulate(RESERVE, &script);
        assert_eq!(lines[6]["allowed"], true);
        assert_eq!(lines[7]["retry_after_ns"], ready - taken_at, "{priority}");
        assert_eq!([&lines[8]["allowed"], &lines[9]["allowed"]], [false, true], "{priority}");
    }
}
