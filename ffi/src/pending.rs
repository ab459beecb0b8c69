//! Waiting step by step, for programs with their own event loop.

use crate::boundary::{Failure, answered, call};
use crate::code::{SHMLIMIT_OK, SHMLIMIT_PENDING_DONE, SHMLIMIT_SLEEP, SHMLIMIT_TOO_MANY};
use crate::grant::{Reply, nanos, shmlimit_answer, shmlimit_grant};
use crate::handle_table::Table;
use crate::input::OutValue;
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{ParsedRequest, shmlimit_request};
use shmlimit::{PendingAcquire, Request, Step};
use std::sync::Mutex;

/// A wait that the program steps: a number that is never 0 and never reused. After a fork the child's copy is a
/// separate wait, which is not in the queue yet.
pub type shmlimit_pending = u64;

/// Waits by handle. A cell holds `None` while a step runs.
static PENDING: Table<Mutex<Option<PendingAcquire>>> = Table::new(3);

fn done() -> Failure {
    let message = "the wait has already ended, never began, or another thread is stepping it";
    Failure::new(SHMLIMIT_PENDING_DONE, message)
}

/// Begins a wait and returns at once, for programs that have an event loop. The call enters the queue with the first
/// shmlimit_pending_step(), but its timeout runs from here. The request's `stop` is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_enqueue(
    limiter: *const shmlimit_limiter,
    request: *const shmlimit_request,
    pending: *mut shmlimit_pending,
) -> i32 {
    call(|| {
        let out = OutValue::new("pending", pending, 0)?;
        let asked = ParsedRequest::read(request)?;
        let request = asked.as_ref().map_or(Request::new(), ParsedRequest::request);
        let waiting = match answered(limiter::limiter(limiter)?.enqueue(&request))? {
            Ok(waiting) => waiting,
            // No request was made yet, so the library cannot have refused it.
            Err(_) => return Err(done()),
        };
        let too_many = |_| Failure::new(SHMLIMIT_TOO_MANY, "too many calls wait in this process");
        out.write(PENDING.insert(Mutex::new(Some(waiting))).map_err(too_many)?);
        Ok(SHMLIMIT_OK)
    })
}

/// Checks whether it is the call's turn, without waiting. SHMLIMIT_SLEEP: step again after `*sleep_ns` nanoseconds. Every
/// other result ends the wait: SHMLIMIT_OK with a grant, SHMLIMIT_REFUSED, or a failure. Only a failure about the arguments,
/// such as SHMLIMIT_NULL_POINTER, leaves the wait as it was. `answer` may be NULL.
///
/// The first call in the queue is told to step every 2 ms while it waits for a permit. On a test clock, a step moves the
/// clock to the time of the grant.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_pending_step(
    pending: shmlimit_pending,
    sleep_ns: *mut u64,
    grant: *mut shmlimit_grant,
    answer: *mut shmlimit_answer,
) -> i32 {
    call(|| {
        let (sleep, reply) = (OutValue::new("sleep_ns", sleep_ns, 0), Reply::new(grant, answer));
        let (sleep, reply) = (sleep?, reply?);
        let stepped = {
            let cell = PENDING.get(pending).ok_or_else(done)?;
            let mut inside = cell.try_lock().map_err(|_| done())?;
            match answered(inside.take().ok_or_else(done)?.step()) {
                Ok(Ok(Step::Sleep(waiting, time))) => {
                    *inside = Some(waiting);
                    sleep.write(nanos(time));
                    return Ok(SHMLIMIT_SLEEP);
                }
                Ok(Ok(Step::Granted(grant))) => reply.granted(grant),
                Ok(Err(refusal)) => Ok(reply.refused(&refusal)),
                Err(failure) => Err(failure),
            }
        };
        PENDING.close(pending);
        stepped
    })
}

/// Ends a wait before its call is granted or refused: the call leaves the queue.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_pending_cancel(pending: shmlimit_pending) -> i32 {
    call(|| if PENDING.close(pending) { Ok(SHMLIMIT_OK) } else { Err(done()) })
}
