//! A limiter's configuration in TOML, and the common cases by single settings.
//!
//! ```
//! use shmlimit::config::Config;
//!
//! let config = Config::from_toml(
//!     r#"
//!     concurrency = 4
//!     [[rules]]
//!     algorithm = "token_bucket"
//!     limit = 35
//!     period = "1s"
//!     "#,
//! )?;
//! assert_eq!(config.policy().rules()[0].burst, 35);
//! # Ok::<(), shmlimit::config::ConfigError>(())
//! ```

mod page;
mod read;
mod set;
mod source;
mod suggestion;
mod write;

pub use crate::quantity::{amount, duration, share};
pub use crate::rate::{Rate, rate};
pub use crate::settings::{KeyInfo, Kind, keys};
#[doc(hidden)]
pub use page::reference;
pub use set::{set, update};
pub use source::ConfigSource;
pub use suggestion::nearest;
pub use write::to_toml;

use crate::Error;
use crate::presets;
use crate::settings::{RuleSettings, Settings};
use shmlimit_kernel::policy::{Breaker, BreakerKind, BurstFrom};
use shmlimit_kernel::{Algorithm, Fairness, Policy, PolicyError, RuleDraft};

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
         --toml > NAME.settings.toml\nchange it there, and replace it with: shmlimit init NAME --config NAME.settings.toml --replace"
    )]
    NotChangeable {
        /// The key.
        key: String,
    },
    /// A key of something that the limiter does not have.
    #[error(
        "{key}: {problem}; write its settings to a file with: shmlimit status NAME --toml > NAME.settings.toml\nadd it there, and \
         replace it with: shmlimit init NAME --config NAME.settings.toml --replace"
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
    /// A single setting for the one rule, where there is not one.
    #[error("{setting}: there are {rules} rules, not one; {}", if *.rules == 0 { "give --rate as well" } else { "change the one you mean in the file" })]
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

/// A valid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    settings: Settings,
    policy: Policy,
}

/// Single settings that go on top of a configuration (R111).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Units per period of the one rule. Without a burst, an algorithm and the five-state breaker, no one period has more
    /// (R147).
    pub rate: Option<Rate>,
    /// Capacity of the one rule.
    pub burst: Option<u64>,
    /// How the one rule counts.
    pub algorithm: Option<Algorithm>,
    /// Most calls in flight.
    pub concurrency: Option<u64>,
    /// Who goes first among those of one priority.
    pub fairness: Option<Fairness>,
    /// What the background gets in any case, in millionths.
    pub background_share: Option<u64>,
}

impl Overrides {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Overrides::default()
    }
}

impl Config {
    /// Reads a configuration file. Unknown keys are refused, and so are settings this version cannot carry out.
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        Config::new(read::settings(text, false)?)
    }

    /// Reads a configuration file for a run with one caller, such as a simulation: `[cluster]` has no meaning there
    /// and is ignored.
    pub fn from_toml_alone(text: &str) -> Result<Config, ConfigError> {
        Config::new(read::settings(text, true)?)
    }

    /// The configuration of a preset.
    pub fn preset(name: &str) -> Result<Config, ConfigError> {
        Config::new(preset_settings(name)?)
    }

    /// No rule and no bound: something to put single settings on.
    pub fn empty() -> Result<Config, ConfigError> {
        Config::new(Settings::default())
    }

    /// This configuration with single settings on top.
    ///
    /// A rate alone admits at most its limit in any one period (R147): up to 100 000 by a sliding log, above by a token
    /// bucket with a small burst and a refill that leaves room for it. A rate with a burst, or in a limiter with the
    /// five-state breaker, is a token bucket, unless there is a rule of another algorithm already. A window that a file or a
    /// preset has chosen stays.
    ///
    /// ```
    /// use shmlimit::Algorithm;
    /// use shmlimit::config::{Config, Overrides, rate};
    ///
    /// let slower = Overrides { rate: rate("20/s").ok(), ..Overrides::default() };
    /// let policy = *Config::preset("tmdb")?.with(&slower)?.policy();
    /// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (20, Some(4)));
    ///
    /// let alone = *Config::empty()?.with(&slower)?.policy();
    /// assert_eq!(alone.rules()[0].algorithm, Algorithm::SlidingLog);
    /// # Ok::<(), shmlimit::config::ConfigError>(())
    /// ```
    pub fn with(self, overrides: &Overrides) -> Result<Config, ConfigError> {
        let Overrides { rate, burst, algorithm, concurrency, fairness, background_share } = *overrides;
        let mut settings = self.settings;
        let draft = &mut settings.draft;
        draft.fairness = fairness.unwrap_or(draft.fairness);
        draft.background_share = background_share.unwrap_or(draft.background_share);
        draft.concurrency = concurrency.or(draft.concurrency);
        let setting = match overrides {
            Overrides { rate: Some(_), .. } => "--rate",
            Overrides { burst: Some(_), .. } => "--burst",
            Overrides { algorithm: Some(_), .. } => "--algorithm",
            _ => return Config::new(settings),
        };
        let breaker_sets_rate = settings.kind == BreakerKind::Fsm;
        if settings.rules.is_empty() && rate.is_some() {
            settings.rules.push(RuleSettings::new(Algorithm::TokenBucket));
        }
        let [rule] = settings.rules.as_mut_slice() else {
            return Err(ConfigError::NotOneRule { setting, rules: settings.rules.len() });
        };
        if let Some(rate) = rate {
            let chosen = algorithm.is_some()
                || burst.is_some()
                || breaker_sets_rate
                || !rule.draft.algorithm.has_burst();
            if chosen {
                (rule.limit, rule.period) = (Some(rate.limit), Some(rate.period));
                (rule.draft.burst, rule.draft.tau) = (None, None);
            } else {
                rule.within_rate(rate);
            }
            // A rate of the breaker's own would go before it.
            settings.draft.breaker.rate_base = Breaker::DEFAULT.rate_base;
        }
        if let Some(algorithm) = algorithm {
            rule.count_by(algorithm);
        }
        if burst.is_some() {
            rule.draft = RuleDraft { burst, tau: None, burst_from: BurstFrom::Given, ..rule.draft };
        }
        Config::new(settings)
    }

    /// What the limiter runs on.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The wall clock at the zero of a virtual clock; a limiter on a real clock has no use for it.
    pub fn epoch_ns(&self) -> u64 {
        self.settings.epoch_ns
    }

    fn new(settings: Settings) -> Result<Config, ConfigError> {
        let policy = settings.policy()?;
        Ok(Config { settings, policy })
    }
}

fn preset_settings(name: &str) -> Result<Settings, ConfigError> {
    match presets::policy(name) {
        Some(policy) => Ok(Settings::of(&policy?)),
        None => {
            let hint = meant(name, &presets::NAMES);
            Err(ConfigError::UnknownPreset { name: name.to_owned(), hint })
        }
    }
}

/// What a mistyped word may have meant, in words.
fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
