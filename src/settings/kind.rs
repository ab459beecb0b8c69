//! What the keys of the format take: which kind of value, within which bounds.

use crate::quantity;
use shmlimit_kernel::policy::{NAME_LEN, PerSecond};
use std::time::Duration;

/// What a key takes.
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
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
    },
    /// A number of calls in flight, or no bound.
    Permits {
        /// Largest allowed.
        most: u64,
    },
    /// A part of the whole, in millionths.
    Part {
        /// Smallest allowed.
        least: u64,
    },
    /// A factor, in millionths.
    Factor {
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
    },
    /// Units per second.
    Rate {
        /// Whether it may be left to the first rule.
        auto: bool,
    },
    /// A duration.
    Length {
        /// Shortest allowed.
        least: Duration,
    },
}

impl Kind {
    /// What is allowed, in the user's own terms.
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
