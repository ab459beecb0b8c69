//! The five states of the breaker as scripts: what changes them, when, and why.

use super::{MINUTE, MS, SECOND, TMDB, keys, moves, simulate, times, transitions};
use serde_json::{Value, json};

const OK: &str = r#"{"op":"record","status":200}"#;
const E429: &str = r#"{"op":"record","status":429}"#;
const E500: &str = r#"{"op":"record","status":500}"#;
const ACQUIRE: &str = r#"{"op":"acquire"}"#;

fn at(t: u64, line: &str) -> String {
    format!("{},\"t\":{t}}}\n", line.trim_end_matches('}'))
}

fn force(state: &str) -> String {
    format!("{{\"op\":\"force\",\"state\":\"{state}\"}}\n")
}

fn status(t: u64) -> String {
    format!("{{\"op\":\"advance\",\"t\":{t}}}\n")
}

/// The rate, the concurrency and the time to the end of the sleep.
fn fsm(line: &Value) -> (f64, Option<u64>, u64) {
    (line["rate"].as_f64().unwrap(), line["concurrency"].as_u64(), line["eta_ns"].as_u64().unwrap())
}

#[test]
fn every_line_says_rate_concurrency_and_eta() {
    let script = "{\"op\":\"acquire\"}\n{\"op\":\"release\"}\n{\"op\":\"advance\",\"ns\":0}\n{\"op\":\"force\",\"state\":\"normal\"}";
    for line in simulate(TMDB, script) {
        assert_eq!(fsm(&line), (35.0, Some(4), 0), "{line}");
    }
    let unlimited = "[breaker]\nkind = \"fsm\"\n";
    let line = &simulate(unlimited, &status(0))[0];
    assert_eq!(keys(line), ["concurrency", "eta_ns", "i", "op", "rate", "state", "t", "transitions"]);
    assert_eq!(fsm(line), (35.0, None, 0), "35 unless a rule sets another rate");
    let line = &simulate("", &status(0))[0];
    assert_eq!(keys(line), ["i", "op", "state", "t", "transitions"]);
}

#[test]
fn r51_r54_three_429_throttle_at_half_the_rate() {
    let lines = simulate(TMDB, &(times(3, E429) + &times(40, ACQUIRE)));
    assert_eq!(moves(&lines), ["normal>throttle consec_429 @0"]);
    assert_eq!(
        lines[2]["transitions"][0],
        json!({"t": 0, "from": "normal", "to": "throttle", "reason": "consec_429"})
    );
    assert_eq!((fsm(&lines[2]), &lines[2]["consec429"]), ((17.0, Some(2), 0), &json!(3)));
    assert_eq!(lines[5]["reason"], "concurrency", "two permits, not four");
    assert_eq!(lines[4]["remaining"], 15, "the capacity is 17 as well");
}

#[test]
fn r54_the_throttled_rate_is_never_below_five_nor_above_the_full_one() {
    for (base, throttled) in [("35.0", 17.0), ("100.0", 50.0), ("8.0", 5.0), ("4.0", 4.0), ("11.9", 5.0)] {
        let config = format!("{TMDB}[breaker]\nrate_base = {base}\n");
        let lines = simulate(&config, &force("throttle"));
        assert_eq!(fsm(&lines[0]).0, throttled, "{base}");
    }
}

#[test]
fn the_rate_of_a_rule_is_reported_exactly() {
    let rule = |limit, period| {
        format!(
            "[[rules]]\nalgorithm = \"token_bucket\"\nlimit = {limit}\nperiod = \"{period}s\"\n[breaker]\nkind = \"fsm\"\n"
        )
    };
    for (limit, period) in [(7, 3), (1000, 86_400), (35, 1)] {
        let lines = simulate(&rule(limit, period), &(status(0) + &force("sleep")));
        // Compare approximately: parsing the number may be off in the last place.
        let (said, is) = (fsm(&lines[0]).0, f64::from(limit) / f64::from(period));
        assert!((said - is).abs() < 1e-15, "{said} is not {is}");
        assert_eq!(fsm(&lines[1]).0, 0.0);
    }
}

