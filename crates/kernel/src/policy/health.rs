//! The parts of a policy that concern outcomes: outcome window and breaker. The backoff is in `backoff.rs`.
//!
//! Fractions are in millionths and rates in billionths of a unit per second, so that every setting that users
//! write is exact. Each part has a second form of plain words, which a segment stores and which decisions read
//! ([`super::stored`]).

use super::error::{Key, PolicyError};
use super::stored::{stored, stored_as_they_are};
use super::{within, within_span};
use crate::MAX_PERMITS;
use bytemuck::{Pod, Zeroable};
use core::time::Duration;

/// One, in millionths.
pub const MILLION: u32 = 1_000_000;
/// The smallest ramp factor. A smaller one would need too many steps to be useful.
pub const LEAST_RAMP_FACTOR: u32 = MILLION + 1000;
/// Maximum number of outcomes that are remembered.
pub const MAX_OUTCOMES: u32 = 1024;

/// The shortest time between two steps of a ramp.
pub const FASTEST_RAMP: Duration = Duration::from_millis(1);

/// Units per second, in billionths.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::PerSecond;
///
/// assert_eq!(PerSecond::whole(5), PerSecond(5_000_000_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct PerSecond(pub u64);

impl PerSecond {
    /// Whole units per second.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::PerSecond::whole(2).0, 2_000_000_000);
    /// ```
    pub const fn whole(units: u64) -> PerSecond {
        PerSecond(units.saturating_mul(PerSecond::ONE.0))
    }

    /// One unit per second.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::PerSecond;
    ///
    /// assert_eq!(PerSecond::ONE, PerSecond::whole(1));
    /// ```
    pub const ONE: PerSecond = PerSecond(1_000_000_000);
    /// The fastest rate: about 4.6 units per nanosecond.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::PerSecond;
    ///
    /// assert!(PerSecond::FASTEST > PerSecond::whole(4_000_000_000));
    /// ```
    pub const FASTEST: PerSecond = PerSecond(1 << 62);
}

stored_as_they_are! { PerSecond }

stored! {
    /// The window of outcomes that count (R42, R47).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::OutcomeWindow;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let window = OutcomeWindow { max_count: 100, ..OutcomeWindow::DEFAULT };
    /// let policy = Policy::new(&PolicyDraft { window, ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.window(), window);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub struct OutcomeWindow as StoredWindow {
        /// The maximum age of an outcome. An outcome of exactly this age no longer counts.
        pub max_age: Duration,
        /// The maximum number of outcomes that count. The newest ones count.
        pub max_count: u32,
        /// The minimum number of outcomes before a ratio can be too high.
        pub min_samples: u32,
    }
}

impl OutcomeWindow {
    /// The default values.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::OutcomeWindow::DEFAULT.min_samples, 10);
    /// ```
    pub const DEFAULT: Self =
        OutcomeWindow { max_age: Duration::from_secs(30), max_count: 300, min_samples: 10 };
}

impl Default for OutcomeWindow {
    fn default() -> Self {
        OutcomeWindow::DEFAULT
    }
}

crate::named_enum! {
    /// The kind of circuit breaker.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::BreakerKind;
    ///
    /// assert_eq!("fsm".parse(), Ok(BreakerKind::Fsm));
    /// assert_eq!(BreakerKind::default(), BreakerKind::None);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum BreakerKind {
        /// No breaker: outcomes are counted and Retry-After is honored, nothing else.
        #[default]
        None => "none",
        /// The five states Normal, Throttle, Sleep, HalfOpen, CacheOnly (R49).
        Fsm => "fsm",
        /// Closed, open and half open, by failures in a row (R78).
        Consecutive => "consecutive",
    }
    /// All kinds.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::BreakerKind;
    ///
    /// assert_eq!(BreakerKind::ALL.map(BreakerKind::as_str), BreakerKind::NAMES);
    /// ```
    pub const ALL;
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::BreakerKind::Fsm.as_str(), "fsm");
    /// ```
    pub const fn as_str;
    impl FromStr;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::policy::BreakerKind::NAMES.contains(&"consecutive"));
    /// ```
    pub const NAMES;
}

