//! Environment variables that change the numbers of limiters (R109). They act as a change in a limiter in use
//! (R110), and they override files and presets (R111).
//!
//! | variable | key | default of the breaker |
//! | --- | --- | --- |
//! | `SHMLIMIT_RATE_BASE` | `breaker.rate_base` | 35.0 |
//! | `SHMLIMIT_BUCKET_CAP` | `rules.0.burst` | 35 |
//! | `SHMLIMIT_CONCURRENCY` | `concurrency` | 4 |
//! | `SHMLIMIT_P_THROTTLE` | `breaker.p_throttle` | 0.20 |
//! | `SHMLIMIT_P_RECOVER` | `breaker.p_recover` | 0.10 |
//! | `SHMLIMIT_N_THROTTLE` | `breaker.n_throttle` | 3 |
//! | `SHMLIMIT_N_CACHEONLY` | `breaker.n_cacheonly` | 5 |
//! | `SHMLIMIT_SLEEP_MIN` | `breaker.sleep_min` | 2.0 (seconds) |
//! | `SHMLIMIT_SLEEP_MAX` | `breaker.sleep_max` | 300.0 (seconds) |
//! | `SHMLIMIT_PROBE_SUCCESS` | `breaker.s_probe_ok` | 5 |
//! | `SHMLIMIT_COOLDOWN_FACTOR` | `breaker.cooldown_factor` | 2.0 |
//!
//! The handle that opened the limiter lists what the variables changed ([`Limiter::environment_changes`]), and logs
//! it as a warning. A change applies to every program that uses the limiter, until the settings change again.
//!
//! [`Limiter::environment_changes`]: crate::Limiter::environment_changes
//!
//! Each name may also begin with `ANIVAULT_`. If both are set, `SHMLIMIT_` wins.
//!
//! The variables apply only to limiters with the five-state breaker (`fsm`), because they are the numbers of that
//! breaker and do not name a limiter. If a process uses five limiters, a variable that is intended for one of them
//! must not change the concurrency of all. For the same reason `BUCKET_CAP` is not an error but has no effect if
//! the first rule has no separate capacity.

use crate::Error;
use crate::settings::{Given, KeyInfo, RuleSettings, Settings, keys};
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::{Algorithm, Policy, PolicyError};
use std::fmt;
use std::time::Duration;

/// The prefix of the product, and the older prefix.
const PREFIXES: [&str; 2] = ["SHMLIMIT_", "ANIVAULT_"];

/// The names of the variables after their prefix, and the keys they set. `N` is the first rule.
const VARIABLES: [(&str, &str); 11] = [
    ("RATE_BASE", "breaker.rate_base"),
    ("BUCKET_CAP", BUCKET_CAP),
    ("CONCURRENCY", "concurrency"),
    ("P_THROTTLE", "breaker.p_throttle"),
    ("P_RECOVER", "breaker.p_recover"),
    ("N_THROTTLE", "breaker.n_throttle"),
    ("N_CACHEONLY", "breaker.n_cacheonly"),
    ("SLEEP_MIN", "breaker.sleep_min"),
    ("SLEEP_MAX", "breaker.sleep_max"),
    ("PROBE_SUCCESS", "breaker.s_probe_ok"),
    ("COOLDOWN_FACTOR", "breaker.cooldown_factor"),
];
const BUCKET_CAP: &str = "rules.N.burst";

/// All variables that are recognised, with both prefixes.
///
/// ```
/// assert!(shmlimit::environment::variables().any(|name| name == "SHMLIMIT_RATE_BASE"));
/// ```
pub fn variables() -> impl Iterator<Item = String> {
    PREFIXES.iter().flat_map(|prefix| VARIABLES.map(|(name, _)| format!("{prefix}{name}")))
}

/// Why the variables of the environment are invalid. Nothing was changed.
///
/// ```
/// use shmlimit::environment::{EnvError, Patch};
///
/// let error = Patch::from_variables([("SHMLIMIT_CONCURRENCY", "many")]).unwrap_err();
/// assert!(matches!(error, EnvError::BadValue { .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// A value that cannot be read, or is out of range.
    #[error("environment variable {variable} = {value}: {problem}")]
    BadValue {
        /// The variable.
        variable: String,
        /// The value as given.
        value: String,
        /// The problem with the value, and the allowed values.
        problem: String,
    },
    /// Values that contradict the limiter's other settings, or each other.
    #[error("environment variables {variables}: {problem}")]
    DoNotFit {
        /// The variables.
        variables: String,
        /// The contradiction.
        problem: Box<PolicyError>,
    },
}

