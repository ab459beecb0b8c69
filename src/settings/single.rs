//! Single settings on top of a configuration, and in a limiter that is in use.

use super::{RuleSettings, Settings};
use crate::{ConfigError, Rate};
use shmlimit_kernel::policy::{Breaker, BreakerKind, BurstFrom};
use shmlimit_kernel::{Algorithm, Fairness, MAX_LOG, Policy, Rule, RuleDraft};

/// Single settings that go on top of a configuration (R111).
///
/// ```
/// use shmlimit::config::{Config, Overrides};
///
/// let two_calls = Overrides { concurrency: Some(2), ..Overrides::default() };
/// assert_eq!(Config::preset("tmdb")?.with(&two_calls)?.policy().concurrency(), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The rate of the only rule, or one rule for each of several rates. Without a burst, an algorithm and the
    /// five-state breaker, no period admits more than the rate (R147).
    pub rates: Vec<Rate>,
    /// Capacity of the only rule.
    pub burst: Option<u64>,
    /// Algorithm of the only rule.
    pub algorithm: Option<Algorithm>,
    /// Maximum number of calls in flight.
    pub concurrency: Option<u64>,
    /// Which waiting call of one priority is next.
    pub fairness: Option<Fairness>,
    /// The share that background calls always get, in millionths.
    pub background_share: Option<u64>,
}

impl Overrides {
    /// Whether nothing is set.
    ///
    /// ```
    /// assert!(shmlimit::config::Overrides::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        *self == Overrides::default()
    }

    /// A policy with these settings on top. Without settings it is the same policy.
    pub(crate) fn on(&self, policy: &Policy) -> Result<Policy, ConfigError> {
        if self.is_empty() {
            return Ok(*policy);
        }
        let mut settings = Settings::of(policy);
        settings.put_single(self)?;
        Ok(settings.policy()?.keeping_logs_of(policy))
    }
}

impl Settings {
    /// Puts single settings on top.
    pub(crate) fn put_single(&mut self, overrides: &Overrides) -> Result<(), ConfigError> {
        let Overrides { rates, burst, algorithm, concurrency, fairness, background_share } = overrides;
        let (burst, algorithm) = (*burst, *algorithm);
        let draft = &mut self.draft;
        draft.fairness = fairness.unwrap_or(draft.fairness);
        draft.background_share = background_share.unwrap_or(draft.background_share);
        draft.concurrency = concurrency.or(draft.concurrency);
        let setting = match overrides {
            Overrides { burst: Some(_), .. } => "burst",
            Overrides { algorithm: Some(_), .. } => "algorithm",
            _ if rates.is_empty() => return Ok(()),
            _ => "rate",
        };
        if rates.len() > 1 {
            if setting != "rate" {
                return Err(ConfigError::NotOneRule { setting, rules: rates.len() });
            }
            self.put_rates(rates);
            return Ok(());
        }
        let breaker_sets_rate = self.kind == BreakerKind::Fsm;
        if self.rules.is_empty() && !rates.is_empty() {
            self.rules.push(RuleSettings::new(Algorithm::TokenBucket));
        }
        let [rule] = self.rules.as_mut_slice() else {
            let setting = if rates.is_empty() { setting } else { "rate" };
            return Err(ConfigError::NotOneRule { setting, rules: self.rules.len() });
        };
        if let Some(rate) = rates.first() {
            let chosen = algorithm.is_some()
                || burst.is_some()
                || breaker_sets_rate
                || !rule.draft.algorithm.has_burst();
            if chosen {
                (rule.limit, rule.period) = (Some(rate.limit), Some(rate.period));
                (rule.draft.burst, rule.draft.tau) = (None, None);
            } else {
                rule.within_rate(rate);
            }
            rule.unit = rate.unit.clone().or(rule.unit.take());
            rule.name = rate.name.clone().or(rule.name.take());
            // A rate of the breaker would override this rate.
            self.draft.breaker.rate_base = Breaker::DEFAULT.rate_base;
        }
        if let Some(algorithm) = algorithm {
            rule.count_by(algorithm);
        }
        if burst.is_some() {
            rule.draft = RuleDraft { burst, tau: None, burst_from: BurstFrom::Given, ..rule.draft };
        }
        Ok(())
    }

