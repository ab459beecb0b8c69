//! What a program says about the limiter that it opens.

use crate::settings::{Overrides, Settings};
use crate::{ConfigError, Rate, RateError, presets};
use shmlimit_kernel::{Algorithm, Policy};
use shmlimit_segment::Error;
use shmlimit_segment::sys::Account;
use shmlimit_segment::{AttachOptions, ClockSource, Role};
use std::path::PathBuf;

/// What opening does if the limiter exists with other settings than those that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMismatch {
    /// Opening fails with [`Error::ConfigMismatch`], which lists the differences.
    #[default]
    Error,
    /// The limiter is used as it is. Its settings win.
    Adopt,
    /// The limiter gets the settings that were asked for, for every program that uses it, and keeps what was spent.
    /// [`Error::DoesNotFit`] if only a new limiter can have them.
    Update,
}

/// How to open a limiter. See [`Limiter::builder`](crate::Limiter::builder).
#[derive(Debug, Clone)]
pub struct Builder {
    pub(super) name: String,
    pub(super) directory: Option<PathBuf>,
    policy: Option<Policy>,
    rates: Vec<Result<Rate, RateError>>,
    /// The single settings without the rates.
    single: Overrides,
    pub(super) on_mismatch: OnMismatch,
    #[cfg(feature = "config")]
    source: crate::config::ConfigSource,
    pub(super) shared_with: Option<Account>,
    pub(super) group: Option<String>,
    pub(super) network: bool,
    pub(super) environment: bool,
    pub(super) observer: bool,
    pub(super) clock: ClockSource,
    pub(super) bounds: AttachOptions,
}

impl Builder {
    pub(super) fn new(name: &str) -> Builder {
        let bounds = AttachOptions::default();
        Builder {
            name: name.to_owned(),
            directory: None,
            policy: None,
            rates: Vec::new(),
            single: Overrides::default(),
            on_mismatch: OnMismatch::default(),
            #[cfg(feature = "config")]
            source: Default::default(),
            shared_with: None,
            group: None,
            network: false,
            environment: true,
            observer: false,
            clock: ClockSource::default(),
            bounds,
        }
    }

