//! How calls ended, the state of the breaker that follows from it, and what response headers said, as stored.

use super::common::Held;
use crate::policy::{BreakerKind, PerSecond};
use crate::request::Reason;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

crate::named_enum! {
    /// The breaker's state. The numbers are stored and never change.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum BreakerState {
        /// All is well; of a consecutive breaker: closed.
        #[default]
        Normal = 0 => "normal",
        /// Half the rate, half the permits.
        Throttle = 1 => "throttle",
        /// No call until its timer is over.
        Sleep = 2 => "sleep",
        /// A few calls, to see whether the server is well.
        HalfOpen = 3 => "half_open",
        /// No call until an operator says so, or the limiter tries by itself.
        CacheOnly = 4 => "cache_only",
        /// No call until its timer is over, of a consecutive breaker.
        Open = 5 => "open",
    }
    /// All of them.
    pub const ALL;
    /// The state stored as `code`; any number is one.
    #[inline]
    pub const fn from_code(u32) or Normal;
    /// The name, but for the Normal of a consecutive breaker.
    const fn name;
    impl FromStr;
}

impl BreakerState {
    /// The name everywhere outside of Rust, with a breaker of that kind.
    pub const fn as_str(self, kind: BreakerKind) -> &'static str {
        match (self, kind) {
            (BreakerState::Normal, BreakerKind::Consecutive) => "closed",
            _ => self.name(),
        }
    }

    /// Why a call is refused in it, if every call is.
    #[inline]
    pub const fn blocks(self) -> Option<Reason> {
        match self {
            BreakerState::Sleep => Some(Reason::Sleep),
            BreakerState::CacheOnly => Some(Reason::CacheOnly),
            BreakerState::Open => Some(Reason::Open),
            BreakerState::Normal | BreakerState::Throttle | BreakerState::HalfOpen => None,
        }
    }
}

crate::named_enum! {
    /// Why a state changed (R115). The numbers are stored and never change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum TransitionCause {
        /// An operator said so.
        Forced = 0 => "forced",
        /// Too many 429 in a row.
        Consec429 = 1 => "consec_429",
        /// Too high a ratio of errors.
        ErrorRatio = 2 => "error_ratio",
        /// A very high ratio for a long time.
        SustainedErrors = 3 => "sustained_errors",
        /// Successes enough.
        SuccessWindowOk = 4 => "success_window_ok",
        /// Slept long enough.
        SleepExpired = 5 => "sleep_expired",
        /// Probes succeeded.
        ProbeOk = 6 => "probe_ok",
        /// A probe failed.
        ProbeFailed = 7 => "probe_failed",
        /// CacheOnly tries by itself.
        AutoRecover = 8 => "auto_recover",
        /// Too many failures in a row.
        ConsecutiveFailures = 9 => "consecutive_failures",
        /// Was open long enough.
        ResetTimeout = 10 => "reset_timeout",
    }
    /// All of them.
    pub const ALL;
    /// The cause stored as `code`; any number is one.
    pub const fn from_code(u8) or Forced;
    /// The name everywhere outside of Rust.
    pub const fn as_str;
    impl FromStr;
}

/// The breaker's state, the gate, and what decides about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Health {
    /// A [`BreakerState`].
    pub state: u32,
    /// [`OFFLINE`], [`ATTEMPT`], [`RAMPING`].
    pub flags: u32,
    /// When the state began.
    pub since: Time,
    /// When its timer is due, if it has one.
    pub until: Time,
    /// The effective rate where nothing is blocked; 0 = the full one.
    pub rate: PerSecond,
    /// No call before this, whatever the state (R73).
    pub gate_until: Time,
    /// One more than the time of the first of all evaluations in a row that found too many errors; 0 = the last did not.
    pub sustained: u64,
    /// While probing: when a probe that has not reported back is written off.
    pub probe_until: Time,
    /// Successive 429.
    pub consec429: u32,
    /// Successes since the state began.
    pub successes: u32,
    /// Evaluations in a row that agreed on a move.
    pub agreed: u32,
    /// Sleeps since the last Normal.
    pub sleeps: u32,
    /// Successive outcomes that call for backing off (R77).
    pub run: u32,
    /// Successive failures, of a consecutive breaker.
    pub failures: u32,
    /// The outcome window: where its oldest entry is, and how many there are.
    pub oldest: u32,
    /// See `oldest`.
    pub samples: u32,
    /// Errors in the outcome window.
    pub errors: u64,
    /// Permits granted before this were written off.
    pub written_at: Time,
    /// Permits of probes that were written off, and are still out.
    pub written_off: Held,
    /// Transitions so far.
    pub transitions: u64,
    /// While probing: one more than the time of the first call granted since the last outcome that counts (or since the
    /// probing began); 0 = every probe is answered (R146).
    pub unanswered: u64,
}