#[test]
fn r120_eleven_errors_of_fifty_throttle() {
    let lines = simulate(TMDB, &(times(39, OK) + &times(11, E500)));
    assert_eq!(
        lines[48]["transitions"],
        json!([]),
        "10 of 49 is the first evaluation, and two in a row must agree"
    );
    assert_eq!(lines[48]["err_rate"], 10.0 / 49.0);
    assert_eq!(moves(&lines), ["normal>throttle error_ratio @0"]);
    assert_eq!(transitions(&lines[49..]).len(), 1);
    assert_eq!((&lines[49]["samples"], &lines[49]["err_rate"]), (&json!(50), &json!(0.22)));
}

#[test]
fn r52_a_ratio_equal_to_the_threshold_counts_and_a_success_may_confirm_it() {
    // 2 of 10 are 20 %, 2 of 11 are less; 3 of 12 are more, and 3 of 13 confirm it.
    let script = times(8, OK) + &times(2, E500) + &times(1, OK) + &times(1, E500) + &times(1, OK);
    let lines = simulate(TMDB, &script);
    assert_eq!(lines[9]["err_rate"], 0.2);
    assert_eq!(transitions(&lines[..12]), []);
    assert_eq!(lines[12]["state"], "throttle", "R53: a good evaluation in between starts the count over");
    assert_eq!(lines[12]["class"], "ok");
}

#[test]
fn r47_too_few_outcomes_have_no_ratio() {
    let lines = simulate(TMDB, &times(9, E500));
    assert_eq!(moves(&lines), [""; 0]);
    assert_eq!(lines[8]["err_rate"], 1.0);
    let lines = simulate(TMDB, &times(11, E500));
    assert_eq!(moves(&lines), ["normal>throttle error_ratio @0"]);
    assert_eq!(lines[9]["state"], "normal", "the tenth is the first evaluation");
}

#[test]
fn r55_ten_successes_and_a_low_ratio_end_throttle() {
    // The errors that led to Throttle must first leave the window.
    let mut script = times(3, E429);
    script += &(at(31 * SECOND, OK) + &times(8, OK));
    script += &times(1, OK);
    script += &times(1, OK);
    let lines = simulate(TMDB, &script);
    assert_eq!(lines[12]["state"], "throttle", "the tenth success is the first good evaluation");
    assert_eq!(lines[13]["transitions"][0]["reason"], "success_window_ok");
    assert_eq!(fsm(&lines[13]), (3.0, Some(1), 0));
}

#[test]
fn r55_errors_do_not_reset_the_successes() {
    let mut script = times(3, E429) + &at(31 * SECOND, OK);
    script += &(times(8, OK) + &times(1, E500));
    // 9 successes and 1 error are 10 %, which is not below the threshold; with more successes the ratio is.
    script += &times(2, OK);
    let lines = simulate(TMDB, &script);
    assert_eq!(lines[13]["state"], "throttle");
    assert_eq!(lines[14]["state"], "half_open");
}

#[test]
fn r56_the_fifth_429_in_a_row_puts_to_sleep_even_across_a_transition() {
    let lines = simulate(TMDB, &times(5, E429));
    assert_eq!(moves(&lines), ["normal>throttle consec_429 @0", "throttle>sleep consec_429 @0"]);
    assert_eq!((&lines[4]["state"], &lines[4]["consec429"]), (&json!("sleep"), &json!(5)));
    assert_eq!(fsm(&lines[4]), (0.0, Some(4), 2 * SECOND));
    let broken = times(4, E429) + &times(1, OK) + &times(4, E429);
    assert_eq!(moves(&simulate(TMDB, &broken)).len(), 1, "a success in between ends the run of 429");
}

/// An error every second for `seconds` seconds, starting at `from`.
fn failing(from: u64, seconds: u64) -> String {
    (0..=seconds).map(|i| at(from + i * SECOND, E500)).collect()
}

