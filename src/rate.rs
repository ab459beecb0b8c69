//! Rates: a number of units per period, as code and as text (`35/s`, `1000/day`, `tokens=30k/min`).

use crate::quantity::{amount, duration, span, unit_size};
use shmlimit_kernel::Rule;
use shmlimit_kernel::policy::{Name, REQUESTS};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// A number of units per period.
///
/// A rate without a burst admits at most its limit in any one period, wherever that period begins.
///
/// ```
/// use shmlimit::Rate;
/// use std::time::Duration;
///
/// assert_eq!("100/min".parse(), Ok(Rate::per_minute(100)));
/// assert_eq!("40/10s".parse(), Ok(Rate::new(40, Duration::from_secs(10))));
/// assert_eq!("tokens=30k/min".parse(), Ok(Rate::per_minute(30_000).unit("tokens")));
/// assert_eq!(Rate::per_minute(30_000).unit("tokens").to_string(), "tokens=30000/min");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rate {
    /// The number of units.
    pub limit: u64,
    /// The period.
    pub period: Duration,
    /// The unit that is counted. `None`: requests.
    pub unit: Option<String>,
    /// The name of the rule, for people and for keys such as `rules.NAME.limit`. `None`: the library chooses one.
    pub name: Option<String>,
}

impl Rate {
    /// Creates a rate of `limit` units per `period`. A limit or a period of zero is an error when the limiter is
    /// opened.
    ///
    /// ```
    /// use shmlimit::Rate;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Rate::new(40, Duration::from_secs(10)).to_string(), "40/10s");
    /// ```
    pub const fn new(limit: u64, period: Duration) -> Rate {
        Rate { limit, period, unit: None, name: None }
    }

    /// Creates a rate of `limit` units per second.
    ///
    /// ```
    /// assert_eq!(shmlimit::Rate::per_second(10).to_string(), "10/s");
    /// ```
    pub const fn per_second(limit: u64) -> Rate {
        Rate::new(limit, Duration::from_secs(1))
    }

    /// Creates a rate of `limit` units per minute.
    ///
    /// ```
    /// assert_eq!(shmlimit::Rate::per_minute(100).to_string(), "100/min");
    /// ```
    pub const fn per_minute(limit: u64) -> Rate {
        Rate::new(limit, MINUTE)
    }

    /// Creates a rate of `limit` units per hour.
    ///
    /// ```
    /// assert_eq!("10k/h".parse(), Ok(shmlimit::Rate::per_hour(10_000)));
    /// ```
    pub const fn per_hour(limit: u64) -> Rate {
        Rate::new(limit, HOUR)
    }

    /// Creates a rate of `limit` units per 24 hours.
    ///
    /// ```
    /// assert_eq!("1000/day".parse(), Ok(shmlimit::Rate::per_day(1000)));
    /// ```
    pub const fn per_day(limit: u64) -> Rate {
        Rate::new(limit, DAY)
    }

    /// Counts another unit than requests, such as `tokens`.
    ///
    /// ```
    /// assert_eq!(shmlimit::Rate::per_minute(900).unit("tokens").to_string(), "tokens=900/min");
    /// ```
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Rate {
        self.unit = Some(unit.into());
        self
    }

    /// Names the rule.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Rate};
    ///
    /// let builder = Limiter::builder("api").directory(directory.path()).rate(Rate::per_day(1000).name("daily"));
    /// assert_eq!(builder.open()?.rule_name(0).as_deref(), Some("daily"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Rate {
        self.name = Some(name.into());
        self
    }

    /// Limit and period of a rule.
    pub(crate) fn of(rule: &Rule) -> Rate {
        Rate::new(rule.limit, rule.period)
    }

    /// The name of the unit that is counted.
    pub(crate) fn unit_name(&self) -> &str {
        self.unit.as_deref().unwrap_or(REQUESTS)
    }

    /// The name of the rule if the limiter has several: the given name, or a derived one such as `tokens_per_min`.
    /// It does not contain the limit, so that the rule keeps its name, and with it its counts, when the limit
    /// changes.
    pub(crate) fn name_beside_others(&self) -> Option<String> {
        let made = || Some(format!("{}_per_{}", self.unit_name(), Period(self.period)));
        self.name.clone().or_else(made).filter(|name| self.name.is_some() || Name::new(name).is_some())
    }
}

impl fmt::Display for Rate {
    /// The rate as text that reads back as the same rate, except for the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(unit) = &self.unit {
            write!(f, "{unit}=")?;
        }
        write!(f, "{}/{}", self.limit, Period(self.period))
    }
}

/// A period as people write it after the slash of a rate.
struct Period(Duration);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            MINUTE => f.write_str("min"),
            HOUR => f.write_str("h"),
            DAY => f.write_str("day"),
            period if period == Duration::from_secs(1) => f.write_str("s"),
            period => f.write_str(&span(period)),
        }
    }
}

/// Why a text is not a valid rate.
///
/// ```
/// let error = "fast".parse::<shmlimit::Rate>().unwrap_err();
/// println!("{error}"); // the text, and the allowed form
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rate = {text}: {problem}")]
pub struct RateError {
    text: String,
    problem: String,
}

impl RateError {
    fn new(text: &str, problem: impl Into<String>) -> RateError {
        RateError { text: text.escape_debug().to_string(), problem: problem.into() }
    }

