//! The stored outcomes of calls, the state of the breaker, and the readings of response headers.

use super::common::Held;
use crate::policy::{BreakerKind, PerSecond};
use crate::request::Reason;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

crate::named_enum! {
    /// The breaker's state. The numbers are stored and never change.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerState;
    ///
    /// assert_eq!("half_open".parse(), Ok(BreakerState::HalfOpen));
    /// assert_eq!(BreakerState::default(), BreakerState::Normal);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum BreakerState {
        /// Normal operation. For a consecutive breaker: closed.
        #[default]
        Normal = 0 => "normal",
        /// Half the rate, half the permits.
        Throttle = 1 => "throttle",
        /// No calls until its timer ends.
        Sleep = 2 => "sleep",
        /// A few calls, to test whether the server works again.
        HalfOpen = 3 => "half_open",
        /// No calls until an operator changes the state, or the limiter tries to recover by itself.
        CacheOnly = 4 => "cache_only",
        /// No calls until its timer ends. Only for a consecutive breaker.
        Open = 5 => "open",
    }
    /// All states.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerState;
    ///
    /// assert!(BreakerState::ALL.contains(&BreakerState::CacheOnly));
    /// ```
    pub const ALL;
    /// The state stored as `code`. Any number is a valid state.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerState;
    ///
    /// assert_eq!(BreakerState::from_code(2), BreakerState::Sleep);
    /// assert_eq!(BreakerState::from_code(99), BreakerState::Normal);
    /// ```
    #[inline]
    pub const fn from_code(u32) or Normal;
    /// The name, except that of Normal for a consecutive breaker.
    const fn name;
    impl FromStr;
}

impl BreakerState {
    /// The name outside Rust, for a breaker of that kind.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// # use shmlimit_kernel::policy;
    /// use policy::BreakerKind;
    /// use shmlimit::BreakerState;
    ///
    /// assert_eq!(BreakerState::Normal.as_str(BreakerKind::Fsm), "normal");
    /// assert_eq!(BreakerState::Normal.as_str(BreakerKind::Consecutive), "closed");
    /// ```
    pub const fn as_str(self, kind: BreakerKind) -> &'static str {
        match (self, kind) {
            (BreakerState::Normal, BreakerKind::Consecutive) => "closed",
            _ => self.name(),
        }
    }

    /// The reason for refusals, if every call is refused in this state.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::BreakerState;
    ///
    /// assert_eq!(BreakerState::Sleep.blocks().unwrap().as_str(), "sleep");
    /// assert!(BreakerState::Throttle.blocks().is_none());
    /// ```
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
    /// The cause of a state change (R115). The numbers are stored and never change.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::TransitionCause;
    ///
    /// assert_eq!("probe_ok".parse(), Ok(TransitionCause::ProbeOk));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum TransitionCause {
        /// An operator's command.
        Forced = 0 => "forced",
        /// Too many 429 responses in a row.
        Consec429 = 1 => "consec_429",
        /// An error ratio that is too high.
        ErrorRatio = 2 => "error_ratio",
        /// A very high error ratio for a long time.
        SustainedErrors = 3 => "sustained_errors",
        /// Enough successes.
        SuccessWindowOk = 4 => "success_window_ok",
        /// The end of a Sleep.
        SleepExpired = 5 => "sleep_expired",
        /// Successful probes.
        ProbeOk = 6 => "probe_ok",
        /// A failed probe.
        ProbeFailed = 7 => "probe_failed",
        /// CacheOnly tries to recover by itself.
        AutoRecover = 8 => "auto_recover",
        /// Too many failures in a row.
        ConsecutiveFailures = 9 => "consecutive_failures",
        /// The end of the reset time of an open breaker.
        ResetTimeout = 10 => "reset_timeout",
    }
    /// All causes.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::TransitionCause;
    ///
    /// assert!(TransitionCause::ALL.contains(&TransitionCause::Forced));
    /// ```
    pub const ALL;
    /// The cause stored as `code`. Any number is a valid cause.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// use shmlimit::TransitionCause;
    ///
    /// assert_eq!(TransitionCause::from_code(1), TransitionCause::Consec429);
    /// assert_eq!(TransitionCause::from_code(99), TransitionCause::Forced);
    /// ```
    pub const fn from_code(u8) or Forced;
    /// The name outside Rust: in C, Python, JSON and logs.
    ///
    /// ```
    /// # use shmlimit_kernel::breaker as shmlimit;
    /// assert_eq!(shmlimit::TransitionCause::Consec429.as_str(), "consec_429");
    /// ```
    pub const fn as_str;
    impl FromStr;
}

