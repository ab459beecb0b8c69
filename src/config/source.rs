//! The source of the policy of an opened limiter.

use super::set::{put, set};
use super::{Config, Overrides, amount, update};
use crate::settings::Settings;
use crate::{ConfigError, presets, rate};
use shmlimit_kernel::{Algorithm, Policy, UnknownName};

/// A preset, the text of a file, single settings, or several of these. An empty source uses an existing limiter as
/// it is.
///
/// ```
/// use shmlimit::config::ConfigSource;
///
/// let choice = ConfigSource::default().preset("tmdb").setting("rate", "20/s").setting("breaker.p_throttle", "0.3");
/// let policy = choice.policy("tmdb-test")?;
/// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (20, Some(4)));
/// # Ok::<(), shmlimit::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSource {
    preset: Option<String>,
    text: Option<String>,
    settings: Vec<(String, String)>,
}

impl ConfigSource {
    /// Starts from this preset, regardless of the limiter's name.
    ///
    /// ```
    /// let source = shmlimit::config::ConfigSource::default().preset("tmdb");
    /// assert_eq!(source.policy("any-name")?.concurrency(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn preset(mut self, name: impl Into<String>) -> ConfigSource {
        self.preset = Some(name.into());
        self
    }

    /// Starts from the text of a configuration file (`docs/configuration.md`), which may name a preset itself.
    ///
    /// ```
    /// let source = shmlimit::config::ConfigSource::default().text("concurrency = 2");
    /// assert_eq!(source.policy("api")?.concurrency(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn text(mut self, toml: impl Into<String>) -> ConfigSource {
        self.text = Some(toml.into());
        self
    }

    /// Adds one setting on top: `rate` (`35/s`, or several: `100/min, tokens=30k/min`), `burst` or `algorithm` of
    /// the only rule, or any key of a file (`concurrency`, `breaker.kind`, `rules.1.limit`). If a key is given
    /// twice, the last value is used. Several rates replace all rules of a preset or a file.
    ///
    /// ```
    /// let source = shmlimit::config::ConfigSource::default().setting("rate", "100/min, tokens=30k/min");
    /// assert_eq!(source.policy("api")?.rules().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> ConfigSource {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Whether this source contains no preset, text or setting.
    ///
    /// ```
    /// assert!(shmlimit::config::ConfigSource::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        *self == ConfigSource::default()
    }

    /// The policy for a limiter with this name. Single settings go on top of the text, of the preset, or of the
    /// preset with the limiter's own name.
    ///
    /// ```
    /// let source = shmlimit::config::ConfigSource::default().setting("concurrency", "2");
    /// assert_eq!(source.policy("tmdb")?.concurrency(), Some(2)); // on top of the preset
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self, name: &str) -> Result<Policy, ConfigError> {
        self.policy_with(name, &Overrides::default())
    }

    /// The same policy with `more` settings. These win over settings of the same name in this source.
    pub(crate) fn policy_with(&self, name: &str, more: &Overrides) -> Result<Policy, ConfigError> {
        let mut base = match (&self.text, &self.preset) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::BadValue {
                    key: "preset".to_owned(),
                    value: format!("{:?}", self.preset.as_deref().unwrap_or_default()),
                    problem:
                        "must not be given together with a configuration; write it into the configuration: \
                              preset = …"
                            .to_owned(),
                });
            }
            (Some(text), None) => Config::from_toml(text)?,
            (None, Some(preset)) => Config::preset(preset)?,
            (None, None) if presets::NAMES.contains(&name) => Config::preset(name)?,
            (None, None) => Config::empty()?,
        };
        let alone = base.policy().rules().is_empty();
        let (overrides, mut others) = self.sorted(alone, more)?;
        // The kind of breaker decides how a rate is converted into a rule.
        if let Some(kind) = others.iter().position(|(key, _)| *key == "breaker.kind") {
            let (key, value) = others.remove(kind);
            base = Config::new(Settings::of(&put(base.policy(), key, value)?))?;
        }
        let mut policy = *base.with(&overrides)?.policy();
        for (key, value) in others {
            policy = put(&policy, key, value)?;
        }
        Ok(policy)
    }

    /// Whether this source is a complete configuration (a preset or a text), and not only single settings.
    pub(crate) fn is_whole(&self) -> bool {
        self.text.is_some() || self.preset.is_some()
    }

    /// The policy of an existing limiter with these single settings and `more` changed. All other settings stay.
    pub(crate) fn updated(&self, there: &Policy, more: &Overrides) -> Result<Policy, ConfigError> {
        let (overrides, others) = self.sorted(there.rules().is_empty(), more)?;
        let mut policy = update(there, &overrides)?;
        for (key, value) in others {
            // Repeating the current value of a key that cannot change is allowed.
            let same = put(&policy, key, value).is_ok_and(|same| same == policy);
            policy = if same { policy } else { set(&policy, key, value)? };
        }
        Ok(policy)
    }

    /// Separates the settings that depend on each other from all other keys with their values. `alone` says that
    /// there is no rule yet.
    fn sorted(&self, alone: bool, more: &Overrides) -> Result<(Overrides, Others<'_>), ConfigError> {
        let mut overrides = Overrides::default();
        let mut others = Vec::new();
        for (key, value) in &self.settings {
            // For a rule that a rate creates, the long keys mean the same as the short ones.
            let short = match key.as_str() {
                "rules.0.burst" if alone => "burst",
                "rules.0.algorithm" if alone => "algorithm",
                key => key,
            };
            match short {
                "rate" => overrides.rates = rate::list(value)?,
                "burst" => {
                    let whole = amount(value).map_err(|problem| ConfigError::BadValue {
                        key: key.clone(),
                        value: value.escape_debug().to_string(),
                        problem,
                    })?;
                    overrides.burst = Some(whole);
                }
                "algorithm" => overrides.algorithm = Some(algorithm(key, value)?),
                _ => others.push((key.as_str(), value.as_str())),
            }
        }
        if more.concurrency.is_some() {
            others.retain(|(key, _)| *key != "concurrency");
        }
        if !more.rates.is_empty() {
            overrides.rates = more.rates.clone();
        }
        let overrides = Overrides {
            rates: overrides.rates,
            burst: more.burst.or(overrides.burst),
            algorithm: more.algorithm.or(overrides.algorithm),
            ..more.clone()
        };
        Ok((overrides, others))
    }
}

