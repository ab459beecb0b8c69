//! Reads an outcome from Python arguments.

use crate::arguments::{self, Cost, unknown, whole, word, wrong_type};
use crate::errors;
use crate::method::Arguments;
use crate::names::Key;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use shmlimit::{NetError, Outcome, OutcomeClass, Priority, UnknownName};
use std::time::Duration;

/// An outcome, with the Rust values that it borrows from.
pub struct Ended {
    end: End,
    headers: Vec<(String, String)>,
    latency: Option<Duration>,
    attempt: Option<u32>,
    priority: Option<Priority>,
    cost: Vec<(String, u64)>,
}

#[derive(Clone, Copy)]
enum End {
    Status(u16),
    Error(NetError),
}

/// The keywords of `record`. The first one is valid only without a grant, which knows the priority.
const KEYS: &[Key] =
    &[Key::Priority, Key::Status, Key::Error, Key::Headers, Key::Latency, Key::Attempt, Key::Cost];

impl Ended {
    /// Reads the arguments of `record`. `takes_priority` is set if there is no grant that knows the call's priority.
    #[inline]
    pub fn read(py: Python<'_>, arguments: &Arguments<'_, '_>, takes_priority: bool) -> PyResult<Ended> {
        let mut ended = Ended {
            end: End::Status(0),
            headers: Vec::new(),
            latency: None,
            attempt: None,
            priority: None,
            cost: Vec::new(),
        };
        let (mut status, mut error) = (None, None);
        arguments.at_most(1)?;
        if let Some(value) = arguments.first().filter(|value| !value.is_none()) {
            status = Some(status_of(&value)?);
        }
        let takes = if takes_priority { KEYS } else { &KEYS[1..] };
        arguments.keywords(takes, |key, value| {
            match key {
                Key::Status if status.is_some() => {
                    return Err(PyTypeError::new_err("record() got multiple values for argument 'status'"));
                }
                Key::Status => status = Some(status_of(value)?),
                Key::Error => error = Some(error_of(value)?),
                Key::Headers => ended.headers = headers(value)?,
                Key::Latency => ended.latency = Some(arguments::latency(value)?),
                Key::Attempt => ended.attempt = Some(attempt(value)?),
                Key::Cost => {
                    ended.cost = match arguments::cost(value)? {
                        Cost::Requests(count) => vec![("requests".to_owned(), count)],
                        Cost::Units(units) => units,
                    };
                }
                _ => ended.priority = Some(arguments::priority(value)?),
            }
            Ok(())
        })?;
        ended.end = match (status, error) {
            (Some(status), None) => End::Status(status),
            (None, Some(_)) if !ended.headers.is_empty() => {
                return Err(PyTypeError::new_err("record() takes headers only with a status"));
            }
            (None, Some(error)) => End::Error(error),
            _ => return Err(PyTypeError::new_err("record() needs either status or error")),
        };
        if let End::Status(status) = ended.end
            && OutcomeClass::of_status(status).is_none()
        {
            return Err(errors::raised(py, &shmlimit::Error::BadStatus { status }));
        }
        Ok(ended)
    }

    /// Calls `work` with the outcome as the library takes it.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&Outcome<'_>) -> R) -> R {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let cost: Vec<(&str, u64)> =
            self.cost.iter().map(|(unit, amount)| (unit.as_str(), *amount)).collect();
        let mut outcome = match self.end {
            End::Status(status) => Outcome::http(status, &headers),
            End::Error(error) => Outcome::error(error),
        }
        .cost(&cost);
        if let Some(latency) = self.latency {
            outcome = outcome.latency(latency);
        }
        if let Some(attempt) = self.attempt {
            outcome = outcome.attempt(attempt);
        }
        if let Some(priority) = self.priority {
            outcome = outcome.priority(priority);
        }
        work(&outcome)
    }
}

#[inline]
fn status_of(value: &Bound<'_, PyAny>) -> PyResult<u16> {
    // A number that is not a status is passed on. The library refuses it, with its own message.
    let status: i64 = whole("status", value, "100 to 599")?;
    u16::try_from(status).map_err(|_| {
        errors::new(value.py(), "bad_status", format!("{status} is not an HTTP status; use 100 to 599"), None)
    })
}

fn error_of(value: &Bound<'_, PyAny>) -> PyResult<NetError> {
    let text = word("error", value)?;
    text.parse().map_err(|error: UnknownName| unknown(value.py(), "error", &text, error.allowed()))
}

fn attempt(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match whole("attempt", value, "1 or more")? {
        0 => Err(PyValueError::new_err("attempt must be 1 or more, not 0")),
        attempt => Ok(attempt),
    }
}

/// Reads a mapping or an iterable of pairs, of str or bytes.
fn headers(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let wrong = || wrong_type("headers", "a mapping or an iterable of pairs", value);
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    let pairs = match value.getattr_opt(pyo3::intern!(value.py(), "items"))? {
        Some(items) => items.call0()?,
        None => value.clone(),
    };
    let mut headers = Vec::new();
    // An exception that the iterator raises is passed on to the caller. Only a missing iterator is reported here.
    let is_type_error = |error: &PyErr| error.is_instance_of::<PyTypeError>(value.py());
    for pair in pairs.try_iter().map_err(|error| if is_type_error(&error) { wrong() } else { error })? {
        let pair = pair?;
        headers.push(match pair.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => {
                let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
                (text(&name)?, text(&value)?)
            }
            _ => {
                let [name, value]: [Bound<'_, PyAny>; 2] = pair.extract().map_err(|_| wrong())?;
                (text(&name)?, text(&value)?)
            }
        });
    }
    Ok(headers)
}

/// Reads a header's name or value. Servers send bytes of any kind; bytes that are not UTF-8 are replaced, because
/// they have no meaning here.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(String::from_utf8_lossy(bytes.as_bytes()).into_owned());
    }
    Err(wrong_type("headers", "names and values of str or bytes", value))
}
