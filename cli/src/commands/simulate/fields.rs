//! Parses one line of a script as an object of named fields. Each field is taken once; remaining fields are an error.

use serde_json::{Map, Number, Value};
use shmlimit::Policy;
use shmlimit::config::{self, nearest};

/// The fields of an operation that have not been taken yet.
pub struct Fields(Map<String, Value>);

impl Fields {
    pub fn of(line: &[u8]) -> Result<Fields, String> {
        match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(other) => Err(format!("an operation is a JSON object, not {}", kind(&other))),
            Err(error) => Err(format!("not valid JSON: {error}")),
        }
    }

    /// Takes the field if it exists. `null` counts as missing.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a non-negative whole number.
    pub fn whole(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.take(name).map(|value| whole(name, &value)).transpose()
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{name}: must be a text, not {}", kind(&other))),
        }
    }

    /// Takes the value of a response header: text, or a number in the form that it would have there.
    pub fn header(&mut self, name: &str) -> Result<Option<String>, String> {
        self.take(name).map(|value| header(name, value)).transpose()
    }

    /// Refuses fields that were not taken. `known` are the possible ones.
    pub fn done(self, known: &[&'static str]) -> Result<(), String> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        Err(match nearest(name, known.iter().copied()) {
            Some(near) => format!("{name}: unknown field; did you mean {near:?}?"),
            None => format!("{name}: unknown field; there are: {}", known.join(", ")),
        })
    }
}

/// Parses a non-negative whole number. 3.0 is one.
pub fn whole(name: &str, value: &Value) -> Result<u64, String> {
    let number = value.as_number().ok_or_else(|| format!("{name}: must be a number, not {}", kind(value)))?;
    number
        .as_u64()
        .or_else(|| exact(number))
        .ok_or_else(|| format!("{name}: must be a whole number from 0 to {}, not {number}", u64::MAX))
}

/// Returns a float as an integer if it is exactly a whole number.
fn exact(number: &Number) -> Option<u64> {
    const MOST: f64 = (1_u64 << 53) as f64;
    number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MOST).contains(number)).map(|n| n as u64)
}

pub fn header(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("{name}: must be a text, not {}", kind(&other))),
    }
}

/// Describes the kind of a value in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the policy with one key changed, or why that is not possible.
pub fn with_setting(policy: &Policy, key: &str, value: &Value) -> Result<Policy, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        other => return Err(format!("value: must be a number, a text, true or false, not {}", kind(other))),
    };
    config::set(policy, key, &text).map_err(|error| error.to_string())
}
