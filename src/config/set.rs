//! Single settings of a limiter that is in use (R110).

use super::read::{bad, given, locate};
use super::{ConfigError, meant};
use crate::kernel::Policy;
use crate::settings::{Given, Settings, keys};
use toml::{Table, Value};

/// This policy with one key changed. The key is dotted (`breaker.p_throttle`, `rules.0.burst`), the value as in a
/// file, where quotes may be left out (`15m`, `0.3`, `35`, `unlimited`).
///
/// Keys that other keys depend on, such as an algorithm or the number of rules, cannot be changed in a limiter that is
/// in use.
///
/// ```
/// use shmlimit::{config, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let slower = config::set(&tmdb, "rules.0.burst", "20")?;
/// assert_eq!(slower.rules()[0].burst, 20);
/// assert!(config::set(&tmdb, "rules.0.algorithm", "gcra").is_err());
/// # Ok::<(), shmlimit::config::ConfigError>(())
/// ```
pub fn set(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
    match locate(key) {
        Some((info, _)) if !info.hot => Err(ConfigError::NotHot { key: key.to_owned() }),
        _ => put(policy, key, value),
    }
}

/// [`set`] before the limiter is made: any key.
pub(super) fn put(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
    let mut settings = Settings::of(policy);
    let Some((info, i)) = locate(key) else {
        return Err(not_one_key(key));
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
        // Quotes say nothing where there may be none.
        Some(Value::String(text)) => Given::Bare(text),
        Some(value) => given(value),
        None => Given::Bare(value),
    };
    settings.replace(info, i, &given).map_err(|problem| bad(key, &given, &problem))?;
    Ok(settings.policy()?)
}

/// The value as TOML, if it is one.
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

fn not_one_key(key: &str) -> ConfigError {
    let heads =
        ["rules", "adaptive.windows", "adaptive", "priority", "cluster", "window", "breaker", "backoff"];
    if heads.contains(&key) {
        return ConfigError::NotHot { key: key.to_owned() };
    }
    // What whoever opens a limiter may say of its one rule; in use a rule has a number.
    if let "rate" | "limit" | "burst" = key {
        let of_rule = if key == "burst" { "rules.0.burst" } else { "rules.0.limit" };
        return ConfigError::UnknownKey { key: key.to_owned(), hint: format!("did you mean {of_rule:?}?") };
    }
    // An element's number is its own; the rest of the key may be mistyped.
    let index = key.split('.').find_map(|part| part.parse().ok()).unwrap_or(0);
    let hot: Vec<String> = keys().iter().filter(|key| key.hot).map(|key| key.named(index)).collect();
    let known: Vec<&str> = hot.iter().map(String::as_str).collect();
    ConfigError::UnknownKey { key: key.to_owned(), hint: meant(key, &known) }
}
