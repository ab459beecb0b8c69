//! One rule of a policy: its algorithm and its numbers.

use super::error::{Key, PolicyError};
use super::name::Name;
use super::{MAX_AMOUNT, named, within, within_span};
use crate::MAX_LOG;
use crate::span::MAX_SPAN;
use core::time::Duration;

/// Every sliding log has room for at least this limit. That takes only a few pages, and most limits can be
/// raised within it.
const LEAST_LOG_ROOM: u64 = 4096;

crate::named_enum! {
    /// The algorithm of a rule. The numbers are stored and never change.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Algorithm;
    ///
    /// assert_eq!("gcra".parse(), Ok(Algorithm::Gcra));
    /// assert_eq!(Algorithm::TokenBucket.to_string(), "token_bucket");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    #[repr(u8)]
    pub enum Algorithm {
        /// A bucket of tokens that fills at a steady rate (R12).
        TokenBucket = 1 => "token_bucket",
        /// The generic cell rate algorithm (R15).
        Gcra = 2 => "gcra",
        /// A bucket that leaks at a steady rate (R23).
        LeakyBucket = 3 => "leaky_bucket",
        /// A count for each calendar window (R28).
        FixedWindow = 4 => "fixed_window",
        /// A log of every unit: the limit holds in any window of the period's length (R31).
        SlidingLog = 5 => "sliding_log",
        /// Two calendar windows, the older one weighted (R34).
        SlidingCounter = 6 => "sliding_counter",
    }
    /// All algorithms.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Algorithm;
    ///
    /// assert_eq!(Algorithm::ALL.map(Algorithm::as_str), Algorithm::NAMES);
    /// ```
    pub const ALL;
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Algorithm::Gcra.as_str(), "gcra");
    /// ```
    pub const fn as_str;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::Algorithm::NAMES.contains(&"sliding_log"));
    /// ```
    pub const NAMES;
    /// The algorithm stored as `code`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Algorithm::from_code(2), Some(shmlimit::Algorithm::Gcra));
    /// ```
    #[inline]
    pub const fn from_code(u8);
    impl FromStr;
}

impl Algorithm {
    /// Whether it has a capacity separate from its limit.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::Algorithm;
    ///
    /// assert!(Algorithm::TokenBucket.has_burst() && !Algorithm::SlidingLog.has_burst());
    /// ```
    pub const fn has_burst(self) -> bool {
        matches!(self, Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket)
    }

    /// How many times its limit it can admit in one period. `None` if that depends on the burst.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::Algorithm::FixedWindow.limits_per_period(), Some(2));
    /// ```
    pub const fn limits_per_period(self) -> Option<u64> {
        match self {
            Algorithm::SlidingLog => Some(1),
            Algorithm::FixedWindow | Algorithm::SlidingCounter => Some(2),
            Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => None,
        }
    }
}

/// The implementation that counts for a rule. Algorithms with the same arithmetic share one implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmKind {
    /// Token bucket, GCRA and leaky bucket.
    Bucket,
    /// GCRA in its older burst mode: free passes in each calendar period, then pacing (R22).
    GcraWindow,
    /// A count for each calendar window.
    FixedWindow,
    /// A log of every unit.
    Log,
    /// Two calendar windows, the older one weighted.
    Counter,
}

impl AlgorithmKind {
    /// The code of GCRA in its older burst mode. The other codes are those of [`Algorithm`].
    pub const GCRA_WINDOW: u8 = 7;

    /// The kind of a stored code.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Option<AlgorithmKind> {
        match code {
            1..=3 => Some(AlgorithmKind::Bucket),
            4 => Some(AlgorithmKind::FixedWindow),
            5 => Some(AlgorithmKind::Log),
            6 => Some(AlgorithmKind::Counter),
            AlgorithmKind::GCRA_WINDOW => Some(AlgorithmKind::GcraWindow),
            _ => None,
        }
    }
}

crate::named_enum! {
    /// The meaning of a burst for GCRA (R19).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::BurstMode;
    ///
    /// assert_eq!("fixed_window".parse(), Ok(BurstMode::FixedWindow));
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum BurstMode {
        /// A tolerance that recovers continuously.
        #[default]
        GcraTau => "gcra_tau",
        /// A number of free passes in each calendar period, then one call per period/limit. For comparison with
        /// older systems (R22).
        FixedWindow => "fixed_window",
    }
    /// The name in configuration files.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::BurstMode::GcraTau.as_str(), "gcra_tau");
    /// ```
    pub const fn as_str;
    impl FromStr;
    /// The names in configuration files, in the order of the variants.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::BurstMode::NAMES, ["gcra_tau", "fixed_window"]);
    /// ```
    pub const NAMES;
}