    /// Where limiters live. Default: `SHMLIMIT_DIR`, `ANIVAULT_DIR`, `/var/run/shmlimit` if it can be used, else
    /// `/var/tmp/shmlimit-UID`, else (where `/var/tmp` is on overlayfs, as in most containers) `/dev/shm/shmlimit-UID`.
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.directory = Some(path.into());
        self
    }

    /// The limiter must not admit more than this rate: a [`Rate`] or its text. Several calls give several rates, all of
    /// which must admit. A text that is no rate, or is several, is an error when the limiter is opened.
    ///
    /// Without a burst, no one period has more than the rate (R147). One rate goes on top of the preset of the limiter's
    /// name, if there is one; several rates take the place of the preset's rules.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Rate, Request};
    ///
    /// let limiter = Limiter::builder("llm")
    ///     .rate("100/min")
    ///     .rate(Rate::per_minute(30_000).unit("tokens"))
    ///     # .directory(directory.path())
    ///     .open()?;
    /// let grant = limiter.acquire(&Request::new().cost("tokens", 900))?;
    /// # grant.release()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn rate<R: TryInto<Rate, Error: Into<RateError>>>(mut self, rate: R) -> Builder {
        self.rates.push(rate.try_into().map_err(|error| error.into().with_remedy_for_lists()));
        self
    }

    /// So much of the rate may go at once. The rule is then a token bucket unless an algorithm is chosen; one period may
    /// admit the rate and the burst. For limiters with one rule.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Rate};
    ///
    /// let builder = Limiter::builder("api").rate(Rate::per_second(10)).burst(20).concurrency(4);
    /// let limiter = builder.directory(directory.path()).open()?;
    /// assert_eq!(limiter.policy()?.rules()[0].burst, 20);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn burst(mut self, burst: u64) -> Builder {
        self.single.burst = Some(burst);
        self
    }

    /// At most so many calls in flight, of all programs together.
    #[must_use]
    pub fn concurrency(mut self, calls: u64) -> Builder {
        self.single.concurrency = Some(calls);
        self
    }

    /// How the rule counts (`docs/algorithms.md`). For limiters with one rule.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Builder {
        self.single.algorithm = Some(algorithm);
        self
    }

    /// What [`open`](Self::open) does if the limiter exists with other settings. Default: [`OnMismatch::Error`].
    ///
    /// With [`OnMismatch::Update`], single settings (a rate, a burst, a concurrency, an algorithm, a setting of
    /// `ConfigSource`) change what they name and nothing else. A policy, a preset or a configuration file is the whole
    /// configuration.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, OnMismatch, Rate};
    ///
    /// let builder = || Limiter::builder("api").directory(directory.path());
    /// let limiter = builder().rate(Rate::per_minute(100)).concurrency(4).open()?;
    /// builder().rate(Rate::per_minute(60)).on_mismatch(OnMismatch::Update).open()?;
    /// let policy = limiter.policy()?;
    /// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (60, Some(4)));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn on_mismatch(mut self, action: OnMismatch) -> Builder {
        self.on_mismatch = action;
        self
    }

    /// The limiter must have exactly this policy: it is made so, or refused if it is there and differs (R144).
    /// Single settings go on top. Without a policy and settings the limiter is used as it is, or made from the preset of
    /// its name.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = Some(policy);
        self
    }

    /// [`policy`](Self::policy) by a preset, the text of a configuration file, or single settings. An empty choice is
    /// none. Of a policy and a choice, the policy counts.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, config::ConfigSource};
    ///
    /// let choice = ConfigSource::default().setting("rate", "10/s").setting("concurrency", "2");
    /// let limiter = Limiter::builder("api").directory(directory.path()).config(choice).open()?;
    /// assert_eq!(limiter.policy()?.concurrency(), Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// Needs the feature `config`.
    #[cfg(feature = "config")]
    #[must_use]
    pub fn config(mut self, source: crate::config::ConfigSource) -> Builder {
        self.source = source;
        self
    }

    /// Shares the directory with the members of a group of users: [`Account::group`] finds it by name.
    #[must_use]
    pub fn shared_with(mut self, group: impl Into<Account>) -> Builder {
        self.shared_with = Some(group.into());
        self
    }

    /// Processes of one group have their turns in the queue together, as if they were one (R143). Default:
    /// `SHMLIMIT_GROUP`; else each process has its own.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Builder {
        self.group = Some(name.into());
        self
    }

    /// What `status` calls this participant, for people: at most 15 bytes are kept. Default: the program's own name. For
    /// programs that call on behalf of another, as `shmlimit run` does.
    #[must_use]
    pub fn program(mut self, name: &str) -> Builder {
        self.bounds.program = [0; 16];
        let length = (0..=name.len().min(15)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.bounds.program[..length].copy_from_slice(&name.as_bytes()[..length]);
        self
    }

    /// Trusts a network file system, on the caller's own risk (R135).
    #[must_use]
    pub fn allow_network_fs(mut self) -> Builder {
        self.network = true;
        self
    }

    /// Leaves variables such as `SHMLIMIT_RATE_BASE` alone, which otherwise change the settings of a limiter with a
    /// five-state breaker when it is opened (R109; [`crate::environment`]).
    #[must_use]
    pub fn ignore_environment(mut self) -> Builder {
        self.environment = false;
        self
    }

    /// Opens the limiter to be looked at, not to be used: it takes no slot, variables of the environment are left alone,
    /// and when it is deleted this handle says so ([`Error::UnknownLimiter`]), where one that is used would make it again.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # shmlimit::Limiter::builder("tmdb").directory(directory.path()).open()?;
    /// let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).observer().open_existing()?;
    /// println!("{} calls in flight", limiter.snapshot()?.in_flight);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn observer(mut self) -> Builder {
        self.bounds.role = Role::Observer;
        Builder { observer: true, ..self.ignore_environment() }
    }

    /// Opens the limiter to administer it: to change, force, record, pause or remove. Eight of the 512 slots are kept for
    /// such handles, so that programs that use up all others cannot lock the operator out. Close it when that is done.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # shmlimit::Limiter::builder("tmdb").directory(directory.path()).open()?;
    /// let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).operator().open_existing()?;
    /// limiter.force(shmlimit::BreakerCommand::ClearGate)?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn operator(mut self) -> Builder {
        self.bounds.role = Role::Operator;
        self
    }

    /// Other bounds than the usual, for tests that cannot wait a second.
    #[doc(hidden)]
    #[must_use]
    pub fn bounds(mut self, bounds: AttachOptions) -> Builder {
        self.bounds = AttachOptions { role: self.bounds.role, ..bounds };
        self
    }

    /// The policy that the limiter must have, if anything was said about it.
    pub(super) fn wanted(&self) -> Result<Option<Policy>, Error> {
        let single = self.overrides()?;
        if let Some(policy) = &self.policy {
            return Ok(Some(single.on(policy)?));
        }
        #[cfg(feature = "config")]
        if !self.source.is_empty() {
            return Ok(Some(self.source.policy_with(&self.name, &single)?));
        }
        if single.is_empty() {
            return Ok(None);
        }
        let base = match presets::policy(&self.name) {
            Some(preset) => preset?,
            None => Settings::default().policy()?,
        };
        Ok(Some(single.on(&base)?))
    }

    /// What an update makes of the limiter's policy.
    pub(super) fn updated(&self, there: &Policy) -> Result<Policy, Error> {
        let single = self.overrides()?;
        #[cfg(feature = "config")]
        let is_whole = self.policy.is_some() || self.source.is_whole();
        #[cfg(not(feature = "config"))]
        let is_whole = self.policy.is_some();
        if is_whole {
            return Ok(self.wanted()?.unwrap_or(*there));
        }
        #[cfg(feature = "config")]
        let updated = self.source.updated(there, &single);
        #[cfg(not(feature = "config"))]
        let updated = crate::settings::update(there, &single);
        Ok(updated?)
    }

    fn overrides(&self) -> Result<Overrides, Error> {
        let rates: Result<Vec<Rate>, RateError> = self.rates.iter().cloned().collect();
        Ok(Overrides { rates: rates.map_err(ConfigError::from)?, ..self.single.clone() })
    }
}
