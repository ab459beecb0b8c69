//! The numbers that a segment stores for kinds of things. They never change their meaning.

use ::shmlimit_segment::layout;
use shmlimit::{Algorithm, BreakerState, OutcomeClass, Priority, TransitionCause};
use shmlimit_kernel::health_state;
use shmlimit_kernel::policy::{Breaker, BreakerKind, HeaderFormat};

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

/// A bucket of tokens that fills at a steady rate.
pub const SHMLIMIT_SEGMENT_ALGORITHM_TOKEN_BUCKET: u32 = 1;
/// The generic cell rate algorithm.
pub const SHMLIMIT_SEGMENT_ALGORITHM_GCRA: u32 = 2;
/// A bucket that leaks at a steady rate.
pub const SHMLIMIT_SEGMENT_ALGORITHM_LEAKY_BUCKET: u32 = 3;
/// So many in each calendar window.
pub const SHMLIMIT_SEGMENT_ALGORITHM_FIXED_WINDOW: u32 = 4;
/// So many in any window, each one remembered.
pub const SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_LOG: u32 = 5;
/// Two calendar windows, the older one weighted.
pub const SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_COUNTER: u32 = 6;

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
/// X-MBX-USED-WEIGHT-1M and the like.
pub const SHMLIMIT_SEGMENT_HEADERS_BINANCE: u32 = 1;
/// Remaining-Req.
pub const SHMLIMIT_SEGMENT_HEADERS_UPBIT: u32 = 2;
/// RateLimit in the IETF's drafts.
pub const SHMLIMIT_SEGMENT_HEADERS_IETF: u32 = 3;
/// X-RateLimit-*.
pub const SHMLIMIT_SEGMENT_HEADERS_XRATELIMIT: u32 = 4;
/// GitHub's.
pub const SHMLIMIT_SEGMENT_HEADERS_GITHUB: u32 = 5;
/// OpenAI's.
pub const SHMLIMIT_SEGMENT_HEADERS_OPENAI: u32 = 6;
/// Anthropic's.
pub const SHMLIMIT_SEGMENT_HEADERS_ANTHROPIC: u32 = 7;

/// `retired`: it is in use. Not zero, so that zeros are never taken for an idle limiter.
pub const SHMLIMIT_SEGMENT_LIVE: u64 = 1163282764;
/// `retired`: replaced on purpose; what comes next starts afresh.
pub const SHMLIMIT_SEGMENT_RETIRED_REPLACED: u64 = 1;
/// `retired`: its file was deleted; what comes next goes on with what the rules have seen.
pub const SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER: u64 = 2;
/// `retired`: removed on purpose; nothing comes next until somebody makes it.
pub const SHMLIMIT_SEGMENT_RETIRED_REMOVED: u64 = 3;

