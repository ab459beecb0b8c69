//! The environment's say in a limiter's numbers (R109): a hot patch (R110) that goes on top of files and presets (R111).
//!
//! | variable | key | default of the machine |
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
//! What a variable changed is kept by the handle that was opened ([`Limiter::environment_changes`]), and logged as a
//! warning: it holds for every program that uses the limiter, until it is set again.
//!
//! [`Limiter::environment_changes`]: crate::Limiter::environment_changes
//!
//! Each may also begin with `ANIVAULT_`; where both are set, `SHMLIMIT_` wins.
//!
//! They concern limiters whose breaker is the fsm, and no others: they are that machine's numbers, and have no name of
//! a limiter in them. A process that uses five limiters must not have the concurrency of all of them changed by what
//! was meant for one. For the same reason `BUCKET_CAP` is no error, but has no effect, where the first rule has no
//! capacity of its own.

use crate::Error;
use crate::settings::{Given, KeyInfo, RuleSettings, Settings, keys};
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::{Algorithm, Policy, PolicyError};
use std::fmt;
use std::time::Duration;

/// The product's prefix, and the older one.
const PREFIXES: [&str; 2] = ["SHMLIMIT_", "ANIVAULT_"];

/// Names of variables after their prefix, and the keys they set. An `N` is the first rule.
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

/// All variables that are understood here, with both prefixes.
pub fn variables() -> impl Iterator<Item = String> {
    PREFIXES.iter().flat_map(|prefix| VARIABLES.map(|(name, _)| format!("{prefix}{name}")))
}

/// Why the environment is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// A value that means nothing, or is out of range.
    #[error("environment variable {variable} = {value}: {problem}")]
    BadValue {
        /// The variable.
        variable: String,
        /// What was given.
        value: String,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// Values that do not fit the limiter's other settings, or each other.
    #[error("environment variables {variables}: {problem}")]
    DoNotFit {
        /// The variables.
        variables: String,
        /// What is wrong.
        problem: Box<PolicyError>,
    },
}

impl From<EnvError> for Error {
    fn from(error: EnvError) -> Error {
        Error::Environment(Box::new(error))
    }
}

/// What a variable changed in a limiter when it was opened, for every program that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The variable, with its prefix.
    pub variable: String,
    /// Its value.
    pub value: String,
    /// The setting it changed.
    pub key: String,
    /// The setting before, as it would be written; nothing if it was not set.
    pub before: Option<String>,
    /// The setting since then.
    pub after: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { variable, value, key, before, after } = self;
        let before = before.as_deref().unwrap_or("not set");
        write!(f, "{variable}={value} changed {key} from {before} to {after} for every program that uses it")
    }
}

/// The variables that are set, read and found to be numbers.
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

    /// Reads these variables; others than those above are ignored.
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

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The variables and their values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.entries.iter().map(|entry| (entry.variable.as_str(), entry.value.as_str()))
    }

    /// The same without what concerns these keys: what is said more explicitly goes before (R111).
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Patch {
        self.entries.retain(|entry| !keys.contains(&entry.key.key));
        self
    }

    /// What the environment makes of a policy: the policy itself unless it is concerned, whatever the variables say.
    pub fn patched(policy: &Policy) -> Result<Policy, EnvError> {
        match policy.breaker().kind() {
            BreakerKind::Fsm => Patch::read()?.apply(policy),
            _ => Ok(*policy),
        }
    }

    /// Whether a limiter of this policy is concerned at all.
    pub fn concerns(&self, policy: &Policy) -> bool {
        !self.is_empty() && policy.breaker().kind() == BreakerKind::Fsm
    }

    /// The policy with these values in place of its own; the same policy if it is not concerned.
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

    /// What these variables changed from one policy to the other.
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

    /// What is wrong with a value by itself is wrong for every limiter.
    fn check(&self) -> Result<(), EnvError> {
        // Fast enough for any capacity.
        let bucket = RuleSettings {
            limit: Some(1_000_000),
            period: Some(Duration::from_secs(1)),
            ..RuleSettings::new(Algorithm::TokenBucket)
        };
        for entry in &self.entries {
            let mut settings = Settings { rules: vec![bucket.clone()], ..Settings::default() };
            entry.put(&mut settings)?;
            // What does not fit the other settings here may fit those of the limiter.
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
