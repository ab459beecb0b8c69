//! Reads headers of language model providers, which count requests and tokens (R138).

use super::calendar::until;
use super::date::rfc3339;
use super::duration::duration;
use super::number::number;
use super::windows::Windows;
use super::{Header, Parser, Reading, after};
use shmlimit_kernel::time::Nanos;

/// `x-ratelimit-limit-requests` and similar names, for `requests` and `tokens`. Resets are durations.
#[derive(Clone, Copy, Debug)]
pub struct OpenAi;

/// `anthropic-ratelimit-requests-limit` and similar names, for `requests`, `tokens`, `input-tokens` and
/// `output-tokens`. Resets are points in time.
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

const OPENAI: [&str; 2] = ["requests", "tokens"];
const ANTHROPIC: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];

impl Parser for OpenAi {
    fn parse(&self, headers: &[Header<'_>], _wall_now: u64) -> Vec<(String, Reading)> {
        read(
            headers,
            |name| {
                let (field, window) = after(name, "x-ratelimit-")?.split_once('-')?;
                Some((known(&OPENAI, window)?, field))
            },
            duration,
        )
    }
}

impl Parser for Anthropic {
    fn parse(&self, headers: &[Header<'_>], wall_now: u64) -> Vec<(String, Reading)> {
        read(
            headers,
            |name| {
                let (window, field) = after(name, "anthropic-ratelimit-")?.rsplit_once('-')?;
                Some((known(&ANTHROPIC, window)?, field))
            },
            |value| {
                let (seconds, nanos) = rfc3339(value)?;
                Some(until(seconds, nanos, wall_now))
            },
        )
    }
}

fn known(windows: &[&'static str], wanted: &str) -> Option<&'static str> {
    windows.iter().find(|window| window.eq_ignore_ascii_case(wanted)).copied()
}

/// Reads the headers of one provider. `split` gives the window and the field of a header name, and `reset` reads a
/// reset.
fn read<'h>(
    headers: &[Header<'h>],
    split: impl Fn(&'h str) -> Option<(&'static str, &'h str)>,
    reset: impl Fn(&str) -> Option<Nanos>,
) -> Vec<(String, Reading)> {
    let mut windows = Windows::default();
    for (name, value) in headers {
        let Some((window, field)) = split(name) else { continue };
        let mut reading = Reading::default();
        if field.eq_ignore_ascii_case("limit") {
            reading.limit = number(value);
        } else if field.eq_ignore_ascii_case("remaining") {
            reading.remaining = number(value);
        } else if field.eq_ignore_ascii_case("reset") {
            reading.reset_after = reset(value);
        }
        windows.add(window, reading);
    }
    windows.sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-31T23:59:59Z
    const NOW: u64 = 1_769_903_999_000_000_000;

    fn reset(seconds: u64) -> Reading {
        Reading { reset_after: Some(Nanos::from_secs(seconds)), ..Reading::default() }
    }

    #[test]
    fn r138_openai_headers_give_limit_remaining_and_reset_of_requests_and_tokens() {
        let headers = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("X-RateLimit-Remaining-Requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        let requests = Reading { limit: Some(60), remaining: Some(59), ..reset(1) };
        let tokens = Reading { limit: Some(150_000), remaining: Some(149_984), ..reset(360) };
        let expected = [("requests".to_owned(), requests), ("tokens".to_owned(), tokens)];
        assert_eq!(OpenAi.parse(&headers, NOW), expected);
    }

    #[test]
    fn r138_anthropic_headers_give_the_reset_of_each_of_four_windows() {
        let headers = [
            ("anthropic-ratelimit-requests-reset", "2026-02-01T00:00:09Z"),
            ("anthropic-ratelimit-tokens-reset", "2026-02-01T01:00:19+01:00"),
            ("Anthropic-RateLimit-Input-Tokens-Reset", "2026-01-31T23:59:59Z"),
            ("anthropic-ratelimit-output-tokens-reset", "2020-01-01T00:00:00Z"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
        ];
        let output = Reading { limit: Some(8000), remaining: Some(0), ..reset(0) };
        let expected = [
            ("input-tokens", reset(0)),
            ("output-tokens", output),
            ("requests", reset(10)),
            ("tokens", reset(20)),
        ];
        assert_eq!(
            Anthropic.parse(&headers, NOW),
            expected.map(|(name, reading)| (name.to_owned(), reading))
        );
    }

    #[test]
    fn r99_most_restrictive_of_duplicates_is_kept() {
        let headers = [
            ("x-ratelimit-reset-tokens", "1s"),
            ("x-ratelimit-reset-tokens", "1m"),
            ("x-ratelimit-remaining-tokens", "8"),
            ("x-ratelimit-remaining-tokens", "7"),
            ("x-ratelimit-limit-tokens", "0"),
        ];
        let expected = Reading { remaining: Some(7), ..reset(60) };
        assert_eq!(OpenAi.parse(&headers, NOW), [("tokens".to_owned(), expected)]);
    }

    #[test]
    fn r94_other_windows_and_malformed_values_are_ignored() {
        let headers = [
            ("x-ratelimit-limit-tokens", "-1"),
            ("x-ratelimit-remaining-tokens", "-1"),
            ("x-ratelimit-reset-tokens", "soon"),
            ("x-ratelimit-limit-tokens_usage_based", "5"),
            ("x-ratelimit-limit-", "5"),
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-used-tokens", "5"),
        ];
        assert_eq!(OpenAi.parse(&headers, NOW), []);
        let headers = [
            ("anthropic-ratelimit-unified-reset", "1769904000"),
            ("anthropic-ratelimit-tokens-reset", "1769904000"),
            ("anthropic-ratelimit-tokens", "5"),
            ("anthropic-ratelimit--limit", "5"),
            ("anthropic-priority-input-tokens-limit", "5"),
        ];
        assert_eq!(Anthropic.parse(&headers, NOW), []);
    }
}
