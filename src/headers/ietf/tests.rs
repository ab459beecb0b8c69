//! Tests the three forms of the drafts, and what they have in common.

use super::*;

fn reading(limit: u64, remaining: u64, reset: u64, window: u64) -> Reading {
    let known = |n: u64| (n != NONE).then_some(n);
    Reading {
        limit: known(limit),
        remaining: known(remaining),
        used: None,
        reset_after: known(reset).map(Nanos::from_secs),
        window: known(window).map(Nanos::from_secs),
    }
}

const NONE: u64 = u64::MAX;

fn is(headers: &[Header<'_>], expected: &[(&str, Reading)]) {
    let expected: Vec<_> = expected.iter().map(|(name, reading)| (name.to_string(), *reading)).collect();
    assert_eq!(Ietf.parse(headers, 0), expected, "{headers:?}");
}

#[test]
fn r97_three_separate_headers_are_read() {
    let rest = [("RateLimit-Remaining", "50"), ("ratelimit-reset", "30")];
    is(&[("RateLimit-Limit", "100"), rest[0], rest[1]], &[("default", reading(100, 50, 30, NONE))]);
    is(&rest, &[("default", reading(NONE, 50, 30, NONE))]);
    is(
        &[("RateLimit-Limit", "100;w=60"), ("RateLimit-Remaining", "50;w=60"), ("RateLimit-Reset", "30;x=y")],
        &[("default", reading(100, 50, 30, 60))],
    );
}

#[test]
fn r97_limit_followed_by_its_policies_is_read() {
    let limit = |value| Ietf.parse(&[("RateLimit-Limit", value)], 0).pop().map(|(_, reading)| reading);
    assert_eq!(limit("100, 100;w=60"), Some(reading(100, NONE, NONE, 60)));
    assert_eq!(limit("10, 10;w=1, 50;w=60, 1000;w=3600;comment=\"a, b\""), Some(reading(10, NONE, NONE, 1)));
    assert_eq!(limit("50, 10;w=1, 50;w=60"), Some(reading(50, NONE, NONE, 60)));
    assert_eq!(limit("5000, 1000;w=3600"), Some(reading(5000, NONE, NONE, NONE)));
    assert_eq!(limit("100;w=60"), Some(reading(100, NONE, NONE, 60)));
    // Two headers that were joined into one.
    assert_eq!(limit("100, 50"), Some(reading(50, NONE, NONE, NONE)));
    assert_eq!(limit("0, 0;w=60"), None);
    for bad in ["", "x", "-1", "100 100", "\"100", "100, 50;w=\""] {
        assert_eq!(limit(bad), None, "{bad}");
    }
    // A policy with a malformed window is not a second limit.
    for part in ["100, x;w=60", "100;w=x", "100, 100;w=-1", "100, 50;w=x", "100, 50;w"] {
        assert_eq!(limit(part), Some(reading(100, NONE, NONE, NONE)), "{part}");
    }
}

#[test]
fn r97_unnamed_policy_belongs_to_the_limit_of_the_same_size() {
    let headers =
        [("RateLimit-Policy", "10;w=1, 100;w=60"), ("RateLimit-Limit", "100"), ("RateLimit-Remaining", "5")];
    is(&headers, &[("default", reading(100, 5, NONE, 60))]);
    // Without a limit, a single policy is used. With two policies it is unclear which one is effective.
    is(&headers[..1], &[]);
    is(&[("RateLimit-Policy", "100;w=60"), headers[2]], &[("default", reading(100, 5, NONE, 60))]);
}

#[test]
fn r97_one_header_with_three_keys_is_read() {
    let expected = [("default", reading(100, 50, 30, NONE))];
    is(&[("RateLimit", "limit=100, remaining=50, reset=30")], &expected);
    is(&[("RATELIMIT", "reset=30,remaining=50,limit=100")], &expected);
    is(&[("RateLimit", " Limit = 100 ,\tremaining= 50 , reset =30;x, other=\"a,b\"")], &expected);
    is(
        &[("RateLimit", "limit=100, remaining=50, reset=30"), ("RateLimit-Policy", "100;w=60")],
        &[("default", reading(100, 50, 30, 60))],
    );
    is(&[("RateLimit", "remaining=0")], &[("default", reading(NONE, 0, NONE, NONE))]);
}

#[test]
fn r97_named_policies_are_read() {
    is(
        &[("RateLimit-Policy", "\"burst\";q=100;w=60"), ("RateLimit", "\"burst\";r=50;t=30")],
        &[("burst", reading(100, 50, 30, 60))],
    );
    is(
        &[
            ("RateLimit", "\"burst\";r=50;t=30, \"day, all\";r=7"),
            (
                "RateLimit-Policy",
                "\"day, all\";q=1000;w=86400;qu=\"requests\", \"burst\";q=100;w=60, idle;q=5",
            ),
        ],
        &[
            ("burst", reading(100, 50, 30, 60)),
            ("day, all", reading(1000, 7, NONE, 86_400)),
            ("idle", reading(5, NONE, NONE, NONE)),
        ],
    );
    is(&[("RateLimit", "default;r=50;t=30")], &[("default", reading(NONE, 50, 30, NONE))]);
}

#[test]
fn r97_partition_keys_and_unknown_parameters_are_ignored() {
    is(
        &[
            ("RateLimit-Policy", "\"p\";q=100;w=60;pk=:cHsdsRa894==:;acme-burst=5.5;x=?1;y=@17;q2=x;flag"),
            ("RateLimit", "\"p\";pk=\"a;r=0,b\";r=50;t=30;q=1;w=1"),
        ],
        &[("p", reading(100, 50, 30, 60))],
    );
    // One name with two partition keys: the more restrictive numbers are used.
    is(
        &[("RateLimit", "\"p\";r=50;t=30;pk=:YQ==:, \"p\";r=60;t=40;pk=:Yg==:")],
        &[("p", reading(NONE, 50, 40, NONE))],
    );
}

#[test]
fn r99_most_restrictive_of_duplicates_is_kept() {
    is(
        &[
            ("RateLimit-Remaining", "5"),
            ("ratelimit-remaining", "3"),
            ("RateLimit-Reset", "10"),
            ("RateLimit-Reset", "20"),
            ("RateLimit-Reset", "15"),
            ("RateLimit-Limit", "100"),
            ("RateLimit-Limit", "0"),
            ("RateLimit-Limit", "90"),
            ("RateLimit", "limit=95, remaining=4"),
        ],
        &[("default", reading(90, 3, 20, NONE))],
    );
    is(
        &[("RateLimit-Policy", "\"p\";q=100;w=60"), ("RateLimit-Policy", "\"p\";q=90;w=70")],
        &[("p", reading(90, NONE, NONE, 70))],
    );
}

#[test]
fn r94_malformed_part_does_not_affect_the_others() {
    for (value, window, expected) in [
        ("\"p\";r=50;t=-1", "p", reading(NONE, 50, NONE, NONE)),
        ("\"p\";r=50;t", "p", reading(NONE, 50, NONE, NONE)),
        ("\"p\";r=5.5;t=30", "p", reading(NONE, NONE, 30, NONE)),
        ("\"ok\";r=1, \"p\";r=x", "ok", reading(NONE, 1, NONE, NONE)),
        ("\"p\"x;r=50, ok;r=1", "ok", reading(NONE, 1, NONE, NONE)),
        ("limit=x, remaining=50", "default", reading(NONE, 50, NONE, NONE)),
        ("limit=9, remaining=50, reset=1.5", "default", reading(9, 50, NONE, NONE)),
        ("remaining=1000000000000000000, reset=7", "default", reading(NONE, NONE, 7, NONE)),
    ] {
        is(&[("RateLimit", value)], &[(window, expected)]);
    }
    is(
        &[("RateLimit-Policy", "\"p\";q=1;w=x, q;q=x;w=60")],
        &[("p", reading(1, NONE, NONE, NONE)), ("q", reading(NONE, NONE, NONE, 60))],
    );
    is(&[("RateLimit-Remaining", "5;w=x")], &[("default", reading(NONE, 5, NONE, NONE))]);
}

#[test]
fn r94_value_that_is_malformed_as_a_whole_is_ignored() {
    for value in [
        "\"p\";r=\"50\"",
        "\"p\";r=5.5",
        "\"p;r=50",
        "\"p\"x;r=50",
        "\"\\p\";r=50",
        "5;r=50",
        "(\"p\");r=50",
        "p q;r=50",
        "remaining=1000000000000000000",
        "\"ok\";r=1, \"p",
    ] {
        is(&[("RateLimit", value)], &[]);
        // The values of the other headers stay.
        is(
            &[("RateLimit", value), ("RateLimit-Remaining", "1")],
            &[("default", reading(NONE, 1, NONE, NONE))],
        );
    }
    for value in ["\"p\";q=x", "\"p\";q=", "\"p", "?1;q=1"] {
        is(&[("RateLimit-Policy", value)], &[]);
    }
    for name in ["RateLimit-Remaining", "RateLimit-Reset"] {
        for value in ["", "-1", "1.5", "5, 3", "5;w=1, 3", "NaN", "\"5\"", "5;x=\""] {
            is(&[(name, value)], &[]);
        }
    }
}

#[test]
fn r99b_names_that_cannot_be_displayed_are_ignored() {
    is(
        &[("RateLimit", "\"\";r=1, \" \";r=1, \"a\u{7f}\";r=1, \"é\";r=1, ok;r=1")],
        &[("ok", reading(NONE, 1, NONE, NONE))],
    );
    let long = format!("{};r=1", "n".repeat(65));
    is(&[("RateLimit", &long)], &[]);
}

#[test]
fn r99b_thousands_of_policies_give_64_windows() {
    let many: Vec<String> = (0..5000).map(|i| format!("\"p{i:04}\";r={i};t=1")).collect();
    let value = many.join(", ");
    let parsed = Ietf.parse(&[("RateLimit", &value), ("RateLimit-Policy", &",".repeat(65536))], 0);
    assert_eq!(parsed.len(), 64);
    let quotas = "1;w=1,".repeat(10_000);
    assert_eq!(Found::read("ratelimit-policy", &quotas).unwrap().quotas.len(), MOST_WINDOWS);
    assert_eq!(Ietf.parse(&[("RateLimit-Policy", &quotas), ("RateLimit-Limit", "1")], 0).len(), 1);
}