    /// Replaces all rules with one rule for each rate.
    fn put_rates(&mut self, rates: &[Rate]) {
        let breaker_sets_rate = self.kind == BreakerKind::Fsm;
        let rule = |(i, rate): (usize, &Rate)| {
            let mut rule = RuleSettings::new(Algorithm::TokenBucket);
            match breaker_sets_rate && i == 0 {
                // The five-state breaker needs a bucket.
                true => (rule.limit, rule.period) = (Some(rate.limit), Some(rate.period)),
                false => rule.within_rate(rate),
            }
            (rule.unit, rule.name) = (rate.unit.clone(), rate.name_beside_others());
            rule
        };
        self.rules = rates.iter().enumerate().map(rule).collect();
        self.draft.breaker.rate_base = Breaker::DEFAULT.rate_base;
    }
}

/// This policy with single settings changed. Settings that are not named keep their values (R144). Rates alone
/// change limit and period of their rules, and create rules if there are none. A rate belongs to the rule with its
/// name, or to the only rule that counts its unit. With several rates and rules of one unit, those with the same
/// period belong together.
///
/// ```
/// use shmlimit::config::{self, Overrides};
/// use shmlimit::{Rate, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let slower = Overrides { rates: vec![Rate::per_second(20)], ..Overrides::default() };
/// let slower = config::update(&tmdb, &slower)?;
/// assert_eq!((slower.rules()[0].limit, slower.concurrency()), (20, Some(4)));
/// # Ok::<(), shmlimit::ConfigError>(())
/// ```
pub fn update(policy: &Policy, overrides: &Overrides) -> Result<Policy, ConfigError> {
    let mut named = overrides.clone();
    let mut updated = *policy;
    if let (Overrides { burst: Some(burst), algorithm: None, .. }, [rule]) = (&named, policy.rules())
        && !rule.algorithm.has_burst()
    {
        return Err(no_burst(policy, 0, "burst", Some(*burst)));
    }
    if let (Overrides { algorithm: Some(algorithm), .. }, [rule]) = (&named, policy.rules())
        && *algorithm != rule.algorithm
    {
        // The counts of one algorithm cannot be converted for another, so the rule would start used up.
        return Err(ConfigError::NotChangeable { key: "algorithm".to_owned() });
    }
    if policy.rules().len() == 1 {
        // It is the algorithm of the rule, which keeps its burst.
        named.algorithm = None;
    }
    if named.burst.is_none() && named.algorithm.is_none() && !policy.rules().is_empty() {
        let rates = std::mem::take(&mut named.rates);
        updated = change_rates(policy, &rates)?;
    }
    Ok(named.on(&updated)?.keeping_logs_of(policy))
}

/// Changes limit and period of the rules that the rates belong to.
pub(crate) fn change_rates(policy: &Policy, rates: &[Rate]) -> Result<Policy, ConfigError> {
    let mut settings = Settings::of(policy);
    let mut changed = Vec::new();
    for rate in rates {
        let i = meant(policy, rate, rates)?;
        if changed.contains(&i) {
            return Err(bad_rate(rate, format!("another rate is for rule {} already", called(policy, i))));
        }
        changed.push(i);
        let rule = &mut settings.rules[i];
        if rule.draft.algorithm == Algorithm::SlidingLog && rate.limit > MAX_LOG {
            let problem = format!(
                "a sliding_log counts at most {MAX_LOG} per period; replace it with another algorithm: shmlimit init \
                 NAME --rate {rate} --replace"
            );
            return Err(bad_rate(rate, problem));
        }
        rule.change_rate(rate);
        if i == 0 {
            // A rate of the breaker would override this rate.
            settings.draft.breaker.rate_base = Breaker::DEFAULT.rate_base;
        }
    }
    Ok(settings.policy()?.keeping_logs_of(policy))
}

