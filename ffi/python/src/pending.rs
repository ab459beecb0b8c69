//! A call that waits, moved on by an event loop.

use crate::errors;
use crate::grant::Grant;
use crate::limiter::Limiter;
use crate::method::detach_if_busy;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use shmlimit::Step;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call in the queue. Whoever has the clock steps it on; letting go of it leaves the queue.
#[pyclass(frozen, module = "shmlimit._shmlimit")]
pub struct PendingAcquire {
    inner: Mutex<Option<shmlimit::PendingAcquire>>,
    limiter: Py<Limiter>,
}

impl PendingAcquire {
    /// A call that has not asked yet.
    pub fn new(limiter: &Bound<'_, Limiter>, waiting: shmlimit::PendingAcquire) -> PendingAcquire {
        PendingAcquire { inner: Mutex::new(Some(waiting)), limiter: limiter.clone().unbind() }
    }

    fn inner(&self) -> MutexGuard<'_, Option<shmlimit::PendingAcquire>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PendingAcquire {
    /// Looks whether it is this call's turn: the grant, or seconds to let pass before looking again.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let limiter = self.limiter.bind(py);
        let waiting = self.inner().take();
        let waiting = waiting.ok_or_else(|| PyRuntimeError::new_err("this call does not wait any more"))?;
        let handle = limiter.get().handle(py)?;
        match detach_if_busy(py, handle.is_busy(), || waiting.step()) {
            Ok(Step::Granted(grant)) => Ok(Grant::new(limiter, grant)?.into_any()),
            Ok(Step::Sleep(later, time)) => {
                *self.inner() = Some(later);
                Ok(time.as_secs_f64().into_pyobject(py)?.into_any())
            }
            Err(error) => Err(errors::not_acquired(py, &handle, &error)),
        }
    }

    /// Leaves the queue, if it is in it.
    fn cancel(&self, py: Python<'_>) {
        let waiting = self.inner().take();
        if waiting.is_some() {
            py.detach(|| drop(waiting));
        }
    }
}
