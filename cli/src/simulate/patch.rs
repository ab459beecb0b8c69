//! The operation `set`: one key of a running limiter's configuration, changed.

use super::fields::kind;
use serde_json::Value;
use shmlimit::{Policy, config};

/// The policy with one key changed, or what is wrong with that.
pub fn patched(policy: &Policy, key: &str, value: &Value) -> Result<Policy, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        other => return Err(format!("value: must be a number, a text, true or false, not {}", kind(other))),
    };
    config::set(policy, key, &text).map_err(|error| error.to_string())
}
