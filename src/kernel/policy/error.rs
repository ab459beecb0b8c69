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
    #[error("{key} = {value}: must be from {min} to {max}{unit}")]
    OutOfRange {
        /// Where.
        key: Key,
        /// What was given.
        value: u128,
        /// Smallest allowed.
        min: u128,
        /// Largest allowed.
        max: u128,
        /// What the numbers count, with a space in front, or nothing.
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
    /// No such algorithm.
    #[error(
        "{key} = {value:?}: must be one of token_bucket gcra leaky_bucket fixed_window sliding_log sliding_counter"
    )]
    UnknownAlgorithm {
        /// Where.
        key: Key,
        /// What was given.
        value: String,
    },
    /// No such fairness.
    #[error("{key} = {value:?}: must be \"process\" or \"fifo\"")]
    UnknownFairness {
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
