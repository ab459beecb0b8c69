//! One value as it was given, and its conversion for a kind of key.

use super::kind::Kind;
use crate::quantity;

/// A value as given, by its form.
#[derive(Clone, Debug)]
pub(crate) enum Given<'g> {
    /// A text in quotes in a file.
    Text(&'g str),
    /// A whole number in a file.
    Int(i64),
    /// A number with a point in a file.
    Float(f64),
    /// True or false in a file.
    Truth(bool),
    /// Text from a command line or the environment, where values have no types.
    Bare(&'g str),
    /// A form that no key accepts, in words.
    Other(String),
}

/// The converted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number in the unit of the stored setting.
    Number(u64),
    Truth(bool),
    Word(String),
    /// The value means "not set".
    Nothing,
}

impl Given<'_> {
    /// The value as it was given, for messages.
    pub fn shown(&self) -> String {
        match self {
            Given::Text(text) => format!("{text:?}"),
            Given::Int(number) => number.to_string(),
            Given::Float(number) => format!("{number:?}"),
            Given::Truth(truth) => truth.to_string(),
            Given::Bare(text) => text.escape_debug().to_string(),
            Given::Other(what) => what.clone(),
        }
    }

    /// The digits of a number.
    fn digits(&self) -> Option<String> {
        match self {
            Given::Int(number) => Some(number.to_string()),
            // The shortest decimal that reads as the same float is the one that was written.
            Given::Float(number) => Some(number.to_string()),
            Given::Bare(text) => Some(text.trim().to_owned()),
            _ => None,
        }
    }

    fn word(&self) -> Option<&str> {
        match self {
            Given::Text(text) => Some(text),
            Given::Bare(text) => Some(text.trim()),
            _ => None,
        }
    }
}

impl Kind {
    /// Converts a value of this kind. The validation of the whole policy checks the range.
    pub(crate) fn read(&self, given: &Given<'_>) -> Result<Value, String> {
        let wanted = || format!("must be {}", self.range());
        match *self {
            Kind::Name => match given.word() {
                Some(word) => Ok(Value::Word(word.to_owned())),
                None => Err("must be a string in quotes".to_owned()),
            },
            Kind::Choice(words) => match given.word() {
                Some(word) if words.contains(&word) => Ok(Value::Word(word.to_owned())),
                Some(_) => Err(wanted()),
                None => Err(format!("must be a string in quotes: {}", self.range())),
            },
            Kind::Truth => match (given, given.word()) {
                (Given::Truth(truth), _) => Ok(Value::Truth(*truth)),
                (Given::Bare(_), Some("true")) => Ok(Value::Truth(true)),
                (Given::Bare(_), Some("false")) => Ok(Value::Truth(false)),
                _ => Err(wanted()),
            },
            Kind::Permits { .. } if given.word() == Some("unlimited") => Ok(Value::Nothing),
            Kind::Rate { auto: true } if given.word() == Some("auto") => Ok(Value::Nothing),
            Kind::Rate { auto: true } if given.digits().is_some_and(|digits| is_zero(&digits)) => {
                Err(wanted())
            }
            Kind::Whole { .. } | Kind::Permits { .. } => self.whole(given),
            Kind::Part { .. } | Kind::Factor { .. } => {
                let digits = given.digits().ok_or_else(|| format!("{}, without quotes", wanted()))?;
                quantity::decimal(&digits, 6, &self.range()).map(Value::Number)
            }
            Kind::Rate { .. } => {
                // Quotes allow more digits than a float has.
                let digits = given.digits().or_else(|| given.word().map(str::to_owned)).ok_or_else(wanted)?;
                quantity::decimal(&digits, 9, &self.range()).map(Value::Number)
            }
            Kind::Length { .. } => {
                let text = given.digits().or_else(|| given.word().map(str::to_owned));
                let text = text.ok_or_else(quantity::not_a_duration)?;
                let duration = quantity::duration(&text)?;
                // The duration was read from this number of nanoseconds, so it fits.
                Ok(Value::Number(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
            }
        }
    }

    fn whole(&self, given: &Given<'_>) -> Result<Value, String> {
        let digits = match given {
            Given::Float(_) => None,
            // Text in any notation of an amount. A number that is too large is handled below.
            Given::Bare(text) => match quantity::amount(text) {
                Ok(amount) => Some(amount.to_string()),
                Err(_) => given.digits().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())),
            },
            given => given.digits().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())),
        };
        match digits.filter(|digits| !digits.is_empty()) {
            None => Err(format!("must be a whole number: {}", self.range())),
            Some(digits) => {
                digits.parse().map(Value::Number).map_err(|_| format!("must be {}", self.range()))
            }
        }
    }
}

fn is_zero(digits: &str) -> bool {
    digits.contains('0') && digits.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}
