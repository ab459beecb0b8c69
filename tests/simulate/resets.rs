//! Windows reported by headers: implausible resets, and exhausted windows (R84 to R92, R142).

use super::{MINUTE, SECOND, simulate};
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z, the start of a day and thus of all windows.
const EPOCH: u64 = 1_767_225_600;

fn config(parser: &str, windows: &[(&str, u64, &str, &str)]) -> String {
    let mut text = format!("epoch_ns = {}\n[adaptive]\nparser = \"{parser}\"\n", EPOCH * SECOND);
    for (name, limit, interval, kind) in windows {
        text += &format!(
            "[[adaptive.windows]]\nname = \"{name}\"\nlimit = {limit}\ninterval = \"{interval}\"\ntype = \"{kind}\"\n"
        );
    }
    text
}

fn headers(t: u64, headers: &[(&str, &str)]) -> String {
    format!("{}\n", json!({"op": "headers", "t": t, "headers": headers}))
}

fn request(t: u64) -> String {
    format!("{{\"op\":\"acquire\",\"t\":{t}}}\n")
}

fn clear(t: u64) -> String {
    format!("{{\"op\":\"force\",\"state\":\"clear_gate\",\"t\":{t}}}\n")
}

/// Whether the call was allowed, the reason, the rule, and the wait.
fn answer(line: &Value) -> (bool, Option<&str>, Option<&str>, u64) {
    (
        line["allowed"].as_bool().unwrap(),
        line["reason"].as_str(),
        line["rule"].as_str(),
        line["retry_after_ns"].as_u64().unwrap(),
    )
}

const GRANTED: (bool, Option<&str>, Option<&str>, u64) = (true, None, None, 0);

fn until(window: &str, wait: u64) -> (bool, Option<&str>, Option<&str>, u64) {
    (false, Some("adaptive"), Some(window), wait)
}

#[test]
fn r90_an_exhausted_window_refuses_all_calls_until_its_reset() {
    let orders = config("binance", &[("ORDERS:10S", 50, "10s", "fixed")]);
    let used = [("X-MBX-ORDER-COUNT-10S", "50")];
    let script = request(SECOND)
        + &headers(3 * SECOND, &used)
        + &request(3 * SECOND)
        + &request(8 * SECOND)
        + &request(10 * SECOND - 1)
        + &request(10 * SECOND)
        + &request(10 * SECOND);
    let lines = simulate(&orders, &script);
    assert_eq!(answer(&lines[2]), until("ORDERS:10S", 7 * SECOND));
    assert_eq!(answer(&lines[3]), until("ORDERS:10S", 2 * SECOND), "the last call was 7 s ago");
    assert_eq!(answer(&lines[4]), until("ORDERS:10S", 1));
    assert_eq!(
        (answer(&lines[5]), answer(&lines[6])),
        (GRANTED, GRANTED),
        "the window is unused after its reset (R91)"
    );
    // The same without an earlier call, and for a long window.
    let weight = config("binance", &[("REQUEST_WEIGHT:1M", 1200, "60s", "fixed")]);
    let used = [("X-MBX-USED-WEIGHT-1M", "1300")];
    let lines = simulate(
        &weight,
        &(headers(10 * SECOND, &used) + &request(10 * SECOND) + &request(MINUTE - 1) + &request(MINUTE)),
    );
    assert_eq!(answer(&lines[1]), until("REQUEST_WEIGHT:1M", 50 * SECOND));
    assert_eq!((answer(&lines[2]), answer(&lines[3])), (until("REQUEST_WEIGHT:1M", 1), GRANTED));
}

#[test]
fn r127_a_late_answer_does_not_refill_an_exhausted_window() {
    let orders = config("binance", &[("ORDERS:10S", 50, "10s", "fixed")]);
    let used = |t, count| headers(t, &[("X-MBX-ORDER-COUNT-10S", count)]);
    let script = request(SECOND)
        + &used(3 * SECOND, "50")
        + &used(3 * SECOND + 1, "40")
        + &request(8 * SECOND)
        + &request(10 * SECOND - 1)
        + &used(10 * SECOND, "3")
        + &request(10 * SECOND);
    let lines = simulate(&orders, &script);
    assert_eq!(answer(&lines[3]), until("ORDERS:10S", 2 * SECOND));
    assert_eq!(answer(&lines[4]), until("ORDERS:10S", 1));
    assert_eq!(answer(&lines[6]), GRANTED, "another window");
}