/// An operator said so: the state has no timer (R63).
pub const OFFLINE: u32 = 1;
/// On the way from CacheOnly by itself: a failed probe leads back there (R65).
pub const ATTEMPT: u32 = 2;
/// The rate rises step by step (R62).
pub const RAMPING: u32 = 4;

impl Health {
    /// Its state.
    #[inline]
    pub fn state(&self) -> BreakerState {
        BreakerState::from_code(self.state)
    }

    /// Whether a flag is set.
    #[inline]
    pub const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Sets or clears a flag.
    #[inline]
    pub const fn flag(&mut self, flag: u32, set: bool) {
        self.flags = if set { self.flags | flag } else { self.flags & !flag };
    }
}

/// How calls ended (R46), and how long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tallies {
    /// Calls that ended well.
    pub ok: u64,
    /// Calls answered with 429.
    pub throttled: u64,
    /// Calls answered with 5xx.
    pub server: u64,
    /// Calls that got no answer.
    pub net: u64,
    /// Calls answered with any other 4xx.
    pub other: u64,
    /// Nanoseconds that all calls took whose time was reported.
    pub latency_sum: u64,
    /// How many of them took up to [`LATENCY_BOUNDS`], each; the last: longer.
    pub latency: [u64; 16],
    unused: [u64; 2],
}

/// Upper bounds of the latencies that are counted together, in milliseconds.
pub const LATENCY_BOUNDS: [u64; 15] =
    [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

impl Tallies {
    /// Counts how long a call took.
    pub fn took(&mut self, latency: Nanos) {
        let place = bucket(latency);
        self.latency[place] = self.latency[place].wrapping_add(1);
        self.latency_sum = self.latency_sum.wrapping_add(latency.0);
    }
}

/// Which of sixteen counts a time belongs to: those of [`LATENCY_BOUNDS`], and a last one.
#[inline]
pub(crate) fn bucket(time: Nanos) -> usize {
    let millis = time.0.div_ceil(1_000_000);
    LATENCY_BOUNDS.iter().position(|bound| millis <= *bound).unwrap_or(LATENCY_BOUNDS.len())
}

/// Who closed the gate last, for people (R142).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct GateNote {
    /// When.
    pub at: Time,
    /// Process id.
    pub pid: u64,
    /// Program name, zero-padded.
    pub program: [u8; 16],
}

/// The gap between calls that response headers taught.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Pace {
    /// The smallest gap between calls.
    pub interval: Nanos,
    /// When it last became larger (R89).
    pub tightened_at: Time,
    /// Admissions so far.
    pub admitted: u64,
    /// One more than the window that the gap is for; 0 = none.
    pub bottleneck: u64,
    /// The same if that window's reset was not believed when the gap was set; 0 = it was.
    pub doubted: u64,
}

/// What headers last said about one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ObservedWindow {
    /// Its limit; the two highest bits say where that and the reset are from (kernel/pace.rs).
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// When it starts anew.
    pub reset_at: Time,
    /// One more than when that was said; 0 = never.
    pub seen: u64,
}

/// A change of the breaker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When; of a timer, when it was due.
    pub at: Time,
    /// From which state.
    pub from: BreakerState,
    /// To which.
    pub to: BreakerState,
    /// Why.
    pub cause: TransitionCause,
}
