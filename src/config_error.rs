//! Why a configuration is refused.

use crate::{Error, RateError};
use shmlimit_kernel::PolicyError;

/// Why a configuration is refused. Every message names the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// A key that the format does not know.
    #[error("{key}: unknown key; {hint}")]
    UnknownKey {
        /// The key, with its path.
        key: String,
        /// What it may have meant, or what there is.
        hint: String,
    },
    /// A value of the wrong kind, or out of range.
    #[error("{key} = {value}: {problem}")]
    BadValue {
        /// The key, with its path.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// A setting that the format knows and this version does not carry out.
    #[error("{key}: not supported by this version yet; {advice}")]
    NotYetSupported {
        /// The key, with its path, and its value where that is what is not supported.
        key: String,
        /// What to do instead.
        advice: String,
    },
    /// A key that cannot be changed in a limiter that is in use (R144).
    #[error(
        "{key}: cannot be changed in a limiter that is in use; write its settings to a file with: shmlimit status NAME \
         --toml > NAME.settings.toml\nchange it there, and start it afresh with: shmlimit init NAME --config NAME.settings.toml --replace"
    )]
    NotChangeable {
        /// The key.
        key: String,
    },
    /// A key of something that the limiter does not have.
    #[error(
        "{key}: {problem}; write its settings to a file with: shmlimit status NAME --toml > NAME.settings.toml\nadd it there, and \
         start it afresh with: shmlimit init NAME --config NAME.settings.toml --replace"
    )]
    Absent {
        /// The key.
        key: String,
        /// What there is.
        problem: String,
    },
    /// A burst for a rule whose algorithm has none.
    #[error("{key}: rule {rule} is a {algorithm}, which has no burst; {remedy}")]
    NoBurst {
        /// The key, or the option.
        key: String,
        /// The rule.
        rule: String,
        /// Its algorithm.
        algorithm: &'static str,
        /// What to do instead.
        remedy: String,
    },
    /// No such preset.
    #[error("preset = {name:?}: no such preset; {hint}")]
    UnknownPreset {
        /// The name given.
        name: String,
        /// What it may have meant, or what there is.
        hint: String,
    },
    /// A name or a unit that more than one rule has.
    #[error("{key}: {problem}; there are: {names}")]
    Ambiguous {
        /// The key.
        key: String,
        /// What is not clear.
        problem: String,
        /// The keys that say which.
        names: String,
    },
    /// A text that is no rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A single setting for the one rule, where there is not one.
    #[error("{setting}: there are {rules} rules, not one; {}", not_one_remedy(*.rules, .setting))]
    NotOneRule {
        /// The setting.
        setting: &'static str,
        /// How many rules there are.
        rules: usize,
    },
    /// A number that makes no sense.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::Config(Box::new(error))
    }
}

/// What to do about a setting of the one rule, where there is not one.
fn not_one_remedy(rules: usize, setting: &str) -> String {
    match (rules, setting) {
        (0, _) => "give a rate as well".to_owned(),
        (_, "rate") => "give all the rates, or name the rule in a configuration file or a Policy".to_owned(),
        _ => "say which rule has it, in a configuration file or a Policy".to_owned(),
    }
}
