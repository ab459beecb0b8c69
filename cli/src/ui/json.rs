//! JSON objects whose keys keep their order: documents of the library, and output of verbs.

use serde::ser::{Serialize, SerializeMap, Serializer};
use shmlimit::{Document, Value};
use std::borrow::Cow;

/// An object that serde can serialize.
pub struct Json(pub Document);

/// Creates a [`Json`]: `object! { "name": value, … }`. The keys of each verb are a contract: docs/json.md.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::ui::json::Json(vec![$((std::borrow::Cow::Borrowed($name), shmlimit::Value::from($value))),*])
    };
}
pub(crate) use object;

/// Returns a list of values.
pub fn list<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
    Value::List(values.into_iter().map(Into::into).collect())
}

/// Returns an object whose keys are known only at run time.
pub fn map<T: Into<Value>>(entries: impl IntoIterator<Item = (String, T)>) -> Value {
    Value::Object(entries.into_iter().map(|(name, value)| (Cow::Owned(name), value.into())).collect())
}

impl Json {
    /// Appends the keys of another object.
    pub fn and(mut self, more: Document) -> Json {
        self.0.extend(more);
        self
    }
}

impl From<Json> for Value {
    fn from(object: Json) -> Value {
        Value::Object(object.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.0, serializer)
    }
}

struct JsonValue<'v>(&'v Value);

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
