//! Limiter configuration: TOML files, and the common settings one by one.
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
///
/// ```
/// let config = shmlimit::config::Config::preset("tmdb")?;
/// assert_eq!(config.policy().concurrency(), Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    settings: Settings,
    policy: Policy,
}

impl Config {
    /// Reads a configuration file. Unknown keys, and settings that this version does not support, are errors.
    ///
    /// ```
    /// use shmlimit::config::Config;
    ///
    /// assert_eq!(Config::from_toml("concurrency = 4")?.policy().concurrency(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        Config::new(read::settings(text, false)?)
    }

    /// Reads a configuration file for a run with a single caller, such as a simulation. `[cluster]` is ignored,
    /// because it has no meaning there.
    ///
    /// ```
    /// use shmlimit::config::Config;
    ///
    /// assert_eq!(Config::from_toml_alone("concurrency = 4")?.policy().concurrency(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_toml_alone(text: &str) -> Result<Config, ConfigError> {
        Config::new(read::settings(text, true)?)
    }

    /// The configuration of a preset.
    ///
    /// ```
    /// use shmlimit::config::Config;
    ///
    /// assert_eq!(Config::preset("tmdb")?.policy().rules()[0].limit, 35);
    /// assert!(Config::preset("tmbd").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn preset(name: &str) -> Result<Config, ConfigError> {
        Config::new(preset_settings(name)?)
    }

    /// A configuration without rules and without a concurrency limit: a base for single settings.
    ///
    /// ```
    /// assert!(shmlimit::config::Config::empty()?.policy().rules().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn empty() -> Result<Config, ConfigError> {
        Config::new(Settings::default())
    }

    /// This configuration with single settings on top.
    ///
    /// One rate changes the only rule, or creates it. Several rates replace all rules. A rate alone admits at most
    /// its limit in any one period (R147): up to 100 000 with a sliding log, above that with a token bucket whose
    /// small burst is subtracted from its refill. A rate with a burst, or in a limiter with the five-state breaker,
    /// is a token bucket, unless the limiter already has a rule with another algorithm. A window that a file or a
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

    /// The policy that a limiter with this configuration uses.
    ///
    /// ```
    /// assert_eq!(shmlimit::config::Config::preset("tmdb")?.policy().rules()[0].burst, 35);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The wall-clock time at the zero of a virtual clock, in nanoseconds since 1970. A limiter on a real clock
    /// does not use it.
    ///
    /// ```
    /// assert_eq!(shmlimit::config::Config::from_toml("epoch_ns = 1000")?.epoch_ns(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

/// A hint with the known word that a mistyped word probably meant.
fn meant(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
