//! The options with which a program opens a limiter.

use crate::settings::{Overrides, Settings};
use crate::{ConfigError, Rate, RateError, presets};
use shmlimit_kernel::{Algorithm, Policy};
use shmlimit_segment::Error;
use shmlimit_segment::sys::Account;
use shmlimit_segment::{AttachOptions, ClockSource, Role};
use std::path::PathBuf;

/// The behaviour of opening if the limiter exists with settings that differ from the requested ones.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{Limiter, OnMismatch};
///
/// let builder = || Limiter::builder("api").directory(directory.path());
/// builder().rate("100/min").open()?;
/// assert!(builder().rate("60/min").open().is_err());
/// let limiter = builder().rate("60/min").on_mismatch(OnMismatch::Adopt).open()?;
/// assert_eq!(limiter.policy()?.rules()[0].limit, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMismatch {
    /// Opening fails with [`Error::ConfigMismatch`], which lists the differences.
    #[default]
    Error,
    /// The limiter is used with its existing settings.
    Adopt,
    /// The limiter gets the requested settings, for every program that uses it, and keeps its counts.
    /// [`Error::DoesNotFit`] if only a new limiter can have these settings.
    Update,
}

/// The options for opening a limiter; made by [`Limiter::builder`](crate::Limiter::builder).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").concurrency(4).open()?;
/// assert_eq!(limiter.name(), "api");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    pub(super) name: String,
    pub(super) directory: Option<PathBuf>,
    policy: Option<Policy>,
    rates: Vec<Result<Rate, RateError>>,
    /// The single settings except the rates.
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

    /// The directory of the limiter. Default: the first of `SHMLIMIT_DIR`, `ANIVAULT_DIR`, `/var/run/shmlimit` if
    /// it is usable, `/var/tmp/shmlimit-UID`. If `/var/tmp` is on overlayfs, as in most containers,
    /// `/dev/shm/shmlimit-UID` takes its place.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").open()?;
    /// assert_eq!(limiter.directory(), directory.path());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Builder {
        self.directory = Some(path.into());
        self
    }

    /// Limits the rate: a [`Rate`] or its text. Several calls add several rates, and all of them must admit a call.
    /// A text that is not one valid rate is an error when the limiter is opened.
    ///
    /// Without a burst, no period of that length admits more than the rate (R147). One rate goes on top of the
    /// preset with the limiter's name, if there is one. Several rates replace the rules of the preset.
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

    /// The number of units that may be used at once. The rule becomes a token bucket unless an algorithm is chosen.
    /// One period may admit the burst in addition to the rate. For limiters with one rule.
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

    /// The maximum number of calls in flight, of all programs together.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).concurrency(4).open()?;
    /// assert_eq!(limiter.policy()?.concurrency(), Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn concurrency(mut self, calls: u64) -> Builder {
        self.single.concurrency = Some(calls);
        self
    }

    /// The algorithm that counts the rule (`docs/algorithms.md`). For limiters with one rule.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Algorithm, Limiter};
    ///
    /// let builder = Limiter::builder("api").directory(directory.path()).rate("1000/day");
    /// let limiter = builder.algorithm(Algorithm::FixedWindow).open()?;
    /// assert_eq!(limiter.policy()?.rules()[0].algorithm, Algorithm::FixedWindow);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Builder {
        self.single.algorithm = Some(algorithm);
        self
    }

    /// What [`open`](Self::open) and [`open_existing`](Self::open_existing) do if the limiter exists with other
    /// settings. Default: [`OnMismatch::Error`].
    ///
    /// With [`OnMismatch::Update`], single settings (a rate, a burst, a concurrency, an algorithm, a setting of
    /// `ConfigSource`) change only what they name. A policy, a preset or a configuration file replaces the whole
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

    /// The limiter must have exactly this policy. A new limiter is created with it; opening an existing limiter
    /// with another policy is an error (R144). Single settings go on top. Without a policy and settings, an
    /// existing limiter is used as it is, and a new one is created from the preset of the same name.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
    /// let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// assert_eq!(limiter.policy()?, policy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = Some(policy);
        self
    }

    /// Sets the [`policy`](Self::policy) by a preset, the text of a configuration file, or single settings. An
    /// empty source has no effect. If both a policy and a source are given, the policy is used.
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

    /// Shares the directory with the members of a user group. [`Account::group`] finds the group by name.
    ///
    /// ```no_run
    /// use shmlimit::{Account, Limiter};
    ///
    /// if let Some(group) = Account::group("staff")? {
    ///     Limiter::builder("api").rate("10/s").shared_with(group).open()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shared_with(mut self, group: impl Into<Account>) -> Builder {
        self.shared_with = Some(group.into());
        self
    }

    /// The queue group of this process. Processes of one group take turns in the queue together, as if they were
    /// one process (R143). Default: `SHMLIMIT_GROUP`; without it each process is its own group.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").group("workers").open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Builder {
        self.group = Some(name.into());
        self
    }

    /// The name that `status` shows for this participant, cut to 15 bytes. Default: the name of the program. It is
    /// for programs that call on behalf of others, as `shmlimit run` does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").program("nightly").open()?;
    /// assert_eq!(limiter.snapshot()?.participants[0].program, "nightly");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn program(mut self, name: &str) -> Builder {
        self.bounds.program = [0; 16];
        let length = (0..=name.len().min(15)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.bounds.program[..length].copy_from_slice(&name.as_bytes()[..length]);
        self
    }

    /// Allows a network file system, at the caller's own risk (R135).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("10/s").allow_network_fs().open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn allow_network_fs(mut self) -> Builder {
        self.network = true;
        self
    }

    /// Ignores environment variables such as `SHMLIMIT_RATE_BASE`. Without this option, they change the settings of
    /// a limiter with a five-state breaker when it is opened (R109; [`crate::environment`]).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let limiter = shmlimit::Limiter::builder("tmdb").directory(directory.path()).ignore_environment().open()?;
    /// assert!(limiter.environment_changes().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ignore_environment(mut self) -> Builder {
        self.environment = false;
        self
    }

    /// Opens the limiter only for reading. The handle takes no slot and ignores environment variables. When the
    /// limiter is deleted, the handle reports [`Error::UnknownLimiter`] instead of creating the limiter again.
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

    /// Opens the limiter to administer it: to change, force, record, pause or remove. Eight of the 512 slots are
    /// reserved for such handles, so that programs that use all other slots cannot lock out the operator. Close the
    /// handle when the work is done.
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

    /// Replaces the usual time bounds, for tests that cannot wait a second.
    #[doc(hidden)]
    #[must_use]
    pub fn bounds(mut self, bounds: AttachOptions) -> Builder {
        self.bounds = AttachOptions { role: self.bounds.role, ..bounds };
        self
    }

    /// The policy that the limiter must have; `None` if no policy and no setting is given.
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

    /// The policy of an existing limiter after an update.
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
