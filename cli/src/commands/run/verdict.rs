//! Decides how the call of a command ended, and whether to run the command again.

use super::parsed_outcome::ParsedOutcome;
use crate::record_channel::RecordMessage;
use shmlimit::headers::response;
use shmlimit::{Error, Grant, WaitSource};
use std::time::Duration;

/// How the call ended, as far as that is known.
#[derive(Debug)]
pub enum Verdict {
    /// This outcome, with these headers.
    Parsed(ParsedOutcome, Vec<(String, String)>),
    /// The command recorded the outcome.
    Advice(RecordMessage),
    /// There is no information.
    Unknown,
}

/// A decision to run the command again.
#[derive(Debug)]
pub struct Retry {
    pub why: String,
    pub wait: Duration,
    pub source: WaitSource,
}

impl Verdict {
    /// Determines the outcome from the status descriptor's text, the pattern's match and the exit code.
    pub fn new(status: &str, pattern: Option<ParsedOutcome>, exit: Option<ParsedOutcome>) -> Verdict {
        let (code, headers) = response(status);
        let bare = || status.lines().rev().find_map(|line| ParsedOutcome::parse(line.trim()));
        let written = code.and_then(ParsedOutcome::from_status).or_else(bare);
        let found = match (written.or(pattern), exit) {
            // The response began well, but then the connection broke.
            (Some(found), Some(exit @ ParsedOutcome::Error(_))) if found.is_success() => Some(exit),
            (found, exit) => found.or(exit),
        };
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        found.map_or(Verdict::Unknown, |found| {
            Verdict::Parsed(found, headers.into_iter().map(owned).collect())
        })
    }

    /// A success without further information.
    pub fn success() -> Verdict {
        Verdict::Parsed(ParsedOutcome::OK, Vec::new())
    }

    /// Ends the call: records the outcome for all processes that share the limiter, and releases the permit.
    pub fn record(
        self,
        grant: Grant<'_>,
        attempt: Option<u32>,
        latency: Duration,
    ) -> Result<Option<Retry>, Error> {
        match self {
            Verdict::Unknown => grant.release().map(|()| None),
            Verdict::Advice(RecordMessage { code, wait }) => {
                grant.release()?;
                Ok(wait.map(|(wait, source)| Retry { why: code, wait, source }))
            }
            Verdict::Parsed(word, headers) => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let Some(outcome) = word.outcome(&headers) else { return grant.release().map(|()| None) };
                let outcome = outcome.latency(latency);
                let outcome = attempt.map_or(outcome, |attempt| outcome.attempt(attempt));
                let recorded = grant.record(&outcome)?;
                let again = |source| Retry { why: word.to_string(), wait: recorded.wait, source };
                Ok(recorded.wait_source.map(again))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmlimit::NetError;

    fn word(
        status: &str,
        pattern: Option<ParsedOutcome>,
        exit: Option<ParsedOutcome>,
    ) -> Option<ParsedOutcome> {
        match Verdict::new(status, pattern, exit) {
            Verdict::Parsed(word, _) => Some(word),
            _ => None,
        }
    }

    const OK: Option<ParsedOutcome> = Some(ParsedOutcome::Status(200));
    const SLOW: Option<ParsedOutcome> = Some(ParsedOutcome::Error(NetError::ReadTimeout));

    #[test]
    fn descriptor_overrides_pattern_and_pattern_overrides_exit_code() {
        assert_eq!(word("429\n", Some(ParsedOutcome::Status(503)), OK), Some(ParsedOutcome::Status(429)));
        assert_eq!(word("", Some(ParsedOutcome::Status(503)), OK), Some(ParsedOutcome::Status(503)));
        assert_eq!(word("", None, OK), OK);
        assert_eq!(word("hello\n", None, None), None);
        assert_eq!(word("HTTP/1.1 999 What\r\n\r\n", None, OK), OK);
    }

    #[test]
    fn truncated_response_is_not_a_success() {
        assert_eq!(word("HTTP/1.1 200 OK\r\n\r\n", None, SLOW), SLOW);
        assert_eq!(word("HTTP/1.1 503 No\r\n\r\n", None, SLOW), Some(ParsedOutcome::Status(503)));
    }

    #[test]
    fn bare_status_may_have_headers() {
        let Verdict::Parsed(word, headers) = Verdict::new("429\nRetry-After: 7\n", None, None) else {
            panic!()
        };
        assert_eq!(word, ParsedOutcome::Status(429));
        assert_eq!(headers, [("Retry-After".to_owned(), "7".to_owned())]);
    }
}
