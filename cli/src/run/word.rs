//! How a call ended, in one word: as people write it, as commands say it.

use shmlimit::headers::Header;
use shmlimit::{NetError, Outcome};
use std::fmt;

/// What a word says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The server answered with this status.
    Status(u16),
    /// There was no answer.
    Error(NetError),
    /// Nothing about the server.
    Nothing,
}

const OK: u16 = 200;
const THROTTLED: u16 = 429;

impl Word {
    /// A plain success.
    pub const OK: Word = Word::Status(OK);

    pub fn parse(text: &str) -> Option<Word> {
        Some(match text {
            "ok" => Word::Status(OK),
            "throttled" => Word::Status(THROTTLED),
            "none" => Word::Nothing,
            _ => match NetError::parse(text) {
                Some(error) => Word::Error(error),
                None => Word::of_status(text.parse().ok()?)?,
            },
        })
    }

    /// What a status says; nothing is said by a number that is none.
    pub fn of_status(status: u16) -> Option<Word> {
        (100..=599).contains(&status).then_some(Word::Status(status))
    }

    pub fn is_success(self) -> bool {
        matches!(self, Word::Status(100..=399))
    }

    pub fn outcome<'h>(self, headers: &'h [Header<'h>]) -> Option<Outcome<'h>> {
        match self {
            Word::Status(status) => Some(Outcome::http(status, headers)),
            Word::Error(error) => Some(Outcome::error(error)),
            Word::Nothing => None,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Status(status) => write!(out, "{status}"),
            Word::Error(error) => out.write_str(error.as_str()),
            Word::Nothing => out.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_status_an_error_or_one_of_three_names() {
        assert_eq!(Word::parse("503"), Some(Word::Status(503)));
        assert_eq!(Word::parse("ok"), Some(Word::Status(200)));
        assert_eq!(Word::parse("throttled"), Some(Word::Status(429)));
        assert_eq!(Word::parse("dns"), Some(Word::Error(NetError::Dns)));
        assert_eq!(Word::parse("none"), Some(Word::Nothing));
        for wrong in ["", "99", "600", "OK", "4 29", "-1", "429x", "timeout"] {
            assert_eq!(Word::parse(wrong), None, "{wrong:?}");
        }
    }
}
