//! The errors of a configuration. Each names the key.

use std::fmt;

use super::name::NAME_LEN;

/// A configuration key in the form the user wrote it, such as `rules.0.period`.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::Key;
///
/// let key = Key { within: Some(("rules", 0)), name: "period" };
/// assert_eq!(key.to_string(), "rules.0.period");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The list that contains the key, and the index of its element. `None` for a key outside a list.
    pub within: Option<(&'static str, usize)>,
    /// The last part of the key.
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

/// The reason why a configuration is refused.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Policy, PolicyDraft};
///
/// let error = Policy::new(&PolicyDraft { concurrency: Some(0), ..PolicyDraft::DEFAULT }).unwrap_err();
/// assert_eq!(error.to_string(), "concurrency = 0: must be from 1 to 4096");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A number outside its range.
    #[error("{key} = {}: must be from {} to {}{}", shown(*.value, .unit), shown(*.min, .unit), most(*.max, .unit), said(.unit))]
    OutOfRange {
        /// The key.
        key: Key,
        /// The given value.
        value: u128,
        /// The smallest allowed value.
        min: u128,
        /// The largest allowed value.
        max: u128,
        /// The unit of the numbers, with a space in front, or empty. The message converts it to the form that
        /// users write: fractions as decimals, nanoseconds as durations.
        unit: &'static str,
    },
    /// More elements than a limiter has room for (R137).
    #[error("{key}: {count} given, at most {max} allowed")]
    TooMany {
        /// The key.
        key: Key,
        /// The given number.
        count: usize,
        /// The largest allowed number.
        max: usize,
    },
    /// A name that cannot be stored.
    #[error("{key} = {value:?}: must be 1 to {NAME_LEN} characters of A-Z a-z 0-9 . _ : -")]
    BadName {
        /// The key.
        key: Key,
        /// The given name.
        value: String,
    },
    /// Two keys that cannot be used together.
    #[error("{key}: {problem}")]
    Conflict {
        /// The key.
        key: Key,
        /// The problem, and what to do instead.
        problem: &'static str,
    },
    /// Stored words that are not the encoding of any valid policy.
    #[error("stored policy is damaged at word {word}")]
    Damaged {
        /// The index of the first wrong word.
        word: usize,
    },
}

/// A number in the form in which users write the key.
fn shown(value: u128, unit: &str) -> String {
    match unit {
        MILLIONTHS => decimal_text(value, 6),
        BILLIONTHS => decimal_text(value, 9),
        NANOSECONDS => duration_text(value),
        _ => value.to_string(),
    }
}

/// An upper bound in the same form. A very long duration is rounded down to whole days, so that the text stays
/// short.
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

/// The units that are converted for users.
const MILLIONTHS: &str = " millionths";
const BILLIONTHS: &str = " billionths a second";
const NANOSECONDS: &str = " ns";

/// A number of `10^-digits` parts, as a decimal.
pub fn decimal_text(parts: u128, digits: usize) -> String {
    let text = format!("{parts:0>width$}", width = digits + 1);
    let (whole, frac) = text.split_at(text.len() - digits);
    format!("{whole}.{frac}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration in the largest unit in which it is a whole number.
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
