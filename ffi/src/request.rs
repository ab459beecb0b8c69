//! Reading the request of a C program.

use crate::boundary::Failure;
use crate::code::SHMLIMIT_BAD_VALUE;
use crate::guard::guard;
use crate::input::{self, Growing};
use shmlimit::{Priority, Request};
use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, SystemTime};

/// The default: of a request, background; of an outcome, the priority of its grant. Calls are served in this order:
/// webhook, user, background. webhook and user may use the reserve.
pub const SHMLIMIT_PRIORITY_DEFAULT: u32 = 0;
/// Work that can wait.
pub const SHMLIMIT_PRIORITY_BACKGROUND: u32 = 1;
/// A person waits for the call.
pub const SHMLIMIT_PRIORITY_USER: u32 = 2;
/// Another program waits for the call.
pub const SHMLIMIT_PRIORITY_WEBHOOK: u32 = 3;

/// An amount of one unit.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_cost {
    /// The unit, such as "requests" or "tokens".
    pub unit: *const c_char,
    /// The amount.
    pub amount: u64,
}

/// A request for one call. With `size` alone: it costs one request, has background priority, and waits without a timeout.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_request {
    /// sizeof(shmlimit_request).
    pub size: usize,
    /// The cost of the call. A unit that is not named costs 0, except "requests", which costs 1.
    pub costs: *const shmlimit_cost,
    /// How many elements `costs` has. 0 only if `costs` is NULL.
    pub cost_count: usize,
    /// How long the call may wait, in nanoseconds; 0 = no limit. If it cannot be granted in time, it is refused at once.
    pub timeout_ns: u64,
    /// Until when the call may wait, in nanoseconds since 1970; 0 = no limit. With a timeout, the earlier one counts. With a
    /// test clock, a time on that clock.
    pub deadline_ns: u64,
    /// The priority: SHMLIMIT_PRIORITY_….
    pub priority: u32,
    /// Must be 0.
    pub reserved: u32,
    /// A function that can end the wait; NULL = none. It is called when a signal interrupts the wait, and at least ten times
    /// a second. The wait ends when it returns anything but 0. It must return: no exception, no longjmp.
    pub stop: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
    /// The argument of `stop`.
    pub stop_context: *mut c_void,
}

// SAFETY: a `usize` first; numbers, pointers and an optional function: zeros are a value.
unsafe impl Growing for shmlimit_request {
    const NAME: &'static str = "shmlimit_request";
    const FIRST: usize = 64;
}

/// The name of a priority, such as "user", or "unknown" for any other number. SHMLIMIT_PRIORITY_DEFAULT has no name.
///
/// Never NULL. Static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_priority_name(priority: u32) -> *const c_char {
    guard(c"unknown".as_ptr(), || {
        match priority {
            SHMLIMIT_PRIORITY_BACKGROUND => c"background",
            SHMLIMIT_PRIORITY_USER => c"user",
            SHMLIMIT_PRIORITY_WEBHOOK => c"webhook",
            _ => c"unknown",
        }
        .as_ptr()
    })
}

/// A limit for the number of costs. No limiter has more units.
const MOST_COSTS: usize = 64;

/// A request whose strings have been checked.
pub(crate) struct ParsedRequest<'c> {
    costs: Vec<(&'c str, u64)>,
    priority: Priority,
    timeout: Option<Duration>,
    deadline: Option<SystemTime>,
    stop: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    context: *mut c_void,
}

impl<'c> ParsedRequest<'c> {
    /// Reads a request. Returns `None` if the pointer is NULL, which means one request with background priority.
    pub(crate) fn read(request: *const shmlimit_request) -> Result<Option<ParsedRequest<'c>>, Failure> {
        let Some(given) = input::growing(request)? else { return Ok(None) };
        if given.reserved != 0 {
            return Err(Failure::new(SHMLIMIT_BAD_VALUE, "shmlimit_request.reserved must be 0"));
        }
        let later = |ns: u64| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
        Ok(Some(ParsedRequest {
            costs: costs(
                "shmlimit_request.costs",
                "shmlimit_request.costs[].unit",
                given.costs,
                given.cost_count,
            )?,
            priority: priority("shmlimit_request.priority", given.priority)?.unwrap_or_default(),
            timeout: (given.timeout_ns > 0).then(|| Duration::from_nanos(given.timeout_ns)),
            deadline: (given.deadline_ns > 0).then(|| later(given.deadline_ns)),
            stop: given.stop,
            context: given.stop_context,
        }))
    }

    pub(crate) fn request(&self) -> Request<'_> {
        let mut request = Request::new().priority(self.priority);
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        if let Some(deadline) = self.deadline {
            request = request.deadline(deadline);
        }
        self.costs.iter().fold(request, |request, (unit, amount)| request.cost(unit, *amount))
    }

    /// Whether the request has a `stop` function.
    pub(crate) fn can_be_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Calls `stop`.
    pub(crate) fn stop(&self) -> bool {
        // SAFETY: the caller's contract says that the function may be called with its context, and that it returns.
        self.stop.is_some_and(|stop| unsafe { stop(self.context) } != 0)
    }
}

pub(crate) fn costs<'c>(
    what: &str,
    unit: &str,
    at: *const shmlimit_cost,
    count: usize,
) -> Result<Vec<(&'c str, u64)>, Failure> {
    let costs = input::list(what, "cost_count", at, count, MOST_COSTS)?;
    costs.iter().map(|cost| Ok((input::text(unit, cost.unit)?, cost.amount))).collect()
}

pub(crate) fn priority(what: &str, number: u32) -> Result<Option<Priority>, Failure> {
    match number {
        SHMLIMIT_PRIORITY_DEFAULT => Ok(None),
        SHMLIMIT_PRIORITY_BACKGROUND => Ok(Some(Priority::Background)),
        SHMLIMIT_PRIORITY_USER => Ok(Some(Priority::User)),
        SHMLIMIT_PRIORITY_WEBHOOK => Ok(Some(Priority::Webhook)),
        _ => Err(Failure::new(SHMLIMIT_BAD_VALUE, format!("{what} is {number}; use 0 to 3"))),
    }
}
