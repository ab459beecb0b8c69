//! The errors of an invalid configuration.

use crate::{Error, RateError};
use shmlimit_kernel::PolicyError;

/// Why a configuration is invalid. Every message names the key.
///
/// ```
/// use shmlimit::{ConfigError, config::Config};
///
/// let error = Config::from_toml("concurency = 4").unwrap_err();
/// assert!(matches!(error, ConfigError::UnknownKey { .. }));
/// println!("{error}"); // names the key and a similar known key
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// A key that the format does not know.
    #[error("{key}: unknown key; {hint}")]
    UnknownKey {
        /// The key, with its path.
        key: String,
        /// A similar known key, or the list of known keys.
        hint: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{key} = {value}: {problem}")]
    BadValue {
        /// The key, with its path.
        key: String,
        /// The value as given.
        value: String,
        /// The problem with the value, and the allowed values.
        problem: String,
    },
    /// A setting that belongs to the format but is not supported in this version.
    #[error("{key}: not supported by this version yet; {advice}")]
    NotYetSupported {
        /// The key, with its path, and its value if only that value is not supported.
        key: String,
        /// The alternative, as an instruction.
        advice: String,
    },
    /// A key that cannot be changed in a limiter that is in use (R144).
    #[error(
        "{key}: cannot be changed in a limiter that is in use; write the limiter's settings to a file with: shmlimit \
         status NAME --toml > NAME.settings.toml\nchange the key there, and replace the limiter with: shmlimit init \
         NAME --config NAME.settings.toml --replace"
    )]
    NotChangeable {
        /// The key.
        key: String,
    },
    /// A key of a rule, window or table that the limiter does not have.
    #[error(
        "{key}: {problem}; write the limiter's settings to a file with: shmlimit status NAME --toml > \
         NAME.settings.toml\nadd the key there, and replace the limiter with: shmlimit init NAME --config \
         NAME.settings.toml --replace"
    )]
    Absent {
        /// The key.
        key: String,
        /// Which elements the limiter has.
        problem: String,
    },
    /// A burst for a rule whose algorithm has no burst.
    #[error("{key}: rule {rule} is a {algorithm}, which has no burst; {remedy}")]
    NoBurst {
        /// The key or the option.
        key: String,
        /// The name of the rule.
        rule: String,
        /// The algorithm of the rule.
        algorithm: &'static str,
        /// The alternative, as an instruction.
        remedy: String,
    },
    /// A preset that does not exist.
    #[error("preset = {name:?}: no such preset; {hint}")]
    UnknownPreset {
        /// The given name.
        name: String,
        /// A similar preset, or the list of presets.
        hint: String,
    },
    /// A name or a unit that several rules have.
    #[error("{key}: {problem}; there are: {names}")]
    Ambiguous {
        /// The key.
        key: String,
        /// The ambiguity.
        problem: String,
        /// The unambiguous keys.
        names: String,
    },
    /// A text that is not a valid rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A single setting for the only rule, in a limiter that does not have exactly one rule.
    #[error("{setting}: there are {rules} rules, not one; {}", not_one_remedy(*.rules, .setting))]
    NotOneRule {
        /// The setting.
        setting: &'static str,
        /// The number of rules.
        rules: usize,
    },
    /// A policy whose values are invalid or contradict each other.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::Config(Box::new(error))
    }
}

/// The remedy for a setting for the only rule if there is not exactly one rule.
fn not_one_remedy(rules: usize, setting: &str) -> String {
    match (rules, setting) {
        (0, _) => "give a rate as well".to_owned(),
        (_, "rate") => "give all rates, or name the rule in a configuration file or a Policy".to_owned(),
        _ => "name the rule that gets it, in a configuration file or a Policy".to_owned(),
    }
}