impl From<EnvError> for Error {
    fn from(error: EnvError) -> Error {
        Error::Environment(Box::new(error))
    }
}

/// A setting that an environment variable changed when the limiter was opened. The change applies to every program
/// that uses the limiter.
///
/// ```
/// use shmlimit::{environment::Patch, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
/// # let patched = patch.apply(&tmdb)?;
/// for change in patch.changes(&tmdb, &patched) {
///     println!("{}={} changed {}", change.variable, change.value, change.key);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The variable, with its prefix.
    pub variable: String,
    /// The variable's value.
    pub value: String,
    /// The key of the setting.
    pub key: String,
    /// The previous value as a file would contain it; `None` if it was not set.
    pub before: Option<String>,
    /// The new value.
    pub after: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { variable, value, key, before, after } = self;
        let before = before.as_deref().unwrap_or("not set");
        write!(f, "{variable}={value} changed {key} from {before} to {after} for every program that uses it")
    }
}

/// The variables that are set, read and validated.
///
/// ```
/// use shmlimit::{environment::Patch, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
/// # let patched = patch.apply(&tmdb)?;
/// assert_eq!(patched.rules()[0].burst, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    variable: String,
    value: String,
    key: &'static KeyInfo,
}

impl Patch {
    /// Reads the environment of this process.
    ///
    /// ```
    /// let patch = shmlimit::environment::Patch::read()?;
    /// println!("{} variables are set", patch.variables().count());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read() -> Result<Patch, EnvError> {
        let known = |name: &str| VARIABLES.iter().any(|(known, _)| unprefixed(name) == Some(*known));
        let mut variables = Vec::new();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str().filter(|name| known(name)) else { continue };
            let text = value.to_str().ok_or_else(|| EnvError::BadValue {
                variable: name.to_owned(),
                value: format!("{value:?}"),
                problem: "is not text".to_owned(),
            })?;
            variables.push((name.to_owned(), text.to_owned()));
        }
        Patch::from_variables(variables)
    }

    /// Reads the given variables. Variables that are not in the table above are ignored.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20"), ("HOME", "/")])?;
    /// let tmdb = patch.apply(&presets::policy("tmdb").unwrap().unwrap())?;
    /// assert_eq!(tmdb.rules()[0].burst, 20);
    /// assert!(Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "many")]).is_err());
    /// # Ok::<(), shmlimit::environment::EnvError>(())
    /// ```
    pub fn from_variables<N: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Patch, EnvError> {
        let variables: Vec<(N, V)> = variables.into_iter().collect();
        let mut entries = Vec::new();
        for (name, key) in VARIABLES {
            let of_prefix = |prefix: &&str| {
                let wanted = format!("{prefix}{name}");
                variables.iter().find(|(name, _)| name.as_ref() == wanted)
            };
            let (Some((variable, value)), Some(key)) =
                (PREFIXES.iter().find_map(of_prefix), keys().iter().find(|info| info.key == key))
            else {
                continue;
            };
            let (variable, value) = (variable.as_ref().to_owned(), value.as_ref().to_owned());
            entries.push(Entry { variable, value, key });
        }
        let patch = Patch { entries };
        patch.check()?;
        Ok(patch)
    }

    /// Whether no variable is set.
    ///
    /// ```
    /// use shmlimit::environment::Patch;
    ///
    /// assert!(Patch::from_variables([("HOME", "/")])?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The variables with their values.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// assert_eq!(patch.variables().next(), Some(("SHMLIMIT_BUCKET_CAP", "20")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.entries.iter().map(|entry| (entry.variable.as_str(), entry.value.as_str()))
    }

    /// The same variables without those that set these keys, because an explicit setting wins over the environment
    /// (R111).
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// assert!(patch.without(&["rules.N.burst"]).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Patch {
        self.entries.retain(|entry| !keys.contains(&entry.key.key));
        self
    }

    /// The policy after the environment of this process is applied. If the variables do not apply to the policy, it
    /// is returned unchanged, and invalid values are not an error.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// let patched = Patch::patched(&tmdb)?; // the variables of this process
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn patched(policy: &Policy) -> Result<Policy, EnvError> {
        match policy.breaker().kind() {
            BreakerKind::Fsm => Patch::read()?.apply(policy),
            _ => Ok(*policy),
        }
    }

    /// Whether the variables apply to a limiter with this policy.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// assert!(patch.concerns(&tmdb));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn concerns(&self, policy: &Policy) -> bool {
        !self.is_empty() && policy.breaker().kind() == BreakerKind::Fsm
    }

    /// The policy with the values of the variables. If the variables do not apply to it, it is returned unchanged.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// assert_eq!(patch.apply(&tmdb)?.rules()[0].burst, 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, policy: &Policy) -> Result<Policy, EnvError> {
        if !self.concerns(policy) {
            return Ok(*policy);
        }
        let mut settings = Settings::of(policy);
        let has_burst = policy.rules().first().is_some_and(|rule| rule.algorithm.has_burst());
        for entry in self.entries.iter().filter(|entry| entry.key.key != BUCKET_CAP || has_burst) {
            entry.put(&mut settings)?;
        }
        settings.policy().map_err(|problem| self.blame(problem))
    }

    /// The changes of these variables from one policy to the other.
    ///
    /// ```
    /// use shmlimit::{environment::Patch, presets};
    ///
    /// let tmdb = presets::policy("tmdb").unwrap()?;
    /// let patch = Patch::from_variables([("SHMLIMIT_BUCKET_CAP", "20")])?;
    /// # let patched = patch.apply(&tmdb)?;
    /// assert_eq!(patch.changes(&tmdb, &patched)[0].after, "20");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn changes(&self, before: &Policy, after: &Policy) -> Vec<Change> {
        let (mut before, mut after) = (Settings::of(before), Settings::of(after));
        let change = |entry: &Entry| {
            let text =
                |of: &mut Settings| (entry.key.field)(of, 0).and_then(|field| field.text(entry.key.kind));
            let (before, after) = (text(&mut before), text(&mut after)?);
            (before.as_ref() != Some(&after)).then(|| Change {
                variable: entry.variable.clone(),
                value: entry.value.trim().escape_debug().to_string(),
                key: entry.key.named(0),
                before,
                after,
            })
        };
        self.entries.iter().filter_map(change).collect()
    }

    /// Checks each value by itself, because an invalid value is invalid for every limiter.
    fn check(&self) -> Result<(), EnvError> {
        // This rate is high enough for any capacity.
        let bucket = RuleSettings {
            limit: Some(1_000_000),
            period: Some(Duration::from_secs(1)),
            ..RuleSettings::new(Algorithm::TokenBucket)
        };
        for entry in &self.entries {
            let mut settings = Settings { rules: vec![bucket.clone()], ..Settings::default() };
            entry.put(&mut settings)?;
            // An error about a combination is ignored here, because the values may fit the settings of the limiter.
            if let Err(problem @ PolicyError::OutOfRange { .. }) = settings.policy() {
                return Err(self.blame(problem));
            }
        }
        Ok(())
    }

    fn blame(&self, problem: PolicyError) -> EnvError {
        if let PolicyError::OutOfRange { key, .. } = &problem {
            let key = key.to_string();
            if let Some(entry) = self.entries.iter().find(|entry| entry.key.named(0) == key) {
                let text = problem.to_string();
                let problem = text.split_once(": ").map_or(text.as_str(), |(_, problem)| problem).to_owned();
                return entry.bad(problem);
            }
        }
        let variables: Vec<&str> = self.variables().map(|(variable, _)| variable).collect();
        EnvError::DoNotFit { variables: variables.join(", "), problem: Box::new(problem) }
    }
}

impl Entry {
    fn put(&self, settings: &mut Settings) -> Result<(), EnvError> {
        settings.replace(self.key, 0, &Given::Bare(&self.value)).map_err(|problem| self.bad(problem))
    }

    fn bad(&self, problem: String) -> EnvError {
        let (variable, value) = (self.variable.clone(), format!("{:?}", self.value));
        EnvError::BadValue { variable, value, problem }
    }
}

/// The name of a variable without its prefix, if it has one.
fn unprefixed(name: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))
}
