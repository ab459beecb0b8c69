//! The outcome of a call, parsed from a word that users type or commands print.

use shmlimit::headers::Header;
use shmlimit::{NetError, Outcome};
use std::fmt;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedOutcome {
    /// The server answered with this status.
    Status(u16),
    /// There was no answer.
    Error(NetError),
    /// The outcome says nothing about the server.
    Nothing,
}

const OK: u16 = 200;
const THROTTLED: u16 = 429;

impl ParsedOutcome {
    /// A success without further information.
    pub const OK: ParsedOutcome = ParsedOutcome::Status(OK);

    pub fn parse(text: &str) -> Option<ParsedOutcome> {
        Some(match text {
            "ok" => ParsedOutcome::Status(OK),
            "throttled" => ParsedOutcome::Status(THROTTLED),
            "none" => ParsedOutcome::Nothing,
            _ => match text.parse().ok() {
                Some(error) => ParsedOutcome::Error(error),
                None => ParsedOutcome::from_status(text.parse().ok()?)?,
            },
        })
    }

    /// Returns the outcome of an HTTP status, or `None` if the number is not a status.
    pub fn from_status(status: u16) -> Option<ParsedOutcome> {
        (100..=599).contains(&status).then_some(ParsedOutcome::Status(status))
    }

    pub fn is_success(self) -> bool {
        matches!(self, ParsedOutcome::Status(100..=399))
    }

    pub fn outcome<'h>(self, headers: &'h [Header<'h>]) -> Option<Outcome<'h>> {
        match self {
            ParsedOutcome::Status(status) => Some(Outcome::http(status, headers)),
            ParsedOutcome::Error(error) => Some(Outcome::error(error)),
            ParsedOutcome::Nothing => None,
        }
    }
}

impl fmt::Display for ParsedOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParsedOutcome::Status(status) => write!(out, "{status}"),
            ParsedOutcome::Error(error) => out.write_str(error.as_str()),
            ParsedOutcome::Nothing => out.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_is_a_status_an_error_or_one_of_three_words() {
        assert_eq!(ParsedOutcome::parse("503"), Some(ParsedOutcome::Status(503)));
        assert_eq!(ParsedOutcome::parse("ok"), Some(ParsedOutcome::Status(200)));
        assert_eq!(ParsedOutcome::parse("throttled"), Some(ParsedOutcome::Status(429)));
        assert_eq!(ParsedOutcome::parse("dns"), Some(ParsedOutcome::Error(NetError::Dns)));
        assert_eq!(ParsedOutcome::parse("none"), Some(ParsedOutcome::Nothing));
        for wrong in ["", "99", "600", "OK", "4 29", "-1", "429x", "timeout"] {
            assert_eq!(ParsedOutcome::parse(wrong), None, "{wrong:?}");
        }
    }
}
