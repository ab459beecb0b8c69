//! R99b: passes any headers through every parser. No parser panics, and its windows are sorted, few, and have short
//! printable names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shmlimit::headers::{PARSERS, parser, retry_after_in};

/// Names that some parser knows, so that one byte is enough to pass the first comparison.
const NAMES: [&str; 24] = [
    "x-mbx-used-weight",
    "x-mbx-used-weight-1m",
    "x-mbx-order-count-10s",
    "remaining-req",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-used",
    "x-ratelimit-reset",
    "x-ratelimit-resource",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-reset-requests",
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-input-tokens-reset",
    "retry-after",
    "Date",
];

fuzz_target!(|input: (u64, Vec<(u8, String, String)>)| {
    let (wall_now, lines) = &input;
    let name = |kind: &u8, own| NAMES.get(usize::from(*kind) % (NAMES.len() + 1)).copied().unwrap_or(own);
    let headers: Vec<(&str, &str)> =
        lines.iter().map(|(kind, own, value)| (name(kind, own.as_str()), value.as_str())).collect();
    for each in PARSERS {
        let windows = parser(each).unwrap().parse(&headers, *wall_now);
        assert!(windows.len() <= 64);
        assert!(windows.is_sorted_by(|a, b| a.0 < b.0));
        for (name, reading) in &windows {
            assert!((1..=64).contains(&name.len()) && name.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            assert_ne!(*reading, Default::default());
            assert!(reading.limit != Some(0) && reading.window.is_none_or(|window| window.0 > 0));
        }
        // The order of the headers must not matter, unless there are too many entries to keep, or two resources.
        let reversed: Vec<_> = headers.iter().rev().copied().collect();
        let members: usize = headers.iter().map(|(_, value)| 1 + value.matches(',').count()).sum();
        if members < 32 && each != "github" {
            assert_eq!(parser(each).unwrap().parse(&reversed, *wall_now), windows, "{each}");
        }
    }
    let _ = retry_after_in(&headers, *wall_now);
});
