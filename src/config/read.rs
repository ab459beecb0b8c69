//! From the text of a file to settings: every key known by name, every error with the key's path.

use super::{ConfigError, RuleSettings, Settings, meant, quantity};
use crate::kernel::{Algorithm, Fairness, Nanos};
use toml::{Table, Value};

const TOP: [&str; 9] = [
    "preset",
    "epoch_ns",
    "provider",
    "concurrency",
    "concurrency_background",
    "fairness",
    "background_share",
    "rules",
    "priority",
];
/// Keys of the format that this version cannot carry out.
const TOP_LATER: [&str; 7] =
    ["window", "breaker", "backoff", "adaptive", "count_network_errors", "mode", "cluster"];
const RULE: [&str; 9] =
    ["name", "algorithm", "unit", "limit", "period", "burst", "tau", "burst_mode", "reserve"];
/// A bucket of which nothing is said (R9): ten at once, one a second.
const DEFAULT_LIMIT: u64 = 1;
const DEFAULT_PERIOD: Nanos = Nanos(1_000_000_000);
const DEFAULT_BURST: u64 = 10;

pub(super) fn settings(text: &str) -> Result<Settings, ConfigError> {
    let table: Table = toml::from_str(text)
        .map_err(|error: toml::de::Error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))?;
    let top = Section { table: &table, path: String::new() };
    top.check_keys(&TOP, &TOP_LATER)?;
    let mut settings = match top.text("preset")? {
        Some(preset) => Settings::preset(preset)?,
        None => Settings::default(),
    };
    settings.epoch_ns = top.whole("epoch_ns")?.unwrap_or(settings.epoch_ns);
    settings.provider = top.text("provider")?.map(str::to_owned).or(settings.provider);
    settings.concurrency = top.whole("concurrency")?.or(settings.concurrency);
    settings.concurrency_background =
        top.whole("concurrency_background")?.or(settings.concurrency_background);
    if let Some(fairness) = top.text("fairness")? {
        settings.fairness = Fairness::parse(fairness)?;
    }
    if let Some(value) = table.get("background_share") {
        let read = match value {
            Value::Integer(number) => quantity::share(&number.to_string()),
            // The shortest decimal that reads as the same float is what was written.
            Value::Float(number) => quantity::share(&number.to_string()),
            _ => Err("must be a number from 0 to 1, without quotes".to_owned()),
        };
        settings.background_share = read.map_err(|problem| top.bad("background_share", value, &problem))?;
    }
    priority(&top)?;
    if let Some(value) = table.get("rules") {
        let list = value.as_array().ok_or_else(|| top.bad("rules", value, "must be written as [[rules]]"))?;
        let rules = list.iter().enumerate().map(|(i, value)| {
            let path = format!("rules.{i}");
            let table =
                value.as_table().ok_or_else(|| top.bad(&path, value, "must be written as [[rules]]"))?;
            rule(i, &Section { table, path: path + "." })
        });
        settings.rules = rules.collect::<Result<_, _>>()?;
    }
    Ok(settings)
}

fn priority(top: &Section<'_>) -> Result<(), ConfigError> {
    let Some(value) = top.table.get("priority") else { return Ok(()) };
    let table =
        value.as_table().ok_or_else(|| top.bad("priority", value, "must be written as [priority]"))?;
    let section = Section { table, path: "priority.".into() };
    section.check_keys(&["enabled"], &[])?;
    match table.get("enabled") {
        None | Some(Value::Boolean(true)) => Ok(()),
        Some(Value::Boolean(false)) => {
            Err(later("priority.enabled = false", "leave it out, and use no reserve"))
        }
        Some(value) => Err(section.bad("enabled", value, "must be true or false")),
    }
}

fn rule(i: usize, section: &Section<'_>) -> Result<RuleSettings, ConfigError> {
    section.check_keys(&RULE, &[])?;
    let algorithm = algorithm(i, section)?;
    burst_mode(algorithm, section)?;
    let limit = section.whole("limit")?;
    let tau = section.length("tau")?;
    let by_default = (limit.is_none() && tau.is_none()).then_some(DEFAULT_BURST);
    Ok(RuleSettings {
        name: section.text("name")?.map(str::to_owned),
        unit: section.text("unit")?.map(str::to_owned),
        burst: section.whole("burst")?.or(by_default),
        tau,
        reserve: section.whole("reserve")?.unwrap_or(0),
        ..RuleSettings::new(
            algorithm,
            limit.unwrap_or(DEFAULT_LIMIT),
            section.length("period")?.unwrap_or(DEFAULT_PERIOD),
        )
    })
}