/// The rule that one of the rates belongs to.
fn meant(policy: &Policy, rate: &Rate, rates: &[Rate]) -> Result<usize, ConfigError> {
    let key = || "rate".to_owned();
    let rules = policy.rules().iter().enumerate();
    let found: Vec<usize> = match &rate.name {
        Some(name) => {
            // A rate with a unit never changes a rule that counts another unit.
            let counts =
                |unit: u8| rate.unit.is_none() || policy.unit(rate.unit_name()) == Some(usize::from(unit));
            let named = rules.filter(|(_, rule)| rule.name.as_str() == name && counts(rule.unit));
            named.map(|(i, _)| i).collect()
        }
        None => {
            let unit = policy.unit(rate.unit_name());
            let of_unit = rules.filter(|(_, rule)| Some(usize::from(rule.unit)) == unit);
            let (same_period, all): (Vec<_>, Vec<_>) =
                of_unit.map(|(i, rule)| ((rule.period == rate.period).then_some(i), i)).unzip();
            let rivals = rates.iter().filter(|other| other.unit_name() == rate.unit_name()).count();
            if rivals > 1 { same_period.into_iter().flatten().collect() } else { all }
        }
    };
    match found[..] {
        [i] => Ok(i),
        [] => Err(ConfigError::Absent { key: key(), problem: no_rule_for(policy, rate) }),
        _ => {
            let names: Vec<String> =
                found.iter().map(|i| format!("rules.{}.limit", called(policy, *i))).collect();
            let problem = match &rate.name {
                Some(name) => format!("{} rules have the name {name}; name one by its number", found.len()),
                None => format!("{} rules count {}; name one of them", found.len(), rate.unit_name()),
            };
            Err(ConfigError::Ambiguous { key: key(), problem, names: names.join(", ") })
        }
    }
}

/// Says which rate has no rule, and which rates the limiter has.
fn no_rule_for(policy: &Policy, rate: &Rate) -> String {
    let unit = rate.unit_name();
    let counts_unit = policy.unit(unit).is_some();
    let missing = match &rate.name {
        Some(name) => format!("has the name {name}"),
        None if counts_unit => format!("counts {unit} in the period of {rate}"),
        None => format!("counts {unit}"),
    };
    let rate_of = |rule: &Rule| {
        let unit = policy.units().nth(usize::from(rule.unit)).map(|unit| unit.as_str().to_owned());
        Rate { unit: unit.filter(|unit| unit != "requests"), ..Rate::of(rule) }.to_string()
    };
    let rates: Vec<String> = policy.rules().iter().map(rate_of).collect();
    format!(
        "{rate} has no rule to change, because no rule {missing} (the limiter has: {}), and rules cannot be added or removed \
         while the limiter is in use",
        rates.join(", ")
    )
}

fn bad_rate(rate: &Rate, problem: String) -> ConfigError {
    ConfigError::BadValue { key: "rate".to_owned(), value: rate.to_string(), problem }
}

/// The rule's part of a key: its name, or its number if another rule has the same name.
pub(crate) fn called(policy: &Policy, i: usize) -> String {
    let name = |i: usize| policy.rules()[i].name.as_str().to_owned();
    let same = (0..policy.rules().len()).filter(|other| name(*other) == name(i)).count();
    if same == 1 { name(i) } else { i.to_string() }
}

/// The error for a burst of rule `i`, whose algorithm has none. It says how to create a limiter with a burst that
/// is otherwise the same.
pub(crate) fn no_burst(policy: &Policy, i: usize, key: &str, burst: Option<u64>) -> ConfigError {
    let rule = &policy.rules()[i];
    let rate = Rate::of(rule);
    let overrides = Overrides {
        rates: vec![rate.clone()],
        concurrency: policy.concurrency().map(u64::from),
        ..Overrides::default()
    };
    let mut made = Settings::default();
    let made = made.put_single(&overrides).and_then(|()| Ok(made.policy()?));
    // Whether command-line options can express the whole policy.
    let is_plain = made.is_ok_and(|made| made.keeping_logs_of(policy) == *policy);
    let remedy = match is_plain {
        true => {
            let burst = burst.map_or_else(|| "NUMBER".to_owned(), |burst| burst.to_string());
            let concurrency =
                policy.concurrency().map(|most| format!(" --concurrency {most}")).unwrap_or_default();
            format!(
                "replace it by a token_bucket, with full buckets: shmlimit init NAME --rate {rate} --burst \
                 {burst}{concurrency} --replace"
            )
        }
        false => "write the limiter's settings to a file with: shmlimit status NAME --toml > \
                  NAME.settings.toml\nwrite algorithm = \"token_bucket\" and the burst there, and replace the limiter with: shmlimit init NAME --config \
                  NAME.settings.toml --replace"
            .to_owned(),
    };
    let (rule, algorithm) = (called(policy, i), rule.algorithm.as_str());
    ConfigError::NoBurst { key: key.to_owned(), rule, algorithm, remedy }
}
