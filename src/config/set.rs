//! Changes single settings of a limiter that is in use (R110).

use super::amount;
use super::read::{bad, given, locate};
use crate::settings::{Given, Settings, called, change_rates, keys, no_burst};
use crate::{ConfigError, rate};
use shmlimit_kernel::Policy;
use toml::{Table, Value};

/// This policy with one key changed. The key is dotted (`breaker.p_throttle`, `rules.0.burst`). The value is
/// written as in a file, and its quotes may be left out (`15m`, `0.3`, `35`, `unlimited`). A rule or a window may
/// be given by name instead of number (`rules.rps.limit`). `rate` (`100/m`) sets limit and period of the only rule
/// that counts requests, and `burst` that of the only rule that has a burst.
///
/// Keys that other keys depend on, such as an algorithm or the number of rules, cannot change in a limiter that is
/// in use. A burst follows the limit if it was not configured, or if it was equal to the limit.
///
/// ```
/// use shmlimit::{config, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let slower = config::set(&tmdb, "rules.rps.limit", "20")?;
/// assert_eq!((slower.rules()[0].limit, slower.rules()[0].burst), (20, 20));
/// assert_eq!(slower, config::set(&tmdb, "rate", "20/s")?);
/// assert!(config::set(&tmdb, "rules.0.algorithm", "gcra").is_err());
/// # Ok::<(), shmlimit::ConfigError>(())
/// ```
pub fn set(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
    let of_one_rule = match rules_with_burst(policy)[..] {
        [i] if key == "burst" => Some(format!("rules.{i}.burst")),
        _ => None,
    };
    let key = of_one_rule.as_deref().unwrap_or(key);
    let has_no_burst = |i: usize| policy.rules().get(i).is_some_and(|rule| !rule.algorithm.has_burst());
    match locate(&numbered(policy, key)?) {
        Some((info, _)) if !info.changeable => Err(ConfigError::NotChangeable { key: key.to_owned() }),
        Some((info, i)) if info.key == "rules.N.burst" && has_no_burst(i) => {
            Err(no_burst(policy, i, key, amount(value).ok()))
        }
        None if key == "burst" && has_no_burst(0) => Err(no_burst(policy, 0, key, amount(value).ok())),
        _ => put(policy, key, value),
    }
}

/// The numbers of the rules that have a burst.
fn rules_with_burst(policy: &Policy) -> Vec<usize> {
    (0..policy.rules().len()).filter(|i| policy.rules()[*i].algorithm.has_burst()).collect()
}

/// Does the same as [`set`] for a limiter that does not exist yet, so any key may change.
pub(super) fn put(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
    let mut settings = Settings::of(policy);
    if key == "rate" {
        return change_rates(policy, &rate::list(value)?);
    }
    let Some((info, i)) = locate(&numbered(policy, key)?) else {
        return Err(not_one_key(policy, key));
    };
    let absent = |problem: String| ConfigError::Absent { key: key.to_owned(), problem };
    match info.list() {
        Some("rules") if i >= settings.rules.len() => {
            return Err(absent(there_are("rule", "rules", settings.rules.len())));
        }
        Some(_) | None if info.key.starts_with("adaptive.") && settings.adaptive.is_none() => {
            return Err(absent("the limiter has no [adaptive]".to_owned()));
        }
        Some("adaptive.windows") => {
            let count = settings.adaptive.as_ref().map_or(0, |adaptive| adaptive.windows.len());
            if i >= count {
                return Err(absent(there_are("window", "windows", count)));
            }
        }
        _ => {}
    }
    let parsed = value_of(value);
    let given = match &parsed {
        // A TOML string here was quoted. Quotes are optional, so they make no difference.
        Some(Value::String(text)) => Given::Bare(text),
        Some(value) => given(value),
        None => Given::Bare(value),
    };
    settings.replace(info, i, &given).map_err(|problem| bad(key, &given, &problem))?;
    Ok(settings.policy()?.keeping_logs_of(policy))
}

