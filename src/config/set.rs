//! Single settings of a limiter that is in use (R110).

use super::read::{bad, given, locate};
use super::{Config, ConfigError, Overrides, Rate, amount, meant, rate};
use crate::quantity::span;
use crate::settings::{Given, Settings, keys};
use shmlimit_kernel::policy::{Breaker, REQUESTS};
use shmlimit_kernel::{Algorithm, MAX_LOG, Policy};
use toml::{Table, Value};

/// This policy with one key changed. The key is dotted (`breaker.p_throttle`, `rules.0.burst`), the value as in a
/// file, where quotes may be left out (`15m`, `0.3`, `35`, `unlimited`). A rule or a window may be named instead of
/// numbered (`rules.rps.limit`), and `rate` (`100/m`) is limit and period of the one rule that counts requests.
///
/// Keys that other keys depend on, such as an algorithm or the number of rules, cannot be changed in a limiter that is
/// in use. A burst that nobody chose, or that was as large as the limit, follows the limit.
///
/// ```
/// use shmlimit::{config, presets};
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let slower = config::set(&tmdb, "rules.rps.limit", "20")?;
/// assert_eq!((slower.rules()[0].limit, slower.rules()[0].burst), (20, 20));
/// assert_eq!(slower, config::set(&tmdb, "rate", "20/s")?);
/// assert!(config::set(&tmdb, "rules.0.algorithm", "gcra").is_err());
/// # Ok::<(), shmlimit::config::ConfigError>(())
/// ```
pub fn set(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
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

/// This policy with single settings changed; what they do not name stays (R144). A rate alone changes limit and period of
/// the one rule that counts requests, as [`set`] does, and makes a rule where there is none.
///
/// ```
/// use shmlimit::config::{self, Overrides};
/// use shmlimit::presets;
///
/// let tmdb = presets::policy("tmdb").unwrap()?;
/// let slower = Overrides { rate: config::rate("20/s").ok(), ..Overrides::default() };
/// let slower = config::update(&tmdb, &slower)?;
/// assert_eq!((slower.rules()[0].limit, slower.concurrency()), (20, Some(4)));
/// # Ok::<(), shmlimit::config::ConfigError>(())
/// ```
pub fn update(policy: &Policy, overrides: &Overrides) -> Result<Policy, ConfigError> {
    let mut named = *overrides;
    let mut updated = *policy;
    if let (Overrides { burst: Some(burst), algorithm: None, .. }, [rule]) = (named, policy.rules())
        && !rule.algorithm.has_burst()
    {
        return Err(no_burst(policy, 0, "--burst", Some(burst)));
    }
    if let (Overrides { algorithm: Some(algorithm), .. }, [rule]) = (named, policy.rules())
        && algorithm != rule.algorithm
    {
        // What another algorithm has counted says nothing to this one, so it would start used up.
        return Err(ConfigError::NotChangeable { key: "--algorithm".to_owned() });
    }
    if let Overrides { rate: Some(rate), burst: None, algorithm: None, .. } = named
        && !policy.rules().is_empty()
    {
        let written = format!("{}/{}", rate.limit, span(rate.period));
        updated = set_rate(policy, Settings::of(policy), rate, &written)?;
        named.rate = None;
    }
    Ok(Config::new(Settings::of(&updated))?.with(&named)?.policy().keeping_logs_of(policy))
}

/// [`set`] before the limiter is made: any key.
pub(super) fn put(policy: &Policy, key: &str, value: &str) -> Result<Policy, ConfigError> {
    let mut settings = Settings::of(policy);
    if key == "rate" {
        let rate = rate(value).map_err(|problem| bad_rate(value, problem))?;
        return set_rate(policy, settings, rate, value);
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
        // Quotes say nothing where there may be none.
        Some(Value::String(text)) => Given::Bare(text),
        Some(value) => given(value),
        None => Given::Bare(value),
    };
    settings.replace(info, i, &given).map_err(|problem| bad(key, &given, &problem))?;
    Ok(settings.policy()?.keeping_logs_of(policy))
}

fn bad_rate(value: &str, problem: String) -> ConfigError {
    ConfigError::BadValue { key: "rate".to_owned(), value: value.escape_debug().to_string(), problem }
}

/// Limit and period of the one rule that counts requests, which were written as `value`.
fn set_rate(
    policy: &Policy,
    mut settings: Settings,
    Rate { limit, period }: Rate,
    value: &str,
) -> Result<Policy, ConfigError> {
    let key = || "rate".to_owned();
    let of_requests: Vec<usize> =
        (0..policy.rules().len()).filter(|i| policy.rules()[*i].unit == 0).collect();
    let [i] = of_requests[..] else {
        let names: Vec<String> =
            of_requests.iter().map(|i| format!("rules.{}.limit", called(policy, *i))).collect();
        return Err(match names.len() {
            0 => ConfigError::Absent {
                key: key(),
                problem: format!("no rule of the limiter counts {REQUESTS}"),
            },
            count => ConfigError::Ambiguous {
                key: key(),
                problem: format!("{count} rules count {REQUESTS}, say which one"),
                names: names.join(", "),
            },
        });
    };
    let rule = &mut settings.rules[i];
    if rule.draft.algorithm == Algorithm::SlidingLog && limit > MAX_LOG {
        let problem = format!(
            "a sliding_log counts at most {MAX_LOG} per period; replace it with another algorithm: shmlimit init NAME \
             --rate {value} --replace"
        );
        return Err(bad_rate(value, problem));
    }
    rule.change_rate(Rate { limit, period });
    if i == 0 {
        // A rate of the breaker's own would go before it.
        settings.draft.breaker.rate_base = Breaker::DEFAULT.rate_base;
    }
    Ok(settings.policy()?.keeping_logs_of(policy))
}

/// What a rule is called in keys: by its name, or by its number where another has that name.
fn called(policy: &Policy, i: usize) -> String {
    let name = |i: usize| policy.rules()[i].name.as_str().to_owned();
    let same = (0..policy.rules().len()).filter(|other| name(*other) == name(i)).count();
    if same == 1 { name(i) } else { i.to_string() }
}

/// The key with the number of an element in place of its name.
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
        // A number is the number of an element, unless there is none of that number.
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
                    problem: format!("{} have that name, say which by its number", of_name.len()),
                    names: keys(&of_name).join(", "),
                });
            }
        }
    }
    Ok(key.to_owned())
}

