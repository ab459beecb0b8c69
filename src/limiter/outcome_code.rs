//! The codes under which outcomes are counted: an HTTP status or a network error.

use shmlimit_kernel::UnknownName;
use shmlimit_kernel::outcome::OutcomeClass;
use std::fmt;
use std::str::FromStr;

shmlimit_kernel::named_enum! {
    /// Why a call got no response (R43).
    ///
    /// ```
    /// use shmlimit::NetError;
    ///
    /// assert_eq!("dns".parse(), Ok(NetError::Dns));
    /// assert_eq!(NetError::ReadTimeout.as_str(), "read_timeout");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NetError {
        /// The connection was not established in time.
        ConnectTimeout => "connect_timeout",
        /// The response did not arrive in time.
        ReadTimeout => "read_timeout",
        /// The name does not exist, or no name server answered.
        Dns => "dns",
        /// The connection was refused or broke.
        Connection => "connection",
    }
    /// All errors.
    ///
    /// ```
    /// use shmlimit::NetError;
    ///
    /// assert_eq!(NetError::ALL.map(NetError::as_str), NetError::NAMES);
    /// ```
    pub const ALL;
    /// The name in configuration, JSON and other languages.
    ///
    /// ```
    /// assert_eq!(shmlimit::NetError::Dns.as_str(), "dns");
    /// ```
    pub const fn as_str;
    /// The names, in the order of the variants.
    ///
    /// ```
    /// assert!(shmlimit::NetError::NAMES.contains(&"dns"));
    /// ```
    pub const NAMES;
    impl FromStr;
}

/// The code under which an outcome is counted (R116).
///
/// ```
/// use shmlimit::OutcomeCode;
///
/// assert_eq!("429".parse(), Ok(OutcomeCode::Status(429)));
/// assert_eq!(OutcomeCode::Status(429).to_string(), "429");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeCode {
    /// An HTTP status.
    Status(u16),
    /// A call without a response.
    Error(NetError),
    /// Any status after the first 63 different ones.
    Other,
}

impl OutcomeCode {
    pub(super) const fn number(self) -> u16 {
        match self {
            OutcomeCode::Status(status) => status,
            OutcomeCode::Error(error) => error as u16 + 1,
            OutcomeCode::Other => 0,
        }
    }

    /// The code with this stored number. An invalid number gives `Other`.
    pub(super) fn of(number: u16) -> OutcomeCode {
        let error = NetError::ALL.into_iter().find(|error| OutcomeCode::Error(*error).number() == number);
        match (error, OutcomeClass::of_status(number)) {
            (Some(error), _) => OutcomeCode::Error(error),
            (None, Some(_)) => OutcomeCode::Status(number),
            (None, None) => OutcomeCode::Other,
        }
    }

    /// Whether it is a success.
    pub(super) fn is_ok(self) -> bool {
        matches!(self, OutcomeCode::Status(status) if OutcomeClass::of_status(status) == Some(OutcomeClass::Ok))
    }
}

impl fmt::Display for OutcomeCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutcomeCode::Status(status) => write!(out, "{status}"),
            OutcomeCode::Error(error) => out.write_str(error.as_str()),
            OutcomeCode::Other => out.write_str("other"),
        }
    }
}

impl FromStr for OutcomeCode {
    type Err = UnknownName;

    /// Reads what `Display` writes: an HTTP status, the name of a [`NetError`], or `other`.
    fn from_str(text: &str) -> Result<OutcomeCode, UnknownName> {
        const ALLOWED: [&str; NetError::NAMES.len() + 2] = {
            let [connect, read, dns, connection] = NetError::NAMES;
            ["100 to 599", connect, read, dns, connection, "other"]
        };
        let status = text.parse().ok().filter(|status| OutcomeClass::of_status(*status).is_some());
        match (status, text.parse()) {
            (Some(status), _) => Ok(OutcomeCode::Status(status)),
            (None, Ok(error)) => Ok(OutcomeCode::Error(error)),
            (None, Err(_)) if text == "other" => Ok(OutcomeCode::Other),
            (None, Err(_)) => Err(UnknownName::new("OutcomeCode", text, &ALLOWED)),
        }
    }
}
