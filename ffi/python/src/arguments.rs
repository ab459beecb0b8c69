//! Reads the arguments of Python callers. An invalid argument raises an exception with the argument's name.

use crate::errors;
use crate::method::Arguments;
use crate::names::{Key, MISMATCHES, Names};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyMapping, PyString};
use shmlimit::config::nearest;
use shmlimit::{OnMismatch, Priority, Request, UnknownName};
use std::time::{Duration, SystemTime};

/// A request, with the Rust values that it borrows from.
#[derive(Default)]
pub struct ParsedRequest {
    pub requests: Option<u64>,
    pub units: Vec<(String, u64)>,
    pub priority: Priority,
    pub timeout: Option<Duration>,
    pub deadline: Option<SystemTime>,
}

const TRY_ACQUIRE_KEYS: &[Key] = &[Key::Cost, Key::Priority];
const ACQUIRE_KEYS: &[Key] = &[Key::Cost, Key::Priority, Key::Timeout, Key::Deadline];

impl ParsedRequest {
    /// Reads the keywords of `acquire` (`waits`), or those of `try_acquire`, which has no timeout and no deadline.
    #[inline]
    pub fn read(arguments: &Arguments<'_, '_>, waits: bool) -> PyResult<ParsedRequest> {
        arguments.at_most(0)?;
        let mut asked = ParsedRequest::default();
        arguments.keywords(if waits { ACQUIRE_KEYS } else { TRY_ACQUIRE_KEYS }, |key, value| {
            match key {
                Key::Cost => match cost(value)? {
                    Cost::Requests(count) => asked.requests = Some(count),
                    Cost::Units(units) => asked.units = units,
                },
                Key::Priority => asked.priority = priority(value)?,
                Key::Timeout => asked.timeout = timeout(value)?,
                _ => asked.deadline = deadline(value)?,
            }
            Ok(())
        })?;
        Ok(asked)
    }

    /// The request as the library takes it.
    #[inline]
    pub fn request(&self) -> Request<'_> {
        let mut request = Request::new().priority(self.priority);
        if let Some(requests) = self.requests {
            request = request.cost("requests", requests);
        }
        for (unit, amount) in &self.units {
            request = request.cost(unit, *amount);
        }
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        if let Some(deadline) = self.deadline {
            request = request.deadline(deadline);
        }
        request
    }
}

/// The cost of a call.
pub enum Cost {
    /// A number of requests.
    Requests(u64),
    /// An amount of each unit.
    Units(Vec<(String, u64)>),
}

/// Reads a whole number, or a mapping of units to whole numbers.
pub fn cost(value: &Bound<'_, PyAny>) -> PyResult<Cost> {
    if value.is_instance_of::<PyInt>() {
        return amount("cost", value).map(Cost::Requests);
    }
    let Ok(units) = value.cast::<PyMapping>() else {
        return Err(wrong_type("cost", "a whole number or a mapping of units to whole numbers", value));
    };
    let mut costs = Vec::new();
    for item in units.items()?.iter() {
        let (unit, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        if !unit.is_instance_of::<PyString>() {
            return Err(wrong_type("cost", "keyed by the names of units", &unit));
        }
        let unit = word("a unit of cost", &unit)?;
        costs.push((amount(&format!("cost[{unit:?}]"), &value)?, unit));
    }
    Ok(Cost::Units(costs.into_iter().map(|(amount, unit)| (unit, amount)).collect()))
}

/// Reads a whole number that is not negative.
pub fn amount(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole(name, value, "0 or more, and less than 2 ** 64")
}

/// Reads a whole number of a Rust integer type.
pub fn whole<'a, 'py, T>(name: &str, value: &'a Bound<'py, PyAny>, bounds: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            PyValueError::new_err(format!("{name} must be {bounds}, not {}", shown(value)))
        } else {
            wrong_type(name, "a whole number", value)
        }
    })
}

/// Reads one of the three priorities.
#[inline]
pub fn priority(value: &Bound<'_, PyAny>) -> PyResult<Priority> {
    match Names::get(value.py()).priority(value) {
        Some(priority) => Ok(priority),
        None => {
            let text = word("priority", value)?;
            text.parse().map_err(|_: UnknownName| unknown_priority(value.py(), &text))
        }
    }
}

/// Reads what to do if the limiter exists with other settings.
pub fn mismatch(value: &Bound<'_, PyAny>) -> PyResult<OnMismatch> {
    let text = word("on_mismatch", value)?;
    let found = MISMATCHES.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, action)| *action)
        .ok_or_else(|| unknown(value.py(), "on_mismatch", &text, &MISMATCHES.map(|(name, _)| name)))
}

/// Reads an argument that must be a string.
pub fn word(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => match text.to_cow() {
            Ok(text) => Ok(text.into_owned()),
            Err(_) => Err(PyValueError::new_err(format!("{name} must be text, without surrogates"))),
        },
        Err(_) => Err(wrong_type(name, "a str", value)),
    }
}

