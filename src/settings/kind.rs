//! The kinds of values that configuration keys have, with their bounds.

use crate::quantity;
use shmlimit_kernel::policy::{NAME_LEN, PerSecond};
use std::time::Duration;

/// The kind of a key's values.
///
/// ```
/// use shmlimit::config::{Kind, keys};
///
/// let key = keys().iter().find(|key| key.key == "rules.N.period").unwrap();
/// assert!(matches!(key.kind, Kind::Length { .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A name in quotes.
    Name,
    /// One of these words, in quotes.
    Choice(&'static [&'static str]),
    /// True or false.
    Truth,
    /// A whole number.
    Whole {
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A number of calls in flight, or `unlimited`.
    Permits {
        /// The maximum.
        most: u64,
    },
    /// A share of 1, in millionths.
    Part {
        /// The minimum.
        least: u64,
    },
    /// A factor, in millionths.
    Factor {
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// Units per second.
    Rate {
        /// Whether `auto` is allowed, which uses the rate of the first rule.
        auto: bool,
    },
    /// A duration.
    Length {
        /// The shortest allowed duration.
        least: Duration,
    },
}

impl Kind {
    /// The allowed values, in the notation of a file.
    ///
    /// ```
    /// let key = shmlimit::config::keys().iter().find(|key| key.key == "concurrency").unwrap();
    /// assert_eq!(key.kind.range(), "from 1 to 4096, or \"unlimited\"");
    /// ```
    pub fn range(&self) -> String {
        let parts = |parts| quantity::written(parts, 6);
        match *self {
            Kind::Name => format!("1 to {NAME_LEN} characters of A-Z a-z 0-9 . _ : -"),
            Kind::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
                match words.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => words.concat(),
                }
            }
            Kind::Truth => "true or false".to_owned(),
            Kind::Whole { least, most } => format!("from {least} to {most}"),
            Kind::Permits { most } => format!("from 1 to {most}, or \"unlimited\""),
            Kind::Part { least: 0 } => "a number from 0 to 1".to_owned(),
            Kind::Part { .. } => "a number above 0, at most 1".to_owned(),
            Kind::Factor { least, most } => format!("a number from {} to {}", parts(least), parts(most)),
            Kind::Rate { auto } => {
                let most = PerSecond::FASTEST.0 / PerSecond::ONE.0;
                let auto = if auto { ", or \"auto\"" } else { "" };
                format!("a number above 0, up to {most} a second{auto}")
            }
            Kind::Length { least: Duration::ZERO } => "a duration".to_owned(),
            Kind::Length { least } => format!("a duration of at least {}", quantity::span(least)),
        }
    }
}
