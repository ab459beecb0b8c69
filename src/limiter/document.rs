//! A snapshot as names and values: the object that `shmlimit status --json` prints.
//!
//! It is derived from the description of the snapshot (`fields.rs`). The tool, Python and any program that prints
//! or stores a snapshot convert the document as a whole, so that a new field appears in all of them.

use std::borrow::Cow;
use std::time::Duration;

/// Names and values in the order in which they are printed. The names are a contract: docs/status-json.md.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// for (name, value) in limiter.snapshot()?.document() {
///     println!("{name}: {value:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Document = Vec<(Cow<'static, str>, Value)>;

/// One value of a [`Document`]. Times are whole nanoseconds, and their names end in `_ns`.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// use shmlimit::Value;
///
/// let document = limiter.snapshot()?.document();
/// let (_, name) = document.iter().find(|(key, _)| key == "name").unwrap();
/// assert_eq!(*name, Value::Text("api".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(u64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A nested document.
    Object(Document),
}

impl Value {
    pub(super) fn list<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }

    /// Counts by names that are known only at run time, in the order of the names.
    pub(super) fn counts<N: ToString>(counts: impl IntoIterator<Item = (N, u64)>) -> Value {
        let mut counts: Vec<(String, u64)> =
            counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
        counts.sort_unstable();
        Value::Object(counts.into_iter().map(|(name, count)| (name.into(), count.into())).collect())
    }
}

macro_rules! from {
    ($($type:ty: $value:ident => $document:expr;)*) => {$(
        impl From<$type> for Value {
            fn from($value: $type) -> Value {
                $document
            }
        }
    )*};
}

from! {
    bool: value => Value::Bool(value);
    u32: value => Value::Integer(value.into());
    u64: value => Value::Integer(value);
    f64: value => Value::Float(value);
    &str: value => Value::Text(value.to_owned());
    &String: value => Value::Text(value.clone());
    String: value => Value::Text(value);
    Duration: value => Value::Integer(super::nanos(value));
    Document: value => Value::Object(value);
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
