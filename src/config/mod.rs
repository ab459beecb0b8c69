//! A limiter's configuration in TOML, and the common cases by single settings.
//!
//! Needs the feature `config`.
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
//! # Ok::<(), shmlimit::ConfigError>(())
//! ```

mod page;
mod read;
mod set;
mod source;
mod suggestion;
mod write;

pub use crate::quantity::{amount, duration, share};
pub use crate::settings::{KeyInfo, Kind, Overrides, keys, update};
#[doc(hidden)]
pub use page::reference;
pub use set::set;
pub use source::ConfigSource;
pub use suggestion::nearest;
pub use write::to_toml;

use crate::settings::Settings;
use crate::{ConfigError, presets};
use shmlimit_kernel::Policy;

/// A valid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    settings: Settings,
    policy: Policy,
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
    /// A rate goes to the one rule, or makes it. Several rates are all the rules there are. A rate alone admits at most
    /// its limit in any one period (R147): up to 100 000 by a sliding log, above by a token
    /// bucket with a small burst and a refill that leaves room for it. A rate with a burst, or in a limiter with the
    /// five-state breaker, is a token bucket, unless there is a rule of another algorithm already. A window that a file or a
    /// preset has chosen stays.
    ///
    /// ```
    /// use shmlimit::config::{Config, Overrides};
    /// use shmlimit::{Algorithm, Rate};
    ///
    /// let slower = Overrides { rates: vec![Rate::per_second(20)], ..Overrides::default() };
    /// let policy = *Config::preset("tmdb")?.with(&slower)?.policy();
    /// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (20, Some(4)));
    ///
    /// let alone = *Config::empty()?.with(&slower)?.policy();
    /// assert_eq!(alone.rules()[0].algorithm, Algorithm::SlidingLog);
    /// # Ok::<(), shmlimit::ConfigError>(())
    /// ```
    pub fn with(self, overrides: &Overrides) -> Result<Config, ConfigError> {
        let mut settings = self.settings;
        settings.put_single(overrides)?;
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