#[test]
fn r56_errors_for_five_minutes_put_to_sleep() {
    let lines = simulate(TMDB, &failing(0, 320));
    // The tenth error is the first evaluation, at 9 s.
    assert_eq!(
        moves(&lines),
        [
            format!("normal>throttle error_ratio @{}", 10 * SECOND),
            format!("throttle>sleep sustained_errors @{}", 309 * SECOND),
            format!("sleep>half_open sleep_expired @{}", 311 * SECOND),
            format!("half_open>sleep probe_failed @{}", 311 * SECOND),
            format!("sleep>half_open sleep_expired @{}", 315 * SECOND),
            format!("half_open>sleep probe_failed @{}", 315 * SECOND),
        ]
    );
}

#[test]
fn r56_a_window_that_ran_empty_starts_the_five_minutes_over() {
    let script = failing(0, 200) + &failing(231 * SECOND, 299);
    let lines = simulate(TMDB, &script);
    assert_eq!(moves(&lines).len(), 1, "{:?}", moves(&lines));
    // Nine more errors make enough samples again; the five minutes count from then.
    let script = failing(0, 200) + &failing(231 * SECOND, 9 + 300);
    assert!(
        moves(&simulate(TMDB, &script))[1]
            .contains(&format!("sustained_errors @{}", (231 + 9 + 300) * SECOND))
    );
}

#[test]
fn r57_cooldown_doubles_and_caps() {
    let mut script = times(5, E429);
    let mut t = 0;
    let mut cooldown = 2 * SECOND;
    let mut expected = Vec::new();
    for _ in 0..9 {
        t += cooldown;
        script += &at(t, E429);
        expected.push(format!("sleep>half_open sleep_expired @{t}"));
        expected.push(format!("half_open>sleep probe_failed @{t}"));
        cooldown = (2 * cooldown).min(300 * SECOND);
    }
    let lines = simulate(TMDB, &script);
    assert_eq!(moves(&lines)[2..], expected);
    assert_eq!(lines.last().unwrap()["eta_ns"], 300 * SECOND);
}

#[test]
fn r57_a_longer_retry_after_is_the_longer_sleep() {
    let longer = r#"{"op":"record","status":429,"retry_after":"400"}"#;
    let lines = simulate(TMDB, &(times(4, E429) + &times(1, longer) + &status(400 * SECOND)));
    assert_eq!(lines[4]["eta_ns"], 400 * SECOND, "the cap applies to the cooldown, not to the server's time");
    assert_eq!(moves(&lines)[2], format!("sleep>half_open sleep_expired @{}", 400 * SECOND));
}

#[test]
fn r58_sleep_blocks_all_and_ends_by_itself_at_its_time() {
    let script = times(5, E429)
        + ACQUIRE
        + "\n{\"op\":\"acquire\",\"priority\":\"webhook\"}\n{\"op\":\"acquire\",\"cost\":0}\n"
        + &at(2 * SECOND - 1, ACQUIRE)
        + &status(MINUTE);
    let lines = simulate(TMDB, &script);
    for line in &lines[5..8] {
        assert_eq!((&line["allowed"], &line["reason"]), (&json!(false), &json!("sleep")), "{line}");
        assert_eq!((&line["retry_after_ns"], &line["rule"]), (&json!(2 * SECOND), &Value::Null));
    }
    assert_eq!((&lines[8]["retry_after_ns"], &lines[8]["eta_ns"]), (&json!(1), &json!(1)));
    assert_eq!((&lines[9]["state"], &lines[9]["t"]), (&json!("half_open"), &json!(MINUTE)));
    assert_eq!(
        lines[9]["transitions"][0]["t"],
        2 * SECOND,
        "the transition has its due time, not the time of the next call"
    );
}

