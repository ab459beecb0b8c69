//! Functions that acquire a grant.

use crate::boundary::{Failure, answered, call};
use crate::code::{SHMLIMIT_GRANT_DONE, SHMLIMIT_OK, SHMLIMIT_REFUSED, SHMLIMIT_STOPPED, SHMLIMIT_TOO_MANY};
use crate::guard::guard;
use crate::handle_table::Table;
use crate::input::{Growing, Out, OutValue};
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{ParsedRequest, shmlimit_request};
use shmlimit::{Error, OwnedGrant, Reason, Refusal, Request};
use std::ffi::{CStr, c_char};
use std::time::Duration;

/// The right to make one call: a number that is never 0 and never reused. It holds a permit until it is released,
/// cancelled or recorded. It belongs to the process that acquired it: after a fork, ending the child's copy returns
/// nothing.
pub type shmlimit_grant = u64;

/// A time that is not known, or never comes.
pub const SHMLIMIT_NEVER: u64 = u64::MAX;

/// The breaker sleeps. No call is allowed until its timer ends, or an operator ends it.
pub const SHMLIMIT_REASON_SLEEP: u32 = 1;
/// The breaker allows no call. Use cached answers.
pub const SHMLIMIT_REASON_CACHE_ONLY: u32 = 2;
/// A consecutive breaker is open.
pub const SHMLIMIT_REASON_OPEN: u32 = 3;
/// A Retry-After of the server is not over yet.
pub const SHMLIMIT_REASON_RETRY_AFTER: u32 = 4;
/// Response headers asked for a slower pace.
pub const SHMLIMIT_REASON_ADAPTIVE: u32 = 5;
/// All permits are in use.
pub const SHMLIMIT_REASON_CONCURRENCY: u32 = 6;
/// A rule has too few units left.
pub const SHMLIMIT_REASON_RATE: u32 = 7;
/// The call costs more than a rule ever allows.
pub const SHMLIMIT_REASON_COST_EXCEEDS_LIMIT: u32 = 8;
/// Other calls wait and come first.
pub const SHMLIMIT_REASON_QUEUED: u32 = 9;
/// The queue is full.
pub const SHMLIMIT_REASON_QUEUE_FULL: u32 = 10;
/// An operator has paused the limiter.
pub const SHMLIMIT_REASON_PAUSED: u32 = 11;
/// Other processes held the limiter's lock until the call's deadline. Nothing was decided.
pub const SHMLIMIT_REASON_BUSY: u32 = 12;
/// A reason that this version of the C ABI has no number for.
pub const SHMLIMIT_REASON_OTHER: u32 = 99;

const REASONS: [(u32, Reason, &CStr); 12] = [
    (SHMLIMIT_REASON_SLEEP, Reason::Sleep, c"sleep"),
    (SHMLIMIT_REASON_CACHE_ONLY, Reason::CacheOnly, c"cache_only"),
    (SHMLIMIT_REASON_OPEN, Reason::Open, c"open"),
    (SHMLIMIT_REASON_RETRY_AFTER, Reason::RetryAfter, c"retry_after"),
    (SHMLIMIT_REASON_ADAPTIVE, Reason::Adaptive, c"adaptive"),
    (SHMLIMIT_REASON_CONCURRENCY, Reason::Concurrency, c"concurrency"),
    (SHMLIMIT_REASON_RATE, Reason::Rate, c"rate"),
    (SHMLIMIT_REASON_COST_EXCEEDS_LIMIT, Reason::CostExceedsLimit, c"cost_exceeds_limit"),
    (SHMLIMIT_REASON_QUEUED, Reason::Queued, c"queued"),
    (SHMLIMIT_REASON_QUEUE_FULL, Reason::QueueFull, c"queue_full"),
    (SHMLIMIT_REASON_PAUSED, Reason::Paused, c"paused"),
    (SHMLIMIT_REASON_BUSY, Reason::Busy, c"busy"),
];

fn number_of(reason: Reason) -> u32 {
    let found = REASONS.iter().find(|(_, known, _)| *known == reason);
    found.map_or(SHMLIMIT_REASON_OTHER, |(number, ..)| *number)
}

/// The name of a reason, such as "rate", or "unknown" for any other number.
///
/// Never NULL. Static: do not free it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn shmlimit_reason_name(reason: u32) -> *const c_char {
    guard(c"unknown".as_ptr(), || {
        let found = REASONS.iter().find(|(number, ..)| *number == reason);
        found.map_or(c"unknown", |(.., name)| name).as_ptr()
    })
}

/// The answer to a request. Set `size`; the library fills in the rest.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct shmlimit_answer {
    /// sizeof(shmlimit_answer).
    pub size: usize,
    /// Granted: how long to delay the call, in nanoseconds, so that calls are evenly spaced. 0 except with a leaky
    /// bucket.
    pub delay_ns: u64,
    /// Refused: when to ask again, in nanoseconds from now; without other traffic the call is allowed then. SHMLIMIT_NEVER =
    /// never, or not known.
    pub retry_after_ns: u64,
    /// Refused: every timeout shorter than this, in nanoseconds, is refused too. SHMLIMIT_NEVER = every timeout is
    /// refused, or not known.
    pub ready_after_ns: u64,
    /// Refused: the reason, SHMLIMIT_REASON_…; 0 = granted.
    pub reason: u32,
    /// Refused: the number of the rule that refused, from 0 in the order of the configuration; -1 = not a rule.
    pub rule: i32,
}

