//! The reasons why a verb fails, and their exit codes. The exit codes are a contract.

use crate::ui::output;
use shmlimit::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit code of an error in usage or configuration.
pub const USAGE: u8 = 2;
/// The exit code of a temporary refusal: `EX_TEMPFAIL`.
pub const REFUSED: u8 = 75;
const OTHER: u8 = 1;

/// The section on exit codes in help texts.
pub const EXIT_CODES: &str = "Exit codes: 0 done or granted; 75 refused for now (`run` and `acquire` can use another \
                              code: -E); 2 usage or configuration error; 1 any other error. `run` returns the exit \
                              code of its command (127 if it is not found, 126 if it cannot be run).";

/// Why a verb failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the configuration is wrong.
    Usage(String),
    /// The limiter refused: the message, and the exit code.
    Refused(String, u8),
    /// The library returned an error.
    Library(Error),
    /// The command could not be started: the message, and the exit code that a shell would return.
    Command(String, u8),
    /// Writing to standard output failed.
    Io(io::Error),
}

impl Failure {
    /// Prints the message and returns the exit code.
    pub fn report(self) -> ExitCode {
        let code = match &self {
            Failure::Usage(_) => USAGE,
            Failure::Library(error) => code_of(error),
            Failure::Refused(_, code) | Failure::Command(_, code) => *code,
            Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Io(_) => OTHER,
        };
        output::remark(&self.to_string());
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Refused(message, _) | Failure::Command(message, _) => {
                f.write_str(message)
            }
            Failure::Library(error) => error.fmt(f),
            Failure::Io(error) => write!(f, "cannot write the answer: {error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

impl From<shmlimit::ConfigError> for Failure {
    fn from(error: shmlimit::ConfigError) -> Failure {
        Failure::Library(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

fn code_of(error: &Error) -> u8 {
    match error {
        Error::BadName { .. }
        | Error::UnknownLimiter { .. }
        | Error::AlreadyExists { .. }
        | Error::ConfigMismatch { .. }
        | Error::DoesNotFit { .. }
        | Error::Policy(_)
        | Error::Config(_)
        | Error::Environment(_)
        | Error::BadStatus { .. }
        | Error::BadValue { .. }
        | Error::NoSuchState { .. }
        | Error::UnknownUnit { .. } => USAGE,
        _ => OTHER,
    }
}
