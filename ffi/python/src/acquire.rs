//! The limiter methods that are called often: acquiring a grant and recording an outcome.

use crate::advice::Advice;
use crate::arguments::ParsedRequest;
use crate::errors;
use crate::grant::Grant;
use crate::limiter::Limiter;
use crate::listeners::{self, WaitNotice};
use crate::method::{self, Arguments, Method, detach_if_busy};
use crate::outcome::Ended;
use crate::pending::EnqueuedCall;
use pyo3::exceptions::{PyAttributeError, PyImportError};
use pyo3::prelude::*;
use shmlimit::OwnedGrant;
use std::ffi::CStr;

struct Acquire;

impl Method for Acquire {
    type Class = Limiter;
    const NAME: &'static CStr = c"acquire";
    const DOC: &'static CStr = c"acquire($self, /, *, cost=None, priority=None, timeout=None, \
                                 deadline=None)\n--\n\nWaits in the queue of all processes until the call may be \
                                 made. Returns its Grant: use it in a with block.\n\nA leaky bucket grants a call \
                                 early: sleep grant.delay seconds before the call. acquire() does not sleep;\n`with \
                                 limiter:` and @limiter.limit do. Other algorithms have no delay.\n\ncost: number of \
                                 requests (default: 1), or a mapping of units to whole numbers.\npriority: \
                                 \"webhook\" (a server waits for the answer), \"user\" (a person waits) or \
                                 \"background\" (the default);\nthe most urgent first, and it is served \
                                 first.\ntimeout: seconds, or a timedelta; None = no limit.\ndeadline: an aware \
                                 datetime, or seconds since the epoch. If a timeout is given too, the earlier one \
                                 counts.\n\nRaises Refused at once if the call cannot be granted in time; Blocked, \
                                 which is a Refused, if the breaker or the gate\nis the reason. Other threads \
                                 continue meanwhile, and Ctrl-C ends the wait.";

    #[inline]
    fn call<'py>(this: &Bound<'py, Limiter>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let asked = ParsedRequest::read(arguments, true)?;
        let request = asked.request();
        let grant = match this.get().at_once(this.py(), &request)? {
            Some(grant) => grant,
            None => wait(this, &asked)?,
        };
        Ok(Grant::new(this, grant)?.into_any())
    }
}

