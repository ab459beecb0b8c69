//! Functions that end a grant: with an outcome, or without one.

use crate::boundary::{Failure, call};
use crate::code::{SHMLIMIT_BAD_VALUE, SHMLIMIT_NULL_POINTER};
use crate::grant::{self, nanos, shmlimit_grant};
use crate::guard::guard;
use crate::input::{self, Growing, Out};
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{costs, priority, shmlimit_cost};
use shmlimit::headers::{Header, response};
use shmlimit::{Advice, NetError, Outcome, OutcomeClass, OwnedGrant, Priority, WaitSource};
use std::borrow::Cow;
use std::ffi::c_char;
use std::time::Duration;

/// Returns the permit of a grant when its call is over, without an outcome. After a failure, such as SHMLIMIT_BUSY,
/// the grant is still valid. If you know how the call ended, use shmlimit_record().
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_release(grant: shmlimit_grant) -> i32 {
    call(|| grant::end(grant, OwnedGrant::try_release))
}

/// Returns the permit and the cost of a call that was never sent. Rules that cannot take units back keep them.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_cancel(grant: shmlimit_grant) -> i32 {
    call(|| grant::end(grant, OwnedGrant::try_cancel))
}

/// The connection was not made in time.
pub const SHMLIMIT_ERROR_CONNECT_TIMEOUT: u32 = 1;
/// The response did not arrive in time.
pub const SHMLIMIT_ERROR_READ_TIMEOUT: u32 = 2;
/// The name of the server could not be resolved.
pub const SHMLIMIT_ERROR_DNS: u32 = 3;
/// The connection was refused or broke.
pub const SHMLIMIT_ERROR_CONNECTION: u32 = 4;

/// One response header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_header {
    /// The name, such as "Retry-After", in upper or lower case.
    pub name: *const c_char,
    /// The value as the server sent it.
    pub value: *const c_char,
}

/// How a call ended: a status or an error, and what else the program knows.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_outcome {
    /// sizeof(shmlimit_outcome).
    pub size: usize,
    /// The HTTP status, 100 to 599; 0 = there was no response, or `head` has the status.
    pub status: u32,
    /// Why there was no response: SHMLIMIT_ERROR_…; 0 = there was one.
    pub error: u32,
    /// Response headers. The library reads Retry-After, and the headers about limits that the limiter is configured for.
    pub headers: *const shmlimit_header,
    /// How many elements `headers` has. 0 only if `headers` is NULL.
    pub header_count: usize,
    /// The head of the response as the server sent it: status line and headers. It may be given with `headers` or instead of
    /// them. If it has several heads, after redirects, the last one counts. NULL = none.
    pub head: *const c_char,
    /// How many bytes `head` has. It need not end with NUL.
    pub head_length: usize,
    /// How long the call took, in nanoseconds; 0 = unknown.
    pub latency_ns: u64,
    /// The actual cost of the call, for the units whose actual cost is known now.
    pub costs: *const shmlimit_cost,
    /// How many elements `costs` has. 0 only if `costs` is NULL.
    pub cost_count: usize,
    /// The number of the attempt, from 1; 0 = unknown: then it is counted from the consecutive failures of all
    /// programs.
    pub attempt: u32,
    /// The priority of a call without a grant: SHMLIMIT_PRIORITY_….
    pub priority: u32,
}

// SAFETY: the struct is a `usize` followed by integers and pointers: zeros are a valid value.
unsafe impl Growing for shmlimit_outcome {
    const NAME: &'static str = "shmlimit_outcome";
    const FIRST: usize = 80;
}

/// The server answered normally.
pub const SHMLIMIT_CLASS_OK: u32 = 1;
/// 429: the server received too many calls.
pub const SHMLIMIT_CLASS_THROTTLED: u32 = 2;
/// 5xx: the server failed.
pub const SHMLIMIT_CLASS_SERVER: u32 = 3;
/// The server did not answer.
pub const SHMLIMIT_CLASS_NET: u32 = 4;
/// Any other 4xx. It says nothing about the health of the server.
pub const SHMLIMIT_CLASS_IGNORED: u32 = 5;

/// There is no need to wait.
pub const SHMLIMIT_SOURCE_NONE: u32 = 0;
/// The server said how long, with Retry-After.
pub const SHMLIMIT_SOURCE_RETRY_AFTER: u32 = 1;
/// The library computed the wait from the failures in a row.
pub const SHMLIMIT_SOURCE_BACKOFF: u32 = 2;

