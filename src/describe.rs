//! Describes a policy: the keys and values that a person would write.

use crate::quantity;
use crate::settings::Settings;
use shmlimit_kernel::policy::{BreakerKind, PerSecond};
use shmlimit_kernel::{Algorithm, BurstMode, Policy};
use std::time::Duration;

/// Every setting of a policy, as pairs of key and value.
///
/// ```
/// let tmdb = shmlimit::presets::policy("tmdb").unwrap().unwrap();
/// let settings = shmlimit::describe::settings(&tmdb);
/// assert!(settings.contains(&("rules.0.period".to_owned(), "1s".to_owned())));
/// ```
pub fn settings(policy: &Policy) -> Vec<(String, String)> {
    let mut settings = Settings::of(policy);
    let all = settings.each().into_iter().filter(|(key, ..)| key.key != "epoch_ns");
    all.map(|(key, i, value)| (key.named(i), value)).collect()
}

/// The settings in which two policies differ, one per line.
///
/// ```
/// # let tmdb = shmlimit::presets::policy("tmdb").unwrap()?;
/// # let slower = shmlimit::config::set(&tmdb, "rate", "20/s")?;
/// assert!(shmlimit::describe::differences(&tmdb, &slower).contains("limit"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn differences(there: &Policy, wanted: &Policy) -> String {
    let line = |key: &str, there: &str, wanted: &str| format!("  {key}: now {there}, given {wanted}");
    compare(there, wanted, line, "\n")
}

/// The changes from one policy to another, on one line.
///
/// ```
/// # let tmdb = shmlimit::presets::policy("tmdb").unwrap()?;
/// # let slower = shmlimit::config::set(&tmdb, "rate", "20/s")?;
/// println!("{}", shmlimit::describe::changes(&tmdb, &slower));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn changes(before: &Policy, after: &Policy) -> String {
    compare(before, after, |key, before, after| format!("{key} = {after} (was {before})"), ", ")
}

fn compare(
    there: &Policy,
    wanted: &Policy,
    line: impl Fn(&str, &str, &str) -> String,
    between: &str,
) -> String {
    let (there, wanted) = (settings(there), settings(wanted));
    let value = |of: &[(String, String)], key: &str| {
        of.iter().find(|(k, _)| k == key).map_or_else(|| "not set".to_owned(), |(_, value)| value.clone())
    };
    let mut keys: Vec<&String> = there.iter().chain(&wanted).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    let lines = keys.into_iter().filter_map(|key| {
        let (there, wanted) = (value(&there, key), value(&wanted, key));
        (there != wanted).then(|| line(key, &there, &wanted))
    });
    lines.collect::<Vec<_>>().join(between)
}

/// The most units that rule `i` admits in any one period, wherever that period begins (R147). For a sliding log
/// this is its limit, for a bucket the burst plus one period of refill, for a calendar window twice its limit.
/// `None` if the rule does not exist. Calls cost 1. Breaker states that admit less are not considered.
///
/// ```
/// use shmlimit::{describe, presets};
///
/// let most = |name| describe::most_per_period(&presets::policy(name).unwrap().unwrap(), 0);
/// assert_eq!((most("github"), most("tmdb"), most("omdb-free")), (Some(5000), Some(70), Some(2000)));
/// ```
pub fn most_per_period(policy: &Policy, i: usize) -> Option<u64> {
    let rule = policy.rules().get(i)?;
    let refilled = match rate_base(policy, i) {
        // The stored rate is in billionths of a unit per second.
        Some(rate) => u128::from(rate.0) * rule.period.as_nanos() / 1_000_000_000_000_000_000,
        None => u128::from(rule.limit),
    };
    let (limit, burst) = (u128::from(rule.limit), u128::from(rule.burst));
    let most = match rule.algorithm.limits_per_period() {
        Some(limits) => u128::from(limits) * limit,
        None if rule.burst_mode == BurstMode::FixedWindow => 2 * burst + limit,
        None => burst + refilled,
    };
    Some(u64::try_from(most).unwrap_or(u64::MAX))
}

/// The rate that `breaker.rate_base` gives a rule instead of its own rate, if it does.
fn rate_base(policy: &Policy, i: usize) -> Option<PerSecond> {
    let (rule, breaker) = (policy.rules().get(i)?, policy.breaker());
    let breaker_sets_rate =
        i == 0 && rule.algorithm == Algorithm::TokenBucket && breaker.kind() == BreakerKind::Fsm;
    Some(breaker.rate_base).filter(|rate| breaker_sets_rate && rate.0 > 0)
}

/// The rate that `breaker.rate_base` gives a rule, as text: `5/s`.
///
/// ```
/// # let tmdb = shmlimit::presets::policy("tmdb").unwrap()?;
/// # let slower = shmlimit::config::set(&tmdb, "rate", "20/s")?;
/// assert_eq!(shmlimit::describe::own_rate_of_breaker(&tmdb, 0), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn own_rate_of_breaker(policy: &Policy, i: usize) -> Option<String> {
    rate_base(policy, i).map(|rate| format!("{}/s", quantity::written(rate.0, 9)))
}

/// A share in millionths as an exact decimal.
///
/// ```
/// assert_eq!(shmlimit::describe::share(250_000), "0.25");
/// ```
pub fn share(millionths: u32) -> String {
    quantity::written(u64::from(millionths), 6)
}

/// A duration as exact text, in the largest unit that divides it.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(shmlimit::describe::duration(Duration::from_secs(300)), "5m");
/// ```
pub fn duration(duration: Duration) -> String {
    quantity::span(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_their_largest_exact_unit() {
        for (nanos, text) in
            [(0, "0s"), (1, "1ns"), (1_500, "1500ns"), (1_000_000_000, "1s"), (90_000_000_000, "90s")]
        {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(duration(Duration::from_secs(86_400)), "1d");
    }

    #[test]
    fn shares_are_written_exactly() {
        for (millionths, text) in [(0, "0"), (1, "0.000001"), (100_000, "0.1"), (1_000_000, "1")] {
            assert_eq!(share(millionths), text);
        }
    }
}