/// The default is `sliding_counter` (R9); that is not what a bucket does, so it is not quietly made one.
fn algorithm(i: usize, section: &Section<'_>) -> Result<Algorithm, ConfigError> {
    const ADVICE: &str = "use algorithm = \"token_bucket\" or \"gcra\"";
    let Some(name) = section.text("algorithm")? else {
        let key = format!("{}algorithm is not given, and its default \"sliding_counter\"", section.path);
        return Err(later(&key, ADVICE));
    };
    Algorithm::parse(i, name).map_err(|error| match error {
        // Only what this version runs: the next try should be the last.
        _ => section.bad("algorithm", &section.table["algorithm"], "must be \"token_bucket\" or \"gcra\""),
    })
}

fn burst_mode(algorithm: Algorithm, section: &Section<'_>) -> Result<(), ConfigError> {
    let Some(mode) = section.text("burst_mode")? else { return Ok(()) };
    let value = &section.table["burst_mode"];
    match mode {
        "gcra_tau" | "fixed_window" if algorithm != Algorithm::Gcra => {
            Err(section.bad("burst_mode", value, "only gcra has a burst mode"))
        }
        "gcra_tau" => Ok(()),
        "fixed_window" => {
            Err(later(&format!("{}burst_mode = \"fixed_window\"", section.path), "use \"gcra_tau\""))
        }
        _ => Err(section.bad("burst_mode", value, "must be \"gcra_tau\" or \"fixed_window\"")),
    }
}

fn later(key: &str, advice: &str) -> ConfigError {
    ConfigError::NotYetSupported { key: key.to_owned(), advice: advice.to_owned() }
}

/// A table and where it is in the file: empty, or a path that ends with a dot.
struct Section<'t> {
    table: &'t Table,
    path: String,
}

impl<'t> Section<'t> {
    fn check_keys(&self, known: &[&'static str], not_yet: &[&'static str]) -> Result<(), ConfigError> {
        for key in self.table.keys().map(String::as_str) {
            if not_yet.contains(&key) {
                return Err(later(&format!("{}{key}", self.path), "take it out"));
            }
            if !known.contains(&key) {
                return Err(ConfigError::UnknownKey {
                    key: format!("{}{key}", self.path),
                    hint: meant(key, known),
                });
            }
        }
        Ok(())
    }

    fn text(&self, key: &str) -> Result<Option<&'t str>, ConfigError> {
        let read =
            |value: &'t Value| value.as_str().ok_or_else(|| self.bad(key, value, "must be a text in quotes"));
        self.table.get(key).map(read).transpose()
    }

    fn whole(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        let read = |value: &Value| {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| self.bad(key, value, "must be a whole number, not negative"))
        };
        self.table.get(key).map(read).transpose()
    }

    fn length(&self, key: &str) -> Result<Option<Nanos>, ConfigError> {
        let read = |value: &Value| {
            let nanos = match value {
                Value::String(text) => quantity::duration(text),
                Value::Integer(number) => quantity::duration(&number.to_string()),
                // The shortest decimal that reads as the same float is what was written.
                Value::Float(number) => quantity::duration(&number.to_string()),
                _ => Err(quantity::not_a_duration()),
            };
            nanos.map_err(|problem| self.bad(key, value, &problem))
        };
        self.table.get(key).map(read).transpose()
    }

    fn bad(&self, key: &str, value: &Value, problem: &str) -> ConfigError {
        let shown = match value {
            Value::Table(_) => "a table".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::String(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Boolean(truth) => truth.to_string(),
            Value::Datetime(moment) => moment.to_string(),
        };
        ConfigError::BadValue {
            key: format!("{}{key}", self.path),
            value: shown,
            problem: problem.to_owned(),
        }
    }
}