    /// The text, with control characters escaped.
    ///
    /// ```
    /// assert_eq!("fast".parse::<shmlimit::Rate>().unwrap_err().text(), "fast");
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The problem with the text, and the allowed form: `must be …`.
    ///
    /// ```
    /// assert!("fast".parse::<shmlimit::Rate>().unwrap_err().problem().starts_with("must be"));
    /// ```
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl From<Infallible> for RateError {
    fn from(never: Infallible) -> RateError {
        match never {}
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads `35/s`, `1000/day`, `40/10s`, `10k/h`, `35 per second` and, with a unit, `tokens=30k/min`.
    fn from_str(text: &str) -> Result<Rate, RateError> {
        let bad = |problem: String| RateError::new(text, problem);
        let (unit, rate) = match text.split_once('=') {
            Some((unit, rate)) => (Some(unit.trim()), rate),
            None => (None, text),
        };
        if unit.is_some_and(|unit| Name::new(unit).is_none()) {
            let problem =
                "the unit must be 1 to 32 characters of A-Z a-z 0-9 . _ : -, such as tokens=30k/min";
            return Err(bad(problem.to_owned()));
        }
        let (limit, period) = parts(rate).map_err(bad)?;
        Ok(Rate { unit: unit.map(str::to_owned), ..Rate::new(limit, period) })
    }
}

impl TryFrom<&str> for Rate {
    type Error = RateError;

    fn try_from(text: &str) -> Result<Rate, RateError> {
        text.parse()
    }
}

impl TryFrom<String> for Rate {
    type Error = RateError;

    fn try_from(text: String) -> Result<Rate, RateError> {
        text.parse()
    }
}

impl TryFrom<&String> for Rate {
    type Error = RateError;

    fn try_from(text: &String) -> Result<Rate, RateError> {
        text.parse()
    }
}

/// Limit and period of a rate without a unit.
fn parts(text: &str) -> Result<(u64, Duration), String> {
    let wanted = || "must be a whole number per time, such as 35/s, 1000/day or 40/10s".to_owned();
    let (limit, period) = text.split_once('/').or_else(|| text.split_once(" per ")).ok_or_else(wanted)?;
    let period = period.trim();
    let limit =
        amount(limit).map_err(|problem| if problem.contains("too large") { problem } else { wanted() })?;
    let period = match unit_size(period) {
        Some(size) => Duration::from_nanos(size),
        None if period.ends_with(|c: char| c.is_ascii_digit()) => return Err(wanted()),
        None => duration(period).map_err(|_| wanted())?,
    };
    match (limit, period) {
        (0, _) | (_, Duration::ZERO) => Err("must be more than 0".into()),
        _ => Ok((limit, period)),
    }
}

/// Reads a list of rates, separated by commas: `100/min, tokens=30k/min`.
pub(crate) fn list(text: &str) -> Result<Vec<Rate>, RateError> {
    text.split(',').map(|rate| rate.trim().parse()).collect()
}

impl RateError {
    /// The same error; if the text is a list of rates, it shows the calls of a builder that take them.
    pub(crate) fn with_remedy_for_lists(self) -> RateError {
        match list(&self.text) {
            Ok(rates) if rates.len() > 1 => {
                let calls: String =
                    self.text.split(',').map(|rate| format!(".rate({:?})", rate.trim())).collect();
                let problem = format!("one rate per call: {calls}");
                RateError { problem, ..self }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, limit, seconds) in [
            ("35/s", 35, 1),
            ("1000/day", 1000, 86_400),
            ("5000/h", 5000, 3_600),
            ("40/10s", 40, 10),
            ("1 / min", 1, 60),
            ("35 per second", 35, 1),
            ("10k/day", 10_000, 86_400),
            ("2/2weeks", 2, 2 * 604_800),
        ] {
            assert_eq!(text.parse(), Ok(Rate::new(limit, Duration::from_secs(seconds))), "{text}");
        }
        for text in [
            "35",
            "35/",
            "/s",
            "0/s",
            "5/0s",
            "-1/s",
            "1.5/s",
            "NaN/s",
            "5/10",
            "5/fortnight",
            "1/s/s",
            "",
            "=5/s",
            "a b=5/s",
            "5/s=tokens",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_written_rate_reads_back_as_the_same_rate() {
        for rate in [
            Rate::per_second(1),
            Rate::per_minute(100),
            Rate::per_hour(5),
            Rate::per_day(1000),
            Rate::new(40, Duration::from_secs(10)),
            Rate::new(7, Duration::from_nanos(1)),
            Rate::per_minute(30_000).unit("tokens"),
        ] {
            assert_eq!(rate.to_string().parse(), Ok(rate.clone()), "{rate}");
        }
    }

    #[test]
    fn a_list_where_one_rate_is_taken_shows_the_calls_that_take_it() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().with_remedy_for_lists().to_string();
        let wanted = r#"one rate per call: .rate("100/min").rate("tokens=30k/min")"#;
        assert!(error("100/min, tokens=30k/min").ends_with(wanted), "{}", error("100/min, tokens=30k/min"));
        assert!(!error("100/min, fast").contains("one rate per call"));
    }

    #[test]
    fn a_bad_rate_is_an_error_that_says_which_text_and_what_is_allowed() {
        let error = list("5/s, fast\n").unwrap_err();
        assert_eq!((error.text(), error.problem().contains("35/s")), ("fast", true));
        assert!(error.to_string().starts_with("rate = fast: must be"), "{error}");
        assert_eq!(list("5/s,").unwrap_err().text(), "");
    }
}