/// Advice after an outcome: whether and when to try again. Set `size`; the library fills in the rest.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_advice {
    /// sizeof(shmlimit_advice).
    pub size: usize,
    /// How long to wait before the next attempt, in nanoseconds. It has a random part if the configuration says so.
    pub wait_ns: u64,
    /// The longest time that `wait_ns` could have been, in nanoseconds.
    pub wait_at_most_ns: u64,
    /// The ratio of errors among the outcomes in the breaker's window, from 0 to 1.
    pub error_ratio: f64,
    /// 1 = try again, 0 = do not.
    pub retry: u32,
    /// The class of the outcome: SHMLIMIT_CLASS_….
    pub outcome_class: u32,
    /// Where `wait_ns` comes from: SHMLIMIT_SOURCE_….
    pub wait_source: u32,
    /// How many outcomes are in the breaker's window, this one included.
    pub samples: u32,
    /// The number of consecutive 429s.
    pub consec429: u32,
    /// How many times the breaker changed its state because of this outcome. shmlimit_snapshot_take() lists the newest.
    pub transitions: u32,
}

// SAFETY: the struct is a `usize` followed by integers.
unsafe impl Growing for shmlimit_advice {
    const NAME: &'static str = "shmlimit_advice";
    const FIRST: usize = 56;
}

impl From<&Advice> for shmlimit_advice {
    fn from(recorded: &Advice) -> shmlimit_advice {
        shmlimit_advice {
            size: 0,
            wait_ns: nanos(recorded.wait),
            wait_at_most_ns: nanos(recorded.wait_at_most),
            error_ratio: recorded.error_ratio,
            retry: u32::from(recorded.retry),
            outcome_class: match recorded.outcome_class {
                OutcomeClass::Ok => SHMLIMIT_CLASS_OK,
                OutcomeClass::Throttled => SHMLIMIT_CLASS_THROTTLED,
                OutcomeClass::Server => SHMLIMIT_CLASS_SERVER,
                OutcomeClass::Net => SHMLIMIT_CLASS_NET,
                OutcomeClass::Ignored => SHMLIMIT_CLASS_IGNORED,
            },
            wait_source: match recorded.wait_source {
                None => SHMLIMIT_SOURCE_NONE,
                Some(WaitSource::RetryAfter) => SHMLIMIT_SOURCE_RETRY_AFTER,
                Some(WaitSource::Backoff) => SHMLIMIT_SOURCE_BACKOFF,
            },
            samples: recorded.samples,
            consec429: recorded.consec429,
            transitions: recorded.transitions.len() as u32,
        }
    }
}

/// The name of an outcome class, such as "5xx", or "unknown" for any other number.
///
/// Never NULL. Static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_class_name(class: u32) -> *const c_char {
    guard(c"unknown".as_ptr(), || {
        match class {
            SHMLIMIT_CLASS_OK => c"ok",
            SHMLIMIT_CLASS_THROTTLED => c"429",
            SHMLIMIT_CLASS_SERVER => c"5xx",
            SHMLIMIT_CLASS_NET => c"net",
            SHMLIMIT_CLASS_IGNORED => c"ignored",
            _ => c"unknown",
        }
        .as_ptr()
    })
}

/// A limit for the number of response headers. No server sends more.
const MOST_HEADERS: usize = 4096;

/// An outcome whose strings have been checked.
struct Ended<'c> {
    status: Option<u16>,
    error: Option<NetError>,
    headers: Vec<(Cow<'c, str>, Cow<'c, str>)>,
    head: Cow<'c, str>,
    costs: Vec<(&'c str, u64)>,
    latency: Option<Duration>,
    attempt: Option<u32>,
    priority: Option<Priority>,
}

#[inline]
fn given(outcome: *const shmlimit_outcome) -> Result<shmlimit_outcome, Failure> {
    input::growing(outcome)?.ok_or_else(|| Failure::new(SHMLIMIT_NULL_POINTER, "outcome must not be NULL"))
}

impl shmlimit_outcome {
    /// The fast path of [`Ended::read`] for a status without lists and strings, which most calls have.
    #[inline]
    fn plain(&self) -> Option<Outcome<'static>> {
        let lists = self.header_count | self.head_length | self.cost_count;
        let pointers = !self.headers.is_null() || !self.costs.is_null();
        if pointers || lists != 0 || self.status == 0 || self.error != 0 || self.priority != 0 {
            return None;
        }
        let mut outcome = Outcome::http(u16::try_from(self.status).ok()?, &[]);
        if self.attempt > 0 {
            outcome = outcome.attempt(self.attempt);
        }
        if self.latency_ns > 0 {
            outcome = outcome.latency(Duration::from_nanos(self.latency_ns));
        }
        Some(outcome)
    }
}

