//! Converts the text of a file into settings. Every key is in the table of keys, and every error names the path of
//! its key.

use super::{meant, preset_settings};
use crate::ConfigError;
use crate::settings::{Given, KeyInfo, RuleSettings, Settings, WindowSettings, keys};
use shmlimit_kernel::Algorithm;
use toml::{Table, Value};

/// The tables of the format.
const SECTIONS: [&str; 5] = ["window", "breaker", "backoff", "priority", "adaptive"];
/// The lists of tables.
const LISTS: [&str; 2] = ["rules", "adaptive.windows"];
/// A table that belongs to the format but is not supported in this version.
const LATER: &str = "cluster";

/// Reads the settings of a file. With `alone`, the file is for a single caller.
pub(super) fn settings(text: &str, alone: bool) -> Result<Settings, ConfigError> {
    let mut table: Table = toml::from_str(text)
        .map_err(|error: toml::de::Error| ConfigError::Syntax(error.to_string().trim_end().to_owned()))?;
    if alone && table.get(LATER).is_some_and(Value::is_table) {
        table.remove(LATER);
    }
    let mut settings = match table.get("preset") {
        Some(Value::String(preset)) => preset_settings(preset)?,
        Some(value) => return Err(bad("preset", &given(value), "must be a string in quotes")),
        None => Settings::default(),
    };
    section(&mut settings, &table, "", "", 0)?;
    Ok(settings)
}

/// Converts a TOML value for the settings.
pub(super) fn given(value: &Value) -> Given<'_> {
    match value {
        Value::String(text) => Given::Text(text),
        Value::Integer(number) => Given::Int(*number),
        Value::Float(number) => Given::Float(*number),
        Value::Boolean(truth) => Given::Truth(*truth),
        Value::Datetime(moment) => Given::Other(moment.to_string()),
        Value::Array(_) => Given::Other("a list".to_owned()),
        Value::Table(_) => Given::Other("a table".to_owned()),
    }
}

pub(super) fn bad(key: &str, given: &Given<'_>, problem: &str) -> ConfigError {
    ConfigError::BadValue { key: key.to_owned(), value: given.shown(), problem: problem.to_owned() }
}

/// Reads one table. `path` is its position in the file, and `pattern` is the position of its keys in the table of
/// keys. Both are empty or end with a dot. `i` is the index of the element if the table belongs to a list.
fn section(
    settings: &mut Settings,
    table: &Table,
    path: &str,
    pattern: &str,
    i: usize,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let (path, pattern) = (format!("{path}{name}"), format!("{pattern}{name}"));
        if path == "preset" {
            continue;
        }
        // A name that contains a dot was written in quotes. It is not a path.
        if name.contains('.') {
            return Err(unknown(&path, name, &pattern[..pattern.len() - name.len()]));
        }
        if let Some(key) = keys().iter().find(|key| key.key == pattern) {
            let given = given(value);
            settings.assign(key, i, &given).map_err(|problem| bad(&path, &given, &problem))?;
        } else if SECTIONS.contains(&pattern.as_str()) {
            let written = format!("must be written as [{pattern}]");
            let table = value.as_table().ok_or_else(|| bad(&path, &given(value), &written))?;
            if pattern == "adaptive" {
                settings.adaptive.get_or_insert_default();
            }
            section(settings, table, &format!("{path}."), &format!("{pattern}."), 0)?;
        } else if LISTS.contains(&pattern.as_str()) {
            list(settings, value, &path)?;
        } else if path == LATER {
            return Err(ConfigError::NotYetSupported { key: path, advice: "remove it".to_owned() });
        } else {
            return Err(unknown(&path, name, &pattern[..pattern.len() - name.len()]));
        }
    }
    Ok(())
}

/// Reads a list of tables, which replaces the existing list.
fn list(settings: &mut Settings, value: &Value, path: &str) -> Result<(), ConfigError> {
    let written = format!("must be written as [[{path}]]");
    let elements = value.as_array().ok_or_else(|| bad(path, &given(value), &written))?;
    match path {
        "rules" => settings.rules = vec![RuleSettings::default(); elements.len()],
        _ => {
            let adaptive = settings.adaptive.get_or_insert_default();
            adaptive.windows = vec![WindowSettings::default(); elements.len()];
        }
    }
    for (i, element) in elements.iter().enumerate() {
        let key = format!("{path}.{i}");
        let table = element.as_table().ok_or_else(|| bad(&key, &given(element), &written))?;
        section(settings, table, &format!("{key}."), &format!("{path}.N."), i)?;
        if let (Some(mode), Some(rule)) = (table.get("burst_mode"), settings.rules.get(i))
            && rule.draft.algorithm != Algorithm::Gcra
        {
            return Err(bad(&format!("{key}.burst_mode"), &given(mode), "only gcra has a burst mode"));
        }
    }
    Ok(())
}

fn unknown(path: &str, name: &str, pattern: &str) -> ConfigError {
    let known = keys().iter().map(|key| key.key).filter_map(|key| key.strip_prefix(pattern));
    let known = known.chain(LISTS.iter().chain(&SECTIONS).filter_map(|list| list.strip_prefix(pattern)));
    let known: Vec<&str> = known.filter(|key| !key.contains('.')).collect();
    ConfigError::UnknownKey { key: path.to_owned(), hint: meant(name, &known) }
}

/// The entry of the table that a dotted key means, and the index of the element in its list.
pub(super) fn locate(key: &str) -> Option<(&'static KeyInfo, usize)> {
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    let index = key.split('.').find_map(number);
    // `N` in the table stands for a number. The letter `N` itself is not a valid key.
    let part = |part| match number(part) {
        Some(_) => "N",
        None if part == "N" => "",
        None => part,
    };
    let pattern: Vec<&str> = key.split('.').map(part).collect();
    let pattern = pattern.join(".");
    keys().iter().find(|key| key.key == pattern).map(|key| (key, index.unwrap_or(0)))
}