const _: () = {
    assert!(SHMLIMIT_SEGMENT_STATE_NORMAL == BreakerState::Normal as u32);
    assert!(SHMLIMIT_SEGMENT_STATE_THROTTLE == BreakerState::Throttle as u32);
    assert!(SHMLIMIT_SEGMENT_STATE_SLEEP == BreakerState::Sleep as u32);
    assert!(SHMLIMIT_SEGMENT_STATE_HALF_OPEN == BreakerState::HalfOpen as u32);
    assert!(SHMLIMIT_SEGMENT_STATE_CACHE_ONLY == BreakerState::CacheOnly as u32);
    assert!(SHMLIMIT_SEGMENT_STATE_OPEN == BreakerState::Open as u32);

    assert!(SHMLIMIT_SEGMENT_HEALTH_OFFLINE == health_state::OFFLINE);
    assert!(SHMLIMIT_SEGMENT_HEALTH_ATTEMPT == health_state::ATTEMPT);
    assert!(SHMLIMIT_SEGMENT_HEALTH_RAMPING == health_state::RAMPING);

    assert!(SHMLIMIT_SEGMENT_CAUSE_FORCED == TransitionCause::Forced as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_CONSEC_429 == TransitionCause::Consec429 as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_ERROR_RATIO == TransitionCause::ErrorRatio as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_SUSTAINED_ERRORS == TransitionCause::SustainedErrors as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_SUCCESS_WINDOW_OK == TransitionCause::SuccessWindowOk as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_SLEEP_EXPIRED == TransitionCause::SleepExpired as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_PROBE_OK == TransitionCause::ProbeOk as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_PROBE_FAILED == TransitionCause::ProbeFailed as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_AUTO_RECOVER == TransitionCause::AutoRecover as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_CONSECUTIVE_FAILURES == TransitionCause::ConsecutiveFailures as u32);
    assert!(SHMLIMIT_SEGMENT_CAUSE_RESET_TIMEOUT == TransitionCause::ResetTimeout as u32);

    assert!(SHMLIMIT_SEGMENT_BREAKER_NONE == BreakerKind::None as u32);
    assert!(SHMLIMIT_SEGMENT_BREAKER_FSM == BreakerKind::Fsm as u32);
    assert!(SHMLIMIT_SEGMENT_BREAKER_CONSECUTIVE == BreakerKind::Consecutive as u32);
    assert!(matches!(Breaker::of(BreakerKind::Fsm).kind(), BreakerKind::Fsm));

    assert!(SHMLIMIT_SEGMENT_ALGORITHM_TOKEN_BUCKET == Algorithm::TokenBucket as u32);
    assert!(SHMLIMIT_SEGMENT_ALGORITHM_GCRA == Algorithm::Gcra as u32);
    assert!(SHMLIMIT_SEGMENT_ALGORITHM_LEAKY_BUCKET == Algorithm::LeakyBucket as u32);
    assert!(SHMLIMIT_SEGMENT_ALGORITHM_FIXED_WINDOW == Algorithm::FixedWindow as u32);
    assert!(SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_LOG == Algorithm::SlidingLog as u32);
    assert!(SHMLIMIT_SEGMENT_ALGORITHM_SLIDING_COUNTER == Algorithm::SlidingCounter as u32);

    assert!(SHMLIMIT_SEGMENT_PRIORITY_BACKGROUND == Priority::Background as u32);
    assert!(SHMLIMIT_SEGMENT_PRIORITY_USER == Priority::User as u32);
    assert!(SHMLIMIT_SEGMENT_PRIORITY_WEBHOOK == Priority::Webhook as u32);

    assert!(SHMLIMIT_SEGMENT_CLASS_OK == OutcomeClass::Ok as u32);
    assert!(SHMLIMIT_SEGMENT_CLASS_THROTTLED == OutcomeClass::Throttled as u32);
    assert!(SHMLIMIT_SEGMENT_CLASS_SERVER == OutcomeClass::Server as u32);
    assert!(SHMLIMIT_SEGMENT_CLASS_NET == OutcomeClass::Net as u32);

    assert!(SHMLIMIT_SEGMENT_HEADERS_BINANCE == HeaderFormat::Binance as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_UPBIT == HeaderFormat::Upbit as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_IETF == HeaderFormat::Ietf as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_XRATELIMIT == HeaderFormat::XRateLimit as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_GITHUB == HeaderFormat::GitHub as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_OPENAI == HeaderFormat::OpenAi as u32);
    assert!(SHMLIMIT_SEGMENT_HEADERS_ANTHROPIC == HeaderFormat::Anthropic as u32);

    assert!(SHMLIMIT_SEGMENT_LIVE == layout::LIVE);
    assert!(SHMLIMIT_SEGMENT_RETIRED_REPLACED == layout::REPLACED);
    assert!(SHMLIMIT_SEGMENT_RETIRED_HANDED_OVER == layout::HANDED_OVER);
    assert!(SHMLIMIT_SEGMENT_RETIRED_REMOVED == layout::REMOVED);
};
