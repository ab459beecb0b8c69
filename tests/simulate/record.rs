//! The answers to `record`: classes, the outcome window, waits and retries.

use super::{SECOND, Simulation, TMDB, simulate, times};
use serde_json::{Value, json};

const STEADY: &str = "[backoff]\njitter = \"none\"\n";

fn record(fields: &str) -> String {
    format!("{{\"op\":\"record\",{fields}}}\n")
}

#[test]
fn the_answer_to_record_has_exactly_these_fields() {
    let lines = simulate(STEADY, &(record("\"status\":200") + &record("\"status\":500,\"t\":5")));
    let well = json!({
        "i": 0, "t": 0, "op": "record", "state": "normal", "transitions": [],
        "class": "ok", "samples": 1, "err_rate": 0.0, "consec429": 0,
        "sleep_source": null, "sleep_max_ns": 0, "sleep_ns": 0, "retry": false,
    });
    let failed = json!({
        "i": 1, "t": 5, "op": "record", "state": "normal", "transitions": [],
        "class": "5xx", "samples": 2, "err_rate": 0.5, "consec429": 0,
        "sleep_source": "backoff", "sleep_max_ns": 1_500_000_000, "sleep_ns": 1_500_000_000, "retry": true,
    });
    assert_eq!(lines, [well, failed]);
    let text =
        Simulation::new(STEADY).command().write_stdin(record("\"status\":200")).output().unwrap().stdout;
    assert!(
        String::from_utf8(text).unwrap().contains("\"err_rate\":0.0,"),
        "a ratio is a float even if its value is whole"
    );
}

#[test]
fn r43_r45_every_outcome_has_its_class() {
    let cases = [
        ("\"status\":100", "ok"),
        ("\"status\":204", "ok"),
        ("\"status\":304", "ok"),
        ("\"status\":399", "ok"),
        ("\"status\":400", "ignored"),
        ("\"status\":404", "ignored"),
        ("\"status\":429", "429"),
        ("\"status\":499", "ignored"),
        ("\"status\":500", "5xx"),
        ("\"status\":599", "5xx"),
        ("\"error\":\"connect_timeout\"", "net"),
        ("\"error\":\"read_timeout\"", "net"),
        ("\"error\":\"dns\"", "net"),
        ("\"error\":\"connection\"", "net"),
    ];
    let script: String = cases.iter().map(|(fields, _)| record(fields)).collect();
    for (line, (fields, class)) in simulate("", &script).iter().zip(cases) {
        assert_eq!(line["class"], class, "{fields}");
    }
}

#[test]
fn r44_other_4xx_do_not_change_the_window() {
    let mut script = record("\"status\":429") + &record("\"status\":429") + &record("\"status\":404");
    script += &record(&format!("\"status\":404,\"t\":{}", 30 * SECOND - 1));
    script += &record(&format!("\"status\":404,\"t\":{}", 30 * SECOND));
    let lines = simulate(STEADY, &script);
    let seen = |i: usize| (lines[i]["samples"].as_u64().unwrap(), lines[i]["consec429"].as_u64().unwrap());
    assert_eq!([seen(2), seen(3), seen(4)], [(2, 2), (2, 2), (0, 2)]);
    assert_eq!((&lines[2]["sleep_source"], &lines[2]["retry"]), (&Value::Null, &json!(false)));
    assert_eq!(lines[4]["err_rate"], 0.0);
}

#[test]
fn r42_the_window_is_bounded_by_age_and_by_count() {
    let mut script = times(4, "{\"op\":\"record\",\"status\":500}");
    script += &record(&format!("\"status\":200,\"t\":{}", 10 * SECOND - 1));
    script += &record(&format!("\"status\":200,\"t\":{}", 10 * SECOND));
    let config = "[window]\nmax_age = \"10s\"\nmax_count = 3\n";
    let lines = simulate(config, &script);
    let seen: Vec<_> = lines
        .iter()
        .map(|line| (line["samples"].as_u64().unwrap(), line["err_rate"].as_f64().unwrap()))
        .collect();
    assert_eq!(seen, [(1, 1.0), (2, 1.0), (3, 1.0), (3, 1.0), (3, 2.0 / 3.0), (2, 0.0)]);
}

#[test]
fn r48_consec429_is_broken_by_anything_that_counts() {
    let script: String = ["429", "429", "404", "429", "503", "429", "200", "429"]
        .map(|status| record(&format!("\"status\":{status}")))
        .concat()
        + &record("\"error\":\"dns\"");
    let runs: Vec<_> = simulate("", &script).iter().map(|line| line["consec429"].as_u64().unwrap()).collect();
    assert_eq!(runs, [1, 2, 2, 3, 0, 1, 0, 1, 0]);
}

#[test]
fn r74_ceilings_grow_to_the_cap() {
    let lines = simulate(STEADY, &times(7, "{\"op\":\"record\",\"status\":503}"));
    let ceilings: Vec<_> =
        lines.iter().map(|line| line["sleep_max_ns"].as_u64().unwrap() / 100_000_000).collect();
    assert_eq!(ceilings, [15, 30, 60, 120, 240, 300, 300]);
    let lines = simulate(STEADY, &record("\"status\":503,\"attempt\":18446744073709551615"));
    assert_eq!(lines[0]["sleep_max_ns"], 30 * SECOND);
}