/// The origin of a rule's burst. A burst that was not configured follows the limit when the limit changes
/// (R110).
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::policy::BurstFrom;
///
/// assert_eq!(BurstFrom::Given.burst_beside(20), None); // the burst stays
/// assert_eq!(BurstFrom::Limit.burst_beside(20), Some(20)); // the burst follows the limit
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BurstFrom {
    /// The burst was configured.
    #[default]
    Given = 0,
    /// The burst was not configured. It equals the limit.
    Limit = 1,
    /// A rate was configured that no single period may exceed (R147). Burst and limit are parts of that rate.
    Rate = 2,
}

impl BurstFrom {
    /// The origin stored as `code`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::policy::BurstFrom;
    ///
    /// assert_eq!(BurstFrom::from_code(1), BurstFrom::Limit);
    /// ```
    pub const fn from_code(code: u8) -> BurstFrom {
        match code & 3 {
            1 => BurstFrom::Limit,
            2 => BurstFrom::Rate,
            _ => BurstFrom::Given,
        }
    }

    /// The burst that goes with a new limit. `None` if the burst does not change.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert_eq!(shmlimit::policy::BurstFrom::Rate.burst_beside(990), Some(10));
    /// ```
    pub const fn burst_beside(self, limit: u64) -> Option<u64> {
        match self {
            BurstFrom::Given => None,
            BurstFrom::Limit => Some(limit),
            // Of a hundred parts, the burst has one and the limit has the other 99.
            BurstFrom::Rate if limit < 99 => Some(1),
            BurstFrom::Rate => Some(limit / 99),
        }
    }
}

/// One rule, before validation.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Algorithm, RuleDraft};
/// use std::time::Duration;
///
/// let rule = RuleDraft::new(Algorithm::TokenBucket, 10, Duration::from_secs(1));
/// let rule = RuleDraft { name: Some("rps"), burst: Some(20), ..rule };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDraft<'a> {
    /// The name of the rule. Default: the algorithm's name.
    pub name: Option<&'a str>,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The unit that the rule counts. Default: `requests`.
    pub unit: Option<&'a str>,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Duration,
    /// The capacity in units. Default: `limit`. Only for buckets and GCRA.
    pub burst: Option<u64>,
    /// The origin of `burst`, if it is set.
    pub burst_from: BurstFrom,
    /// The capacity as a time, instead of `burst`. Only for GCRA.
    pub tau: Option<Duration>,
    /// The meaning of the burst. Only for GCRA.
    pub burst_mode: BurstMode,
    /// Units that background calls must leave (R107).
    pub reserve: u64,
    /// The largest limit for which the log has room. Only for a sliding log. Default: four times the limit, at
    /// least 4096. The limit can then be raised without losing the contents of the log.
    pub log_room: Option<u64>,
}

impl RuleDraft<'_> {
    /// `limit` requests per `period`, with default values for everything else.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Algorithm, RuleDraft};
    /// use std::time::Duration;
    ///
    /// assert_eq!(RuleDraft::new(Algorithm::SlidingLog, 100, Duration::from_secs(60)).burst, None);
    /// ```
    pub const fn new(algorithm: Algorithm, limit: u64, period: Duration) -> Self {
        RuleDraft {
            name: None,
            algorithm,
            unit: None,
            limit,
            period,
            burst: None,
            burst_from: BurstFrom::Given,
            tau: None,
            burst_mode: BurstMode::GcraTau,
            reserve: 0,
            log_room: None,
        }
    }
}

/// One validated rule. Two rules are equal if they make the same decisions. The origin of the burst and the log
/// room make no difference.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
/// use std::time::Duration;
///
/// let draft = RuleDraft::new(Algorithm::Gcra, 10, Duration::from_secs(1));
/// let policy = Policy::new(&PolicyDraft { rules: &[draft], ..PolicyDraft::DEFAULT })?;
/// let rule = policy.rules()[0];
/// assert_eq!((rule.name.as_str(), rule.limit, rule.burst), ("gcra", 10, 10));
/// # Ok::<(), shmlimit::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name of the rule.
    pub name: Name,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The index of the unit that the rule counts.
    pub unit: u8,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Duration,
    /// The capacity in whole units: the most that can be granted at once. With `tau`, the number of units that
    /// fit into that time.
    pub burst: u64,
    /// The origin of the burst.
    pub burst_from: BurstFrom,
    /// The capacity as a time, if it was configured as a time.
    pub tau: Option<Duration>,
    /// The meaning of the burst.
    pub burst_mode: BurstMode,
    /// Units that background calls must leave.
    pub reserve: u64,
    /// For a sliding log: the largest limit for which the log has room. 0 for all other algorithms.
    pub log_room: u64,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        let decides = |rule: &Rule| {
            let Rule { name, algorithm, unit, limit, period, burst, tau, burst_mode, reserve, .. } = *rule;
            (name, algorithm, unit, limit, period, burst, tau, burst_mode, reserve)
        };
        decides(self) == decides(other)
    }
}