#[test]
fn r132_the_wait_for_a_gap_ends_when_the_ratchet_admits_a_shorter_one() {
    let orders = config("binance", &[("ORDERS:10S", 50, "10s", "fixed")]);
    let used = [("X-MBX-ORDER-COUNT-10S", "45")];
    let script = request(SECOND)
        + &headers(3 * SECOND, &used)
        + &request(8 * SECOND)
        + &request(8 * SECOND + 1)
        + &request(10 * SECOND - 1)
        + &request(10 * SECOND);
    let lines = simulate(&orders, &script);
    assert_eq!(answer(&lines[2]), GRANTED);
    // Seven seconds after the last call would be at 15 s, but the window is over at 10 s.
    assert_eq!(answer(&lines[3]), until("ORDERS:10S", 2 * SECOND - 1));
    assert_eq!((answer(&lines[4]), answer(&lines[5])), (until("ORDERS:10S", 1), GRANTED));
}

#[test]
fn r90_the_gap_counts_from_the_last_call_while_units_are_left() {
    let orders = config("binance", &[("ORDERS:10S", 50, "10s", "fixed")]);
    let used = [("X-MBX-ORDER-COUNT-10S", "49")];
    let lines = simulate(
        &orders,
        &(request(SECOND) + &headers(3 * SECOND, &used) + &request(8 * SECOND - 1) + &request(8 * SECOND)),
    );
    assert_eq!(answer(&lines[2]), until("ORDERS:10S", 1));
    assert_eq!(answer(&lines[3]), GRANTED);
    let sliding = config("upbit", &[("default:sec", 10, "1s", "sliding")]);
    let none = [("Remaining-Req", "group=default; min=1; sec=0")];
    let lines = simulate(&sliding, &(headers(0, &none) + &request(0)));
    assert_eq!(answer(&lines[1]), GRANTED, "a sliding window has no reset");
}

#[test]
fn r88_of_several_exhausted_windows_the_latest_reset_holds() {
    let both = config(
        "binance",
        &[
            ("ORDERS:10S", 50, "10s", "fixed"),
            ("ORDERS:1D", 1000, "1d", "fixed"),
            ("REQUEST_WEIGHT:1M", 9, "60s", "fixed"),
        ],
    );
    let used = [("X-MBX-ORDER-COUNT-10S", "50"), ("X-MBX-USED-WEIGHT-1M", "9")];
    let script = headers(3 * SECOND, &used)
        + &request(4 * SECOND)
        + &request(59 * SECOND)
        + &headers(59 * SECOND, &[("X-MBX-ORDER-COUNT-1D", "1000")])
        + &request(MINUTE)
        + &request(86_400 * SECOND);
    let lines = simulate(&both, &script);
    assert_eq!(answer(&lines[1]), until("REQUEST_WEIGHT:1M", 56 * SECOND));
    assert_eq!(answer(&lines[2]), until("REQUEST_WEIGHT:1M", SECOND));
    assert_eq!(answer(&lines[4]), until("ORDERS:1D", 86_340 * SECOND));
    assert_eq!(answer(&lines[5]), GRANTED);
}