#[test]
fn r59_late_outcomes_do_not_change_a_sleep_but_a_longer_retry_after_does() {
    let mut script = times(5, E429) + &times(3, E429);
    script += &at(SECOND, r#"{"op":"record","status":503,"retry_after":"10"}"#);
    script += &at(SECOND, r#"{"op":"record","status":503,"retry_after":"3"}"#);
    script += &status(2 * SECOND);
    let lines = simulate(TMDB, &script);
    let eta: Vec<_> = lines[4..].iter().map(|line| line["eta_ns"].as_u64().unwrap() / SECOND).collect();
    assert_eq!(eta, [2, 2, 2, 2, 10, 10, 9]);
    assert_eq!(moves(&lines).len(), 2);
}

#[test]
fn r60_half_open_probes_one_at_a_time_with_a_clear_window() {
    let script = times(5, E429) + &at(2 * SECOND, ACQUIRE) + ACQUIRE + "\n" + OK + "\n" + ACQUIRE;
    let lines = simulate(TMDB, &script);
    assert_eq!(
        (&lines[5]["allowed"], &lines[5]["transitions"][0]["to"]),
        (&json!(true), &json!("half_open"))
    );
    assert_eq!(fsm(&lines[5]), (3.0, Some(1), 0));
    assert_eq!(lines[6]["reason"], "concurrency");
    assert_eq!((&lines[7]["samples"], &lines[7]["err_rate"]), (&json!(1), &json!(0.0)));
    assert_eq!(lines[8]["allowed"], true);
}

#[test]
fn r121_five_of_five_probes_succeed() {
    let script = times(5, E429) + &status(2 * SECOND) + &times(5, OK) + ACQUIRE;
    let lines = simulate(TMDB, &script);
    assert_eq!(lines[9]["state"], "half_open");
    assert_eq!(lines[10]["transitions"][0]["reason"], "probe_ok");
    assert_eq!(fsm(&lines[10]), (17.0, Some(4), 0), "R62: the ramp starts at the throttled rate");
    assert_eq!(lines[10]["samples"], 5);
}

#[test]
fn r121_one_failure_in_three_probes_is_enough() {
    for bad in [E429, E500, r#"{"op":"record","error":"dns"}"#] {
        let script = times(5, E429) + &status(2 * SECOND) + &times(2, OK) + bad;
        let lines = simulate(TMDB, &script);
        assert_eq!(lines[8]["transitions"][0]["reason"], "probe_failed");
        assert_eq!(fsm(&lines[8]), (0.0, Some(4), 4 * SECOND));
    }
    let script = times(5, E429) + &status(2 * SECOND) + &times(20, r#"{"op":"record","status":404}"#);
    assert_eq!(simulate(TMDB, &script).last().unwrap()["state"], "half_open", "R61: 404 is neither");
}

#[test]
fn r62_the_ramp_rises_by_a_tenth_every_five_minutes() {
    let mut script = force("half_open") + &times(5, OK);
    script +=
        &(1..=9).map(|i| status(i * 5 * MINUTE) + &status((i + 1) * 5 * MINUTE - 1)).collect::<String>();
    let lines = simulate(TMDB, &script);
    let rates: Vec<_> = lines[5..].iter().map(|line| line["rate"].as_f64().unwrap()).collect();
    let steps = [17.0, 18.7, 20.57, 22.627, 24.8897, 27.37867, 30.116537, 33.128_190_7, 35.0, 35.0];
    for (i, rate) in rates.iter().enumerate() {
        let step = steps[i.div_ceil(2)];
        assert!((rate - step).abs() < 1e-6, "{i}: {rate}, not {step}");
    }
    assert_eq!(moves(&lines).len(), 2, "steps of the ramp are not transitions");
}

#[test]
fn r62_throttle_ends_the_ramp() {
    let script =
        force("half_open") + &times(5, OK) + &status(5 * MINUTE) + &times(3, E429) + &status(60 * MINUTE);
    let lines = simulate(TMDB, &script);
    assert_eq!((fsm(&lines[6]).0, fsm(&lines[9]).0), (18.7, 17.0));
    assert_eq!((&lines[10]["state"], fsm(&lines[10]).0), (&json!("throttle"), 17.0));
}

#[test]
fn r63_offline_lasts_until_online() {
    let script =
        force("offline") + ACQUIRE + "\n" + &status(1000 * MINUTE) + &force("online") + &force("online");
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[0]["state"], fsm(&lines[0])), (&json!("sleep"), (0.0, Some(4), 0)));
    assert_eq!((&lines[1]["reason"], &lines[1]["retry_after_ns"]), (&json!("sleep"), &Value::Null));
    assert_eq!(lines[2]["state"], "sleep");
    assert_eq!((&lines[3]["state"], &lines[4]["transitions"]), (&json!("half_open"), &json!([])));
}

#[test]
fn r64_cache_only_waits_for_the_operator() {
    let script = force("cache_only") + ACQUIRE + "\n" + &status(1000 * MINUTE) + &force("online");
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[1]["reason"], &lines[1]["retry_after_ns"]), (&json!("cache_only"), &Value::Null));
    assert_eq!((fsm(&lines[2]).0, &lines[2]["state"]), (0.0, &json!("cache_only")));
    assert_eq!(lines[3]["state"], "half_open");
}

