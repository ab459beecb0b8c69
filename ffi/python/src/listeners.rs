//! The callbacks `on_wait` and `on_refused`, which `python/shmlimit/_callbacks.py` calls.

use crate::arguments::ParsedRequest;
use crate::errors;
use crate::events;
use crate::limiter::Limiter;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use shmlimit::AcquireError;
use std::time::Duration;

/// The exception for a refused call. The callback is called before.
#[cold]
pub fn refused(this: &Bound<'_, Limiter>, handle: &shmlimit::Limiter, error: &AcquireError) -> PyErr {
    let py = this.py();
    let raised = errors::not_acquired(py, handle, error);
    if let AcquireError::Refused(_) = error
        && let Err(other) = tell(this, "on_refused", || Ok(raised.value(py).clone().into_any()))
    {
        return other;
    }
    events::deliver(this).err().unwrap_or(raised)
}

/// Calls `on_wait` at most once for a call that waits.
#[derive(Clone, Copy)]
pub struct WaitNotice {
    /// The time that had passed on the test clock before the call. Such a clock moves instead of letting the call
    /// sleep.
    elapsed: Option<Duration>,
    notified: bool,
}

impl WaitNotice {
    /// The notice of a call that does not wait yet.
    pub fn new(limiter: &Limiter) -> WaitNotice {
        WaitNotice { elapsed: limiter.clock_elapsed(), notified: false }
    }

    /// The call waits: calls `on_wait`.
    pub fn waits(&mut self, this: &Bound<'_, Limiter>, asked: &ParsedRequest) -> PyResult<()> {
        if std::mem::replace(&mut self.notified, true) {
            return Ok(());
        }
        tell(this, "on_wait", || wait_notice(asked, this))
    }

    /// The call has ended. On a test clock it may have waited although `waits` was not called.
    pub fn ends(&mut self, this: &Bound<'_, Limiter>, asked: &ParsedRequest) -> PyResult<()> {
        if this.get().clock_elapsed() > self.elapsed { self.waits(this, asked) } else { Ok(()) }
    }
}

/// The request as Python's `WaitNotice`.
fn wait_notice<'py>(asked: &ParsedRequest, limiter: &Bound<'py, Limiter>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = limiter.py();
    let cost = PyDict::new(py);
    cost.set_item("requests", asked.requests.unwrap_or(1))?;
    for (unit, amount) in &asked.units {
        cost.set_item(unit, amount)?;
    }
    let timeout = asked.timeout.map(|timeout| timeout.as_secs_f64());
    let notice = (limiter.get().name(), asked.priority.as_str(), cost, timeout);
    CLASS.import(py, "shmlimit", "WaitNotice")?.call1(notice)
}

/// Whether any callback is set.
pub fn has_callbacks(this: &Bound<'_, Limiter>) -> PyResult<bool> {
    Ok(!this.getattr(pyo3::intern!(this.py(), "_callbacks"))?.is_none())
}

/// Calls a callback, if it is set.
fn tell<'py>(
    this: &Bound<'py, Limiter>,
    name: &str,
    argument: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let callbacks = this.getattr(pyo3::intern!(this.py(), "_callbacks"))?;
    if callbacks.is_none() {
        return Ok(());
    }
    callbacks.call_method1(name, (argument()?,)).map(drop)
}
