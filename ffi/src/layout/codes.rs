//! The numbers that a segment stores for states, causes, priorities and classes. Their meanings never change.
//!
//! The numbers of algorithms and header formats are not here: `tests/header.rs` writes them into the C header from
//! the library's own enums.

use ::shmlimit_segment::layout;
use shmlimit::{BreakerState, OutcomeClass, Priority, TransitionCause};
use shmlimit_kernel::health_state;
use shmlimit_kernel::policy::{Breaker, BreakerKind};

/// Normal operation; for a consecutive breaker: closed.
pub const SHMLIMIT_SEGMENT_STATE_NORMAL: u32 = 0;
/// Half the rate, half the permits.
pub const SHMLIMIT_SEGMENT_STATE_THROTTLE: u32 = 1;
/// No call until its timer expires.
pub const SHMLIMIT_SEGMENT_STATE_SLEEP: u32 = 2;
/// A few calls, to check whether the server works.
pub const SHMLIMIT_SEGMENT_STATE_HALF_OPEN: u32 = 3;
/// No call until an operator ends the state, or the limiter probes by itself.
pub const SHMLIMIT_SEGMENT_STATE_CACHE_ONLY: u32 = 4;
/// No call until its timer expires; only a consecutive breaker has this state.
pub const SHMLIMIT_SEGMENT_STATE_OPEN: u32 = 5;

/// An operator forced the state: it has no timer.
pub const SHMLIMIT_SEGMENT_HEALTH_OFFLINE: u32 = 1;
/// The limiter is leaving CacheOnly by itself.
pub const SHMLIMIT_SEGMENT_HEALTH_ATTEMPT: u32 = 2;
/// The rate rises step by step.
pub const SHMLIMIT_SEGMENT_HEALTH_RAMPING: u32 = 4;

/// An operator forced it.
pub const SHMLIMIT_SEGMENT_CAUSE_FORCED: u32 = 0;
/// Too many 429 in a row.
pub const SHMLIMIT_SEGMENT_CAUSE_CONSEC_429: u32 = 1;
/// Too high a ratio of errors.
pub const SHMLIMIT_SEGMENT_CAUSE_ERROR_RATIO: u32 = 2;
/// A very high ratio of errors for a long time.
pub const SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS: u32 = 3;
/// Enough successes.
pub const SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK: u32 = 4;
/// The sleep is over.
pub const SHMLIMIT_SEGMENT_CAUSE_SLEEP_EXPIRED: u32 = 5;
/// Probes succeeded.
pub const SHMLIMIT_SEGMENT_CAUSE_PROBE_OK: u32 = 6;
/// A probe failed.
pub const SHMLIMIT_SEGMENT_CAUSE_PROBE_FAILED: u32 = 7;
/// The limiter leaves CacheOnly by itself.
pub const SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER: u32 = 8;
/// Too many failures in a row.
pub const SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES: u32 = 9;
/// The open state has lasted long enough.
pub const SHMLIMIT_SEGMENT_CAUSE_RESET_TIMEOUT: u32 = 10;

/// No breaker.
pub const SHMLIMIT_SEGMENT_BREAKER_NONE: u32 = 0;
/// Normal, Throttle, Sleep, HalfOpen, CacheOnly.
pub const SHMLIMIT_SEGMENT_BREAKER_FSM: u32 = 1;
/// Closed, open, half open.
pub const SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE: u32 = 2;

/// Work that can wait.
pub const SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND: u32 = 0;
/// A person waits for the call.
pub const SHMLIMIT_SEGMENT_PRIORITY_USER: u32 = 1;
/// Another program waits for the call.
pub const SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK: u32 = 2;

/// Waiting calls are served strictly in order of arrival. Without this flag the groups take turns.
pub const SHMLIMIT_SEGMENT_QUEUEING_FIFO: u32 = 1;
/// Priorities are ignored.
pub const SHMLIMIT_SEGMENT_QUEUEING_NO_PRIORITIES: u32 = 2;

