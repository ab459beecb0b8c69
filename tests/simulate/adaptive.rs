//! The answers to `headers`, and the pace that follows from them.

use super::{MINUTE, SECOND, keys, simulate, times};
use serde_json::{Value, json};

const BINANCE: &str = r#"
    [adaptive]
    parser = "binance"
    [[adaptive.windows]]
    name = "REQUEST_WEIGHT:1M"
    limit = 1200
    interval = "60s"
    type = "fixed"
"#;

fn used(t: u64, weight: u64) -> String {
    format!("{{\"op\":\"headers\",\"t\":{t},\"headers\":{{\"X-MBX-USED-WEIGHT-1M\":\"{weight}\"}}}}\n")
}

#[test]
fn r95_the_answer_to_headers_has_exactly_these_fields() {
    let lines = simulate(BINANCE, &used(10 * SECOND, 700));
    let expected = json!({
        "i": 0, "t": 10 * SECOND, "op": "headers", "state": "normal", "transitions": [],
        "parsed": {"REQUEST_WEIGHT:1M": {"used": 700}},
        "interval_ns": 100_000_000, "bottleneck": "REQUEST_WEIGHT:1M",
        "windows": {"REQUEST_WEIGHT:1M": {"limit": 1200, "remaining": 500, "usage": 700.0 / 1200.0}},
    });
    assert_eq!(lines[0], expected);
}

#[test]
fn without_adaptive_headers_are_read_but_change_nothing() {
    let script = "{\"op\":\"headers\",\"parser\":\"upbit\",\"headers\":[[\"Remaining-Req\",\"group=default; min=598; sec=9\"]]}\n\
                  {\"op\":\"headers\",\"parser\":\"ietf\",\"headers\":{\"RateLimit-Policy\":\"\\\"p\\\";q=100;w=60\",\"ratelimit\":\"\\\"p\\\";r=7;t=30\"}}\n\
                  {\"op\":\"headers\",\"parser\":\"xratelimit\",\"headers\":{\"Content-Type\":\"text/html\"}}";
    let lines = simulate("", script);
    assert_eq!(keys(&lines[0]), ["i", "op", "parsed", "state", "t", "transitions"]);
    assert_eq!(
        (&lines[0]["parsed"]["default:sec"]["remaining"], &lines[0]["parsed"]["default:min"]["remaining"]),
        (&json!(9), &json!(598))
    );
    assert_eq!(
        lines[1]["parsed"],
        json!({"p": {"limit": 100, "remaining": 7, "reset_after_s": 30, "window_s": 60}})
    );
    assert_eq!(lines[2]["parsed"], json!({}));
}

#[test]
fn r98_resets_that_are_points_in_time_use_the_wall_clock() {
    let script = "{\"op\":\"headers\",\"parser\":\"xratelimit\",\"t\":500000000,\"headers\":{\"X-RateLimit-Remaining\":\"3\",\"X-RateLimit-Reset\":\"1700000010\"}}";
    let lines = simulate("epoch_ns = 1700000000000000000", script);
    assert_eq!(lines[0]["parsed"]["default"]["reset_after_s"], 9.5);
}

#[test]
fn r90_the_interval_is_a_gap_between_admissions() {
    let request = |t: u64| format!("{{\"op\":\"acquire\",\"t\":{t}}}\n");
    let script = request(0)
        + &used(10 * SECOND, 700)
        + &request(10 * SECOND)
        + &request(10 * SECOND + 1)
        + &request(10 * SECOND + 100_000_000);
    let lines = simulate(BINANCE, &script);
    assert_eq!(lines[2]["allowed"], true, "the last admission is older than the interval");
    assert_eq!((&lines[3]["reason"], &lines[3]["rule"]), (&json!("adaptive"), &json!("REQUEST_WEIGHT:1M")));
    assert_eq!(lines[3]["retry_after_ns"], 99_999_999);
    assert_eq!(lines[4]["allowed"], true);
}

#[test]
fn r83_the_threshold_is_reached_at_half() {
    let lines = simulate(BINANCE, &(used(0, 599) + &used(1, 600)));
    assert_eq!((&lines[0]["interval_ns"], &lines[0]["bottleneck"]), (&json!(0), &Value::Null));
    // 59.999999999 s are left for 600 units.
    assert_eq!(lines[1]["interval_ns"], 100_000_000);
}

#[test]
fn r127_responses_out_of_order_do_not_relax_the_pace() {
    let script = used(10 * SECOND, 1100)
        + &used(10 * SECOND, 600)
        + &used(10 * SECOND + 499_999_999, 600)
        + &used(10 * SECOND + 500_000_000, 600);
    let lines = simulate(BINANCE, &script);
    let intervals: Vec<_> = lines.iter().map(|line| line["interval_ns"].as_u64().unwrap()).collect();
    // 100 units in 50 s need a gap of half a second, and this pace holds for half a second.
    assert_eq!(intervals, [500_000_000, 500_000_000, 500_000_000, 82_500_000]);
}

