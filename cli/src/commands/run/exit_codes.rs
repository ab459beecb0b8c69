//! Maps exit codes of a command to outcomes of its call.

use super::parsed_outcome::ParsedOutcome;
use shmlimit::NetError;

/// `EX_TEMPFAIL` of sysexits: the command may work later.
const TEMPORARY: u8 = 75;

/// The exit codes of `curl -f`, which succeeds only if the server did. Code 22, a status of 400 or more, is not
/// included: most of those are the caller's fault and say nothing about the server. Local errors are not included
/// either.
const CURL: [(u8, ParsedOutcome); 13] = [
    (5, ParsedOutcome::Error(NetError::Dns)),
    (6, ParsedOutcome::Error(NetError::Dns)),
    (7, ParsedOutcome::Error(NetError::Connection)),
    (16, ParsedOutcome::Error(NetError::Connection)),
    (18, ParsedOutcome::Error(NetError::Connection)),
    (28, ParsedOutcome::Error(NetError::ReadTimeout)),
    (35, ParsedOutcome::Error(NetError::Connection)),
    (52, ParsedOutcome::Error(NetError::Connection)),
    (55, ParsedOutcome::Error(NetError::Connection)),
    (56, ParsedOutcome::Error(NetError::Connection)),
    (92, ParsedOutcome::Error(NetError::Connection)),
    (95, ParsedOutcome::Error(NetError::Connection)),
    (97, ParsedOutcome::Error(NetError::Connection)),
];

/// The exit codes of `wget`. Its code 8, an error status, is not included for the same reason.
const WGET: [(u8, ParsedOutcome); 1] = [(4, ParsedOutcome::Error(NetError::Connection))];

/// One entry of `--exit`.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    One(u8, ParsedOutcome),
    Ready(&'static [(u8, ParsedOutcome)]),
}

impl Entry {
    pub fn parse(text: &str) -> Result<Entry, String> {
        let Some((code, word)) = text.split_once('=') else {
            return match text {
                "curl" => Ok(Entry::Ready(&CURL)),
                "wget" => Ok(Entry::Ready(&WGET)),
                _ => Err(
                    "must be CODE=OUTCOME such as 22=throttled, or curl or wget for the known codes of that \
                          program"
                        .to_owned(),
                ),
            };
        };
        let code = code.parse().map_err(|_| "the exit code must be from 0 to 255")?;
        let word = ParsedOutcome::parse(word).ok_or(
            "the outcome must be an HTTP status, ok, throttled, connect_timeout, read_timeout, dns, connection or none",
        )?;
        Ok(Entry::One(code, word))
    }
}

/// The outcomes of exit codes. Other exit codes say nothing about the call.
#[derive(Debug)]
pub struct ExitCodes(Vec<(u8, ParsedOutcome)>);

impl ExitCodes {
    /// Later entries override earlier ones. Exit code 0 is a success by default, because a limiter that only sees failures
    /// would always find the server bad.
    pub fn new(entries: &[Entry]) -> ExitCodes {
        let usual = [(0, ParsedOutcome::Status(200)), (TEMPORARY, ParsedOutcome::Status(429))];
        let mut all = usual.to_vec();
        for entry in entries {
            match entry {
                Entry::One(code, word) => all.push((*code, *word)),
                Entry::Ready(map) => all.extend_from_slice(map),
            }
        }
        ExitCodes(all)
    }

    pub fn outcome_of(&self, code: u8) -> Option<ParsedOutcome> {
        self.0.iter().rev().find(|(known, _)| *known == code).map(|(_, word)| *word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits(entries: &[&str]) -> ExitCodes {
        let entries: Vec<Entry> = entries.iter().map(|text| Entry::parse(text).unwrap()).collect();
        ExitCodes::new(&entries)
    }

    #[test]
    fn zero_is_a_success_and_75_is_throttled_by_default() {
        assert_eq!(exits(&[]).outcome_of(0), Some(ParsedOutcome::Status(200)));
        assert_eq!(exits(&[]).outcome_of(75), Some(ParsedOutcome::Status(429)));
        assert_eq!(exits(&[]).outcome_of(1), None);
        assert_eq!(exits(&["0=none", "75=503"]).outcome_of(0), Some(ParsedOutcome::Nothing));
        assert_eq!(exits(&["0=none", "75=503"]).outcome_of(75), Some(ParsedOutcome::Status(503)));
    }

    #[test]
    fn curl_error_of_400_or_more_says_nothing_unless_an_option_maps_it() {
        assert_eq!(exits(&["curl"]).outcome_of(22), None);
        assert_eq!(exits(&["curl", "22=throttled"]).outcome_of(22), Some(ParsedOutcome::Status(429)));
        assert_eq!(exits(&["curl"]).outcome_of(6), Some(ParsedOutcome::Error(NetError::Dns)));
        assert_eq!(exits(&["curl", "28=none"]).outcome_of(28), Some(ParsedOutcome::Nothing));
        assert_eq!(
            exits(&["28=none", "curl"]).outcome_of(28),
            Some(ParsedOutcome::Error(NetError::ReadTimeout))
        );
    }

    #[test]
    fn invalid_exit_map_is_refused() {
        for wrong in ["", "=", "22", "256=ok", "-1=ok", "22=", "22=fine", "x=ok"] {
            assert!(Entry::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