#[test]
fn r65_auto_recover_tries_every_quarter_of_an_hour() {
    let config = format!("{TMDB}[breaker]\nauto_recover = \"15m\"\n");
    let q = 15 * MINUTE;
    let script = force("cache_only") + &at(q + 2 * SECOND, E500) + &status(3 * q) + &times(5, OK);
    let lines = simulate(&config, &script);
    assert_eq!(
        moves(&lines),
        [
            "normal>cache_only forced @0".to_owned(),
            format!("cache_only>sleep auto_recover @{q}"),
            format!("sleep>half_open sleep_expired @{}", q + 2 * SECOND),
            format!("half_open>cache_only probe_failed @{}", q + 2 * SECOND),
            format!("cache_only>sleep auto_recover @{}", 2 * q + 2 * SECOND),
            format!("sleep>half_open sleep_expired @{}", 2 * q + 4 * SECOND),
            format!("half_open>normal probe_ok @{}", 3 * q),
        ]
    );
}

#[test]
fn r66_an_operator_forces_any_state_and_normal_starts_afresh() {
    let states = ["throttle", "sleep", "half_open", "cache_only", "normal"];
    for from in states {
        for to in states {
            let lines = simulate(TMDB, &(force(from) + &force(to)));
            assert_eq!(lines[1]["state"], to);
            let moved = lines[1]["transitions"].as_array().unwrap();
            assert_eq!(moved.len(), usize::from(from != to), "{from} to {to}");
            assert!(moved.iter().all(|it| it["reason"] == "forced"));
        }
    }
    let script = times(5, E429) + &force("normal") + OK + "\n" + &times(5, E429);
    let lines = simulate(TMDB, &script);
    assert_eq!(fsm(&lines[5]), (35.0, Some(4), 0));
    assert_eq!(lines[6]["samples"], 1, "the outcome window is cleared");
    assert_eq!(lines.last().unwrap()["eta_ns"], 2 * SECOND, "the cooldowns start over as well");
}

