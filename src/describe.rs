//! A policy in words: the keys and values a person would write.

use crate::kernel::{Nanos, Policy};
use crate::quantity;
use crate::settings::Settings;

/// Every setting of a policy, as key and value.
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
    quantity::written(u64::from(millionths), 6)
}

/// A duration as people write it, exactly: the largest unit that divides it.
pub fn duration(nanos: Nanos) -> String {
    quantity::span(nanos)
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
