//! The right to make one call, as a context manager.

use crate::advice::Advice;
use crate::errors;
use crate::limiter::Limiter;
use crate::method::{self, Arguments, Method, OfLimiter, detach_if_busy};
use crate::outcome::Ended;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use shmlimit::OwnedGrant;
use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The right to make one call. It holds a permit until it is recorded, released, cancelled or dropped.
///
/// Use it in a `with` block; leaving the block returns the permit, unless that happened before.
#[pyclass(frozen, module = "shmlimit", weakref)]
pub struct Grant {
    inner: Mutex<Option<OwnedGrant>>,
    limiter: Py<Limiter>,
    delay: f64,
}

impl Grant {
    /// Wraps a grant of the library.
    #[inline]
    pub fn new<'py>(limiter: &Bound<'py, Limiter>, grant: OwnedGrant) -> PyResult<Bound<'py, Grant>> {
        let delay = grant.delay();
        let delay = if delay.is_zero() { 0.0 } else { delay.as_secs_f64() };
        Bound::new(
            limiter.py(),
            Grant { inner: Mutex::new(Some(grant)), limiter: limiter.clone().unbind(), delay },
        )
    }

    fn inner(&self) -> MutexGuard<'_, Option<OwnedGrant>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the grant. If that fails, the grant stays as it was, and the caller can try again. Other threads see it
    /// as done meanwhile. Returns `None` if it is done already.
    #[inline]
    fn end<R: Send>(
        &self,
        py: Python<'_>,
        how: impl FnOnce(&mut OwnedGrant) -> Result<R, shmlimit::Error> + Send,
    ) -> PyResult<Option<R>> {
        // A separate statement releases the mutex: creating an exception may let other threads run, and they must
        // not find it locked.
        let taken = self.inner().take();
        let Some(mut grant) = taken else { return Ok(None) };
        match detach_if_busy(py, grant.is_busy(), || how(&mut grant)) {
            Ok(ended) => Ok(Some(ended)),
            Err(error) => {
                *self.inner() = Some(grant);
                Err(errors::raised(py, &error))
            }
        }
    }
}

impl OfLimiter for Grant {
    #[inline]
    fn limiter_of<'a, 'py>(this: &'a Bound<'py, Grant>) -> &'a Bound<'py, PyAny> {
        this.get().limiter.bind(this.py()).as_any()
    }
}

#[pymethods]
impl Grant {
    /// Seconds to wait before the call, so that a leaky bucket sends calls at even intervals; 0 for all other
    /// rules.
    #[getter]
    fn delay(&self) -> f64 {
        self.delay
    }

    /// Whether it was recorded, released or cancelled.
    #[getter]
    fn done(&self) -> bool {
        self.inner().is_none()
    }

    /// The limiter that granted the call.
    #[getter]
    fn limiter<'py>(&self, py: Python<'py>) -> &Bound<'py, Limiter> {
        self.limiter.bind(py)
    }

    /// A subclass of Limiter may keep its own grant. Python's collector then finds the cycle, and breaks it in the
    /// limiter: without an attribute of its own, a grant needs no `__clear__`.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.limiter)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a grant cannot be pickled: it belongs to the process that acquired it"))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.inner().is_none() { "done" } else { "open" };
        format!("<shmlimit.Grant of {:?}, {state}>", self.limiter.bind(py).get().name())
    }
}

struct Enter;

impl Method for Enter {
    type Class = Grant;
    const NAME: &'static CStr = c"__enter__";
    const DOC: &'static CStr = c"__enter__($self, /)\n--\n\n";

    #[inline]
    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        arguments.none()?;
        Ok(this.clone().into_any())
    }
}

struct Exit;

impl Method for Exit {
    type Class = Grant;
    const NAME: &'static CStr = c"__exit__";
    const DOC: &'static CStr = c"__exit__($self, exc_type=None, exc_value=None, traceback=None, /)\n--\n\n";

    #[inline]
    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        arguments.at_most(3)?;
        let py = this.py();
        this.get().end(py, OwnedGrant::try_release)?;
        Ok(py.None().into_bound(py))
    }
}

