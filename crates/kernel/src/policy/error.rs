//! What can be wrong with a configuration, in words that name the key.

use std::fmt;

use super::name::NAME_LEN;

/// A configuration key as the user wrote it, such as `rules.0.period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which list and which of its elements, if it is in one.
    pub within: Option<(&'static str, usize)>,
    /// The last part.
    pub name: &'static str,
}

impl Key {
    pub(super) const fn top(name: &'static str) -> Key {
        Key { within: None, name }
    }

    pub(super) const fn of_rule(rule: usize, name: &'static str) -> Key {
        Key { within: Some(("rules", rule)), name }
    }

    pub(super) const fn of_window(window: usize, name: &'static str) -> Key {
        Key { within: Some(("adaptive.windows", window)), name }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.within {
            Some((list, index)) => write!(f, "{list}.{index}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A number outside its range.
    #[error("{key} = {}: must be from {} to {}{}", shown(*.value, .unit), shown(*.min, .unit), most(*.max, .unit), said(.unit))]
    OutOfRange {
        /// Where.
        key: Key,
        /// What was given.
        value: u128,
        /// Smallest allowed.
        min: u128,
        /// Largest allowed.
        max: u128,
        /// What the numbers count, with a space in front, or nothing. The message says it in the user's terms: parts
        /// of a whole as decimals, nanoseconds as durations.
        unit: &'static str,
    },
    /// More of something than a limiter has room for (R137).
    #[error("{key}: {count} given, at most {max} allowed")]
    TooMany {
        /// Where.
        key: Key,
        /// How many were given.
        count: usize,
        /// Most allowed.
        max: usize,
    },
    /// A name that cannot be stored.
    #[error("{key} = {value:?}: must be 1 to {NAME_LEN} characters of A-Z a-z 0-9 . _ : -")]
    BadName {
        /// Where.
        key: Key,
        /// What was given.
        value: String,
    },
    /// Two keys that cannot be used together.
    #[error("{key}: {problem}")]
    Conflict {
        /// Where.
        key: Key,
        /// What is wrong and what to do instead.
        problem: &'static str,
    },
    /// Stored words that no valid policy encodes to.
    #[error("stored policy is damaged at word {word}")]
    Damaged {
        /// The first word that is wrong.
        word: usize,
    },
}

/// A number in the terms in which people write the key.
fn shown(value: u128, unit: &str) -> String {
    match unit {
        MILLIONTHS => decimal_text(value, 6),
        BILLIONTHS => decimal_text(value, 9),
        NANOSECONDS => duration_text(value),
        _ => value.to_string(),
    }
}

/// The same for an upper bound: the longest of all durations is not worth all of its digits.
fn most(value: u128, unit: &str) -> String {
    const DAY: u128 = 86_400_000_000_000;
    let long = unit == NANOSECONDS && value > 1000 * DAY;
    shown(if long { value - value % DAY } else { value }, unit)
}

fn said(unit: &'static str) -> &'static str {
    match unit {
        MILLIONTHS | NANOSECONDS => "",
        BILLIONTHS => " a second",
        unit => unit,
    }
}

/// The units whose numbers are not as people write them.
const MILLIONTHS: &str = " millionths";
const BILLIONTHS: &str = " billionths a second";
const NANOSECONDS: &str = " ns";

/// So many parts of `10^-digits`, as a decimal.
pub fn decimal_text(parts: u128, digits: usize) -> String {
    let text = format!("{parts:0>width$}", width = digits + 1);
    let (whole, frac) = text.split_at(text.len() - digits);
    format!("{whole}.{frac}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration in its largest unit that is exact.
pub fn duration_text(nanos: u128) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let (unit, size) = UNITS.into_iter().find(|(_, size)| nanos.is_multiple_of(*size)).unwrap_or(("ns", 1));
    if nanos == 0 { "0s".to_owned() } else { format!("{}{unit}", nanos / size) }
}
