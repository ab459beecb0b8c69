//! A policy in words: the keys and values a person would write.

use crate::kernel::state::WHOLE_SHARE;
use crate::kernel::{Nanos, Policy};

/// Every setting of a policy, as key and value.
///
/// ```
/// let tmdb = shmlimit::presets::policy("tmdb").unwrap().unwrap();
/// let settings = shmlimit::describe::settings(&tmdb);
/// assert!(settings.contains(&("rules.0.period".to_owned(), "1s".to_owned())));
/// ```
pub fn settings(policy: &Policy) -> Vec<(String, String)> {
    let mut settings = vec![("provider".to_owned(), policy.provider().as_str().to_owned())];
    let bound = |most: Option<u32>| most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
    settings.push(("concurrency".into(), bound(policy.concurrency())));
    settings.push(("concurrency_background".into(), bound(policy.concurrency_background())));
    let queueing = policy.queueing();
    settings.push(("fairness".into(), queueing.fairness.as_str().to_owned()));
    settings.push(("background_share".into(), share(queueing.background_share)));
    let units: Vec<_> = policy.units().collect();
    for (i, rule) in policy.rules().iter().enumerate() {
        let mut say = |key: &str, value: String| settings.push((format!("rules.{i}.{key}"), value));
        say("name", rule.name.as_str().to_owned());
        say("algorithm", rule.algorithm.as_str().to_owned());
        say("unit", units[usize::from(rule.unit)].as_str().to_owned());
        say("limit", rule.limit.to_string());
        say("period", duration(rule.period));
        match rule.tau {
            Some(tau) => say("tau", duration(tau)),
            None => say("burst", rule.burst.to_string()),
        }
        say("reserve", rule.reserve.to_string());
    }
    settings
}

/// One line for each setting that differs.
pub fn differences(there: &Policy, wanted: &Policy) -> String {
    let line = |key: &str, there: &str, wanted: &str| format!("  {key}: {there} there, {wanted} asked for");
    compare(there, wanted, line, "\n")
}

/// What changed from one policy to another, on one line.
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

/// A part of the whole as people write it, exactly, from millionths.
pub fn share(millionths: u32) -> String {
    let parts = format!("{:06}", millionths % WHOLE_SHARE);
    format!("{}.{parts}", millionths / WHOLE_SHARE).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A duration as people write it, exactly: the largest unit that divides it.
pub fn duration(nanos: Nanos) -> String {
    const UNITS: [(&str, u64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let (unit, size) = UNITS.into_iter().find(|(_, size)| nanos.0.is_multiple_of(*size)).unwrap_or(("ns", 1));
    if nanos.0 == 0 { "0s".to_owned() } else { format!("{}{unit}", nanos.0 / size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_their_largest_exact_unit() {
        for (nanos, text) in
            [(0, "0s"), (1, "1ns"), (1_500, "1500ns"), (1_000_000_000, "1s"), (90_000_000_000, "90s")]
        {
            assert_eq!(duration(Nanos(nanos)), text);
        }
        assert_eq!(duration(Nanos(86_400_000_000_000)), "1d");
    }

    #[test]
    fn shares_are_written_exactly() {
        for (millionths, text) in [(0, "0"), (1, "0.000001"), (100_000, "0.1"), (1_000_000, "1")] {
            assert_eq!(share(millionths), text);
        }
    }
}