/// The key with the name of an element replaced by its number.
fn numbered(policy: &Policy, key: &str) -> Result<String, ConfigError> {
    let rules: Vec<_> = policy.rules().iter().map(|rule| rule.name).collect();
    let windows: Vec<_> = policy
        .adaptive()
        .into_iter()
        .flat_map(|adaptive| adaptive.windows().map(|window| window.name))
        .collect();
    for (list, names) in [("rules", rules), ("adaptive.windows", windows)] {
        let Some((name, field)) = key
            .strip_prefix(list)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        // Digits are the number of an element, unless no element has that number.
        let number = name.parse::<usize>().ok().filter(|_| name.bytes().all(|byte| byte.is_ascii_digit()));
        if number.is_some_and(|number| number < names.len()) {
            return Ok(key.to_owned());
        }
        let of_name: Vec<usize> = (0..names.len()).filter(|i| names[*i].as_str() == name).collect();
        let keys =
            |of: &[usize]| -> Vec<String> { of.iter().map(|i| format!("{list}.{i}.{field}")).collect() };
        match of_name[..] {
            [i] => return Ok(format!("{list}.{i}.{field}")),
            [] if number.is_some() || locate(&format!("{list}.0.{field}")).is_none() => {
                return Ok(key.to_owned());
            }
            [] => {
                let known: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                let hint = if known.is_empty() {
                    "the limiter has none".to_owned()
                } else {
                    match super::nearest(name, known.iter().copied()) {
                        Some(near) => format!("did you mean \"{list}.{near}.{field}\"?"),
                        None => format!("there are: {}", known.join(", ")),
                    }
                };
                return Err(ConfigError::UnknownKey { key: key.to_owned(), hint });
            }
            _ => {
                return Err(ConfigError::Ambiguous {
                    key: key.to_owned(),
                    problem: format!("{} have that name; name one by its number", of_name.len()),
                    names: keys(&of_name).join(", "),
                });
            }
        }
    }
    Ok(key.to_owned())
}

/// The value parsed as TOML, if it is valid TOML.
fn value_of(text: &str) -> Option<Value> {
    let table: Table = toml::from_str(&format!("value = {text}")).ok()?;
    (table.len() == 1).then(|| table.get("value").cloned())?
}

fn there_are(one: &str, many: &str, count: usize) -> String {
    match count {
        0 => format!("the limiter has no {many}"),
        1 => format!("the limiter has one {one}, number 0"),
        _ => format!("the limiter has {count} {many}, 0 to {}", count - 1),
    }
}

fn not_one_key(policy: &Policy, key: &str) -> ConfigError {
    let heads =
        ["rules", "adaptive.windows", "adaptive", "priority", "cluster", "window", "breaker", "backoff"];
    if heads.contains(&key) {
        return ConfigError::NotChangeable { key: key.to_owned() };
    }
    // These keys mean the only rule.
    if let "limit" | "burst" | "period" | "reserve" = key {
        let name = if policy.rules().is_empty() { "0".to_owned() } else { called(policy, 0) };
        let hint = format!("did you mean \"rules.{name}.{key}\"?");
        return ConfigError::UnknownKey { key: key.to_owned(), hint };
    }
    // The key names the number of the element. The rest of the key may be mistyped.
    let index = key.split('.').find_map(|part| part.parse().ok()).unwrap_or(0);
    let mut changeable: Vec<String> =
        keys().iter().filter(|key| key.changeable).map(|key| key.named(index)).collect();
    let of_rules =
        keys().iter().filter_map(|key| key.key.strip_prefix("rules.N.").filter(|_| key.changeable));
    for field in of_rules {
        changeable.extend((0..policy.rules().len()).map(|i| format!("rules.{}.{field}", called(policy, i))));
    }
    let known: Vec<&str> = changeable.iter().map(String::as_str).chain(["rate"]).collect();
    let hint = match super::nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("there are: {}", of_the_same_table(key, &known).join(", ")),
    };
    ConfigError::UnknownKey { key: key.to_owned(), hint }
}

/// The known keys in the table of this key. If there are none: the keys at the top, and one entry for each table.
fn of_the_same_table(key: &str, known: &[&str]) -> Vec<String> {
    let table = |key: &str| key.split_once('.').map(|(table, _)| table.to_owned());
    let same = known.iter().filter(|known| table(known).is_some() && table(known) == table(key));
    let same: Vec<String> = same.map(|known| (*known).to_owned()).collect();
    if !same.is_empty() {
        return same;
    }
    let mut all: Vec<String> = Vec::new();
    for known in known {
        let entry = table(known).map_or((*known).to_owned(), |table| format!("{table}.…"));
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all.sort_by_key(|entry| entry.ends_with('…'));
    all
}
