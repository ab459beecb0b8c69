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

mod near;
mod quantity;
mod read;

pub use near::nearest;
pub use quantity::{Rate, duration, rate, share};

use crate::kernel::{Algorithm, Fairness, Nanos, Policy, PolicyDraft, PolicyError, RuleDraft};
use crate::presets;

/// Presets that the format knows and this version does not have yet.
pub(crate) const LATER_PRESETS: [&str; 13] = [
    "tmdb-legacy",
    "tvdb",
    "fanart",
    "fanart-personal",
    "musicbrainz",
    "omdb-free",
    "omdb-paid",
    "local",
    "binance",
    "upbit",
    "github",
    "openai",
    "anthropic",
];

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
    /// No such preset.
    #[error("preset = {name:?}: no such preset; {hint}")]
    UnknownPreset {
        /// The name given.
        name: String,
        /// What it may have meant, or what there is.
        hint: String,
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

/// A valid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    settings: Settings,
    policy: Policy,
}

/// Single settings that go on top of a configuration (R111).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Units per period of the one rule; its burst becomes the limit.
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
        Config::new(read::settings(text)?)
    }

    /// The configuration of a preset.
    pub fn preset(name: &str) -> Result<Config, ConfigError> {
        Config::new(Settings::preset(name)?)
    }

    /// No rule and no bound: something to put single settings on.
    pub fn empty() -> Result<Config, ConfigError> {
        Config::new(Settings::default())
    }

    /// This configuration with single settings on top. Where it has no rule yet, a rate makes one: a token bucket,
    /// unless another algorithm is named.
    ///
    /// ```
    /// use shmlimit::config::{Config, Overrides, rate};
    ///
    /// let slower = Overrides { rate: rate("20/s").ok(), ..Overrides::default() };
    /// let policy = *Config::preset("tmdb")?.with(&slower)?.policy();
    /// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (20, Some(4)));
    /// # Ok::<(), shmlimit::config::ConfigError>(())
    /// ```
    pub fn with(self, overrides: &Overrides) -> Result<Config, ConfigError> {
        let Overrides { rate, burst, algorithm, concurrency, fairness, background_share } = *overrides;
        let mut settings = self.settings;
        settings.fairness = fairness.unwrap_or(settings.fairness);
        settings.background_share = background_share.unwrap_or(settings.background_share);
        settings.concurrency = concurrency.or(settings.concurrency);
        let setting = match overrides {
            Overrides { rate: Some(_), .. } => "--rate",
            Overrides { burst: Some(_), .. } => "--burst",
            Overrides { algorithm: Some(_), .. } => "--algorithm",
            _ => return Config::new(settings),
        };
        let rule = match (settings.rules.as_mut_slice(), rate) {
            ([rule], _) => rule,
            ([], Some(rate)) => {
                settings.rules.push(RuleSettings::new(Algorithm::TokenBucket, rate.limit, rate.period));
                &mut settings.rules[0]
            }
            (rules, _) => return Err(ConfigError::NotOneRule { setting, rules: rules.len() }),
        };
        if let Some(Rate { limit, period }) = rate {
            *rule = RuleSettings { limit, period, burst: None, tau: None, ..rule.clone() };
        }
        if burst.is_some() {
            *rule = RuleSettings { burst, tau: None, ..rule.clone() };
        }
        rule.algorithm = algorithm.unwrap_or(rule.algorithm);
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
        let rules: Vec<RuleDraft<'_>> = settings.rules.iter().map(RuleSettings::draft).collect();
        let policy = Policy::new(&PolicyDraft {
            provider: settings.provider.as_deref().unwrap_or(PolicyDraft::default().provider),
            concurrency: settings.concurrency,
            concurrency_background: settings.concurrency_background,
            fairness: settings.fairness,
            background_share: settings.background_share,
            rules: &rules,
            ..PolicyDraft::default()
        })?;
        Ok(Config { settings, policy })
    }
}

/// What was written, not yet judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    epoch_ns: u64,
    provider: Option<String>,
    concurrency: Option<u64>,
    concurrency_background: Option<u64>,
    fairness: Fairness,
    /// In millionths.
    background_share: u64,
    rules: Vec<RuleSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RuleSettings {
    name: Option<String>,
    algorithm: Algorithm,
    unit: Option<String>,
    limit: u64,
    period: Nanos,
    burst: Option<u64>,
    tau: Option<Nanos>,
    reserve: u64,
}

impl Settings {
    fn preset(name: &str) -> Result<Settings, ConfigError> {
        let policy = match presets::policy(name) {
            Some(policy) => policy?,
            None if LATER_PRESETS.contains(&name) => {
                let advice = format!("presets there are: {}", presets::NAMES.join(", "));
                return Err(ConfigError::NotYetSupported { key: format!("preset = {name:?}"), advice });
            }
            None => {
                let hint = meant(name, &presets::NAMES);
                return Err(ConfigError::UnknownPreset { name: name.to_owned(), hint });
            }
        };
        let units: Vec<_> = policy.units().collect();
        let rules = policy.rules().iter().map(|rule| RuleSettings {
            name: Some(rule.name.as_str().to_owned()),
            algorithm: rule.algorithm,
            unit: Some(units[usize::from(rule.unit)].as_str().to_owned()),
            limit: rule.limit,
            period: rule.period,
            burst: rule.tau.is_none().then_some(rule.burst),
            tau: rule.tau,
            reserve: rule.reserve,
        });
        Ok(Settings {
            epoch_ns: 0,
            provider: Some(policy.provider().as_str().to_owned()),
            concurrency: policy.concurrency().map(u64::from),
            concurrency_background: policy.concurrency_background().map(u64::from),
            fairness: policy.queueing().fairness,
            background_share: u64::from(policy.queueing().background_share),
            rules: rules.collect(),
        })
    }
}

impl RuleSettings {
    fn new(algorithm: Algorithm, limit: u64, period: Nanos) -> RuleSettings {
        RuleSettings { name: None, algorithm, unit: None, limit, period, burst: None, tau: None, reserve: 0 }
    }

    fn draft(&self) -> RuleDraft<'_> {
        RuleDraft {
            name: self.name.as_deref(),
            algorithm: self.algorithm,
            unit: self.unit.as_deref(),
            limit: self.limit,
            period: self.period,
            burst: self.burst,
            tau: self.tau,
            reserve: self.reserve,
            burst_mode: Default::default(),
        }
    }
}

/// What a mistyped word may have meant, in words.
fn meant(word: &str, known: &[&'static str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

/// One setting changed on a valid policy.
pub fn set(policy: &Policy, key: &str, _value: &str) -> Result<Policy, ConfigError> {
    let _ = policy;
    Err(ConfigError::UnknownKey { key: key.to_owned(), hint: String::new() })
}
