//! Explains changes of settings: their effects, and why a change is refused. For `set` and `init --update`.

use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::{output, suggestion};
use shmlimit::ConfigError;
use shmlimit::{Algorithm, Error, Policy, Value, describe};
use shmlimit_kernel::policy::{BreakerKind, Rule};
use std::collections::BTreeMap;

/// Puts the limiter's name into the advice of an error.
pub fn explained(name: &str, error: Error) -> Failure {
    match &error {
        Error::Config(why) => match why.downcast_ref() {
            Some(
                ConfigError::NotChangeable { .. } | ConfigError::Absent { .. } | ConfigError::NoBurst { .. },
            ) => Failure::Usage(error.to_string().replace("NAME", name)),
            Some(ConfigError::BadValue { key, value, problem }) => {
                Failure::Usage(format!("{key} = {value}: {}", problem.replace("NAME", name)))
            }
            _ => error.into(),
        },
        _ => error.into(),
    }
}

/// Prints notes about side effects of a change.
pub fn remark_effects(name: &str, key: &str, before: &Policy, after: &Policy) {
    if key.starts_with("breaker.") && after.breaker().kind() == BreakerKind::None {
        output::remark(&format!("note: {name} has no breaker, so this has no effect"));
    }
    for rule in after.rules() {
        let counts = |old: &&Rule| old.name == rule.name && are_alike(old.algorithm, rule.algorithm);
        if before.rules().iter().find(counts).is_none() {
            let (rule, period) = (rule.name.as_str(), describe::duration(rule.period));
            output::remark(&format!(
                "note: rule {rule} is new, or counts with another algorithm, so it starts used up; it allows calls \
                 again in {period} at the latest"
            ));
        }
    }
    let rules = before.rules().iter().zip(after.rules()).filter(|(was, is)| was.algorithm == is.algorithm);
    for (before, after) in rules.filter(|(_, after)| after.algorithm == Algorithm::SlidingLog) {
        if after.period > before.period {
            let (rule, period) = (after.name.as_str(), describe::duration(after.period));
            output::remark(&format!(
                "note: rule {rule} has no record of the time before its old period, so it starts used up; it allows \
                 calls again in {period} at the latest"
            ));
        }
    }
    let (first, driven) = (before.rules().first().zip(after.rules().first()), after.breaker());
    if let Some((was, is)) = first
        && (was.limit, was.period) != (is.limit, is.period)
        && is.algorithm == Algorithm::TokenBucket
        && driven.kind() == BreakerKind::Fsm
        && driven.rate_base.0 > 0
    {
        output::remark(&format!(
            "note: breaker.rate_base overrides this rate; to use this rate: shmlimit set {} breaker.rate_base auto",
            suggestion::operand(name)
        ));
    }
}

/// Returns whether one algorithm can continue with the counts of the other, as the three buckets can.
fn are_alike(one: Algorithm, other: Algorithm) -> bool {
    one == other || one.has_burst() && other.has_burst()
}

/// Returns all settings by key, in order.
pub fn to_json(policy: &Policy) -> Value {
    json::map(describe::settings(policy).into_iter().collect::<BTreeMap<_, _>>())
}

/// Returns every setting that differs. A setting may exist only before or only after the change.
pub fn changes(before: &Policy, after: &Policy) -> Vec<Json> {
    let mut values: BTreeMap<String, (Option<String>, Option<String>)> = BTreeMap::new();
    for (key, value) in describe::settings(before) {
        values.entry(key).or_default().0 = Some(value);
    }
    for (key, value) in describe::settings(after) {
        values.entry(key).or_default().1 = Some(value);
    }
    let differ = values.into_iter().filter(|(_, (was, is))| was != is);
    differ.map(|(key, (was, is))| object! { "key": key, "was": was, "is": is }).collect()
}