#[test]
fn r76_r77_retries_by_class_and_by_run() {
    let mut script = record("\"status\":503,\"attempt\":2,\"priority\":\"user\"");
    script += &record("\"status\":503,\"attempt\":3,\"priority\":\"user\"");
    script += &record("\"status\":503,\"attempt\":3,\"priority\":\"webhook\"");
    script += &record("\"status\":503,\"attempt\":5");
    script += &record("\"status\":503,\"attempt\":6");
    // The sixth failure of a run, and the first one after a success.
    script += &record("\"status\":503");
    script += &record("\"status\":200");
    script += &record("\"status\":404");
    script += &record("\"status\":503");
    let retries: Vec<_> =
        simulate(STEADY, &script).iter().map(|line| line["retry"].as_bool().unwrap()).collect();
    assert_eq!(retries, [true, false, false, true, false, false, false, false, true]);
}

#[test]
fn r69_to_r73_every_form_of_retry_after_is_understood() {
    // 784111777 s is Sunday, 6 November 1994, 08:49:37 GMT.
    let config = "epoch_ns = 784111777000000000\n[backoff]\njitter = \"none\"\n";
    let cases = [
        ("2", "retry_after", 2 * SECOND),
        ("0", "retry_after", SECOND),
        ("-5", "retry_after", SECOND),
        (" 3 ", "retry_after", 3 * SECOND),
        ("1.5", "retry_after", 1_500_000_000),
        ("999999999", "retry_after", 86_400 * SECOND),
        ("Sun, 06 Nov 1994 08:49:47 GMT", "retry_after", 10 * SECOND),
        ("Sunday, 06-Nov-94 08:49:47 GMT", "retry_after", 10 * SECOND),
        ("Sun Nov  6 08:49:47 1994", "retry_after", 10 * SECOND),
        ("Sun, 06 Nov 1994 08:49:07 GMT", "retry_after", SECOND),
        ("soon", "backoff", 1_500_000_000),
        ("", "backoff", 1_500_000_000),
    ];
    for (text, source, wait) in cases {
        let script = format!(
            "{}{}",
            record(&format!("\"status\":429,\"retry_after\":{text:?}")),
            "{\"op\":\"acquire\"}"
        );
        let lines = simulate(config, &script);
        assert_eq!(
            (&lines[0]["sleep_source"], &lines[0]["sleep_ns"]),
            (&json!(source), &json!(wait)),
            "{text:?}"
        );
        let gate = if source == "retry_after" { json!(wait) } else { json!(0) };
        assert_eq!(lines[1]["retry_after_ns"], gate, "{text:?}");
    }
}

#[test]
fn r118_a_call_succeeds_after_a_retry_after_of_two_seconds() {
    let script = format!(
        "{{\"op\":\"acquire\"}}\n{}{{\"op\":\"acquire\",\"t\":{}}}\n{{\"op\":\"acquire\",\"t\":{}}}\n{}",
        record("\"status\":429,\"retry_after\":\"2\""),
        2 * SECOND - 1,
        2 * SECOND,
        record("\"status\":200"),
    );
    let lines = simulate(TMDB, &script);
    assert_eq!((&lines[2]["reason"], &lines[2]["retry_after_ns"]), (&json!("retry_after"), &json!(1)));
    assert_eq!(lines[2]["state"], "normal");
    assert_eq!((&lines[3]["allowed"], &lines[4]["class"]), (&json!(true), &json!("ok")));
}

#[test]
fn r73_a_success_with_retry_after_closes_nothing_and_the_later_of_two_wins() {
    let mut script = record("\"status\":200,\"retry_after\":\"9\"") + "{\"op\":\"acquire\",\"cost\":0}\n";
    script +=
        &(record("\"status\":503,\"retry_after\":\"9\"") + &record("\"status\":503,\"retry_after\":\"4\""));
    script +=
        "{\"op\":\"acquire\",\"cost\":0}\n{\"op\":\"force\",\"state\":\"clear_gate\"}\n{\"op\":\"acquire\"}";
    let lines = simulate("", &script);
    assert_eq!((&lines[0]["sleep_source"], &lines[1]["allowed"]), (&Value::Null, &json!(true)));
    assert_eq!(
        (&lines[4]["reason"], &lines[4]["retry_after_ns"]),
        (&json!("retry_after"), &json!(9 * SECOND))
    );
    assert_eq!(lines[6]["allowed"], true, "R142: an operator may open the gate");
}

#[test]
fn r119_jitter_is_uniform_from_nothing_to_the_ceiling() {
    let count = 20_000;
    let lines = simulate("", &times(count, "{\"op\":\"record\",\"status\":503,\"attempt\":1}"));
    let ceiling = 1.5e9;
    let waits: Vec<f64> = lines.iter().map(|line| line["sleep_ns"].as_f64().unwrap()).collect();
    assert!(waits.iter().all(|wait| (0.0..=ceiling).contains(wait)));
    let mean = waits.iter().sum::<f64>() / count as f64;
    let deviation = (waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
    // Five standard errors of the mean and of the deviation.
    assert!((mean / ceiling - 0.5).abs() < 0.011, "{mean}");
    assert!((deviation / ceiling - 1.0 / 12_f64.sqrt()).abs() < 0.006, "{deviation}");
}

#[test]
fn the_same_seed_gives_the_same_waits_and_another_one_others() {
    let script = times(50, "{\"op\":\"record\",\"status\":503,\"attempt\":1}");
    let simulation = Simulation::new("");
    let waits = |arguments: &[&str]| {
        let lines = simulation.run_with(arguments, script.clone()).lines;
        lines.iter().map(|line| line["sleep_ns"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(waits(&[]), waits(&["--seed", "0"]));
    assert_ne!(waits(&[]), waits(&["--seed", "1"]));
    assert_eq!(waits(&["--seed", "1"]), waits(&["--seed", "1"]));
}
