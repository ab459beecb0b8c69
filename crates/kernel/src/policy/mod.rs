//! The validated configuration of a limiter: plain data of fixed size.

mod adaptive;
mod backoff;
#[doc(hidden)]
pub mod encoding;
mod error;
mod health;
mod name;
mod queueing;
mod rule;
pub mod stored;

pub use adaptive::{
    Adaptive, AdaptiveDraft, HeaderCode, MAX_HISTORY, MAX_WINDOWS, PaceWindow, PaceWindowDraft, WindowKind,
};
pub use backoff::{Backoff, Jitter, StoredBackoff};
pub use encoding::{FirstRule, POLICY_WORDS, PolicyWords};
pub use error::{Key, PolicyError};
#[cfg(not(loom))]
pub use error::{decimal_text, duration_text};
pub use health::{
    Breaker, BreakerKind, LEAST_RAMP_FACTOR, MAX_OUTCOMES, MILLION, OutcomeWindow, PerSecond, StoredBreaker,
    StoredWindow,
};
pub use name::{NAME_LEN, NAME_WORDS, Name};
pub use queueing::{Fairness, Queueing, WHOLE_SHARE};
pub use rule::{Algorithm, AlgorithmKind, BurstFrom, BurstMode, Rule, RuleDraft};

use super::span::MAX_SPAN;
use super::{MAX_PERMITS, MAX_RULES, MAX_UNITS};
use core::time::Duration;

/// The largest `limit`, `burst` or `reserve`. It is far above any real rate, and small enough for exact
/// arithmetic.
pub const MAX_AMOUNT: u64 = 1 << 48;
/// The unit that every limiter has. A rule counts it by default.
pub const REQUESTS: &str = "requests";

const REQUESTS_NAME: Name = match Name::new(REQUESTS) {
    Some(name) => name,
    None => unreachable!(),
};

/// The configuration of a limiter, before validation.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Policy, PolicyDraft};
///
/// let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
/// assert_eq!(policy.concurrency(), Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyDraft<'a> {
    /// The provider whose limits these are.
    pub provider: &'a str,
    /// The maximum number of calls in flight. `None`: unlimited.
    pub concurrency: Option<u64>,
    /// The maximum number of background calls in flight. `None`: the same as `concurrency` (R108).
    pub concurrency_background: Option<u64>,
    /// The order of waiting calls with the same priority.
    pub fairness: Fairness,
    /// The share of the budget that background calls are guaranteed under a flood of higher priorities, in
    /// millionths (R143).
    pub background_share: u64,
    /// The rules. All of them must admit a call (R38).
    pub rules: &'a [RuleDraft<'a>],
    /// Whether the limiter has priorities. Without priorities, the reserve is ignored (R102).
    pub priorities: bool,
    /// If set, the limiter never refuses and never waits, but counts and reports (R41).
    pub passthrough: bool,
    /// The window of outcomes that count.
    pub window: OutcomeWindow,
    /// The circuit breaker.
    pub breaker: Breaker,
    /// How long to wait after a failed call, and how often to retry.
    pub backoff: Backoff,
    /// The settings for the pace from response headers. `None`: headers do not set the pace.
    pub adaptive: Option<AdaptiveDraft<'a>>,
}

impl PolicyDraft<'_> {
    /// The default values: no limits.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// assert!(shmlimit::PolicyDraft::DEFAULT.rules.is_empty());
    /// ```
    pub const DEFAULT: Self = PolicyDraft {
        provider: "default",
        concurrency: None,
        concurrency_background: None,
        fairness: Fairness::Process,
        background_share: 0,
        rules: &[],
        priorities: true,
        passthrough: false,
        window: OutcomeWindow::DEFAULT,
        breaker: Breaker::DEFAULT,
        backoff: Backoff::DEFAULT,
        adaptive: None,
    };
}

impl Default for PolicyDraft<'_> {
    fn default() -> Self {
        PolicyDraft::DEFAULT
    }
}

/// The validated configuration of a limiter.
///
/// ```
/// # use shmlimit_kernel as shmlimit;
/// use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
/// use std::time::Duration;
///
/// let rule = RuleDraft::new(Algorithm::TokenBucket, 10, Duration::from_secs(1));
/// let policy = Policy::new(&PolicyDraft { rules: &[rule], concurrency: Some(4), ..PolicyDraft::default() })?;
/// assert_eq!((policy.rules()[0].limit, policy.concurrency()), (10, Some(4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    provider: Name,
    units: [Option<Name>; MAX_UNITS],
    rules: [Rule; MAX_RULES],
    count: usize,
    concurrency: Option<u32>,
    concurrency_background: Option<u32>,
    queueing: Queueing,
    passthrough: bool,
    window: OutcomeWindow,
    breaker: Breaker,
    backoff: Backoff,
    adaptive: Option<Adaptive>,
}

/// Fills the places of a policy that have no rule.
const UNUSED: Rule = Rule {
    name: REQUESTS_NAME,
    algorithm: Algorithm::Gcra,
    unit: 0,
    limit: 1,
    period: Duration::from_nanos(1),
    burst: 1,
    burst_from: BurstFrom::Given,
    tau: None,
    burst_mode: BurstMode::GcraTau,
    reserve: 0,
    log_room: 0,
};

