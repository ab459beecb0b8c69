//! Reads rate limits from response headers: one pure parser for each provider's format.
//!
//! A parser turns text into values. It has no clock, no state and no decisions. Headers are untrusted, so nothing
//! in them is an error: malformed parts are ignored (R94), nothing panics (R99b), and a response gives at most 64
//! windows. `docs/headers.md` has a table of the headers and their meanings.
#![forbid(unsafe_code)]

mod binance;
mod calendar;
mod date;
mod duration;
mod ietf;
mod list;
mod llm;
mod number;
mod retry_after;
mod upbit;
mod windows;
mod xratelimit;

pub use binance::Binance;
pub use ietf::Ietf;
pub use llm::{Anthropic, OpenAi};
pub use retry_after::{retry_after, retry_after_in};
pub use upbit::Upbit;
pub use xratelimit::{GitHub, XRateLimit};

use shmlimit_kernel::policy::HeaderCode;
use shmlimit_kernel::time::Nanos;
use std::num::NonZeroU8;

/// The values that response headers gave for one window of a limit. Values that the headers did not contain are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Units that the window allows. It is never 0, because a limit of 0 means unknown (R99).
    pub limit: Option<u64>,
    /// Remaining units.
    pub remaining: Option<u64>,
    /// Length of the window; never 0.
    pub used: Option<u64>,
    /// Time until the window restarts; 0 if that time is past.
    pub reset_after: Option<Nanos>,
    /// The window's length; never 0.
    pub window: Option<Nanos>,
}

/// One response header: name and value. Any text is valid, and a name may occur several times.
pub type Header<'h> = (&'h str, &'h str);

/// Reads one provider's headers. A new provider implements this trait and adds a variant to [`HeaderFormat`]
/// (R100).
pub trait Parser: Sync {
    /// The windows in the headers, sorted by name, each name once, at most 64 of them.
    ///
    /// `wall_now` is the time in nanoseconds since the Unix epoch. It is needed for resets that are points in time.
    fn parse(&self, headers: &[Header<'_>], wall_now: u64) -> Vec<(String, Reading)>;
}

shmlimit_kernel::named_enum! {
    /// The provider whose header format is read. Limiters store the codes, so a code never changes its meaning.
    ///
    /// ```
    /// use shmlimit::policy::HeaderFormat;
    ///
    /// assert_eq!("github".parse(), Ok(HeaderFormat::GitHub));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum HeaderFormat {
        /// `X-MBX-USED-WEIGHT-1M` and similar headers (R95).
        Binance = 1 => "binance",
        /// `Remaining-Req` (R96).
        Upbit = 2 => "upbit",
        /// `RateLimit` of the IETF's drafts (R97).
        Ietf = 3 => "ietf",
        /// `X-RateLimit-*` (R98).
        XRateLimit = 4 => "xratelimit",
        /// GitHub's `x-ratelimit-*` (R138).
        GitHub = 5 => "github",
        /// OpenAI's `x-ratelimit-*-requests` and `-tokens` (R138).
        OpenAi = 6 => "openai",
        /// `anthropic-ratelimit-*` (R138).
        Anthropic = 7 => "anthropic",
    }
    /// All formats.
    ///
    /// ```
    /// use shmlimit::policy::HeaderFormat;
    ///
    /// assert_eq!(HeaderFormat::ALL.map(HeaderFormat::as_str), HeaderFormat::NAMES);
    /// ```
    pub const ALL;
    /// The name in configuration files.
    ///
    /// ```
    /// assert_eq!(shmlimit::policy::HeaderFormat::GitHub.as_str(), "github");
    /// ```
    pub const fn as_str;
    impl FromStr;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// assert!(shmlimit::policy::HeaderFormat::NAMES.contains(&"github"));
    /// ```
    pub const NAMES;
    /// The format stored as `code`.
    const fn from_code(u8);
}

impl HeaderFormat {
    /// The parser of this format.
    #[doc(hidden)]
    pub const fn parser(self) -> &'static dyn Parser {
        match self {
            HeaderFormat::Binance => &Binance,
            HeaderFormat::Upbit => &Upbit,
            HeaderFormat::Ietf => &Ietf,
            HeaderFormat::XRateLimit => &XRateLimit,
            HeaderFormat::GitHub => &GitHub,
            HeaderFormat::OpenAi => &OpenAi,
            HeaderFormat::Anthropic => &Anthropic,
        }
    }

