//! A waiting call that an event loop moves on.

use crate::arguments::ParsedRequest;
use crate::events;
use crate::grant::Grant;
use crate::limiter::Limiter;
use crate::listeners::{self, WaitNotice};
use crate::method::detach_if_busy;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use shmlimit::Step;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call in the queue. The event loop calls step() at the right times. Dropping it leaves the queue.
#[pyclass(frozen, module = "shmlimit._shmlimit")]
pub struct EnqueuedCall {
    inner: Mutex<Option<shmlimit::PendingAcquire>>,
    limiter: Py<Limiter>,
    asked: ParsedRequest,
    notice: Mutex<WaitNotice>,
}

impl EnqueuedCall {
    /// A call that has not entered the queue yet.
    pub fn new(
        limiter: &Bound<'_, Limiter>,
        waiting: shmlimit::PendingAcquire,
        asked: ParsedRequest,
    ) -> EnqueuedCall {
        let notice = Mutex::new(WaitNotice::new(limiter.get()));
        EnqueuedCall { inner: Mutex::new(Some(waiting)), limiter: limiter.clone().unbind(), asked, notice }
    }

    /// Runs `work` with the notice for `on_wait`. The notice is not locked meanwhile, because the callback may do
    /// anything.
    fn notice(&self, work: impl FnOnce(&mut WaitNotice) -> PyResult<()>) -> PyResult<()> {
        let lock = || self.notice.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notice = *lock();
        let stepped = work(&mut notice);
        *lock() = notice;
        stepped
    }

    fn inner(&self) -> MutexGuard<'_, Option<shmlimit::PendingAcquire>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl EnqueuedCall {
    /// Checks whether it is this call's turn. Returns the grant, or the seconds to wait before the next check.
    fn step<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let limiter = self.limiter.bind(py);
        let waiting = self.inner().take();
        let waiting = waiting.ok_or_else(|| PyRuntimeError::new_err("this call no longer waits"))?;
        let handle = limiter.get().handle(py)?;
        let stepped = detach_if_busy(py, handle.is_busy(), || waiting.step());
        events::deliver(limiter)?;
        self.notice(|notice| notice.ends(limiter, &self.asked))?;
        match stepped {
            Ok(Step::Granted(grant)) => Ok(Grant::new(limiter, grant)?.into_any()),
            Ok(Step::Sleep(later, time)) => {
                *self.inner() = Some(later);
                self.notice(|notice| notice.waits(limiter, &self.asked))?;
                Ok(time.as_secs_f64().into_pyobject(py)?.into_any())
            }
            Err(error) => Err(listeners::refused(limiter, &handle, &error)),
        }
    }

    /// As that of `Grant`: the limiter may keep its own waiting call.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.limiter)
    }

    /// Leaves the queue, if the call is in it.
    fn cancel(&self, py: Python<'_>) {
        let waiting = self.inner().take();
        if waiting.is_some() {
            py.detach(|| drop(waiting));
        }
    }
}