stored! {
    /// The settings of the breaker (R50, R78). Fractions and factors are in millionths.
    ///
    /// ```
    /// use shmlimit_kernel::policy::{Breaker, BreakerKind};
    /// use shmlimit_kernel::{Policy, PolicyDraft};
    /// use std::time::Duration;
    ///
    /// let mut breaker = Breaker::of(BreakerKind::Consecutive);
    /// breaker.failure_threshold = 3;
    /// breaker.reset_timeout = Duration::from_secs(30);
    /// let policy = Policy::new(&PolicyDraft { breaker, ..PolicyDraft::default() })?;
    /// # Ok::<(), shmlimit_kernel::PolicyError>(())
    /// ```
    pub struct Breaker as StoredBreaker {
        /// The full rate. 0 means the rate of the first rule.
        pub rate_base: PerSecond,
        /// The rate while probing.
        pub probe_rate: PerSecond,
        /// How long the error ratio must be at least `p_sleep` before the breaker sleeps.
        pub sleep_after: Duration,
        /// The first cooldown.
        pub sleep_min: Duration,
        /// The longest cooldown.
        pub sleep_max: Duration,
        /// The time between two rises of the rate after a recovery.
        pub ramp_every: Duration,
        /// How long CacheOnly lasts before the breaker tries to recover by itself. 0 means until an operator
        /// changes the state.
        pub auto_recover: Duration,
        /// A probe that has not reported back after this time is written off (R133).
        pub probe_timeout: Duration,
        /// How long a consecutive breaker stays open.
        pub reset_timeout: Duration,
        /// 0 none, 1 fsm, 2 consecutive.
        kind: u32,
        /// Non-zero: network errors do not count (R139).
        net_ignored: u32,
        /// The error ratio at which the breaker throttles.
        pub p_throttle: u32,
        /// The error ratio below which the server counts as healthy again. Must be above 0.
        pub p_recover: u32,
        /// The error ratio at which the breaker sleeps, if the ratio lasts.
        pub p_sleep: u32,
        /// The factor from one cooldown to the next.
        pub cooldown_factor: u32,
        /// The factor of each rise of the rate.
        pub ramp_factor: u32,
        /// The number of 429 responses in a row that lead to Throttle.
        pub n_throttle: u32,
        /// The number of 429 responses in a row that lead from Throttle to Sleep.
        pub n_cacheonly: u32,
        /// The number of successes needed to leave Throttle.
        pub s_recover: u32,
        /// The number of successful probes needed to leave HalfOpen.
        pub s_probe_ok: u32,
        /// The number of evaluations in a row that must agree before an error ratio changes the state.
        pub hysteresis: u32,
        /// The number of probes in flight at a time.
        pub probe_concurrency: u32,
        /// The number of Sleeps without a Normal in between, after which the next one is CacheOnly. 0 means
        /// never (R141).
        pub cache_only_after: u32,
        /// The number of failures in a row that open a consecutive breaker.
        pub failure_threshold: u32,
        /// The number of successes that close a consecutive breaker.
        pub required_successes: u32,
    }
}

/// Number of words of [`Breaker`].
pub const BREAKER_WORDS: usize = 17;

impl Breaker {
    /// The default values.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::Breaker::DEFAULT.failure_threshold, 5);
    /// ```
    pub const DEFAULT: Self = Breaker {
        rate_base: PerSecond(0),
        probe_rate: PerSecond::whole(3),
        sleep_after: Duration::from_secs(300),
        sleep_min: Duration::from_secs(2),
        sleep_max: Duration::from_secs(300),
        ramp_every: Duration::from_secs(300),
        auto_recover: Duration::ZERO,
        probe_timeout: Duration::from_secs(60),
        reset_timeout: Duration::from_secs(300),
        kind: 0,
        net_ignored: 0,
        p_throttle: 200_000,
        p_recover: 100_000,
        p_sleep: 600_000,
        cooldown_factor: 2 * MILLION,
        ramp_factor: 1_100_000,
        n_throttle: 3,
        n_cacheonly: 5,
        s_recover: 10,
        s_probe_ok: 5,
        hysteresis: 2,
        probe_concurrency: 1,
        cache_only_after: 0,
        failure_threshold: 5,
        required_successes: 2,
    };
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker::DEFAULT
    }
}

impl Breaker {
    /// The default values for a kind of breaker.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::{Breaker, BreakerKind};
    ///
    /// assert_eq!(Breaker::of(BreakerKind::Fsm).kind(), BreakerKind::Fsm);
    /// ```
    pub const fn of(kind: BreakerKind) -> Breaker {
        Breaker::DEFAULT.with_kind(kind)
    }

    /// The same settings for another kind of breaker.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::{Breaker, BreakerKind};
    ///
    /// assert_eq!(Breaker::DEFAULT.with_kind(BreakerKind::Fsm), Breaker::of(BreakerKind::Fsm));
    /// ```
    #[must_use]
    pub const fn with_kind(mut self, kind: BreakerKind) -> Breaker {
        self.kind = kind as u32;
        self
    }

    /// The kind of breaker.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::{Breaker, BreakerKind};
    ///
    /// assert_eq!(Breaker::DEFAULT.kind(), BreakerKind::None);
    /// ```
    pub const fn kind(&self) -> BreakerKind {
        kind_of(self.kind)
    }