impl Policy {
    /// Validates a configuration.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// assert!(Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() }).is_ok());
    /// assert!(Policy::new(&PolicyDraft { concurrency: Some(0), ..PolicyDraft::default() }).is_err());
    /// ```
    pub fn new(draft: &PolicyDraft<'_>) -> Result<Policy, PolicyError> {
        let count = draft.rules.len();
        if count > MAX_RULES {
            return Err(PolicyError::TooMany { key: Key::top("rules"), count, max: MAX_RULES });
        }
        let permits = |name, value: Option<u64>| match value {
            None => Ok(None),
            Some(value) => {
                within(Key::top(name), value, 1, u128::from(MAX_PERMITS), "").map(|n| Some(n as u32))
            }
        };
        draft.window.check()?;
        draft.breaker.check()?;
        draft.backoff.check()?;
        let mut policy = Policy {
            provider: named(Key::top("provider"), draft.provider)?,
            units: [Some(REQUESTS_NAME), None, None, None],
            rules: [UNUSED; MAX_RULES],
            count,
            concurrency: permits("concurrency", draft.concurrency)?,
            concurrency_background: permits("concurrency_background", draft.concurrency_background)?,
            queueing: Queueing {
                fairness: draft.fairness,
                background_share: within(
                    Key::top("background_share"),
                    draft.background_share,
                    0,
                    u128::from(WHOLE_SHARE),
                    " millionths",
                )? as u32,
                priorities: draft.priorities,
            },
            passthrough: draft.passthrough,
            window: draft.window,
            breaker: draft.breaker,
            backoff: draft.backoff,
            adaptive: draft.adaptive.as_ref().map(Adaptive::new).transpose()?,
        };
        for (i, (slot, rule)) in policy.rules.iter_mut().zip(draft.rules).enumerate() {
            *slot = Rule::new(i, rule)?;
            let key = Key::of_rule(i, "unit");
            let unit = named(key, rule.unit.unwrap_or(REQUESTS))?;
            let place = policy.units.iter().position(|known| known.is_none_or(|known| known == unit));
            let Some(place) = place else {
                return Err(PolicyError::TooMany { key, count: MAX_UNITS + 1, max: MAX_UNITS });
            };
            policy.units[place] = Some(unit);
            slot.unit = place as u8;
        }
        Ok(policy)
    }

    /// The same policy with the log rooms of `old`. Each sliding log keeps the room of the rule with the same
    /// index and name in `old`, if that is enough. The log then stays in place with its contents (R110).
    #[doc(hidden)]
    #[must_use]
    pub fn keeping_logs_of(mut self, old: &Policy) -> Policy {
        let rules = &mut self.rules[..self.count];
        for (new, old) in rules.iter_mut().zip(old.rules()) {
            if new.log_room > 0 && new.name == old.name && new.limit <= old.log_room {
                new.log_room = old.log_room;
            }
        }
        self
    }

    /// The provider whose limits these are.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.provider().as_str(), "default");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn provider(&self) -> Name {
        self.provider
    }

    /// The rules. All of them must admit a call.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert!(policy.rules().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rules(&self) -> &[Rule] {
        &self.rules[..self.count]
    }

    /// The units in the order of their indices. The first is always `requests`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.units().next().unwrap().as_str(), "requests");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn units(&self) -> impl Iterator<Item = Name> + '_ {
        self.units.iter().copied().flatten()
    }

    /// The index of the unit `name`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!((policy.unit("requests"), policy.unit("tokens")), (Some(0), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unit(&self, name: &str) -> Option<usize> {
        self.units().position(|unit| unit.as_str() == name)
    }

    /// The maximum number of calls in flight. `None` means unlimited.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.concurrency(), None); // unlimited
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// The maximum number of background calls in flight. `None` means the same as `concurrency`.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.concurrency_background(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn concurrency_background(&self) -> Option<u32> {
        self.concurrency_background
    }

    /// The settings of the queue.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.queueing().background_share, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn queueing(&self) -> Queueing {
        self.queueing
    }

    /// Whether the limiter never refuses a call (R41).
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert!(!policy.is_passthrough());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_passthrough(&self) -> bool {
        self.passthrough
    }

    /// The window of outcomes that count.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.window().max_count, 300);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn window(&self) -> OutcomeWindow {
        self.window
    }

    /// The circuit breaker.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.breaker().kind(), shmlimit::policy::BreakerKind::None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// How long to wait after a failed call, and how often to retry.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert_eq!(policy.backoff().retries_user, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// The settings for the pace from response headers, if it is on.
    ///
    /// ```
    /// # use shmlimit_kernel as shmlimit;
    /// use shmlimit::{Policy, PolicyDraft};
    ///
    /// let policy = Policy::new(&PolicyDraft::DEFAULT)?;
    /// assert!(policy.adaptive().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adaptive(&self) -> Option<&Adaptive> {
        self.adaptive.as_ref()
    }
}

fn within(key: Key, value: u64, min: u128, max: u128, unit: &'static str) -> Result<u64, PolicyError> {
    let value_wide = u128::from(value);
    if value_wide < min || value_wide > max {
        return Err(PolicyError::OutOfRange { key, value: value_wide, min, max, unit });
    }
    Ok(value)
}

/// Checks the range of a duration.
fn within_span(key: Key, value: Duration, least: Duration) -> Result<(), PolicyError> {
    let (value, min, max) = (value.as_nanos(), least.as_nanos(), u128::from(MAX_SPAN - 1));
    if value < min || value > max {
        return Err(PolicyError::OutOfRange { key, value, min, max, unit: " ns" });
    }
    Ok(())
}

fn named(key: Key, text: &str) -> Result<Name, PolicyError> {
    Name::new(text).ok_or_else(|| PolicyError::BadName { key, value: text.to_owned() })
}