/// The value as TOML, if it is one.
fn value_of(text: &str) -> Option<Value> {
    let table: Table = toml::from_str(&format!("value = {text}")).ok()?;
    (table.len() == 1).then(|| table.get("value").cloned())?
}

/// A burst was wanted for rule `i`, which cannot have one: how to make a limiter that has one, and all else as it is.
fn no_burst(policy: &Policy, i: usize, key: &str, burst: Option<u64>) -> ConfigError {
    let rule = &policy.rules()[i];
    let overrides = Overrides {
        rate: Some(Rate { limit: rule.limit, period: rule.period }),
        concurrency: policy.concurrency().map(u64::from),
        ..Overrides::default()
    };
    let made = Config::empty().and_then(|config| config.with(&overrides));
    // Whether options say all that there is to say.
    let is_plain = made.is_ok_and(|made| made.policy().keeping_logs_of(policy) == *policy);
    let remedy = match is_plain {
        true => {
            let period = span(rule.period);
            // 5/h, as people write it.
            let period = period.strip_prefix('1').filter(|rest| rest.starts_with(char::is_alphabetic)).unwrap_or(&period);
            let burst = burst.map_or_else(|| "NUMBER".to_owned(), |burst| burst.to_string());
            let concurrency = policy.concurrency().map(|most| format!(" --concurrency {most}")).unwrap_or_default();
            format!(
                "replace it by a token_bucket, with full buckets: shmlimit init NAME --rate {}/{period} --burst \
                 {burst}{concurrency} --replace",
                rule.limit
            )
        }
        false => "write its settings to a file with: shmlimit status NAME --toml > NAME.settings.toml\nwrite algorithm = \
                  \"token_bucket\" and the burst there, and replace it with: shmlimit init NAME --config \
                  NAME.settings.toml --replace"
            .to_owned(),
    };
    let (rule, algorithm) = (called(policy, i), rule.algorithm.as_str());
    ConfigError::NoBurst { key: key.to_owned(), rule, algorithm, remedy }
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
    // Of the one rule, where there is one.
    if let "limit" | "burst" | "period" | "reserve" = key {
        let name = if policy.rules().is_empty() { "0".to_owned() } else { called(policy, 0) };
        let hint = format!("did you mean \"rules.{name}.{key}\"?");
        return ConfigError::UnknownKey { key: key.to_owned(), hint };
    }
    // An element's number is its own; the rest of the key may be mistyped.
    let index = key.split('.').find_map(|part| part.parse().ok()).unwrap_or(0);
    let mut changeable: Vec<String> =
        keys().iter().filter(|key| key.changeable).map(|key| key.named(index)).collect();
    let of_rules =
        keys().iter().filter_map(|key| key.key.strip_prefix("rules.N.").filter(|_| key.changeable));
    for field in of_rules {
        changeable.extend((0..policy.rules().len()).map(|i| format!("rules.{}.{field}", called(policy, i))));
    }
    let known: Vec<&str> = changeable.iter().map(String::as_str).chain(["rate"]).collect();
    ConfigError::UnknownKey { key: key.to_owned(), hint: meant(key, &known) }
}
