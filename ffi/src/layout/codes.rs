//! The numbers that a segment stores for states, causes, priorities and classes. Their meanings never change.
//!
//! The numbers of algorithms and header formats are not here: `tests/header.rs` writes them into the C header from
//! the library's own enums.

use ::shmlimit_segment::layout;
use shmlimit::{BreakerState, OutcomeClass, Priority, TransitionCause};
use shmlimit_kernel::health_state;
use shmlimit_kernel::policy::{Breaker, BreakerKind};

/// All is well; of a consecutive breaker: closed.
pub const SHMLIMIT_SEGMENT_STATE_NORMAL: u32 = 0;
/// Half the rate, half the permits.
pub const SHMLIMIT_SEGMENT_STATE_THROTTLE: u32 = 1;
/// No call until its timer is over.
pub const SHMLIMIT_SEGMENT_STATE_SLEEP: u32 = 2;
/// A few calls, to see whether the server is well.
pub const SHMLIMIT_SEGMENT_STATE_HALF_OPEN: u32 = 3;
/// No call until an operator says so, or the limiter tries by itself.
pub const SHMLIMIT_SEGMENT_STATE_CACHE_ONLY: u32 = 4;
/// No call until its timer is over, of a consecutive breaker.
pub const SHMLIMIT_SEGMENT_STATE_OPEN: u32 = 5;

/// An operator said so: the state has no timer.
pub const SHMLIMIT_SEGMENT_HEALTH_OFFLINE: u32 = 1;
/// On the way from CacheOnly by itself.
pub const SHMLIMIT_SEGMENT_HEALTH_ATTEMPT: u32 = 2;
/// The rate rises step by step.
pub const SHMLIMIT_SEGMENT_HEALTH_RAMPING: u32 = 4;

/// An operator said so.
pub const SHMLIMIT_SEGMENT_CAUSE_FORCED: u32 = 0;
/// Too many 429 in a row.
pub const SHMLIMIT_SEGMENT_CAUSE_CONSEC_429: u32 = 1;
/// Too high a ratio of errors.
pub const SHMLIMIT_SEGMENT_CAUSE_ERROR_RATIO: u32 = 2;
/// A very high ratio for a long time.
pub const SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS: u32 = 3;
/// Successes enough.
pub const SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK: u32 = 4;
/// Slept long enough.
pub const SHMLIMIT_SEGMENT_CAUSE_SLEEP_EXPIRED: u32 = 5;
/// Probes succeeded.
pub const SHMLIMIT_SEGMENT_CAUSE_PROBE_OK: u32 = 6;
/// A probe failed.
pub const SHMLIMIT_SEGMENT_CAUSE_PROBE_FAILED: u32 = 7;
/// CacheOnly tries by itself.
pub const SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER: u32 = 8;
/// Too many failures in a row.
pub const SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES: u32 = 9;
/// Was open long enough.
pub const SHMLIMIT_SEGMENT_CAUSE_RESET_TIMEOUT: u32 = 10;

/// No breaker.
pub const SHMLIMIT_SEGMENT_BREAKER_NONE: u32 = 0;
/// Normal, Throttle, Sleep, HalfOpen, CacheOnly.
pub const SHMLIMIT_SEGMENT_BREAKER_FSM: u32 = 1;
/// Closed, open, half open.
pub const SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE: u32 = 2;

/// Work nobody waits for.
pub const SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND: u32 = 0;
/// Somebody waits.
pub const SHMLIMIT_SEGMENT_PRIORITY_USER: u32 = 1;
/// Another program waits.
pub const SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK: u32 = 2;

/// Those who wait are served strictly in the order of arrival; else every group has equal turns.
pub const SHMLIMIT_SEGMENT_QUEUEING_FIFO: u32 = 1;
/// There are no priorities.
pub const SHMLIMIT_SEGMENT_QUEUEING_NO_PRIORITIES: u32 = 2;

/// In the ring of outcomes: the call ended well.
pub const SHMLIMIT_SEGMENT_CLASS_OK: u32 = 0;
/// With 429.
pub const SHMLIMIT_SEGMENT_CLASS_THROTTLED: u32 = 1;
/// With 5xx.
pub const SHMLIMIT_SEGMENT_CLASS_SERVER: u32 = 2;
/// Without an answer.
pub const SHMLIMIT_SEGMENT_CLASS_NET: u32 = 3;

/// Which headers they are is told with each response.
pub const SHMLIMIT_SEGMENT_HEADERS_ANY: u32 = 0;

/// `retired`: it is in use. Not zero, so that zeros are never taken for an idle limiter.
pub const SHMLIMIT_SEGMENT_LIVE: u64 = 1163282764;
/// `retired`: replaced on purpose; what comes next starts afresh.
pub const SHMLIMIT_SEGMENT_RETIRED_REPLACED: u64 = 1;
/// `retired`: its file was deleted; what comes next goes on with what the rules have seen.
pub const SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER: u64 = 2;
/// `retired`: removed on purpose; nothing comes next until somebody makes it.
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
