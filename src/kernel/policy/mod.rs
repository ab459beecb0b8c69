//! Validated configuration the kernel runs on: plain data of fixed size.

mod error;
mod name;
mod words;

pub use error::{Key, PolicyError};
pub use name::{NAME_LEN, NAME_WORDS, Name};
pub use words::{HOT_WORDS, POLICY_WORDS, QUEUEING_AT, terms_range};

use super::span::MAX_SPAN;
use super::state::{General, Queueing, WHOLE_SHARE};
use super::time::Nanos;
use super::{MAX_PERMITS, MAX_RULES, MAX_UNITS};

/// The largest `limit`, `burst` or `reserve`: far above any real rate, small enough for exact arithmetic.
pub const MAX_AMOUNT: u64 = 1 << 48;
/// The unit that every limiter has, and that a rule counts unless told otherwise.
pub const REQUESTS: &str = "requests";

const REQUESTS_NAME: Name = match Name::new(REQUESTS) {
    Some(name) => name,
    None => unreachable!(),
};

/// How a rule counts. The numbers are stored and never change.
///
/// 3 to 6 are kept for `leaky_bucket`, `fixed_window`, `sliding_log` and `sliding_counter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Algorithm {
    /// A bucket of tokens that fills at a steady rate (R12).
    TokenBucket = 1,
    /// The generic cell rate algorithm (R15).
    Gcra = 2,
}

impl Algorithm {
    /// The name in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token_bucket",
            Algorithm::Gcra => "gcra",
        }
    }

    /// The algorithm stored as `code`.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Algorithm> {
        match code {
            1 => Some(Algorithm::TokenBucket),
            2 => Some(Algorithm::Gcra),
            _ => None,
        }
    }

    /// Reads the name that rule number `rule` has in a configuration.
    pub fn parse(rule: usize, text: &str) -> Result<Algorithm, PolicyError> {
        let key = Key::of_rule(rule, "algorithm");
        match text {
            "token_bucket" => Ok(Algorithm::TokenBucket),
            "gcra" => Ok(Algorithm::Gcra),
            _ => Err(["leaky_bucket", "fixed_window", "sliding_log", "sliding_counter"]
                .into_iter()
                .find(|known| *known == text)
                .map_or_else(
                    || PolicyError::UnknownAlgorithm { key, value: text.to_owned() },
                    |value| PolicyError::NotYetSupported { key, value },
                )),
        }
    }
}

/// Whose turn it is among those who wait with the same priority (R131).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fairness {
    /// Every group has equal turns; a process is a group unless told otherwise (R143).
    #[default]
    Process,
    /// Strictly in the order of arrival.
    Fifo,
}

impl Fairness {
    /// The name in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fairness::Process => "process",
            Fairness::Fifo => "fifo",
        }
    }

    /// Reads the name from a configuration.
    pub fn parse(text: &str) -> Result<Fairness, PolicyError> {
        [Fairness::Process, Fairness::Fifo]
            .into_iter()
            .find(|known| known.as_str() == text)
            .ok_or_else(|| PolicyError::UnknownFairness { key: Key::top("fairness"), value: text.to_owned() })
    }
}

/// One rule as the user wrote it, not yet judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleDraft<'a> {
    /// Default: the algorithm's name.
    pub name: Option<&'a str>,
    /// How it counts.
    pub algorithm: Algorithm,
    /// What it counts; default `requests`.
    pub unit: Option<&'a str>,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Nanos,
    /// Capacity; default `limit`.
    pub burst: Option<u64>,
    /// GCRA only, instead of `burst`.
    pub tau: Option<Nanos>,
    /// Units that background must leave (R107).
    pub reserve: u64,
}

impl RuleDraft<'_> {
    /// `limit` requests per `period`, everything else by default.
    pub const fn new(algorithm: Algorithm, limit: u64, period: Nanos) -> Self {
        RuleDraft { name: None, algorithm, unit: None, limit, period, burst: None, tau: None, reserve: 0 }
    }
}

/// A configuration as the user wrote it, not yet judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyDraft<'a> {
    /// Whose limits these are.
    pub provider: &'a str,
    /// Most calls in flight; absent = unlimited.
    pub concurrency: Option<u64>,
    /// Most background calls in flight; absent = as `concurrency` (R108).
    pub concurrency_background: Option<u64>,
    /// Whose turn it is among those who wait.
    pub fairness: Fairness,
    /// What the background gets even under a flood of higher priorities, in millionths (R143).
    pub background_share: u64,
    /// All of them must admit (R38).
    pub rules: &'a [RuleDraft<'a>],
}

impl Default for PolicyDraft<'_> {
    fn default() -> Self {
        PolicyDraft {
            provider: "default",
            concurrency: None,
            concurrency_background: None,
            fairness: Fairness::Process,
            background_share: 0,
            rules: &[],
        }
    }
}