impl<'c> Ended<'c> {
    fn read(given: &shmlimit_outcome) -> Result<Ended<'c>, Failure> {
        let bad = |message: String| Failure::new(SHMLIMIT_BAD_VALUE, message);
        let error = match given.error {
            0 => None,
            SHMLIMIT_ERROR_CONNECT_TIMEOUT => Some(NetError::ConnectTimeout),
            SHMLIMIT_ERROR_READ_TIMEOUT => Some(NetError::ReadTimeout),
            SHMLIMIT_ERROR_DNS => Some(NetError::Dns),
            SHMLIMIT_ERROR_CONNECTION => Some(NetError::Connection),
            other => return Err(bad(format!("shmlimit_outcome.error is {other}; use 1 to 4"))),
        };
        let priority = priority("shmlimit_outcome.priority", given.priority)?;
        let head = input::foreign_bytes("shmlimit_outcome.head", given.head, given.head_length)?;
        // The library refuses an invalid status with its own message.
        let status = match (given.status, error) {
            (0, None) => Some(response(&head).0.ok_or_else(|| {
                bad("shmlimit_outcome has neither status nor error, nor a head with a status line".to_owned())
            })?),
            (0, Some(_)) => None,
            (_, Some(_)) => {
                return Err(bad("shmlimit_outcome has both a status and an error; set only one".to_owned()));
            }
            (status, None) => Some(u16::try_from(status).unwrap_or(u16::MAX)),
        };
        let listed = input::list(
            "shmlimit_outcome.headers",
            "header_count",
            given.headers,
            given.header_count,
            MOST_HEADERS,
        )?;
        let mut headers = Vec::with_capacity(listed.len());
        for header in listed {
            let name = input::foreign_text("shmlimit_outcome.headers[].name", header.name)?;
            headers.push((name, input::foreign_text("shmlimit_outcome.headers[].value", header.value)?));
        }
        Ok(Ended {
            status,
            error,
            headers,
            head,
            costs: costs(
                "shmlimit_outcome.costs",
                "shmlimit_outcome.costs[].unit",
                given.costs,
                given.cost_count,
            )?,
            latency: (given.latency_ns > 0).then(|| Duration::from_nanos(given.latency_ns)),
            attempt: (given.attempt > 0).then_some(given.attempt),
            priority,
        })
    }

    fn all_headers(&self) -> Vec<Header<'_>> {
        let mut headers = if self.head.is_empty() { Vec::new() } else { response(&self.head).1 };
        headers.extend(self.headers.iter().map(|(name, value)| (&**name, &**value)));
        headers
    }

    fn outcome<'o>(&'o self, headers: &'o [Header<'o>]) -> Outcome<'o> {
        let mut outcome = match (self.status, self.error) {
            (Some(status), _) => Outcome::http(status, headers),
            (None, Some(error)) => Outcome::error(error),
            (None, None) => Outcome::error(NetError::Connection),
        };
        outcome = outcome.cost(&self.costs);
        if let Some(attempt) = self.attempt {
            outcome = outcome.attempt(attempt);
        }
        if let Some(latency) = self.latency {
            outcome = outcome.latency(latency);
        }
        match self.priority {
            Some(priority) => outcome.priority(priority),
            None => outcome,
        }
    }
}

/// Records how the call ended, for all programs that share the limiter, and returns its permit. After a failure the
/// grant is still valid: correct the outcome, or release the grant. `advice` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_record(
    grant: shmlimit_grant,
    outcome: *const shmlimit_outcome,
    advice: *mut shmlimit_advice,
) -> i32 {
    call(|| {
        let out = Out::new(advice)?;
        let given = given(outcome)?;
        let recorded = if let Some(outcome) = given.plain() {
            grant::end(grant, |grant| grant.try_record(&outcome))?
        } else {
            let ended = Ended::read(&given)?;
            let headers = ended.all_headers();
            grant::end(grant, |grant| grant.try_record(&ended.outcome(&headers)))?
        };
        if let Some(recorded) = recorded {
            out.write(&shmlimit_advice::from(&recorded));
        }
        Ok(())
    })
}

/// Records how a call ended that has no grant, for all programs that share the limiter. `advice` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_record_call(
    limiter: *const shmlimit_limiter,
    outcome: *const shmlimit_outcome,
    advice: *mut shmlimit_advice,
) -> i32 {
    call(|| {
        let out = Out::new(advice)?;
        let ended = Ended::read(&given(outcome)?)?;
        let headers = ended.all_headers();
        let recorded = limiter::limiter(limiter)?.record(&ended.outcome(&headers))?;
        out.write(&shmlimit_advice::from(&recorded));
        Ok(())
    })
}

/// Counts a lookup in the program's own cache: `hit` is 1 if the cache had the answer, else 0. The counts are for
/// dashboards and affect no decision.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_count_cache(limiter: *const shmlimit_limiter, hit: i32) -> i32 {
    call(|| Ok(limiter::limiter(limiter)?.count_cache(hit != 0)?))
}
