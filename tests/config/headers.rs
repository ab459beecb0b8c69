//! Complete sets of response headers as providers really send them (R94 to R100).

use shmlimit::headers::{Header, PARSERS, Parser, Reading, parser};
use shmlimit_kernel::Nanos;

/// 2026-01-31T23:59:59Z
const NOW: u64 = 1_769_903_999_000_000_000;

/// A reading in the format of `shmlimit simulate`: `limit=5 reset_after_s=1.5`.
fn words(reading: &Reading) -> String {
    let seconds = |nanos: Option<Nanos>| nanos.map(|nanos| nanos.0 as f64 / 1e9);
    let counts = [("limit", reading.limit), ("remaining", reading.remaining), ("used", reading.used)];
    let times = [("reset_after_s", seconds(reading.reset_after)), ("window_s", seconds(reading.window))];
    let counts = counts.into_iter().filter_map(|(key, n)| Some(format!("{key}={}", n?)));
    counts
        .chain(times.into_iter().filter_map(|(key, n)| Some(format!("{key}={}", n?))))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A parser, a response's headers, and the expected readings.
struct Sample {
    parser: &'static str,
    headers: &'static str,
    says: &'static [(&'static str, &'static str)],
}

const SAMPLES: &[Sample] = &[
    // Binance, spot: a price query, then an order.
    Sample {
        parser: "binance",
        headers: "Content-Type: application/json;charset=UTF-8
            x-mbx-uuid: 7d3b9a4e-8f7c-4d7f-9f6e-1c2f0e7f5a11
            x-mbx-used-weight: 2
            x-mbx-used-weight-1m: 2",
        says: &[("REQUEST_WEIGHT:1M", "used=2")],
    },
    Sample {
        parser: "binance",
        headers: "X-MBX-USED-WEIGHT: 1170
            X-MBX-USED-WEIGHT-1M: 1171
            X-MBX-ORDER-COUNT-10S: 1
            X-MBX-ORDER-COUNT-1D: 93",
        says: &[("ORDERS:10S", "used=1"), ("ORDERS:1D", "used=93"), ("REQUEST_WEIGHT:1M", "used=1171")],
    },
    // Upbit: the old form, and a current group.
    Sample {
        parser: "upbit",
        headers: "Remaining-Req: group=default; min=1799; sec=29",
        says: &[("default:min", "remaining=1799"), ("default:sec", "remaining=29")],
    },
    Sample {
        parser: "upbit",
        headers: "remaining-req: group=candles; min=600; sec=0
            limit-by-ip: Yes",
        says: &[("candles:min", "remaining=600"), ("candles:sec", "remaining=0")],
    },
    // express-rate-limit with its draft-6, draft-7 and draft-8 headers.
    Sample {
        parser: "ietf",
        headers: "RateLimit-Policy: 100;w=900
            RateLimit-Limit: 100
            RateLimit-Remaining: 99
            RateLimit-Reset: 897",
        says: &[("default", "limit=100 remaining=99 reset_after_s=897 window_s=900")],
    },
    Sample {
        parser: "ietf",
        headers: "RateLimit-Policy: 100;w=900
            RateLimit: limit=100, remaining=99, reset=897",
        says: &[("default", "limit=100 remaining=99 reset_after_s=897 window_s=900")],
    },
    Sample {
        parser: "ietf",
        headers: "RateLimit-Policy: \"100-in-15min\"; q=100; w=900; pk=:MTJjYTE3YjQ5YWYy:
            RateLimit: \"100-in-15min\"; r=99; t=897",
        says: &[("100-in-15min", "limit=100 remaining=99 reset_after_s=897 window_s=900")],
    },
    // A gateway with the earliest form, and two windows of the newest form.
    Sample {
        parser: "ietf",
        headers: "Ratelimit-Limit: 10, 10;w=1;burst=1000, 1000;w=3600
            Ratelimit-Remaining: 0
            Ratelimit-Reset: 1",
        says: &[("default", "limit=10 remaining=0 reset_after_s=1 window_s=1")],
    },
    Sample {
        parser: "ietf",
        headers: "RateLimit-Policy: \"permin\";q=50;w=60,\"perhr\";q=1000;w=3600
            RateLimit: \"permin\";r=20;t=23
            RateLimit: \"perhr\";r=399;t=2402",
        says: &[
            ("perhr", "limit=1000 remaining=399 reset_after_s=2402 window_s=3600"),
            ("permin", "limit=50 remaining=20 reset_after_s=23 window_s=60"),
        ],
    },
    // Docker Hub, which puts the window behind each number.
    Sample {
        parser: "ietf",
        headers: "ratelimit-limit: 100;w=21600
            ratelimit-remaining: 76;w=21600
            docker-ratelimit-source: 192.0.2.1",
        says: &[("default", "limit=100 remaining=76 window_s=21600")],
    },
    // Resets in seconds from now, in seconds since the epoch, and in milliseconds since the epoch.
    Sample {
        parser: "xratelimit",
        headers: "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 42",
        says: &[("default", "limit=60 remaining=0 reset_after_s=42")],
    },
    Sample {
        parser: "xratelimit",
        headers: "x-ratelimit-limit: 60\nx-ratelimit-remaining: 58\nx-ratelimit-reset: 1769904060",
        says: &[("default", "limit=60 remaining=58 reset_after_s=61")],
    },
    Sample {
        parser: "xratelimit",
        headers: "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 58\nX-RateLimit-Reset: 1769904000250",
        says: &[("default", "limit=60 remaining=58 reset_after_s=1.25")],
    },
    // GitHub, and its search.
    Sample {
        parser: "github",
        headers: "x-ratelimit-limit: 5000
            x-ratelimit-remaining: 4987
            x-ratelimit-reset: 1769905000
            x-ratelimit-resource: core
            x-ratelimit-used: 13",
        says: &[("core", "limit=5000 remaining=4987 used=13 reset_after_s=1001")],
    },
    Sample {
        parser: "github",
        headers: "X-RateLimit-Limit: 30
            X-RateLimit-Remaining: 0
            X-RateLimit-Used: 30
            X-RateLimit-Reset: 1769903998
            X-RateLimit-Resource: search
            Retry-After: 60",
        says: &[("search", "limit=30 remaining=0 used=30 reset_after_s=0")],
    },
    // OpenAI, Azure with a value that it does not know, and an imitation.
    Sample {
        parser: "openai",
        headers: "x-ratelimit-limit-requests: 5000
            x-ratelimit-limit-tokens: 160000
            x-ratelimit-limit-tokens_usage_based: 160000
            x-ratelimit-remaining-requests: 4999
            x-ratelimit-remaining-tokens: 159976
            x-ratelimit-reset-requests: 12ms
            x-ratelimit-reset-tokens: 6m0s",
        says: &[
            ("requests", "limit=5000 remaining=4999 reset_after_s=0.012"),
            ("tokens", "limit=160000 remaining=159976 reset_after_s=360"),
        ],
    },
    Sample {
        parser: "openai",
        headers: "x-ratelimit-limit-tokens: -1
            x-ratelimit-remaining-tokens: -1
            x-ratelimit-reset-tokens: 0",
        says: &[("tokens", "reset_after_s=0")],
    },
    Sample {
        parser: "openai",
        headers: "x-ratelimit-limit-requests: 14400
            x-ratelimit-remaining-requests: 14370
            x-ratelimit-reset-requests: 2m59.56s
            x-ratelimit-reset-tokens: 7.66s",
        says: &[
            ("requests", "limit=14400 remaining=14370 reset_after_s=179.56"),
            ("tokens", "reset_after_s=7.66"),
        ],
    },
    Sample {
        parser: "anthropic",
        headers: "anthropic-ratelimit-requests-limit: 50
            anthropic-ratelimit-requests-remaining: 49
            anthropic-ratelimit-requests-reset: 2026-02-01T00:00:00Z
            anthropic-ratelimit-input-tokens-limit: 40000
            anthropic-ratelimit-input-tokens-remaining: 39000
            anthropic-ratelimit-input-tokens-reset: 2026-02-01T00:00:01Z
            anthropic-ratelimit-output-tokens-limit: 8000
            anthropic-ratelimit-output-tokens-remaining: 8000
            anthropic-ratelimit-output-tokens-reset: 2026-01-31T23:59:59Z
            anthropic-ratelimit-tokens-limit: 48000
            anthropic-ratelimit-tokens-remaining: 47000
            anthropic-ratelimit-tokens-reset: 2026-02-01T00:00:01Z
            request-id: req_018EeWyXxfu5pfWkrYcMdjWG",
        says: &[
            ("input-tokens", "limit=40000 remaining=39000 reset_after_s=2"),
            ("output-tokens", "limit=8000 remaining=8000 reset_after_s=0"),
            ("requests", "limit=50 remaining=49 reset_after_s=1"),
            ("tokens", "limit=48000 remaining=47000 reset_after_s=2"),
        ],
    },
];

#[test]
fn r100_the_headers_of_real_providers_are_read() {
    for sample in SAMPLES {
        let headers: Vec<Header<'_>> =
            sample.headers.lines().map(|line| line.trim().split_once(": ").unwrap()).collect();
        let parsed = parser(sample.parser).unwrap().parse(&headers, NOW);
        let said: Vec<(&str, String)> =
            parsed.iter().map(|(name, reading)| (name.as_str(), words(reading))).collect();
        let says: Vec<(&str, String)> =
            sample.says.iter().map(|(name, reading)| (*name, reading.to_string())).collect();
        assert_eq!(said, says, "{}\n{}", sample.parser, sample.headers);
    }
    for name in PARSERS {
        assert!(SAMPLES.iter().any(|sample| sample.parser == name), "no sample for {name}");
    }
}

#[test]
fn r100_a_new_provider_needs_only_a_parser() {
    struct Mine;
    impl Parser for Mine {
        fn parse(&self, headers: &[Header<'_>], _wall_now: u64) -> Vec<(String, Reading)> {
            let left =
                headers.iter().find(|(name, _)| *name == "x-left").and_then(|(_, value)| value.parse().ok());
            vec![("mine".to_owned(), Reading { remaining: left, ..Reading::default() })]
        }
    }
    let parsers: [&dyn Parser; 2] = [&Mine, parser("ietf").unwrap()];
    assert_eq!(parsers[0].parse(&[("x-left", "3")], 0)[0].1.remaining, Some(3));
    assert_eq!(parsers[1].parse(&[("x-left", "3")], 0), []);
}