/// The state of the breaker and the gate, with the counters that they depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Health {
    /// A [`BreakerState`].
    pub state: u32,
    /// [`OFFLINE`], [`ATTEMPT`], [`RAMPING`].
    pub flags: u32,
    /// The time at which the state began.
    pub since: Time,
    /// The time at which its timer is due, if it has one.
    pub until: Time,
    /// The effective rate in states that do not block every call. 0 means the full rate.
    pub rate: PerSecond,
    /// No call before this time, in any state (R73).
    pub gate_until: Time,
    /// One more than the time of the first evaluation in the present row of evaluations with too many errors. 0
    /// means that the last evaluation did not find too many.
    pub sustained: u64,
    /// While probing: the time at which a probe that has not reported back is written off.
    pub probe_until: Time,
    /// Successive 429 responses.
    pub consec429: u32,
    /// Successes since the state began.
    pub successes: u32,
    /// Evaluations in a row that agreed on a change.
    pub agreed: u32,
    /// Sleeps since the last Normal.
    pub sleeps: u32,
    /// Successive outcomes that require a backoff (R77).
    pub run: u32,
    /// Successive failures, for a consecutive breaker.
    pub failures: u32,
    /// The index of the oldest entry in the outcome window.
    pub oldest: u32,
    /// The number of entries in the outcome window.
    pub samples: u32,
    /// The number of errors in the outcome window.
    pub errors: u64,
    /// Permits granted before this time were written off.
    pub written_at: Time,
    /// Permits of probes that were written off, and are still in use.
    pub written_off: Held,
    /// The number of transitions so far.
    pub transitions: u64,
    /// While probing: one more than the time of the first call granted since the last outcome that counts, or
    /// since the probing began. 0 means that every probe is answered (R146).
    pub unanswered: u64,
}

/// Flag: an operator ordered the state, and it has no timer (R63).
pub const OFFLINE: u32 = 1;
/// Flag: CacheOnly tries to recover by itself, and a failed probe leads back to it (R65).
pub const ATTEMPT: u32 = 2;
/// Flag: the rate rises step by step (R62).
pub const RAMPING: u32 = 4;

impl Health {
    /// The breaker's state.
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

/// Counts of how calls ended (R46), and of their durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Tallies {
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls answered with 429.
    pub throttled: u64,
    /// Calls answered with 5xx.
    pub server: u64,
    /// Calls without an answer.
    pub net: u64,
    /// Calls answered with any other 4xx.
    pub other: u64,
    /// The sum of all reported durations, in nanoseconds.
    pub latency_sum: u64,
    /// The number of calls for each bound of [`LATENCY_BOUNDS`]. The last count is for longer calls.
    pub latency: [u64; 16],
    unused: [u64; 2],
}

/// Upper bounds of the latency buckets, in milliseconds.
pub const LATENCY_BOUNDS: [u64; 15] =
    [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

impl Tallies {
    /// Counts the duration of a call.
    pub fn took(&mut self, latency: Nanos) {
        let place = bucket(latency);
        self.latency[place] = self.latency[place].wrapping_add(1);
        self.latency_sum = self.latency_sum.wrapping_add(latency.0);
    }
}

/// The index of the latency bucket for a time: one per bound of [`LATENCY_BOUNDS`], and a last one.
#[inline]
pub(crate) fn bucket(time: Nanos) -> usize {
    let millis = time.0.div_ceil(1_000_000);
    LATENCY_BOUNDS.iter().position(|bound| millis <= *bound).unwrap_or(LATENCY_BOUNDS.len())
}

/// The process that closed the gate last, for reports (R142).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct GateNote {
    /// The time at which it closed the gate.
    pub at: Time,
    /// Process id.
    pub pid: u64,
    /// Program name, zero-padded.
    pub program: [u8; 16],
}

/// The pace: the gap between calls that follows from response headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Pace {
    /// The smallest gap between calls.
    pub interval: Nanos,
    /// The time at which the gap last became larger (R89).
    pub tightened_at: Time,
    /// The number of admissions so far.
    pub admitted: u64,
    /// One more than the index of the window that the gap follows from. 0 means none.
    pub bottleneck: u64,
    /// The same number, if the reset of that window was not believed when the gap was set. 0 means that it was
    /// believed.
    pub doubted: u64,
}

/// The last readings of response headers about one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ObservedWindow {
    /// The limit of the window. The two highest bits say where the limit and the reset come from
    /// (kernel/pace.rs).
    pub limit: u64,
    /// The number of calls left.
    pub remaining: u64,
    /// The time at which the window resets.
    pub reset_at: Time,
    /// One more than the time of the readings. 0 means never.
    pub seen: u64,
}

/// A change of the breaker's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The time of the change. For a timer, the time at which it was due.
    pub at: Time,
    /// The state before.
    pub from: BreakerState,
    /// The state after.
    pub to: BreakerState,
    /// The cause.
    pub cause: TransitionCause,
}
