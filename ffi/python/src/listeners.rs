//! The callbacks `on_wait` and `on_refused`, which `python/shmlimit/_callbacks.py` calls.

use crate::arguments::ParsedRequest;
use crate::errors;
use crate::events;
use crate::limiter::Limiter;
use pyo3::prelude::*;
use shmlimit::AcquireError;
use std::time::Duration;

/// The exception for a call that may not be made, after the callback has been told.
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

/// Tells `on_wait` once of a call that waits.
#[derive(Clone, Copy)]
pub struct WaitNotice {
    /// What a test clock showed before; it moves instead of letting a call sleep.
    elapsed: Option<Duration>,
    told: bool,
}

impl WaitNotice {
    /// A call that does not wait yet.
    pub fn new(limiter: &Limiter) -> WaitNotice {
        WaitNotice { elapsed: limiter.clock_elapsed(), told: false }
    }

    /// The call waits.
    pub fn waits(&mut self, this: &Bound<'_, Limiter>, asked: &ParsedRequest) -> PyResult<()> {
        if std::mem::replace(&mut self.told, true) {
            return Ok(());
        }
        tell(this, "on_wait", || asked.wait_notice(this))
    }

    /// The call is over. On a test clock it may have waited all the same.
    pub fn ends(&mut self, this: &Bound<'_, Limiter>, asked: &ParsedRequest) -> PyResult<()> {
        if this.get().clock_elapsed() > self.elapsed { self.waits(this, asked) } else { Ok(()) }
    }
}

/// Whether any callback is set.
pub fn has_callbacks(this: &Bound<'_, Limiter>) -> PyResult<bool> {
    Ok(!this.getattr(pyo3::intern!(this.py(), "_callbacks"))?.is_none())
}

/// Calls a callback, if there is one.
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