#[test]
fn r122_rising_network_errors_throttle_and_404_never() {
    let errors =
        ["dns", "connect_timeout"].map(|kind| format!("{{\"op\":\"record\",\"error\":\"{kind}\"}}\n"));
    let script = times(20, OK) + &errors.concat().repeat(3);
    assert_eq!(moves(&simulate(TMDB, &script)), ["normal>throttle error_ratio @0"]);
    assert_eq!(moves(&simulate(TMDB, &times(500, r#"{"op":"record","status":404}"#))), [""; 0]);
    let ignoring = format!("count_network_errors = false\n{TMDB}");
    let lines = simulate(&ignoring, &script);
    assert_eq!(moves(&lines), [""; 0], "R139");
    assert_eq!(
        (&lines[25]["class"], &lines[25]["samples"], &lines[25]["retry"]),
        (&json!("net"), &json!(20), &json!(false))
    );
}

#[test]
fn r133_a_probe_that_never_reports_is_written_off() {
    let script = force("half_open") + ACQUIRE + "\n" + &at(MINUTE - 1, ACQUIRE) + &at(MINUTE, ACQUIRE);
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[2]["reason"], &lines[3]["allowed"]), (&json!("concurrency"), &json!(true)));
}

#[test]
fn r133_the_permit_of_a_probe_written_off_returns() {
    let free = "{\"op\":\"release\"}\n";
    let script = force("half_open") + ACQUIRE + "\n" + &at(MINUTE, ACQUIRE) + ACQUIRE + "\n" + free + ACQUIRE;
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[3]["reason"], &lines[4]["in_flight"]), (&json!("concurrency"), &json!(0)));
    assert_eq!(lines[5]["allowed"], true);
    // The permit is available again also after the breaker has recovered.
    let script =
        force("half_open") + ACQUIRE + "\n" + &at(MINUTE, ACQUIRE) + OK + "\n" + ACQUIRE + "\n" + ACQUIRE;
    let lines = simulate("concurrency = 1\n[breaker]\nkind = \"fsm\"\ns_probe_ok = 1\n", &script);
    assert_eq!((&lines[3]["state"], &lines[4]["allowed"]), (&json!("normal"), &json!(true)));
    assert_eq!(lines[5]["reason"], "concurrency");
}

#[test]
fn r140_without_a_grant_an_outcome_counts_as_a_probe() {
    // The call was granted long before; its outcome still counts as a failed probe.
    let script = format!("{ACQUIRE}\n{}{}", times(5, E429), at(2 * SECOND, E500));
    assert_eq!(moves(&simulate(TMDB, &script))[3], format!("half_open>sleep probe_failed @{}", 2 * SECOND));
}

#[test]
fn r141_too_many_sleeps_lead_to_cache_only() {
    let config = format!("{TMDB}[breaker]\ncache_only_after = 2\n");
    let script = times(5, E429) + &at(2 * SECOND, E500) + &at(6 * SECOND, E500);
    let lines = simulate(&config, &script);
    assert_eq!(lines[5]["state"], "sleep");
    assert_eq!(moves(&lines)[5], format!("half_open>cache_only probe_failed @{}", 6 * SECOND));
}

#[test]
fn a_refusal_names_the_first_layer_that_blocks() {
    // The order is: sleep, gate, permits, rate.
    let mut script = times(4, ACQUIRE)
        + &times(4, r#"{"op":"record","status":429,"retry_after":"1"}"#)
        + &times(4, ACQUIRE);
    script += &(E429.to_owned() + "\n" + ACQUIRE + "\n");
    script += &(force("normal") + ACQUIRE + "\n" + &force("clear_gate"));
    script += "{\"op\":\"acquire\",\"cost\":1,\"n\":9}\n{\"op\":\"acquire\",\"cost\":34}\n{\"op\":\"release\"}\n{\"op\":\"acquire\",\"cost\":34}";
    let lines = simulate(TMDB, &script);
    let reason = |i: usize| lines[i]["reason"].as_str().unwrap();
    assert_eq!([reason(8), reason(13), reason(15)], ["retry_after", "sleep", "retry_after"]);
    assert_eq!([reason(17), reason(18), reason(20)], ["concurrency", "concurrency", "rate"]);
}

#[test]
fn tokens_are_clipped_and_grow_back_at_the_rate_of_the_state() {
    let script = force("throttle")
        + "{\"op\":\"acquire\",\"cost\":17}\n"
        + &format!("{{\"op\":\"acquire\",\"cost\":0,\"t\":{}}}", 500 * MS);
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[1]["remaining"], &lines[2]["remaining"]), (&json!(0), &json!(8)));
}