/// Reads a timeout; `None` means no timeout.
pub fn timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    let seconds = seconds("timeout", value)?;
    Ok(if seconds.is_infinite() { None } else { Some(duration("timeout", seconds)?) })
}

/// Reads the length of a pause; `None` means that it lasts until the limiter is resumed.
pub fn pause_length(value: &Bound<'_, PyAny>) -> PyResult<Option<Duration>> {
    let seconds = seconds("duration", value)?;
    Ok(if seconds.is_infinite() { None } else { Some(duration("duration", seconds)?) })
}

/// Reads the deadline of a call; `None` means no deadline.
fn deadline(value: &Bound<'_, PyAny>) -> PyResult<Option<SystemTime>> {
    point_in_time("deadline", value)
}

/// Reads a moment, which must be finite.
pub fn moment(name: &str, value: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    point_in_time(name, value)?.ok_or_else(|| PyValueError::new_err(format!("{name} must be finite")))
}

/// Reads a moment; `None` means a moment that never comes.
fn point_in_time(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<SystemTime>> {
    let wanted = "an aware datetime or seconds since the epoch";
    let seconds: f64 = if is_number(value) {
        number(name, value)?
    } else {
        let Some(time) = value.getattr_opt("timestamp")? else {
            return Err(wrong_type(name, wanted, value));
        };
        if value.getattr("tzinfo").is_ok_and(|zone| zone.is_none()) {
            let problem =
                "must be an aware datetime, such as datetime.now(timezone.utc): this one has no time zone";
            return Err(PyValueError::new_err(format!("{name} {problem}")));
        }
        time.call0()?.extract().map_err(|_| wrong_type(name, wanted, value))?
    };
    if seconds.is_nan() {
        return Err(PyValueError::new_err(format!("{name} must not be NaN")));
    }
    if seconds == f64::INFINITY {
        return Ok(None);
    }
    // A moment before 1970 has passed, whatever its distance.
    Ok(SystemTime::UNIX_EPOCH.checked_add(duration(name, seconds.max(0.0))?))
}

/// Reads the latency of a call.
pub fn latency(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    passing("latency", value)
}

/// Reads a length of time, which must be finite.
pub fn passing(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds = seconds(name, value)?;
    if seconds.is_infinite() {
        return Err(PyValueError::new_err(format!("{name} must be finite")));
    }
    duration(name, seconds)
}

/// Reads seconds from a number or a `timedelta`; negative numbers and NaN are invalid.
fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let wrong = || wrong_type(name, "seconds or a timedelta", value);
    let seconds: f64 = if is_number(value) {
        number(name, value)?
    } else {
        let time = value.getattr_opt("total_seconds")?.ok_or_else(wrong)?;
        time.call0()?.extract().map_err(|_| wrong())?
    };
    if seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err(PyValueError::new_err(format!("{name} must be 0 or more, not {}", shown(value))))
    }
}

fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{name} is too far in the future: {seconds} seconds")))
}

/// Reads a number as a float. Some whole numbers are too large for a float.
fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| PyValueError::new_err(format!("{name} is too far in the future")))
}

fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>()
}

/// The value of a setting as the text of a configuration file.
pub fn setting(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if let Ok(number) = value.cast::<PyFloat>()
        && !number.value().is_finite()
    {
        return Err(PyValueError::new_err(format!("{name} must be finite, not {value}")));
    }
    if is_number(value) {
        return Ok(value.str()?.to_cow()?.into_owned());
    }
    if value.is_none() {
        let problem = format!(
            "{name} must be a str, an int, a float or a bool, not None; to remove a limit, give \"unlimited\" where the setting \
             has that value"
        );
        return Err(PyTypeError::new_err(problem));
    }
    Err(wrong_type(name, "a str, an int, a float or a bool", value))
}

/// The error for a string that is not one of the allowed names.
#[cold]
pub fn unknown(py: Python<'_>, name: &str, given: &str, known: &[&str]) -> PyErr {
    let problem =
        format!("{name} must be one of {}, not {given:?}{}", known.join(", "), suggestion(given, known));
    errors::new(py, "bad_value", problem, None)
}

/// The error for an unknown priority: the priorities in the order in which calls are served.
#[cold]
fn unknown_priority(py: Python<'_>, given: &str) -> PyErr {
    let problem = format!(
        "priority must be one of webhook (a server waits for the answer), user (a person waits), background (the default), \
         most urgent first, not {given:?}{}",
        suggestion(given, &Priority::ALL.map(Priority::as_str))
    );
    errors::new(py, "bad_value", problem, None)
}

fn suggestion(given: &str, known: &[&str]) -> String {
    let near = nearest(given, known.iter().copied());
    near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}

/// The error for a value of the wrong type.
#[cold]
pub fn wrong_type(name: &str, wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let given = value.get_type().qualname().map_or_else(|_| "that".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {wanted}, not {given}"))
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "that".to_owned(), |text| text.to_string())
}
