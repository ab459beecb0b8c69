//! Documents of the library as JSON, and the parts of `--json` that only the tool knows.

use super::next_change::{Change, What};
use crate::ui::time::nanos;
use serde::ser::{Serialize, SerializeMap, Serializer};
use shmlimit::{Document, Value};

/// A document that serde can write.
pub struct Json(pub Document);

struct JsonValue<'v>(&'v Value);

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.0, serializer)
    }
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Integer(value) => serializer.serialize_u64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(values) => serializer.collect_seq(values.iter().map(JsonValue)),
            Value::Object(document) => write(document, serializer),
            _ => serializer.serialize_none(),
        }
    }
}

fn write<S: Serializer>(document: &Document, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(document.len()))?;
    for (name, value) in document {
        map.serialize_entry(name, &JsonValue(value))?;
    }
    map.end()
}

/// `next_change` of `--json`.
#[derive(serde::Serialize)]
pub struct ChangeLine {
    what: &'static str,
    in_ns: u64,
    rule: Option<String>,
}

impl From<Change> for ChangeLine {
    fn from(change: Change) -> ChangeLine {
        let (what, rule) = match change.what {
            What::PauseEnds => ("pause_ends", None),
            What::GateOpens => ("gate_opens", None),
            What::HalfOpen => ("half_open", None),
            What::Sleep => ("sleep", None),
            What::RateRises => ("rate_rises", None),
            What::NextUnit(rule, _) => ("next_unit", Some(rule)),
            What::Full(rule) => ("full", Some(rule)),
        };
        ChangeLine { what, in_ns: nanos(change.within), rule }
    }
}