#[test]
fn r142_an_absurd_reset_in_any_unit_is_ignored() {
    let window = config("xratelimit", &[("default", 100, "1h", "fixed")]);
    let now = EPOCH + 600;
    let resets = [
        format!("{}", now * 1_000_000),            // microseconds
        format!("{}", (now + 30) * 1_000_000_000), // nanoseconds: 19 digits, malformed
        format!("{}", now * 100_000),
        "999999999999999999".to_owned(),
        "999999999".to_owned(),             // seconds from now: 31 years
        format!("{}", (now + 3601) * 1000), // an hour and a second
        format!("{}", now + 3601),
        "3601".to_owned(),
        "-5".to_owned(),
        "soon".to_owned(),
    ];
    for reset in resets {
        let said = [
            ("X-RateLimit-Limit", "100"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", reset.as_str()),
        ];
        let script = headers(600 * SECOND, &said)
            + &request(600 * SECOND)
            + &request(3600 * SECOND - 1)
            + &request(3600 * SECOND);
        let lines = simulate(&window, &script);
        assert_eq!(lines[0]["windows"]["default"]["remaining"], 0, "{reset}: the remainder still counts");
        assert_eq!(
            answer(&lines[1]),
            until("default", 3000 * SECOND),
            "{reset}: the wait ends with the hour of the wall clock"
        );
        assert_eq!((answer(&lines[2]), answer(&lines[3])), (until("default", 1), GRANTED), "{reset}");
    }
    // A reset within the length of the window is accepted.
    for (reset, wait) in [
        ("3600".to_owned(), 3600),
        (format!("{}", now + 3600), 3600),
        (format!("{}", (now + 3600) * 1000), 3600),
        ("7".to_owned(), 7),
    ] {
        let said = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", reset.as_str())];
        let lines = simulate(&window, &(headers(600 * SECOND, &said) + &request(600 * SECOND)));
        assert_eq!(answer(&lines[1]), until("default", wait * SECOND), "{reset}");
    }
    for past in ["0".to_owned(), format!("{}", now - 1)] {
        let said = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", past.as_str())];
        let lines = simulate(&window, &(headers(600 * SECOND, &said) + &request(600 * SECOND)));
        assert_eq!(answer(&lines[1]), GRANTED, "{past}: the window has ended");
    }
}

#[test]
fn r142_no_family_of_headers_blocks_for_longer_than_its_window() {
    let far = format!("{}", (EPOCH + 600) * 1_000_000);
    type Case<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>);
    let cases: [Case<'_>; 6] = [
        ("ietf", "default", vec![("RateLimit-Remaining", "0"), ("RateLimit-Reset", &far)]),
        ("ietf", "p", vec![("RateLimit", "\"p\";r=0;t=99999999999")]),
        (
            "github",
            "core",
            vec![("x-ratelimit-limit", "60"), ("x-ratelimit-used", "60"), ("x-ratelimit-reset", &far)],
        ),
        (
            "openai",
            "requests",
            vec![("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "9999d")],
        ),
        (
            "anthropic",
            "tokens",
            vec![
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "9026-01-01T00:00:00Z"),
            ],
        ),
        ("xratelimit", "default", vec![("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", &far)]),
    ];
    for (parser, name, said) in cases {
        let window = config(parser, &[(name, 60, "1h", "fixed")]);
        let lines = simulate(
            &window,
            &(headers(600 * SECOND, &said) + &request(600 * SECOND) + &request(3600 * SECOND)),
        );
        assert_eq!(answer(&lines[1]), until(name, 3000 * SECOND), "{parser}");
        assert_eq!(answer(&lines[2]), GRANTED, "{parser}");
    }
}

#[test]
fn r142_good_headers_replace_an_absurd_reset_and_its_effects() {
    let window = config("xratelimit", &[("default", 100, "1h", "fixed")]);
    let far = format!("{}", (EPOCH + 600) * 1_000_000);
    let absurd = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", far.as_str())];
    let good = [("X-RateLimit-Remaining", "80"), ("X-RateLimit-Reset", "1800")];
    let script = request(600 * SECOND)
        + &headers(600 * SECOND, &absurd)
        + &request(601 * SECOND)
        + &headers(602 * SECOND, &good)
        + &request(602 * SECOND);
    let lines = simulate(&window, &script);
    assert_eq!(answer(&lines[2]), until("default", 2999 * SECOND));
    assert_eq!(lines[3]["interval_ns"], 0, "the ratchet does not hold an absurd value");
    assert_eq!(answer(&lines[4]), GRANTED);
    // Headers that do not say when the window starts again.
    let without = [("X-RateLimit-Remaining", "80")];
    let script = request(600 * SECOND)
        + &headers(600 * SECOND, &absurd)
        + &headers(602 * SECOND, &without)
        + &request(603 * SECOND);
    let lines = simulate(&window, &script);
    assert_eq!((&lines[2]["interval_ns"], answer(&lines[3])), (&json!(0), GRANTED));
    // Headers that correct only the reset.
    let sooner = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "30")];
    let script = request(600 * SECOND)
        + &headers(600 * SECOND, &absurd)
        + &headers(602 * SECOND, &sooner)
        + &request(603 * SECOND)
        + &request(632 * SECOND);
    let lines = simulate(&window, &script);
    assert_eq!((answer(&lines[3]), answer(&lines[4])), (until("default", 29 * SECOND), GRANTED));
    // The ratchet still holds a gap that a plausible header asked for (R89).
    let tight = [("X-RateLimit-Remaining", "1"), ("X-RateLimit-Reset", "1000")];
    let script = headers(600 * SECOND, &tight)
        + &headers(
            601 * SECOND,
            &absurd.map(|(name, value)| (name, if value == "0" { "40" } else { value })),
        )
        + &headers(602 * SECOND, &good);
    let lines = simulate(&window, &script);
    assert_eq!(
        [&lines[0]["interval_ns"], &lines[2]["interval_ns"]],
        [&json!(1000 * SECOND), &json!(1000 * SECOND)]
    );
}

#[test]
fn r142_clear_gate_discards_what_headers_taught() {
    let window = config("xratelimit", &[("default", 100, "1h", "fixed")]);
    let none = [("X-RateLimit-Limit", "7"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "3000")];
    let script = request(600 * SECOND)
        + &headers(600 * SECOND, &none)
        + &request(601 * SECOND)
        + &clear(602 * SECOND)
        + &request(602 * SECOND)
        + &headers(602 * SECOND, &[])
        + &headers(603 * SECOND, &none)
        + &request(603 * SECOND);
    let lines = simulate(&window, &script);
    assert_eq!(answer(&lines[2]), until("default", 2999 * SECOND));
    assert_eq!(answer(&lines[4]), GRANTED);
    assert_eq!(
        (&lines[5]["interval_ns"], &lines[5]["bottleneck"], &lines[5]["windows"]["default"]),
        (&json!(0), &Value::Null, &json!({"limit": 100, "remaining": 100, "usage": 0.0}))
    );
    assert_eq!(answer(&lines[7]), until("default", 3000 * SECOND), "new headers are used");
}
