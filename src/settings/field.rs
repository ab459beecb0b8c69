//! One setting, by the type in which it is stored.

use super::Mode;
use super::kind::Kind;
use super::value::Value;
use crate::headers::HeaderFormat;
use crate::quantity;
use shmlimit_kernel::policy::{BreakerKind, HeaderCode, Jitter, PerSecond, WindowKind};
use shmlimit_kernel::{Algorithm, BurstMode, Fairness};
use std::time::Duration;

/// One setting, by the type in which it is stored.
pub(crate) enum Field<'s> {
    Whole(&'s mut u64),
    Small(&'s mut u32),
    Maybe(&'s mut Option<u64>),
    Length(&'s mut Duration),
    MaybeLength(&'s mut Option<Duration>),
    Rate(&'s mut PerSecond),
    Truth(&'s mut bool),
    Name(&'s mut Option<String>),
    Choice(&'s mut dyn Choice),
}

/// A type that can store a setting.
pub(crate) trait Kept {
    /// The setting in this place.
    fn field(&mut self) -> Field<'_>;
}

/// A setting with a fixed set of words.
pub(crate) trait Choice {
    /// The word of the current choice; `None` if nothing was chosen.
    fn word(&self) -> Option<&'static str>;
    /// Chooses by word. Returns whether the word is valid.
    fn choose(&mut self, word: &str) -> bool;
}

macro_rules! kept {
    ($($type:ty => $variant:ident,)*) => {$(
        impl Kept for $type {
            fn field(&mut self) -> Field<'_> {
                Field::$variant(self)
            }
        }
    )*};
}

kept! {
    u64 => Whole,
    u32 => Small,
    Option<u64> => Maybe,
    Duration => Length,
    Option<Duration> => MaybeLength,
    PerSecond => Rate,
    bool => Truth,
    Option<String> => Name,
}

macro_rules! choices {
    ($($type:ty: $word:expr, $parse:expr;)*) => {$(
        impl Choice for $type {
            fn word(&self) -> Option<&'static str> {
                let word: fn($type) -> Option<&'static str> = $word;
                word(*self)
            }
            fn choose(&mut self, word: &str) -> bool {
                let parse: fn(&str) -> Option<$type> = $parse;
                parse(word).map(|choice| *self = choice).is_some()
            }
        }
        kept! { $type => Choice, }
    )*};
}

choices! {
    Algorithm: |it| Some(it.as_str()), |word| word.parse().ok();
    Option<BurstMode>: |it| it.map(BurstMode::as_str), |word| word.parse().ok().map(Some);
    BreakerKind: |it| Some(it.as_str()), |word| word.parse().ok();
    Fairness: |it| Some(it.as_str()), |word| word.parse().ok();
    Option<HeaderCode>: |it| Some(HeaderFormat::of(it?)?.as_str()), |word| Some(Some(word.parse::<HeaderFormat>().ok()?.code()));
    Jitter: |it| Some(it.as_str()), |word| word.parse().ok();
    Mode: |it| Some(it.as_str()), |word| word.parse().ok();
    WindowKind: |it| Some(it.as_str()), |word| word.parse().ok();
}

impl Field<'_> {
    /// Stores a value. Fails if the value does not fit.
    pub fn put(self, value: Value) -> Result<(), ()> {
        match (self, value) {
            (Field::Whole(field), Value::Number(number)) => *field = number,
            (Field::Small(field), Value::Number(number)) => *field = u32::try_from(number).map_err(drop)?,
            (Field::Maybe(field), Value::Number(number)) => *field = Some(number),
            (Field::Maybe(field), Value::Nothing) => *field = None,
            (Field::Length(field), Value::Number(number)) => *field = Duration::from_nanos(number),
            (Field::MaybeLength(field), Value::Number(number)) => *field = Some(Duration::from_nanos(number)),
            (Field::Rate(field), Value::Number(number)) => *field = PerSecond(number),
            (Field::Rate(field), Value::Nothing) => *field = PerSecond(0),
            (Field::Truth(field), Value::Truth(truth)) => *field = truth,
            (Field::Name(field), Value::Word(word)) => *field = Some(word),
            (Field::Choice(field), Value::Word(word)) => return field.choose(&word).then_some(()).ok_or(()),
            _ => return Err(()),
        }
        Ok(())
    }

    /// The value as people write it; `None` if it is not set.
    pub fn text(&self, kind: Kind) -> Option<String> {
        let number = |number: u64| match kind {
            Kind::Part { .. } | Kind::Factor { .. } => quantity::written(number, 6),
            _ => number.to_string(),
        };
        match self {
            Field::Whole(field) => Some(number(**field)),
            Field::Small(field) => Some(number(u64::from(**field))),
            Field::Maybe(None) if matches!(kind, Kind::Permits { .. }) => Some("unlimited".to_owned()),
            Field::Maybe(field) => field.map(number),
            Field::Length(field) => Some(quantity::span(**field)),
            Field::MaybeLength(field) => field.map(quantity::span),
            Field::Rate(PerSecond(0)) => Some("auto".to_owned()),
            Field::Rate(field) => Some(quantity::written(field.0, 9)),
            Field::Truth(field) => Some(field.to_string()),
            Field::Name(field) => field.as_ref().cloned(),
            Field::Choice(field) => field.word().map(str::to_owned),
        }
    }
}