#[test]
fn r91_a_fixed_window_is_unused_after_its_end() {
    let script = used(10 * SECOND, 1200)
        + "{\"op\":\"acquire\"}\n{\"op\":\"acquire\",\"cost\":0}\n"
        + &format!("{{\"op\":\"acquire\",\"t\":{}}}\n", MINUTE - 1)
        + &format!("{{\"op\":\"acquire\",\"t\":{MINUTE}}}\n")
        + "{\"op\":\"headers\",\"headers\":{}}";
    let lines = simulate(BINANCE, &script);
    assert_eq!(lines[0]["interval_ns"], 50 * SECOND, "no unit is left before the end of the window");
    assert_eq!((&lines[1]["retry_after_ns"], &lines[2]["allowed"]), (&json!(50 * SECOND), &json!(true)));
    assert_eq!((&lines[3]["allowed"], &lines[4]["allowed"]), (&json!(false), &json!(true)));
    assert_eq!(
        lines[5]["windows"]["REQUEST_WEIGHT:1M"],
        json!({"limit": 1200, "remaining": 1200, "usage": 0.0})
    );
}

#[test]
fn r87_a_caller_below_the_pace_is_not_slowed() {
    // Eleven calls two seconds apart: 20 more fit into 40 s, and 200 units are left.
    let calls: String =
        (0..11).map(|i| format!("{{\"op\":\"acquire\",\"t\":{}}}\n", 2 * i * SECOND)).collect();
    let lines = simulate(BINANCE, &(calls.clone() + &used(20 * SECOND, 1000)));
    assert_eq!(lines[11]["interval_ns"], 0);
    let lines = simulate(BINANCE, &(calls + &used(20 * SECOND, 1190)));
    assert_eq!(lines[11]["interval_ns"], 4 * SECOND);
}

#[test]
fn r86_r88_short_windows_count_and_the_bottleneck_sets_the_pace() {
    let config = r#"
        [adaptive]
        parser = "upbit"
        [[adaptive.windows]]
        name = "default:sec"
        limit = 10
        interval = "1s"
        type = "sliding"
        [[adaptive.windows]]
        name = "default:min"
        limit = 600
        interval = "60s"
        type = "sliding"
    "#;
    let said = |min: u64, sec: u64| {
        format!(
            "{{\"op\":\"headers\",\"headers\":{{\"remaining-req\":\"group=default; min={min}; sec={sec}\"}}}}\n"
        )
    };
    let lines = simulate(config, &(said(590, 5) + &said(60, 9)));
    assert_eq!(
        (&lines[0]["interval_ns"], &lines[0]["bottleneck"]),
        (&json!(SECOND / 2), &json!("default:sec"))
    );
    assert_eq!((&lines[1]["interval_ns"], &lines[1]["bottleneck"]), (&json!(SECOND), &json!("default:min")));
    assert_eq!(lines[1]["windows"]["default:sec"], json!({"limit": 10, "remaining": 9, "usage": 0.1}));
}

#[test]
fn r94_unreadable_headers_change_nothing() {
    let bad = "{\"op\":\"headers\",\"headers\":{\"X-MBX-USED-WEIGHT-1M\":\"many\",\"x-mbx-used-weight-9Q\":\"5\"}}\n";
    let lines = simulate(BINANCE, &(used(0, 900) + &times(2, bad.trim())));
    assert_eq!((&lines[1]["parsed"], &lines[1]["windows"]), (&json!({}), &lines[0]["windows"]));
    assert_eq!(lines[2]["interval_ns"], lines[0]["interval_ns"]);
}

#[test]
fn r94_a_limit_that_headers_taught_survives_headers_without_one() {
    let config = BINANCE.replace("binance", "xratelimit").replace("REQUEST_WEIGHT:1M", "default");
    let said = |limit: &str| {
        format!("{{\"op\":\"headers\",\"headers\":{{{limit}\"X-RateLimit-Remaining\":\"25\"}}}}\n")
    };
    let patch = "{\"op\":\"set\",\"key\":\"adaptive.windows.0.limit\",\"value\":600}\n";
    let limits = |script: &str| {
        let lines = simulate(&config, script);
        lines.iter().filter_map(|line| line["windows"]["default"]["limit"].as_u64()).collect::<Vec<_>>()
    };
    let taught = said("\"X-RateLimit-Limit\":\"50\",") + &said("") + &said("\"X-RateLimit-Limit\":\"many\",");
    assert_eq!(limits(&(taught + patch + &said(""))), [50, 50, 50, 50]);
    assert_eq!(limits(&(said("") + patch + &said(""))), [1200, 600]);
}

#[test]
fn a_refusal_names_the_longer_of_pace_and_rate_and_the_rate_on_a_tie() {
    let config = |period: &str| {
        format!("[[rules]]\nname = \"r\"\nalgorithm = \"gcra\"\nlimit = 1\nperiod = \"{period}\"\n{BINANCE}")
    };
    // 600 units in 60 s: a gap of 100 ms.
    let script = used(0, 600) + &times(2, "{\"op\":\"acquire\"}");
    for (period, reason, rule) in
        [("99ms", "adaptive", "REQUEST_WEIGHT:1M"), ("100ms", "rate", "r"), ("101ms", "rate", "r")]
    {
        let lines = simulate(&config(period), &script);
        assert_eq!((&lines[2]["reason"], &lines[2]["rule"]), (&json!(reason), &json!(rule)), "{period}");
    }
}