impl Eq for Rule {}

impl Rule {
    /// Converts this rule back to a draft.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
    /// use std::time::Duration;
    ///
    /// let draft = RuleDraft::new(Algorithm::Gcra, 10, Duration::from_secs(1));
    /// let policy = Policy::new(&PolicyDraft { rules: &[draft], ..PolicyDraft::DEFAULT })?;
    /// assert_eq!(policy.rules()[0].draft("requests").limit, 10);
    /// # Ok::<(), shmlimit::PolicyError>(())
    /// ```
    pub fn draft<'a>(&'a self, unit: &'a str) -> RuleDraft<'a> {
        let burst = self.tau.is_none() && self.algorithm.has_burst();
        RuleDraft {
            name: Some(self.name.as_str()),
            algorithm: self.algorithm,
            unit: Some(unit),
            limit: self.limit,
            period: self.period,
            burst: burst.then_some(self.burst),
            burst_from: self.burst_from,
            tau: self.tau,
            burst_mode: self.burst_mode,
            reserve: self.reserve,
            log_room: Some(self.log_room).filter(|room| *room > 0),
        }
    }

    /// Validates rule number `i`. The caller fills in the unit.
    pub(super) fn new(i: usize, draft: &RuleDraft<'_>) -> Result<Rule, PolicyError> {
        let key = |name| Key::of_rule(i, name);
        let conflict = |name, problem| Err(PolicyError::Conflict { key: key(name), problem });
        let most = if draft.algorithm == Algorithm::SlidingLog { MAX_LOG } else { MAX_AMOUNT };
        within(key("limit"), draft.limit, 1, u128::from(most), "")?;
        within_span(key("period"), draft.period, Duration::from_nanos(1))?;
        let (limit, period) = (u128::from(draft.limit), draft.period.as_nanos());
        if draft.burst_mode == BurstMode::FixedWindow && draft.algorithm != Algorithm::Gcra {
            return conflict("burst_mode", "only gcra has a burst mode");
        }
        let burst = match (draft.tau, draft.burst) {
            (Some(_), Some(_)) => {
                return conflict("tau", "give either burst or tau (tau = burst * period / limit)");
            }
            (Some(_), None) if draft.algorithm != Algorithm::Gcra => {
                return conflict("tau", "only gcra takes tau; use burst");
            }
            (Some(_), None) if draft.burst_mode == BurstMode::FixedWindow => {
                return conflict("tau", "burst_mode = \"fixed_window\" counts passes; use burst");
            }
            (None, Some(_)) if !draft.algorithm.has_burst() => {
                return conflict("burst", "only token_bucket, gcra and leaky_bucket take it; use limit");
            }
            (Some(tau), None) => {
                let least = period.div_ceil(limit);
                // `least` is at most the period, which fits.
                within_span(key("tau"), tau, Duration::from_nanos(u64::try_from(least).unwrap_or(u64::MAX)))?;
                let units = tau.as_nanos() * limit / period;
                let too_long = PolicyError::OutOfRange {
                    key: key("tau"),
                    value: tau.as_nanos(),
                    min: least,
                    max: u128::from(MAX_AMOUNT) * period / limit,
                    unit: " ns",
                };
                u64::try_from(units).ok().filter(|units| *units <= MAX_AMOUNT).ok_or(too_long)?
            }
            (None, burst) => {
                let burst = burst.unwrap_or(draft.limit);
                // burst * period / limit must stay below MAX_SPAN.
                let longest = (u128::from(MAX_SPAN) * limit - 1) / period;
                within(key("burst"), burst, 1, longest.min(u128::from(MAX_AMOUNT)), "")?;
                burst
            }
        };
        within(key("reserve"), draft.reserve, 0, u128::from(burst), "")?;
        let log_room = match (draft.algorithm, draft.log_room) {
            (Algorithm::SlidingLog, Some(room)) => {
                within(key("log_room"), room, limit, u128::from(MAX_LOG), "")?
            }
            (Algorithm::SlidingLog, None) => draft.limit.saturating_mul(4).clamp(LEAST_LOG_ROOM, MAX_LOG),
            (_, Some(_)) => return conflict("log_room", "only a sliding_log has a log"),
            (_, None) => 0,
        };
        let burst_from = match draft.burst {
            _ if !draft.algorithm.has_burst() || draft.tau.is_some() => BurstFrom::Given,
            Some(_) => draft.burst_from,
            None => BurstFrom::Limit,
        };
        Ok(Rule {
            name: named(key("name"), draft.name.unwrap_or(draft.algorithm.as_str()))?,
            algorithm: draft.algorithm,
            unit: 0,
            limit: draft.limit,
            period: draft.period,
            burst,
            burst_from,
            tau: draft.tau,
            burst_mode: draft.burst_mode,
            reserve: draft.reserve,
            log_room,
        })
    }
}
