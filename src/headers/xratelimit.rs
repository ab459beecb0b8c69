//! Reads `X-RateLimit-*`, which no standard defines (R98), and GitHub's variant (R138).

use super::number::{number, trim};
use super::windows::{Windows, is_name};
use super::{Header, Parser, Reading, after};
use shmlimit_kernel::time::Nanos;

/// From this value on, a reset is a point in time in seconds.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// From this value on, a reset is a point in time in milliseconds.
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// `X-RateLimit-Limit`, `-Remaining`, `-Reset`, as the window `default`.
#[derive(Clone, Copy, Debug)]
pub struct XRateLimit;

/// The same headers and `-Used`, as the window that `X-RateLimit-Resource` names, or `core`.
#[derive(Clone, Copy, Debug)]
pub struct GitHub;

impl Parser for XRateLimit {
    fn parse(&self, headers: &[Header<'_>], wall_now: u64) -> Vec<(String, Reading)> {
        let reading = read(headers, wall_now);
        one("default", Reading { used: None, ..reading })
    }
}

impl Parser for GitHub {
    fn parse(&self, headers: &[Header<'_>], wall_now: u64) -> Vec<(String, Reading)> {
        let resources = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-ratelimit-resource"));
        let resource = resources.map(|(_, value)| trim(value)).find(|value| is_name(value));
        one(resource.unwrap_or("core"), read(headers, wall_now))
    }
}

fn one(name: &str, reading: Reading) -> Vec<(String, Reading)> {
    let mut windows = Windows::default();
    windows.add(name, reading);
    windows.sorted()
}

fn read(headers: &[Header<'_>], wall_now: u64) -> Reading {
    let mut reading = Reading::default();
    for (name, value) in headers {
        let Some(field) = after(name, "x-ratelimit-") else { continue };
        let Some(n) = number(value) else { continue };
        let mut more = Reading::default();
        if field.eq_ignore_ascii_case("limit") {
            more.limit = Some(n);
        } else if field.eq_ignore_ascii_case("remaining") {
            more.remaining = Some(n);
        } else if field.eq_ignore_ascii_case("used") {
            more.used = Some(n);
        } else if field.eq_ignore_ascii_case("reset") {
            more.reset_after = Some(reset_after(n, wall_now));
        }
        reading.restrict(more);
    }
    reading
}

/// The time until a reset. Its size tells whether it is a duration or a point in time.
fn reset_after(reset: u64, wall_now: u64) -> Nanos {
    let at = match reset {
        EPOCH_MILLIS.. => Nanos::from_millis(reset),
        EPOCH_SECONDS.. => Nanos::from_secs(reset),
        _ => return Nanos::from_secs(reset),
    };
    Nanos(at.0.saturating_sub(wall_now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000_000_000;

    fn reset(value: &str) -> Option<Nanos> {
        let parsed = XRateLimit.parse(&[("X-RateLimit-Reset", value)], NOW);
        parsed.first().and_then(|(name, reading)| {
            assert_eq!(name, "default");
            reading.reset_after
        })
    }

    #[test]
    fn r98_size_of_a_reset_tells_duration_from_point_in_time() {
        for (value, nanos) in [
            ("0", 0),
            ("30", 30_000_000_000),
            ("999999999", 999_999_999_000_000_000),
            ("1000000000", 0),
            ("1700000060", 60_000_000_000),
            ("1699999999", 0),
            ("1700000060500", 60_500_000_000),
            ("1700000000000", 0),
            // A distant time, and a time beyond the range of nanoseconds.
            ("9999999999", 8_299_999_999_000_000_000),
            ("999999999999", u64::MAX - NOW),
            ("999999999999999999", u64::MAX - NOW),
        ] {
            assert_eq!(reset(value), Some(Nanos(nanos)), "{value}");
        }
        for bad in ["-1", "1.5", "1700000060Z", "Tue Feb 16 2021", ""] {
            assert_eq!(reset(bad), None, "{bad}");
        }
    }

    #[test]
    fn r98_points_in_time_are_recognised_even_at_the_epoch() {
        let parsed = XRateLimit.parse(&[("x-ratelimit-reset", "1000000000")], 0);
        assert_eq!(parsed[0].1.reset_after, Some(Nanos::from_secs(1_000_000_000)));
        let parsed = XRateLimit.parse(&[("x-ratelimit-reset", "1000000000000")], 0);
        assert_eq!(parsed[0].1.reset_after, Some(Nanos::from_secs(1_000_000_000)));
    }

    #[test]
    fn r99_most_restrictive_of_duplicates_is_kept() {
        let headers = [
            ("X-RateLimit-Limit", "100"),
            ("x-ratelimit-limit", "60"),
            ("X-RATELIMIT-LIMIT", "0"),
            ("X-RateLimit-Remaining", "7"),
            ("X-RateLimit-Remaining", "9"),
            ("X-RateLimit-Reset", "5"),
            ("X-RateLimit-Reset", "1700000050"),
            ("X-RateLimit-Used", "3"),
        ];
        let expected = Reading {
            limit: Some(60),
            remaining: Some(7),
            reset_after: Some(Nanos::from_secs(50)),
            ..Reading::default()
        };
        assert_eq!(XRateLimit.parse(&headers, NOW), [("default".to_owned(), expected)]);
    }

    #[test]
    fn r138_github_names_the_window_by_its_resource() {
        let used = ("x-ratelimit-used", "4");
        let name = |headers: &[Header<'_>]| GitHub.parse(headers, NOW).pop().map(|(name, _)| name);
        assert_eq!(name(&[used]).as_deref(), Some("core"));
        assert_eq!(name(&[used, ("X-RateLimit-Resource", " code_search ")]).as_deref(), Some("code_search"));
        assert_eq!(name(&[("X-RateLimit-Resource", "a\nb"), used]).as_deref(), Some("core"));
        assert_eq!(name(&[("X-RateLimit-Resource", "search")]), None);
        let two = [used, ("x-ratelimit-used", "2")];
        assert_eq!(GitHub.parse(&two, NOW)[0].1, Reading { used: Some(4), ..Reading::default() });
    }
}