    /// The format of a stored code; `None` if this version does not know it.
    ///
    /// ```
    /// use shmlimit::policy::HeaderFormat;
    ///
    /// assert_eq!(HeaderFormat::of(HeaderFormat::GitHub.code()), Some(HeaderFormat::GitHub));
    /// ```
    pub fn of(code: HeaderCode) -> Option<HeaderFormat> {
        HeaderFormat::from_code(code.0.get())
    }

    /// The code that a policy stores.
    ///
    /// ```
    /// use shmlimit::policy::HeaderFormat;
    ///
    /// assert_ne!(HeaderFormat::GitHub.code(), HeaderFormat::Ietf.code());
    /// ```
    pub const fn code(self) -> HeaderCode {
        match NonZeroU8::new(self as u8) {
            Some(code) => HeaderCode(code),
            None => unreachable!(),
        }
    }
}

/// The names of all parsers.
pub const PARSERS: [&str; HeaderFormat::NAMES.len()] = HeaderFormat::NAMES;

/// The parser with that name; `None` if no parser has it.
///
/// ```
/// let binance = shmlimit::headers::parser("binance").unwrap();
/// let parsed = binance.parse(&[("X-MBX-USED-WEIGHT-1M", "42")], 0);
/// assert_eq!(parsed[0].0, "REQUEST_WEIGHT:1M");
/// assert_eq!(parsed[0].1.used, Some(42));
/// ```
pub fn parser(name: &str) -> Option<&'static dyn Parser> {
    name.parse().ok().map(HeaderFormat::parser)
}

/// The status and the headers of the last response in a text of response heads, as servers and `curl -D` write
/// them. After redirects the text has several heads. Lines that are not headers are ignored (R94).
///
/// ```
/// use shmlimit::headers::response;
///
/// let text = "HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\nHTTP/2 429\r\nretry-after: 7\r\n\r\n";
/// assert_eq!(response(text), (Some(429), vec![("retry-after", "7")]));
/// ```
pub fn response(text: &str) -> (Option<u16>, Vec<Header<'_>>) {
    let (mut status, mut headers) = (None, Vec::new());
    for line in text.lines().map(str::trim_end) {
        if line.starts_with("HTTP/") {
            status = line.split_whitespace().nth(1).and_then(|code| code.parse().ok());
            headers.clear();
        } else if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim(), value.trim()));
        }
    }
    (status, headers)
}

/// The part of a header's name after `prefix`, without regard to case (R94).
fn after<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r100_every_known_name_has_a_parser_and_unknown_names_have_none() {
        for name in PARSERS {
            assert!(parser(name).is_some(), "{name}");
        }
        for name in ["", "Binance", "tmdb", "ietf "] {
            assert!(parser(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn r100_each_name_gets_its_own_parser() {
        let samples = [
            ("binance", ("x-mbx-used-weight", "1"), "REQUEST_WEIGHT:1M"),
            ("upbit", ("remaining-req", "group=g; sec=1"), "g:sec"),
            ("ietf", ("ratelimit-remaining", "1"), "default"),
            ("xratelimit", ("x-ratelimit-remaining", "1"), "default"),
            ("github", ("x-ratelimit-remaining", "1"), "core"),
            ("openai", ("x-ratelimit-remaining-tokens", "1"), "tokens"),
            ("anthropic", ("anthropic-ratelimit-tokens-remaining", "1"), "tokens"),
        ];
        assert_eq!(samples.map(|(name, ..)| name), PARSERS);
        for (name, header, window) in samples {
            let parsed = parser(name).unwrap().parse(&[header], 0);
            assert_eq!(parsed.len(), 1, "{name}");
            assert_eq!(parsed[0].0, window, "{name}");
        }
    }

    #[test]
    fn last_response_of_a_dump_is_used() {
        let dump =
            "HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\nHTTP/2 429\r\nretry-after: 7\r\nnonsense\r\n\r\n";
        assert_eq!(response(dump), (Some(429), vec![("retry-after", "7")]));
        assert_eq!(response("HTTP/1.1 abc"), (None, vec![]));
        assert_eq!(response(""), (None, vec![]));
    }

    #[test]
    fn r94_a_prefix_is_found_in_any_case_and_never_splits_a_character() {
        assert_eq!(after("X-MBX-a", "x-mbx-"), Some("a"));
        assert_eq!(after("x-mbx-", "X-MBX-"), Some(""));
        assert_eq!(after("x-mb", "X-MBX-"), None);
        assert_eq!(after("x-mbxé", "x-mbx-"), None);
    }
}