    /// The same settings, with network errors counted or not (R139).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::Breaker;
    ///
    /// assert!(!Breaker::DEFAULT.with_network_errors(false).counts_network_errors());
    /// ```
    #[must_use]
    pub const fn with_network_errors(mut self, count: bool) -> Breaker {
        self.net_ignored = !count as u32;
        self
    }

    /// Whether network errors count.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::policy::Breaker::DEFAULT.counts_network_errors());
    /// ```
    pub const fn counts_network_errors(&self) -> bool {
        self.net_ignored == 0
    }

    /// Checks the ranges of all settings.
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        let part = |name, value: u32, least: u64| {
            check(name, u64::from(value), least, u64::from(MILLION), " millionths")
        };
        let factor = |name, value: u32, least: u32| {
            check(name, u64::from(value), u64::from(least), 1000 * u64::from(MILLION), " millionths")
        };
        let count = |name, value: u32| check(name, u64::from(value), 1, 1_000_000, "");
        let rate = |name, value: PerSecond, least| {
            check(name, value.0, least, PerSecond::FASTEST.0, " billionths a second")
        };
        rate("breaker.rate_base", self.rate_base, 0)?;
        rate("breaker.probe_rate", self.probe_rate, 1)?;
        time("breaker.sleep_after", self.sleep_after, Duration::ZERO)?;
        time("breaker.sleep_min", self.sleep_min, NANOSECOND)?;
        time("breaker.sleep_max", self.sleep_max, NANOSECOND)?;
        time("breaker.ramp_every", self.ramp_every, FASTEST_RAMP)?;
        time("breaker.auto_recover", self.auto_recover, Duration::ZERO)?;
        time("breaker.probe_timeout", self.probe_timeout, NANOSECOND)?;
        time("breaker.reset_timeout", self.reset_timeout, NANOSECOND)?;
        part("breaker.p_throttle", self.p_throttle, 0)?;
        // A ratio is never below 0, so with `p_recover` = 0 the breaker would never recover.
        part("breaker.p_recover", self.p_recover, 1)?;
        part("breaker.p_sleep", self.p_sleep, 0)?;
        factor("breaker.cooldown_factor", self.cooldown_factor, MILLION)?;
        factor("breaker.ramp_factor", self.ramp_factor, LEAST_RAMP_FACTOR)?;
        count("breaker.n_throttle", self.n_throttle)?;
        count("breaker.n_cacheonly", self.n_cacheonly)?;
        count("breaker.s_recover", self.s_recover)?;
        count("breaker.s_probe_ok", self.s_probe_ok)?;
        count("breaker.hysteresis", self.hysteresis)?;
        check("breaker.probe_concurrency", u64::from(self.probe_concurrency), 1, u64::from(MAX_PERMITS), "")?;
        check("breaker.cache_only_after", u64::from(self.cache_only_after), 0, 1_000_000, "")?;
        count("breaker.failure_threshold", self.failure_threshold)?;
        count("breaker.required_successes", self.required_successes)?;
        if self.sleep_max < self.sleep_min {
            let problem = "must not be below breaker.sleep_min";
            return Err(PolicyError::Conflict { key: Key::top("breaker.sleep_max"), problem });
        }
        Ok(())
    }
}

impl StoredBreaker {
    /// The kind of breaker. Any word is a valid kind.
    #[inline]
    pub const fn kind(&self) -> BreakerKind {
        kind_of(self.kind)
    }

    /// Whether network errors count.
    #[inline]
    pub const fn counts_network_errors(&self) -> bool {
        self.net_ignored == 0
    }
}

#[inline]
const fn kind_of(word: u32) -> BreakerKind {
    match word {
        1 => BreakerKind::Fsm,
        2 => BreakerKind::Consecutive,
        _ => BreakerKind::None,
    }
}

impl OutcomeWindow {
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        time("window.max_age", self.max_age, NANOSECOND)?;
        check("window.max_count", u64::from(self.max_count), 1, u64::from(MAX_OUTCOMES), "")?;
        check("window.min_samples", u64::from(self.min_samples), 0, u64::from(MAX_OUTCOMES), "")
    }
}

const NANOSECOND: Duration = Duration::from_nanos(1);

pub(super) fn time(name: &'static str, value: Duration, least: Duration) -> Result<(), PolicyError> {
    within_span(Key::top(name), value, least)
}

pub(super) fn check(
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
    unit: &'static str,
) -> Result<(), PolicyError> {
    within(Key::top(name), value, u128::from(least), u128::from(most), unit).map(drop)
}
