//! The description of a snapshot: every struct with its fields, and the name of each field in JSON, C, Python and
//! metrics.
//!
//! `fields.rs` declares the structs with [`snapshot!`]. The declaration gives the Rust struct, its [`Document`],
//! and the table [`STRUCTS`](crate::schema::STRUCTS). From that table, `cargo run --example fields` writes the C
//! structs, the Python classes and the tables of the documents, and the tool reads its metrics.

use super::document::{Document, Value};
use super::outcome_code::OutcomeCode;
use shmlimit_kernel::breaker::TransitionCause;
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::{Fairness, Priority};
use std::path::PathBuf;
use std::time::Duration;

/// One struct of a snapshot.
#[derive(Debug)]
pub struct Struct {
    /// Its name in Rust. C has `shmlimit_rule_snapshot` for `RuleSnapshot`, and Python has `Rule`.
    pub name: &'static str,
    /// Its Rust documentation.
    pub doc: &'static str,
    /// Its fields, in the order of JSON.
    pub fields: &'static [Field],
}

/// One field. By default it has the same name everywhere, and a time ends in `_ns` in JSON and C.
#[derive(Debug)]
pub struct Field {
    /// Its name in Rust.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Whether it can be absent (`None`).
    pub optional: bool,
    /// Its Rust documentation.
    pub doc: &'static str,
    /// Its key in JSON; `None` if neither JSON nor Python has it.
    pub json: Option<&'static str>,
    /// Whether its own fields replace it in JSON.
    pub flat: bool,
    /// Its name in C; `None` if C does not have it. For an optional part: the prefix of its fields.
    pub c: Option<&'static str>,
    /// Its name in Python.
    pub python: &'static str,
    /// The type of its names, if they are from a fixed set: `Priority`.
    pub one_of: Option<&'static str>,
    /// The metric that shows it.
    pub metric: Option<Metric>,
}

/// The kind of a field's value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A number of up to 32 bits.
    U32,
    /// A number of up to 64 bits.
    U64,
    /// A number with a fraction.
    Float,
    /// A duration.
    Time,
    /// Text.
    Text,
    /// One of a set of names.
    Name,
    /// A path.
    Path,
    /// A priority: a text, and a number in C.
    Priority,
    /// An identifier: hexadecimal text, and a number in C.
    Id,
    /// Amounts by unit.
    Costs,
    /// Counts by outcome code.
    Codes,
    /// Counts by the bounds of [`OutcomeCounts::LATENCY_BOUNDS`](crate::OutcomeCounts::LATENCY_BOUNDS).
    Histogram,
    /// Another struct.
    Part(&'static Struct),
    /// A list of other structs.
    List(&'static Struct),
}

/// How a metric shows a field.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Whether it only rises.
    pub is_counter: bool,
    /// Its name, if it differs from the field's name.
    pub name: Option<&'static str>,
}

/// A field that only rises.
pub const COUNTER: Option<Metric> = Some(Metric { is_counter: true, name: None });
/// A field that rises and falls.
pub const GAUGE: Option<Metric> = Some(Metric { is_counter: false, name: None });

/// A metric with a name that differs from its field's name.
pub const fn named(metric: Option<Metric>, name: &'static str) -> Option<Metric> {
    match metric {
        Some(metric) => Some(Metric { is_counter: metric.is_counter, name: Some(name) }),
        None => None,
    }
}

impl Field {
    /// A field of type `T`, with the same name everywhere. `time_name` is its name in JSON and C if it is a time.
    pub const fn new<T: FieldType>(name: &'static str, time_name: &'static str, doc: &'static str) -> Field {
        let wire = if matches!(T::KIND, Kind::Time) { time_name } else { name };
        Field {
            name,
            kind: T::KIND,
            optional: T::OPTIONAL,
            doc,
            json: Some(wire),
            flat: false,
            c: Some(wire),
            python: name,
            one_of: None,
            metric: None,
        }
    }
}

impl Struct {
    /// The word for this struct in names: `pace_window` for `PaceWindowSnapshot`. Empty for structs that do not
    /// appear in names.
    pub fn word(&self) -> String {
        snake_case(self.name.strip_suffix("Snapshot").unwrap_or_default())
    }
}

impl Field {
    /// The meaning of the field, with `absent` as the word for a missing value.
    pub fn meaning(&self, absent: &str) -> String {
        self.doc.trim().replace("`None`", absent)
    }

    /// The name of its metric, without the suffixes for its unit and its kind (`_seconds`, `_total`).
    pub fn metric_name(&self, of: &Struct) -> Option<String> {
        let name = self.metric?.name.unwrap_or(self.name.strip_suffix("_total").unwrap_or(self.name));
        let prefix = of.word();
        Some(if prefix.is_empty() { name.to_owned() } else { format!("{prefix}_{name}") })
    }
}

