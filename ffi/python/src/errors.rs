//! Converts failures and refusals to Python's exceptions, which `python/shmlimit/_errors.py` defines.

use crate::remedies;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use shmlimit::{AcquireError, Error, Limiter, Reason, Refusal};
use std::time::Duration;

static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static CONFIG_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static REFUSED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static BLOCKED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The codes of errors that arise in this module, beside those of the library.
const OWN_CODES: [&str; 4] = ["closed", "grant_done", "in_use", "refused"];

/// Every code that an exception can have.
pub fn codes() -> Vec<&'static str> {
    Error::CODES.into_iter().chain(OWN_CODES).collect()
}

const MODULE: &str = "shmlimit._errors";

/// Imports the exception classes early, because an interpreter that is shutting down has no modules any more.
pub fn load(py: Python<'_>) -> PyResult<()> {
    let classes =
        [(&ERROR, "Error"), (&CONFIG_ERROR, "ConfigError"), (&REFUSED, "Refused"), (&BLOCKED, "Blocked")];
    for (class, name) in classes {
        class.import(py, MODULE, name)?;
    }
    Ok(())
}

/// The exception for an error of the library.
#[cold]
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    new(py, error.code(), remedies::message(error), error.errno())
}

/// An exception with one of the stable codes.
#[cold]
pub fn new(py: Python<'_>, code: &'static str, message: String, errno: Option<i32>) -> PyErr {
    let is_config = matches!(
        code,
        "bad_name"
            | "config"
            | "policy"
            | "config_mismatch"
            | "environment"
            | "does_not_fit"
            | "unknown_unit"
            | "bad_status"
            | "bad_value"
            | "no_such_state"
    );
    let class = if is_config {
        CONFIG_ERROR.import(py, MODULE, "ConfigError")
    } else {
        ERROR.import(py, MODULE, "Error")
    };
    match class.and_then(|class| class.call1((message, code, errno))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The exception for a limiter that was not removed because these programs use it.
#[cold]
pub fn in_use(py: Python<'_>, name: &str, users: &[(u32, String)]) -> PyErr {
    let users: Vec<_> = users.iter().map(|(pid, program)| format!("{program} (process {pid})")).collect();
    let message = format!(
        "limiter {name:?} is in use by {}; close it there, or remove it anyway with remove(force=True)",
        users.join(", ")
    );
    new(py, "in_use", message, None)
}

/// The exception for a closed handle.
#[cold]
pub fn closed(py: Python<'_>, name: &str) -> PyErr {
    new(py, "closed", format!("limiter {name:?} was closed; open it again"), None)
}

/// The exception for a grant that has ended.
#[cold]
pub fn grant_done(py: Python<'_>) -> PyErr {
    let message = "this grant has ended: it was already recorded, released or cancelled".to_owned();
    new(py, "grant_done", message, None)
}

/// The exception for a refused call.
#[cold]
pub fn not_acquired(py: Python<'_>, limiter: &Limiter, error: &AcquireError) -> PyErr {
    match error {
        AcquireError::Failed(error) => raised(py, error),
        AcquireError::Refused(refusal) => match refused(py, limiter, refusal) {
            Ok(error) | Err(error) => error,
        },
    }
}

fn refused(py: Python<'_>, limiter: &Limiter, refusal: &Refusal) -> PyResult<PyErr> {
    let reason = refusal.reason();
    let blocked = matches!(reason, Reason::Sleep | Reason::CacheOnly | Reason::Open | Reason::RetryAfter);
    let rule = refusal.rule().and_then(|i| limiter.rule_name(i));
    let message = format!("{}: {refusal}{}", limiter.name(), details(py, limiter, reason));
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let (retry_after, ready_after) = (seconds(refusal.retry_after()), seconds(refusal.ready_after()));
    let common = (message, limiter.name(), reason.as_str(), rule, retry_after, ready_after);
    let raised = if blocked {
        let (message, name, reason, rule, retry_after, ready_after) = common;
        let all = (message, name, reason, rule, retry_after, ready_after, seconds(refusal.eta()));
        BLOCKED.import(py, MODULE, "Blocked")?.call1(all)?
    } else {
        REFUSED.import(py, MODULE, "Refused")?.call1(common)?
    };
    Ok(PyErr::from_value(raised))
}

/// The program that paused the limiter, and its reason. The pause may have ended since the refusal; then there is nothing to
/// add. Only a pause is worth a snapshot: other refusals are common, and must stay cheap.
fn details(py: Python<'_>, limiter: &Limiter, reason: Reason) -> String {
    if reason != Reason::Paused {
        return String::new();
    }
    let Ok(now) = py.detach(|| limiter.snapshot()) else { return String::new() };
    let Some(pause) = now.paused else { return String::new() };
    let reason =
        pause.reason.map_or_else(|| "no reason given".to_owned(), |reason| format!("reason: {reason}"));
    format!(" (paused by {}, process {}; {reason})", pause.program, pause.pid)
}