// SAFETY: the struct is a `usize` followed by integers.
unsafe impl Growing for shmlimit_answer {
    const NAME: &'static str = "shmlimit_answer";
    const FIRST: usize = 40;
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(SHMLIMIT_NEVER)
}

pub(crate) fn nanos_or_never(time: Option<Duration>) -> u64 {
    time.map_or(SHMLIMIT_NEVER, nanos)
}

impl shmlimit_answer {
    fn granted(delay: Duration) -> shmlimit_answer {
        let delay_ns = nanos(delay);
        shmlimit_answer { size: 0, delay_ns, retry_after_ns: 0, ready_after_ns: 0, reason: 0, rule: -1 }
    }

    fn refused(refusal: &Refusal) -> shmlimit_answer {
        shmlimit_answer {
            size: 0,
            delay_ns: 0,
            retry_after_ns: nanos_or_never(refusal.retry_after()),
            ready_after_ns: nanos_or_never(refusal.ready_after()),
            reason: number_of(refusal.reason()),
            rule: refusal.rule().and_then(|rule| i32::try_from(rule).ok()).unwrap_or(-1),
        }
    }
}

static GRANTS: Table<OwnedGrant> = Table::new(2);

/// Ends the grant with this handle. If `how` fails, the grant stays open.
pub(crate) fn end<R>(
    number: shmlimit_grant,
    how: impl FnOnce(&mut OwnedGrant) -> Result<R, Error>,
) -> Result<R, Failure> {
    let ended = GRANTS.end(number, how).ok_or_else(|| {
        let message = "the grant has already ended (released, cancelled or recorded), or never existed";
        Failure::new(SHMLIMIT_GRANT_DONE, message)
    })?;
    Ok(ended?)
}

/// The output arguments of an acquire call.
pub(crate) struct Reply {
    grant: OutValue<shmlimit_grant>,
    answer: Out<shmlimit_answer>,
}

impl Reply {
    pub(crate) fn new(grant: *mut shmlimit_grant, answer: *mut shmlimit_answer) -> Result<Reply, Failure> {
        // Both are cleared before an error of either is reported.
        let (grant, answer) = (OutValue::new("grant", grant, 0), Out::new(answer));
        Ok(Reply { grant: grant?, answer: answer? })
    }

    #[inline]
    pub(crate) fn granted(&self, grant: OwnedGrant) -> Result<i32, Failure> {
        self.answer.write(&shmlimit_answer::granted(grant.delay()));
        let too_many = |_| Failure::new(SHMLIMIT_TOO_MANY, "too many grants are held in this process");
        self.grant.write(GRANTS.insert(grant).map_err(too_many)?);
        Ok(SHMLIMIT_OK)
    }

    pub(crate) fn refused(&self, refusal: &Refusal) -> i32 {
        self.answer.write(&shmlimit_answer::refused(refusal));
        SHMLIMIT_REFUSED
    }
}

/// Asks for a grant, and waits for it in the queue of all processes. SHMLIMIT_OK: make the call, then end the grant.
/// SHMLIMIT_REFUSED: do not make it, `answer` says why. SHMLIMIT_STOPPED: `stop` ended the wait.
///
/// A request is refused at once if its timeout or deadline cannot be met, if it costs more than a rule ever allows, or if
/// the time when calls are allowed again is not known.
///
/// `request` may be NULL: one request with background priority and no timeout. `*grant` is 0 unless granted. `answer` may
/// be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_acquire(
    limiter: *const shmlimit_limiter,
    request: *const shmlimit_request,
    grant: *mut shmlimit_grant,
    answer: *mut shmlimit_answer,
) -> i32 {
    call(|| {
        let reply = Reply::new(grant, answer)?;
        let asked = ParsedRequest::read(request)?;
        let request = asked.as_ref().map_or(Request::new(), ParsedRequest::request);
        let limiter = limiter::limiter(limiter)?;
        let acquired = match &asked {
            Some(asked) if asked.can_be_stopped() => {
                answered(limiter.acquire_cancellable(&request, || asked.stop()))?
            }
            _ => answered(limiter.acquire(&request))?.map(Some),
        };
        match acquired {
            Ok(Some(grant)) => reply.granted(grant.into_owned()),
            Ok(None) => Ok(SHMLIMIT_STOPPED),
            Err(refusal) => Ok(reply.refused(&refusal)),
        }
    })
}

/// Asks once and does not wait, except up to a second for the limiter's lock. The timeout, deadline and `stop` of the
/// request are ignored. Arguments and results are those of shmlimit_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_try_acquire(
    limiter: *const shmlimit_limiter,
    request: *const shmlimit_request,
    grant: *mut shmlimit_grant,
    answer: *mut shmlimit_answer,
) -> i32 {
    call(|| {
        let reply = Reply::new(grant, answer)?;
        let asked = ParsedRequest::read(request)?;
        let request = asked.as_ref().map_or(Request::new(), ParsedRequest::request);
        let limiter = limiter::limiter(limiter)?;
        match answered(limiter.try_acquire(&request))? {
            Ok(grant) => reply.granted(grant.into_owned()),
            Err(refusal) => Ok(reply.refused(&refusal)),
        }
    })
}