/// In the ring of outcomes: the call succeeded.
pub const SHMLIMIT_SEGMENT_CLASS_OK: u32 = 0;
/// The call ended with 429.
pub const SHMLIMIT_SEGMENT_CLASS_THROTTLED: u32 = 1;
/// The call ended with 5xx.
pub const SHMLIMIT_SEGMENT_CLASS_SERVER: u32 = 2;
/// The call got no answer.
pub const SHMLIMIT_SEGMENT_CLASS_NET: u32 = 3;

/// The format of the headers is given with each response.
pub const SHMLIMIT_SEGMENT_HEADERS_ANY: u32 = 0;

/// `retired`: the file is in use. The value is not zero, so that zeros are never taken for an idle limiter.
pub const SHMLIMIT_SEGMENT_LIVE: u64 = 1163282764;
/// `retired`: replaced on purpose; the successor starts afresh.
pub const SHMLIMIT_SEGMENT_RETIRED_REPLACED: u64 = 1;
/// `retired`: the file was deleted; the successor continues with the states of the rules.
pub const SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER: u64 = 2;
/// `retired`: removed on purpose; there is no successor until a program creates the limiter again.
pub const SHMLIMIT_SEGMENT_RETIRED_REMOVED: u64 = 3;

/// Asserts that numbers of the header equal those of the library's variants.
macro_rules! codes {
    ($kind:ident: $($number:ident $variant:ident,)*) => { $(assert!($number == $kind::$variant as u32);)* };
}

const _: () = {
    codes!(BreakerState: SHMLIMIT_SEGMENT_STATE_NORMAL Normal, SHMLIMIT_SEGMENT_STATE_THROTTLE Throttle,
        SHMLIMIT_SEGMENT_STATE_SLEEP Sleep, SHMLIMIT_SEGMENT_STATE_HALF_OPEN HalfOpen,
        SHMLIMIT_SEGMENT_STATE_CACHE_ONLY CacheOnly, SHMLIMIT_SEGMENT_STATE_OPEN Open,);

    assert!(SHMLIMIT_SEGMENT_HEALTH_OFFLINE == health_state::OFFLINE);
    assert!(SHMLIMIT_SEGMENT_HEALTH_ATTEMPT == health_state::ATTEMPT);
    assert!(SHMLIMIT_SEGMENT_HEALTH_RAMPING == health_state::RAMPING);
    codes!(TransitionCause: SHMLIMIT_SEGMENT_CAUSE_FORCED Forced, SHMLIMIT_SEGMENT_CAUSE_CONSEC_429 Consec429,
        SHMLIMIT_SEGMENT_CAUSE_ERROR_RATIO ErrorRatio, SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS SustainedErrors,
        SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK SuccessWindowOk, SHMLIMIT_SEGMENT_CAUSE_SLEEP_EXPIRED SleepExpired,
        SHMLIMIT_SEGMENT_CAUSE_PROBE_OK ProbeOk, SHMLIMIT_SEGMENT_CAUSE_PROBE_FAILED ProbeFailed,
        SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER AutoRecover,
        SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES ConsecutiveFailures,
        SHMLIMIT_SEGMENT_CAUSE_RESET_TIMEOUT ResetTimeout,);
    codes!(BreakerKind: SHMLIMIT_SEGMENT_BREAKER_NONE None, SHMLIMIT_SEGMENT_BREAKER_FSM Fsm,
        SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE Consecutive,);
    assert!(matches!(Breaker::of(BreakerKind::Fsm).kind(), BreakerKind::Fsm));
    codes!(Priority: SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND Background, SHMLIMIT_SEGMENT_PRIORITY_USER User,
        SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK Webhook,);
    codes!(OutcomeClass: SHMLIMIT_SEGMENT_CLASS_OK Ok, SHMLIMIT_SEGMENT_CLASS_THROTTLED Throttled,
        SHMLIMIT_SEGMENT_CLASS_SERVER Server, SHMLIMIT_SEGMENT_CLASS_NET Net,);

    assert!(SHMLIMIT_SEGMENT_LIVE == layout::LIVE);
    assert!(SHMLIMIT_SEGMENT_RETIRED_REPLACED == layout::REPLACED);
    assert!(SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER == layout::HANDED_OVER);
    assert!(SHMLIMIT_SEGMENT_RETIRED_REMOVED == layout::REMOVED);
};