/// A name in snake case: `pace_window` for `PaceWindow`.
pub fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (i, letter) in name.char_indices() {
        if letter.is_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// A struct of a snapshot, field by field.
pub trait Part {
    /// Its description.
    const STRUCT: Struct;

    /// The values of its fields, in the order of the description.
    fn values(&self) -> Vec<&dyn FieldValue>;
}

/// The struct as a JSON object.
pub fn document<P: Part + ?Sized>(part: &P) -> Document {
    let fields = &const { P::STRUCT }.fields;
    let mut document = Vec::with_capacity(fields.len());
    for (field, value) in fields.iter().zip(part.values()) {
        match (field.json, field.flat) {
            (None, _) => {}
            (Some(name), false) => document.push((name.into(), value.to_value())),
            (Some(_), true) => match value.to_value() {
                Value::Object(fields) => document.extend(fields),
                other => document.push((field.name.into(), other)),
            },
        }
    }
    document
}

/// A value that a field can hold.
pub trait FieldValue {
    /// The value in JSON.
    fn to_value(&self) -> Value;
}

/// A type that a field can have.
pub trait FieldType: FieldValue {
    /// The kind of its value.
    const KIND: Kind;
    /// Whether it can be absent.
    const OPTIONAL: bool = false;
}

macro_rules! types {
    ($($type:ty: $kind:ident, $value:ident => $document:expr;)*) => {$(
        impl FieldType for $type {
            const KIND: Kind = Kind::$kind;
        }

        impl FieldValue for $type {
            fn to_value(&self) -> Value {
                let $value = self;
                Value::from($document)
            }
        }
    )*};
}

types! {
    bool: Bool, value => *value;
    u32: U32, value => *value;
    u64: U64, value => *value;
    f64: Float, value => *value;
    Duration: Time, value => *value;
    String: Text, value => value;
    &'static str: Text, value => *value;
    PathBuf: Path, value => value.display().to_string();
    Priority: Priority, value => value.as_str();
    Fairness: Name, value => value.as_str();
    BreakerKind: Name, value => value.as_str();
    TransitionCause: Name, value => value.as_str();
    Vec<(String, u64)>: Costs, value => Value::counts(value.iter().map(|(unit, cost)| (unit, *cost)));
    Vec<(OutcomeCode, u64)>: Codes, value => Value::counts(value.iter().copied());
    [u64; 16]: Histogram, value => Value::list(*value);
}

impl<T: FieldType> FieldType for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, FieldValue::to_value)
    }
}

impl<P: Part> FieldType for P {
    const KIND: Kind = Kind::Part(&P::STRUCT);
}

impl<P: Part> FieldValue for P {
    fn to_value(&self) -> Value {
        Value::Object(document(self))
    }
}

impl<P: Part> FieldType for Vec<P> {
    const KIND: Kind = Kind::List(&P::STRUCT);
}

impl<P: Part> FieldValue for Vec<P> {
    fn to_value(&self) -> Value {
        Value::list(self.iter().map(document))
    }
}

/// Declares a struct of a snapshot. `#[field(KEY: VALUE)]` sets what differs from [`Field::new`]. The fields of
/// `rust_only` exist only in Rust. All structs have the same example in their documentation.
macro_rules! snapshot {
    ($(
        $(#[doc = $about:literal])+
        $(#[derive($($trait:ident),+)])?
        pub struct $struct:ident {
            $($(#[doc = $doc:literal])+ $(#[field($($key:ident: $value:expr),+)])? pub $name:ident: $type:ty,)+
        }
        $(rust_only { $($(#[$meta:meta])* pub $own:ident: $own_type:ty,)+ })?
    )+) => {
        $(
            $(#[doc = $about])+
            #[doc = ""]
            #[doc = include_str!("snapshot_example.md")]
            #[derive(Debug, Clone, $($($trait),+)?)]
            #[non_exhaustive]
            pub struct $struct {
                $($(#[doc = $doc])+ pub $name: $type,)+
                $($($(#[$meta])* pub $own: $own_type,)+)?
            }

            impl $crate::limiter::schema::Part for $struct {
                const STRUCT: $crate::limiter::schema::Struct = $crate::limiter::schema::Struct {
                    name: stringify!($struct),
                    doc: concat!($($about),+),
                    fields: &[$($crate::limiter::schema::Field {
                        $($($key: $value,)+)?
                        ..$crate::limiter::schema::Field::new::<$type>(
                            stringify!($name),
                            concat!(stringify!($name), "_ns"),
                            concat!($($doc),+),
                        )
                    }),+],
                };

                fn values(&self) -> Vec<&dyn $crate::limiter::schema::FieldValue> {
                    vec![$(&self.$name),+]
                }
            }
        )+

        /// Every struct of a snapshot, the snapshot itself first.
        pub const STRUCTS: &[$crate::limiter::schema::Struct] =
            &[$(<$struct as $crate::limiter::schema::Part>::STRUCT),+];
    };
}
pub(super) use snapshot;