/// One valid rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, for people.
    pub name: Name,
    /// How it counts.
    pub algorithm: Algorithm,
    /// Index of the unit it counts.
    pub unit: u8,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Nanos,
    /// Capacity in whole units; with `tau`, what that comes to.
    pub burst: u64,
    /// The capacity as a time, if it was given so.
    pub tau: Option<Nanos>,
    /// Units that background must leave.
    pub reserve: u64,
}

impl Rule {
    /// This rule as a user would write it.
    pub fn draft<'a>(&'a self, unit: &'a str) -> RuleDraft<'a> {
        RuleDraft {
            name: Some(self.name.as_str()),
            algorithm: self.algorithm,
            unit: Some(unit),
            limit: self.limit,
            period: self.period,
            burst: self.tau.is_none().then_some(self.burst),
            tau: self.tau,
            reserve: self.reserve,
        }
    }

    /// Judges rule number `i`; the unit is the caller's to fill in.
    fn new(i: usize, draft: &RuleDraft<'_>) -> Result<Rule, PolicyError> {
        let key = |name| Key::of_rule(i, name);
        let amount = |name, value, min| within(key(name), value, min, u128::from(MAX_AMOUNT), "");
        amount("limit", draft.limit, 1)?;
        within(key("period"), draft.period.0, 1, u128::from(MAX_SPAN - 1), " ns")?;
        let (limit, period) = (u128::from(draft.limit), u128::from(draft.period.0));

        let burst = match (draft.tau, draft.burst) {
            (Some(_), Some(_)) => {
                let problem = "give either burst or tau (tau = burst * period / limit)";
                return Err(PolicyError::Conflict { key: key("tau"), problem });
            }
            (Some(_), None) if draft.algorithm != Algorithm::Gcra => {
                let problem = "only gcra takes tau; use burst";
                return Err(PolicyError::Conflict { key: key("tau"), problem });
            }
            (Some(tau), None) => {
                within(key("tau"), tau.0, period.div_ceil(limit), u128::from(MAX_SPAN - 1), " ns")?;
                let units = u128::from(tau.0) * limit / period;
                let max = u128::from(MAX_AMOUNT) * period / limit;
                u64::try_from(units).ok().filter(|units| *units <= MAX_AMOUNT).ok_or(
                    PolicyError::OutOfRange {
                        key: key("tau"),
                        value: u128::from(tau.0),
                        min: period.div_ceil(limit),
                        max,
                        unit: " ns",
                    },
                )?
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
        Ok(Rule {
            name: named(key("name"), draft.name.unwrap_or(draft.algorithm.as_str()))?,
            algorithm: draft.algorithm,
            unit: 0,
            limit: draft.limit,
            period: draft.period,
            burst,
            tau: draft.tau,
            reserve: draft.reserve,
        })
    }
}

/// A valid configuration of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    provider: Name,
    units: [Option<Name>; MAX_UNITS],
    rules: [Rule; MAX_RULES],
    count: usize,
    concurrency: Option<u32>,
    concurrency_background: Option<u32>,
    queueing: Queueing,
}

/// Stands where a policy has no rule.
const UNUSED: Rule = Rule {
    name: REQUESTS_NAME,
    algorithm: Algorithm::Gcra,
    unit: 0,
    limit: 1,
    period: Nanos(1),
    burst: 1,
    tau: None,
    reserve: 0,
};

impl Policy {
    /// Judges a configuration.
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
            },
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

    /// Whose limits these are.
    pub fn provider(&self) -> Name {
        self.provider
    }

    /// The rules, all of which must admit.
    pub fn rules(&self) -> &[Rule] {
        &self.rules[..self.count]
    }

    /// The units in the order of their indices; `requests` is always the first.
    pub fn units(&self) -> impl Iterator<Item = Name> + '_ {
        self.units.iter().copied().flatten()
    }

    /// The index of the unit called `name`.
    pub fn unit(&self, name: &str) -> Option<usize> {
        self.units().position(|unit| unit.as_str() == name)
    }

    /// Most calls in flight; nothing = unlimited.
    pub fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// Most background calls in flight; nothing = as many as any.
    pub fn concurrency_background(&self) -> Option<u32> {
        self.concurrency_background
    }

    /// Whose turn it is among those who wait.
    pub fn queueing(&self) -> Queueing {
        self.queueing
    }

    /// The part that is not about one rule, as decisions need it.
    pub fn general(&self) -> General {
        General {
            rules: self.count,
            units: self.units().count(),
            concurrency: self.concurrency,
            concurrency_background: self.concurrency_background,
        }
    }
}

fn within(key: Key, value: u64, min: u128, max: u128, unit: &'static str) -> Result<u64, PolicyError> {
    let value_wide = u128::from(value);
    if value_wide < min || value_wide > max {
        return Err(PolicyError::OutOfRange { key, value: value_wide, min, max, unit });
    }
    Ok(value)
}

fn named(key: Key, text: &str) -> Result<Name, PolicyError> {
    Name::new(text).ok_or_else(|| PolicyError::BadName { key, value: text.to_owned() })
}