struct Release;

impl Method for Release {
    type Class = Grant;
    const NAME: &'static CStr = c"release";
    const DOC: &'static CStr =
        c"release($self, /)\n--\n\nEnds the call without an outcome: returns the permit.";

    #[inline]
    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        arguments.none()?;
        let py = this.py();
        this.get().end(py, OwnedGrant::try_release)?.ok_or_else(|| errors::grant_done(py))?;
        Ok(py.None().into_bound(py))
    }
}

struct Cancel;

impl Method for Cancel {
    type Class = Grant;
    const NAME: &'static CStr = c"cancel";
    const DOC: &'static CStr =
        c"cancel($self, /)\n--\n\nEnds a call that was never sent: returns the permit, and \
                                 returns to every rule what that rule can still take back.";

    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        arguments.none()?;
        let py = this.py();
        this.get().end(py, OwnedGrant::try_cancel)?.ok_or_else(|| errors::grant_done(py))?;
        Ok(py.None().into_bound(py))
    }
}

struct Record;

impl Method for Record {
    type Class = Grant;
    const NAME: &'static CStr = c"record";
    const DOC: &'static CStr = c"record($self, status=None, *, error=None, headers=None, latency=None, attempt=None, \
                                 cost=None)\n--\n\nEnds the call and records its outcome for all programs that share \
                                 the limiter; returns the permit. The result says\nwhether to try again, and after \
                                 how many seconds.\n\nstatus: the HTTP status, or error: \"connect_timeout\", \
                                 \"read_timeout\", \"dns\" or \"connection\".\nheaders: those of the response, as a \
                                 mapping or pairs; Retry-After is obeyed.\nlatency: how long the call took, in \
                                 seconds or as a timedelta. attempt: number of the attempt, from 1.\ncost: what it \
                                 really cost, by unit.\n\nAfter an error the grant is unchanged: record it with other \
                                 arguments, or release it.";

    #[inline]
    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let ended = Ended::read(py, arguments, false)?;
        let recorded = this.get().end(py, |grant| ended.with(|outcome| grant.try_record(outcome)))?;
        let limiter = this.get().limiter.bind(py).get();
        match recorded.ok_or_else(|| errors::grant_done(py))? {
            Some(recorded) => {
                let handle = if recorded.transitions.is_empty() { None } else { limiter.handle(py).ok() };
                Ok(Bound::new(py, Advice::new(recorded, handle.as_ref()))?.into_any())
            }
            None => Err(errors::closed(py, limiter.name())),
        }
    }
}

struct Note;

impl Method for Note {
    type Class = Grant;
    const NAME: &'static CStr = c"_note";
    const DOC: &'static CStr = c"_note($self, status=None, *, error=None, headers=None, latency=None, attempt=None, \
                                 cost=None)\n--\n\nAs record(), but the call goes on: the permit is held until the \
                                 grant is released. No cost is settled.";

    fn call<'py>(this: &Bound<'py, Grant>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let ended = Ended::read(py, arguments, false)?;
        let taken = this.get().inner().take();
        let grant = taken.ok_or_else(|| errors::grant_done(py))?;
        let noted = detach_if_busy(py, grant.is_busy(), || ended.with(|outcome| grant.note(outcome)));
        *this.get().inner() = Some(grant);
        let limiter = this.get().limiter.bind(py).get();
        match noted.map_err(|error| errors::raised(py, &error))? {
            Some(noted) => {
                let handle = if noted.transitions.is_empty() { None } else { limiter.handle(py).ok() };
                Ok(Bound::new(py, Advice::new(noted, handle.as_ref()))?.into_any())
            }
            None => Err(errors::closed(py, limiter.name())),
        }
    }
}

/// Adds the methods that are called often.
pub fn add_methods(py: Python<'_>) -> PyResult<()> {
    method::add::<Enter>(py)?;
    method::add::<Exit>(py)?;
    method::add::<Release>(py)?;
    method::add::<Cancel>(py)?;
    method::add::<Record>(py)?;
    method::add::<Note>(py)
}
