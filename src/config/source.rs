//! What somebody who opens a limiter says about it.

use super::set::{put, set};
use super::{Config, Overrides, amount, update};
use crate::settings::Settings;
use crate::{ConfigError, presets, rate};
use shmlimit_kernel::{Algorithm, Policy, UnknownName};

/// A preset, the text of a file, single settings: any of them. Where it is empty, a limiter is used as it is.
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
    /// Starts from this preset, whatever the limiter is called.
    #[must_use]
    pub fn preset(mut self, name: impl Into<String>) -> ConfigSource {
        self.preset = Some(name.into());
        self
    }

    /// Starts from the text of a configuration file (`docs/configuration.md`), which may name a preset itself.
    #[must_use]
    pub fn text(mut self, toml: impl Into<String>) -> ConfigSource {
        self.text = Some(toml.into());
        self
    }

    /// Puts one setting on top: `rate` (`35/s`, or several: `100/min, tokens=30k/min`), `burst` and `algorithm` of the one
    /// rule, or any key of a file (`concurrency`, `breaker.kind`, `rules.1.limit`). Of a key that is given twice the last
    /// value counts. Several rates are all the rules of the limiter: those of a preset or a file go.
    #[must_use]
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> ConfigSource {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == ConfigSource::default()
    }

    /// What a limiter of this name is to run on. Single settings go on top of the text, of the preset, or of the preset
    /// of the limiter's own name.
    pub fn policy(&self, name: &str) -> Result<Policy, ConfigError> {
        self.policy_with(name, &Overrides::default())
    }

    /// The same with more settings, which go before those of the same name here.
    pub(crate) fn policy_with(&self, name: &str, more: &Overrides) -> Result<Policy, ConfigError> {
        let mut base = match (&self.text, &self.preset) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::BadValue {
                    key: "preset".to_owned(),
                    value: format!("{:?}", self.preset.as_deref().unwrap_or_default()),
                    problem: "must not be given beside a configuration; write it into that: preset = …"
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
        // Which breaker it is decides what a rate means.
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

    /// Whether it is a whole configuration, and not only single settings.
    pub(crate) fn is_whole(&self) -> bool {
        self.text.is_some() || self.preset.is_some()
    }

    /// A limiter's policy with the single settings changed, and `more`; what they do not name stays.
    pub(crate) fn updated(&self, there: &Policy, more: &Overrides) -> Result<Policy, ConfigError> {
        let (overrides, others) = self.sorted(there.rules().is_empty(), more)?;
        let mut policy = update(there, &overrides)?;
        for (key, value) in others {
            // A key that cannot be changed may be said again.
            let same = put(&policy, key, value).is_ok_and(|same| same == policy);
            policy = if same { policy } else { set(&policy, key, value)? };
        }
        Ok(policy)
    }

    /// The settings that depend on each other, and all other keys with their values. `alone`: there is no rule yet.
    fn sorted(&self, alone: bool, more: &Overrides) -> Result<(Overrides, Others<'_>), ConfigError> {
        let mut overrides = Overrides::default();
        let mut others = Vec::new();
        for (key, value) in &self.settings {
            // Of the rule that a rate makes, the long names say the same as the short ones.
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

/// Keys that depend on no others, and their values.
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
    fn nothing_said_about_a_preset_is_the_preset() {
        assert_eq!(
            ConfigSource::default().policy("tmdb").unwrap(),
            presets::policy("tmdb").unwrap().unwrap()
        );
    }

    #[test]
    fn single_settings_go_on_top_in_any_order() {
        let source =
            ConfigSource::default().setting("burst", "7").setting("concurrency", "2").setting("rate", "5/s");
        let policy = source.policy("own").unwrap();
        assert_eq!((policy.rules()[0].limit, policy.rules()[0].burst), (5, 7));
        assert_eq!(policy.concurrency(), Some(2));
    }

    #[test]
    fn keys_that_cannot_change_later_can_be_chosen_at_the_start() {
        let source = ConfigSource::default().preset("tmdb").setting("rules.0.algorithm", "gcra");
        assert_eq!(source.policy("x").unwrap().rules()[0].algorithm, Algorithm::Gcra);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        let refused = |source: ConfigSource| source.policy("own").unwrap_err().to_string();
        assert!(refused(ConfigSource::default().setting("rate", "fast")).starts_with("rate"));
        assert!(refused(ConfigSource::default().setting("burst", "-1")).starts_with("burst"));
        assert!(refused(ConfigSource::default().setting("concurency", "4")).contains("concurrency"));
        assert!(refused(ConfigSource::default().preset("tmbd")).contains("tmdb"));
        assert!(refused(ConfigSource::default().preset("tmdb").text("")).starts_with("preset"));
        assert!(refused(ConfigSource::default().text("nonsense")).len() > 10);
    }
}
