//! Arbitrary response headers: parsers never panic and return only sane windows (R94, R99, R99b).

use proptest::prelude::*;
use shmlimit::headers::{Header, PARSERS, Reading, parser, retry_after, retry_after_in};
use shmlimit_kernel::Nanos;

/// 2026-01-31T23:59:59Z
const NOW: u64 = 1_769_903_999_000_000_000;

/// Every name that any parser reads.
const NAMES: [&str; 19] = [
    "X-MBX-USED-WEIGHT",
    "X-MBX-USED-WEIGHT-1M",
    "X-MBX-ORDER-COUNT-10S",
    "Remaining-Req",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Used",
    "X-RateLimit-Reset",
    "X-RateLimit-Resource",
    "X-RateLimit-Limit-Requests",
    "X-RateLimit-Reset-Tokens",
    "Anthropic-RateLimit-Tokens-Remaining",
    "Anthropic-RateLimit-Tokens-Reset",
    "Retry-After",
];

fn check(headers: &[Header<'_>], wall_now: u64) {
    for name in PARSERS {
        let windows = parser(name).unwrap().parse(headers, wall_now);
        assert!(windows.len() <= 64, "{name}: {} windows", windows.len());
        assert!(windows.is_sorted_by(|a, b| a.0 < b.0), "{name}: {windows:?}");
        for (window, reading) in &windows {
            assert!((1..=64).contains(&window.len()), "{name}: {window:?}");
            assert!(window.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{name}: {window:?}");
            assert_ne!(*reading, Reading::default(), "{name}: {window:?}");
            assert_ne!(reading.limit, Some(0), "{name}: {window:?}");
            assert_ne!(reading.window, Some(Nanos::ZERO), "{name}: {window:?}");
        }
    }
    retry_after_in(headers, wall_now);
}

#[test]
fn r99b_hostile_values_never_panic() {
    let long = "9".repeat(65_536);
    let values = [
        "",
        "0",
        "-1",
        "-9223372036854775809",
        "18446744073709551616",
        "999999999999999999",
        "NaN",
        "Infinity",
        "1e308",
        "\0",
        "1\0",
        "\r\nX-RateLimit-Limit: 5",
        "\u{feff}5",
        "\u{202e}5",
        "é",
        "\"",
        "\\",
        "\"\\",
        ";",
        ",",
        "=",
        ";;;=;;;",
        "group=",
        "group=\0; sec=1; min=1",
        "limit=0, remaining=0, reset=0",
        "\"p\";q=0;w=0;r=0;t=999999999999999999",
        "0;w=0",
        "999999999999999999h999999999999999999h",
        "9999-12-31T23:59:60.999999999999999999-23:59",
        "0000-01-01T00:00:00+23:59",
        "Fri, 31 Dec 9999 23:59:60 -2359",
        "Sat, 01 Jan 0000 00:00:00 +2359",
        "Monday, 29-Feb-00 23:59:60 -2359",
        &long,
        &",".repeat(65_536),
        &";".repeat(65_536),
        &"\"a\";r=1,".repeat(8192),
        &"a;".repeat(32_768),
        &"\\\"".repeat(32_768),
        &" ".repeat(65_536),
    ];
    for value in values {
        for wall_now in [0, 1, NOW, u64::MAX] {
            for name in NAMES {
                check(&[(name, value)], wall_now);
            }
            retry_after(value, wall_now);
        }
        let all: Vec<Header<'_>> = NAMES.iter().map(|name| (*name, value)).collect();
        check(&all, NOW);
    }
    for name in ["", "-", "x-ratelimit-", "X-MBX-USED-WEIGHT-", "anthropic-ratelimit-", "é", &long] {
        check(&[(name, "1"), (name, &long)], NOW);
    }
}

#[test]
fn r99b_thousands_of_headers_give_at_most_64_windows() {
    let names: Vec<String> = (1..5000).map(|i| format!("X-MBX-USED-WEIGHT-{i}S")).collect();
    let mut headers: Vec<Header<'_>> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let groups: Vec<String> = (1..5000).map(|i| format!("group=g{i}; sec=1; min=2")).collect();
    headers.extend(groups.iter().map(|value| ("Remaining-Req", value.as_str())));
    let policies: Vec<String> = (1..5000).map(|i| format!("p{i};r=1")).collect();
    headers.extend(policies.iter().map(|value| ("RateLimit", value.as_str())));
    check(&headers, NOW);
    for name in ["binance", "upbit", "ietf"] {
        assert_eq!(parser(name).unwrap().parse(&headers, NOW).len(), 64, "{name}");
    }
}

/// Names that are known, almost known, or arbitrary.
fn any_name() -> impl Strategy<Value = String> {
    let known = (0..NAMES.len()).prop_map(|i| NAMES[i].to_owned());
    prop_oneof![6 => known, 2 => "(?i)x-mbx-(used-weight|order-count)-[0-9]{0,3}[SMHDW]?", 1 => ".*"]
}

/// Values composed of pieces that parsers look for, or arbitrary values.
fn any_value() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[0-9]{1,20}".boxed(),
        "[;,=\" \\\\:+-]".boxed(),
        "(limit|remaining|reset|group|sec|min)=".boxed(),
        ";(q|w|r|t|pk)=".boxed(),
        "[0-9]{1,3}(\\.[0-9])?(h|m|s|ms|us|µs)".boxed(),
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})".boxed(),
        "(Sun|Monday),? [0-9]{2}[ -](Jan|Feb)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|UTC|[+-][0-9]{4})".boxed(),
        "\"[a-z, ;]{0,5}\"".boxed(),
        ".{0,4}".boxed(),
    ];
    prop_oneof![4 => prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()), 1 => ".*"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn r99b_arbitrary_headers_give_sane_windows(
        headers in prop::collection::vec((any_name(), any_value()), 0..12), wall_now in any::<u64>(),
    ) {
        let headers: Vec<Header<'_>> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        check(&headers, wall_now);
    }

    /// R94: blanks around a value and the case of a name have no effect.
    #[test]
    fn r94_case_and_blanks_change_nothing(name in any_name(), value in any_value(), wall_now in any::<u64>()) {
        let (upper, padded) = (name.to_ascii_uppercase(), format!(" \t{value} "));
        for each in PARSERS {
            let parser = parser(each).unwrap();
            prop_assert_eq!(
                parser.parse(&[(&name, &value)], wall_now),
                parser.parse(&[(&upper, &padded)], wall_now),
            );
        }
        prop_assert_eq!(retry_after(&value, wall_now), retry_after(&padded, wall_now));
    }

    /// R99: another header of the same name can only make a window more restrictive.
    #[test]
    fn r99_a_duplicate_never_relaxes(
        which in 0..NAMES.len(), values in prop::collection::vec(any_value(), 2), wall_now in any::<u64>(),
    ) {
        // X-RateLimit-Resource is a name, not a number. With two RateLimit-Policy headers without names it is
        // unclear which one is effective.
        let name = NAMES[which];
        prop_assume!(name != "X-RateLimit-Resource" && name != "RateLimit-Policy");
        for each in PARSERS {
            let parser = parser(each).unwrap();
            let one = parser.parse(&[(name, &values[0])], wall_now);
            let two = parser.parse(&[(name, &values[0]), (name, &values[1])], wall_now);
            for (window, before) in &one {
                let after = two.iter().find(|(name, _)| name == window).map(|(_, after)| *after).unwrap();
                prop_assert!(after.limit <= before.limit || before.limit.is_none());
                prop_assert!(after.remaining <= before.remaining || before.remaining.is_none());
                prop_assert!(after.used >= before.used && after.reset_after >= before.reset_after);
            }
        }
    }
}