/// Waits in the queue without Python's lock.
#[cold]
fn wait(this: &Bound<'_, Limiter>, asked: &ParsedRequest) -> PyResult<OwnedGrant> {
    let py = this.py();
    let request = &asked.request();
    let handle = this.get().handle(py)?;
    // Only the main thread handles signals. Another thread may be left behind when the program ends, so it never
    // takes Python's lock to check for signals.
    let checks_signals = match is_main_thread(py) {
        // An interpreter that is shutting down has no modules any more.
        Err(error)
            if error.is_instance_of::<PyImportError>(py) || error.is_instance_of::<PyAttributeError>(py) =>
        {
            false
        }
        known => known?,
    };
    let mut raised = None;
    let mut notice = WaitNotice::new(this.get());
    let mut is_first = listeners::has_callbacks(this)?;
    // Python's lock is not held while the call waits, so the limiter is passed as a reference without a reference
    // count.
    let limiter = this.as_unbound();
    let stop = || {
        let notifies = std::mem::take(&mut is_first);
        if !notifies && !checks_signals {
            return false;
        }
        // SAFETY: the main thread released Python's lock below. It may take the lock back as long as the
        // interpreter exists, even while the interpreter shuts down. Another thread takes it back only once, right
        // at the beginning of its wait.
        raised = unsafe {
            Python::attach_unchecked(|py| {
                let notified = if notifies { notice.waits(limiter.bind(py), asked) } else { Ok(()) };
                notified.and_then(|()| if checks_signals { py.check_signals() } else { Ok(()) }).err()
            })
        };
        raised.is_some()
    };
    let waited = py.detach(|| {
        handle.acquire_cancellable(request, stop).map(|grant| grant.map(shmlimit::Grant::into_owned))
    });
    if raised.is_none() {
        raised = notice.ends(this, asked).err();
    }
    match (waited, raised) {
        (_, Some(raised)) => Err(raised),
        (Ok(Some(grant)), None) => Ok(grant),
        // Unreachable: without an exception `stop` never ends the wait.
        (Ok(None), None) => Err(errors::closed(py, this.get().name())),
        (Err(error), None) => Err(listeners::refused(this, &handle, &error)),
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(pyo3::intern!(py, "threading"))?;
    let main =
        threading.call_method0(pyo3::intern!(py, "main_thread"))?.getattr(pyo3::intern!(py, "ident"))?;
    threading.call_method0(pyo3::intern!(py, "get_ident"))?.eq(main)
}

struct TryAcquire;

impl Method for TryAcquire {
    type Class = Limiter;
    const NAME: &'static CStr = c"try_acquire";
    const DOC: &'static CStr = c"try_acquire($self, /, *, cost=None, priority=None)\n--\n\nAsks once and never waits. \
                                 Returns a Grant, or raises Refused, which says why and when to ask again.\n\ncost, \
                                 priority: as in acquire(). A leaky bucket's grant has a delay, as with acquire().";

    #[inline]
    fn call<'py>(this: &Bound<'py, Limiter>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let asked = ParsedRequest::read(arguments, false)?;
        let request = asked.request();
        let handle = this.get().handle(py)?;
        let tried = detach_if_busy(py, handle.is_busy(), || {
            handle.try_acquire(&request).map(shmlimit::Grant::into_owned)
        });
        match tried {
            Ok(grant) => Ok(Grant::new(this, grant)?.into_any()),
            Err(error) => Err(listeners::refused(this, &handle, &error)),
        }
    }
}

struct Begin;

impl Method for Begin {
    type Class = Limiter;
    const NAME: &'static CStr = c"_begin";
    const DOC: &'static CStr =
        c"_begin($self, /, *, cost=None, priority=None, timeout=None, deadline=None)\n--\n\nReturns a Grant if the \
          call is granted at once, else an EnqueuedCall whose step() is to be called.";

    #[inline]
    fn call<'py>(this: &Bound<'py, Limiter>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let asked = ParsedRequest::read(arguments, true)?;
        let request = asked.request();
        if let Some(grant) = this.get().at_once(py, &request)? {
            return Ok(Grant::new(this, grant)?.into_any());
        }
        let handle = this.get().handle(py)?;
        match handle.enqueue(&request) {
            Ok(waiting) => Ok(Bound::new(py, EnqueuedCall::new(this, waiting, asked))?.into_any()),
            Err(error) => Err(listeners::refused(this, &handle, &error)),
        }
    }
}

struct Record;

impl Method for Record {
    type Class = Limiter;
    const NAME: &'static CStr = c"record";
    const DOC: &'static CStr = c"record($self, status=None, *, error=None, headers=None, latency=None, attempt=None, \
                                 cost=None, priority=None)\n--\n\nRecords, for all programs that share the limiter, \
                                 how a call ended that was not granted here. If there is a grant, \
                                 use\nGrant.record.\n\nThe arguments are those of Grant.record; priority: the \
                                 priority of the call, as in acquire().";

    fn call<'py>(this: &Bound<'py, Limiter>, arguments: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let ended = Ended::read(py, arguments, true)?;
        let handle = this.get().handle(py)?;
        let recorded = detach_if_busy(py, handle.is_busy(), || ended.with(|outcome| handle.record(outcome)))
            .map_err(|error| errors::raised(py, &error))?;
        Ok(Bound::new(py, Advice::new(recorded, Some(&handle)))?.into_any())
    }
}

/// Adds the methods that are called often.
pub fn add_methods(py: Python<'_>) -> PyResult<()> {
    method::add::<Acquire>(py)?;
    method::add::<TryAcquire>(py)?;
    method::add::<Begin>(py)?;
    method::add::<Record>(py)
}
