//! Summarizes a limiter's settings in a few words.

use crate::ui::time::nanos;
use shmlimit::{Algorithm, Fairness, Policy, RuleSnapshot, describe};
use shmlimit_kernel::BurstMode;
use std::time::Duration;

/// Returns a policy on one line: for each rule, the maximum in any one period and the algorithm (R147).
pub fn summary(policy: &Policy) -> String {
    let rules = 0..policy.rules().len();
    let mut parts: Vec<String> = rules.filter_map(|i| allowance(policy, i)).collect();
    parts.extend(policy.concurrency().map(|most| format!("{most} in flight")));
    if policy.is_passthrough() {
        parts.push("passthrough, so nothing is refused".to_owned());
    }
    let queueing = policy.queueing();
    if queueing.fairness == Fairness::Fifo {
        parts.push("first come, first served".to_owned());
    }
    if queueing.background_share > 0 {
        parts.push(format!("{} for the background in any case", describe::share(queueing.background_share)));
    }
    if parts.is_empty() { "no limits".to_owned() } else { parts.join("; ") }
}

/// Returns text such as `at most 1020 in any day (token_bucket: 1000/day and a burst of 20)`.
fn allowance(policy: &Policy, i: usize) -> Option<String> {
    let (rule, most) = (policy.rules().get(i)?, describe::most_per_period(policy, i)?);
    let unit = policy.units().nth(usize::from(rule.unit))?;
    // Every limiter counts requests, so that unit is not named.
    let unit = if rule.unit == 0 { String::new() } else { format!(" {}", unit.as_str()) };
    let (period, short) = period_names(rule.period);
    let (algorithm, limit, burst) = (rule.algorithm.as_str(), rule.limit, rule.burst);
    let counted = match rule.algorithm {
        Algorithm::FixedWindow => format!("{algorithm}: {limit} in each of the UTC clock"),
        Algorithm::SlidingCounter => format!("{algorithm}: {limit} if calls come evenly"),
        _ if !rule.algorithm.has_burst() => algorithm.to_owned(),
        _ if rule.burst_mode == BurstMode::FixedWindow => {
            format!("{algorithm}: {limit}/{short} and {burst} more in each of the UTC clock")
        }
        _ => match describe::own_rate_of_breaker(policy, i) {
            Some(rate) => format!("{algorithm}: {rate} by breaker.rate_base, and a burst of {burst}"),
            None => format!("{algorithm}: {limit}/{short} and a burst of {burst}"),
        },
    };
    Some(format!("at most {most}{unit} in any {period} ({counted})"))
}

/// Returns the name of a period after "any", and after a slash.
fn period_names(period: Duration) -> (String, String) {
    let (long, short) = match describe::duration(period).as_str() {
        "1s" => ("second", "s"),
        "1m" => ("minute", "min"),
        "1h" => ("hour", "h"),
        "1d" => ("day", "day"),
        "7d" => ("week", "week"),
        other => return (other.to_owned(), other.to_owned()),
    };
    (long.to_owned(), short.to_owned())
}

/// Returns what a rule allows, and its algorithm.
pub fn terms(policy: &Policy, i: usize, rule: &RuleSnapshot) -> String {
    let terms = match describe::own_rate_of_breaker(policy, i) {
        Some(rate) => format!("{rate} by breaker.rate_base"),
        None => {
            format!("{} per {}", rule.limit, describe::duration(Duration::from_nanos(nanos(rule.period))))
        }
    };
    // A rule without a name of its own has the algorithm's name.
    if rule.name == rule.algorithm { terms } else { format!("{terms}, {}", rule.algorithm) }
}
