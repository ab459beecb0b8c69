//! The part of a policy that says how long to wait after a failed call, and how often to retry.

use super::error::{Key, PolicyError};
use super::health::{MILLION, check, time};
use super::stored::stored;
use bytemuck::{Pod, Zeroable};
use core::time::Duration;

crate::named_enum! {
    /// Whether a computed wait is drawn at random (R74).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::Jitter;
    ///
    /// assert_eq!("none".parse(), Ok(Jitter::None));
    /// assert_eq!(Jitter::default(), Jitter::Full);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Jitter {
        /// Between 0 and the ceiling.
        #[default]
        Full => "full",
        /// Always the ceiling.
        None => "none",
    }
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Jitter::Full.as_str(), "full");
    /// ```
    pub const fn as_str;
    impl FromStr;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Jitter::NAMES, ["full", "none"]);
    /// ```
    pub const NAMES;
}

stored! {
    /// How long to wait after a failed call, and how often to retry (R68 to R77).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::Backoff;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let mut backoff = Backoff::DEFAULT;
    /// backoff.retries_user = 3;
    /// let policy = Policy::new(&PolicyDraft { backoff, ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.backoff().retries_user, 3);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub struct Backoff as StoredBackoff {
        /// The ceiling of the first wait.
        pub base: Duration,
        /// The upper bound of all ceilings.
        pub cap: Duration,
        /// The shortest wait for a Retry-After (R70).
        pub min_sleep: Duration,
        /// The longest wait for a Retry-After (R71).
        pub retry_after_max: Duration,
        /// The factor from one ceiling to the next, in millionths.
        pub factor: u32,
        /// Non-zero: no jitter.
        steady: u32,
        /// The number of retries for `user` and `webhook` calls (R76).
        pub retries_user: u32,
        /// The number of retries for background calls.
        pub retries_background: u32,
    }
}

/// Number of words of [`Backoff`].
pub const BACKOFF_WORDS: usize = 6;

impl Backoff {
    /// The default values.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Backoff::DEFAULT.retries_background, 5);
    /// ```
    pub const DEFAULT: Self = Backoff {
        base: Duration::from_millis(1500),
        cap: Duration::from_secs(30),
        min_sleep: Duration::from_secs(1),
        retry_after_max: Duration::from_secs(86_400),
        factor: 2 * MILLION,
        steady: 0,
        retries_user: 2,
        retries_background: 5,
    };
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::DEFAULT
    }
}

impl Backoff {
    /// The same settings with another jitter.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::{Backoff, Jitter};
    ///
    /// assert_eq!(Backoff::DEFAULT.with_jitter(Jitter::None).jitter(), Jitter::None);
    /// ```
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Jitter) -> Backoff {
        self.steady = matches!(jitter, Jitter::None) as u32;
        self
    }

    /// Whether waits are drawn at random.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::{Backoff, Jitter};
    ///
    /// assert_eq!(Backoff::DEFAULT.jitter(), Jitter::Full);
    /// ```
    pub const fn jitter(&self) -> Jitter {
        if self.steady == 0 { Jitter::Full } else { Jitter::None }
    }

    pub(super) fn check(&self) -> Result<(), PolicyError> {
        time("backoff.base", self.base, Duration::ZERO)?;
        time("backoff.cap", self.cap, Duration::ZERO)?;
        time("backoff.min_sleep", self.min_sleep, Duration::ZERO)?;
        time("backoff.retry_after_max", self.retry_after_max, Duration::ZERO)?;
        let factor = u64::from(self.factor);
        check("backoff.factor", factor, u64::from(MILLION), 1000 * u64::from(MILLION), " millionths")?;
        check("backoff.retries_user", u64::from(self.retries_user), 0, 1_000_000, "")?;
        check("backoff.retries_background", u64::from(self.retries_background), 0, 1_000_000, "")?;
        if self.retry_after_max < self.min_sleep {
            let problem = "must not be below backoff.min_sleep";
            return Err(PolicyError::Conflict { key: Key::top("backoff.retry_after_max"), problem });
        }
        Ok(())
    }
}

impl StoredBackoff {
    /// Whether waits are drawn at random.
    pub const fn jitter(&self) -> Jitter {
        if self.steady == 0 { Jitter::Full } else { Jitter::None }
    }
}