/// Keys that do not depend on other keys, with their values.
type Others<'s> = Vec<(&'s str, &'s str)>;

fn algorithm(key: &str, value: &str) -> Result<Algorithm, ConfigError> {
    value.parse().map_err(|error: UnknownName| ConfigError::BadValue {
        key: key.to_owned(),
        value: value.escape_debug().to_string(),
        problem: format!("must be one of {}", error.allowed().join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_without_settings_is_that_of_the_preset() {
        assert_eq!(
            ConfigSource::default().policy("tmdb").unwrap(),
            presets::policy("tmdb").unwrap().unwrap()
        );
    }

    #[test]
    fn single_settings_override_the_preset_in_any_order() {
        let source =
            ConfigSource::default().setting("burst", "7").setting("concurrency", "2").setting("rate", "5/s");
        let policy = source.policy("own").unwrap();
        assert_eq!((policy.rules()[0].limit, policy.rules()[0].burst), (5, 7));
        assert_eq!(policy.concurrency(), Some(2));
    }

    #[test]
    fn keys_that_are_fixed_in_use_can_be_set_before_creation() {
        let source = ConfigSource::default().preset("tmdb").setting("rules.0.algorithm", "gcra");
        assert_eq!(source.policy("x").unwrap().rules()[0].algorithm, Algorithm::Gcra);
    }

    #[test]
    fn invalid_setting_is_an_error_that_names_its_key() {
        let refused = |source: ConfigSource| source.policy("own").unwrap_err().to_string();
        assert!(refused(ConfigSource::default().setting("rate", "fast")).starts_with("rate"));
        assert!(refused(ConfigSource::default().setting("burst", "-1")).starts_with("burst"));
        assert!(refused(ConfigSource::default().setting("concurency", "4")).contains("concurrency"));
        assert!(refused(ConfigSource::default().preset("tmbd")).contains("tmdb"));
        assert!(refused(ConfigSource::default().preset("tmdb").text("")).starts_with("preset"));
        assert!(refused(ConfigSource::default().text("nonsense")).len() > 10);
    }
}
