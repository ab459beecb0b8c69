//! The contents of a snapshot: every struct and field, for Rust, JSON, C, Python, metrics and the documents.
//!
//! A new field is a line here, and its value where the struct is filled: `snapshot.rs`, `condition.rs` or
//! `pause.rs`. Then `scripts/languages/fields` writes the rest. A sentence about `None` becomes one about `null` in
//! JSON, and about `NULL`, 0 or `SHMLIMIT_NEVER` in C.

use super::document::Value;
use super::outcome_code::OutcomeCode;
use super::schema::{COUNTER, FieldType, FieldValue, GAUGE, Kind, named, snapshot};
use shmlimit_kernel::breaker::{BreakerState, TransitionCause};
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::{Fairness, Policy, Priority};
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

snapshot! {
    /// A limiter at one moment.
    pub struct Snapshot {
        /// The limiter's name.
        pub name: String,
        /// The directory of the limiter.
        pub directory: PathBuf,
        /// The provider whose limits these are.
        pub provider: String,
        /// Maximum number of calls in flight, as configured; `None` = unlimited.
        pub concurrency: Option<u32>,
        /// Maximum number of background calls in flight, as configured; `None` = no separate limit.
        pub concurrency_background: Option<u32>,
        /// Permits in use.
        #[field(metric: GAUGE)]
        pub in_flight: u32,
        /// Permits that background calls hold.
        #[field(metric: GAUGE)]
        pub in_flight_background: u32,
        /// Permits whose process has exited. They are reclaimed as soon as a call needs one.
        #[field(metric: GAUGE)]
        pub held_by_exited: u32,
        /// How often a damaged state was reset.
        #[field(metric: COUNTER)]
        pub resets: u64,
        /// Counts of all processes since the limiter was created, including those that have exited.
        pub counts: Counts,
        /// The pause that an operator ordered; `None` = the limiter is not paused.
        #[field(c: Some("pause"))]
        pub paused: Option<PauseSnapshot>,
        /// The condition of the server: breaker, gate, outcomes, pace.
        #[field(flat: true)]
        pub condition: Condition,
        /// Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`.
        #[field(one_of: Some("Fairness"))]
        pub fairness: Fairness,
        /// The share that background calls always get, from 0 to 1.
        pub background_share: f64,
        /// The rules, in the order of the configuration.
        pub rules: Vec<RuleSnapshot>,
        /// The attached processes that are alive.
        pub participants: Vec<ParticipantSnapshot>,
        /// The waiting calls, in the order in which they will be served. A background call that is owed its
        /// `background_share` comes before all others.
        pub queue: Vec<WaiterSnapshot>,
    }
    rust_only {
        /// The effective policy.
        pub policy: Policy,
        /// When the snapshot was taken, by the wall clock, or by the limiter's [`TestClock`](crate::TestClock).
        pub taken_at: SystemTime,
    }

    /// Counts since a limiter was created, of every process that ever used it.
    #[derive(Default, PartialEq, Eq)]
    pub struct Counts {
        /// Calls granted.
        #[field(metric: COUNTER)]
        pub granted: u64,
        /// Calls refused. A call that waited counts once, when it gives up.
        #[field(metric: COUNTER)]
        pub refused: u64,
        /// How often waiting calls checked whether it was their turn.
        #[field(metric: COUNTER)]
        pub looked: u64,
        /// Answers that were found in a cache.
        #[field(metric: COUNTER)]
        pub cache_hits: u64,
        /// Answers that were not found in a cache.
        #[field(metric: named(COUNTER, "cache_miss"))]
        pub cache_misses: u64,
        /// Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`.
        pub codes: Vec<(OutcomeCode, u64)>,
        /// Histogram of how long callers were told to wait before they try again. The counts are for up to 1, 2, 5,
        /// 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
        #[field(json: None)]
        pub sleep: [u64; 16],
        /// The total time that callers were told to wait.
        #[field(json: None)]
        pub sleep_sum: Duration,
    }

    /// One rule at one moment.
    pub struct RuleSnapshot {
        /// The rule's name.
        pub name: String,
        /// The rule's algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or
        /// `sliding_counter`.
        #[field(one_of: Some("Algorithm"))]
        pub algorithm: &'static str,
        /// The unit that the rule counts, usually `requests`.
        pub unit: String,
        /// Units that the rule allows per period.
        #[field(metric: GAUGE)]
        pub limit: u64,
        /// The rule's period.
        #[field(metric: GAUGE)]
        pub period: Duration,
        /// Maximum number of units that the rule allows at once.
        #[field(metric: GAUGE)]
        pub capacity: u64,
        /// Units that only high priorities may use.
        pub reserve: u64,
        /// Whole units that are left for high priorities, which may use the reserve.
        #[field(metric: GAUGE)]
        pub remaining: u64,
        /// Whole units that are left for background calls.
        #[field(metric: GAUGE)]
        pub remaining_background: u64,
        /// Time until one more unit is available if no call takes any; `None` = the rule has as many as it can have
        /// now.
        pub next_in: Option<Duration>,
        /// Time until `capacity` units are available; `None` = they are available now, or the breaker allows fewer
        /// now.
        pub full_in: Option<Duration>,
    }

    /// One attached process at one moment.
    pub struct ParticipantSnapshot {
        /// The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits
        /// of a file that was deleted by hand.
        pub pid: u32,
        /// The program name of the process.
        pub program: String,
        /// How long the process has been attached.
        pub attached_for: Duration,
        /// Permits that the process holds.
        pub held: u32,
        /// How long the process has held at least one permit without interruption; `None` = it holds none.
        pub held_for: Option<Duration>,
        /// How many calls of the process were granted.
        pub granted: u64,
        /// How many calls of the process were refused. A call that waited counts once, when it gives up.
        pub refused: u64,
        /// How often waiting calls of the process checked whether it was their turn.
        pub looked: u64,
    }

    /// One waiting call at one moment.
    pub struct WaiterSnapshot {
        /// The id of the waiting process, in its own pid namespace.
        pub pid: u32,
        /// The program name of the process.
        pub program: String,
        /// The call's priority: `background`, `user` or `webhook`.
        #[field(one_of: Some("Priority"))]
        pub priority: Priority,
        /// Identifies the call's group. Processes that take their turns together have the same value.
        pub group: GroupId,
        /// How much of each unit the call costs. Units that it does not use are left out.
        #[field(c: Some("costs"))]
        pub cost: Vec<(String, u64)>,
        /// How long the call has waited.
        pub waited_for: Duration,
        /// Time until the call checks again by itself; 0 = the check is due, or late.
        pub looks_in: Duration,
        /// Whether the call has missed its check, because its process is stopped, starved or dying. Other calls
        /// pass it, and it keeps its place.
        pub late: bool,
        /// Time until the call gives up; `None` = it has no deadline.
        pub gives_up_in: Option<Duration>,
    }

    /// Breaker, gate, outcomes and pace at one moment.
    pub struct Condition {
        /// The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`. A consecutive breaker
        /// has `closed`, `open` or `half_open`, and a limiter without a breaker has `normal`.
        #[field(json: Some("state"), c: Some("state"), python: "state", one_of: Some("BreakerState"))]
        pub state_name: &'static str,
        /// How long the state has lasted. A state that has never changed lasts since the limiter was created.
        pub state_for: Duration,
        /// Why the state began; `None` = it has never changed.
        #[field(one_of: Some("TransitionCause"))]
        pub reason: Option<TransitionCause>,
        /// Time until the state ends by itself; `None` = it does not. A Sleep does not end before the gate opens.
        /// In other states it is the time of the next rise of the rate.
        pub eta: Option<Duration>,
        /// Whether an operator has put the limiter offline.
        pub offline: bool,
        /// Units per second that the breaker allows now; 0 while every call is blocked. Without a five-state
        /// breaker it is the rate of the first rule.
        #[field(metric: named(GAUGE, "rate_current"))]
        pub rate: f64,
        /// Maximum number of calls in flight in this state; `None` = unlimited.
        #[field(metric: named(GAUGE, "concurrency_current"))]
        pub concurrency_now: Option<u32>,
        /// The gate that a Retry-After closed; `None` = it is open.
        pub gate: Option<GateSnapshot>,
        /// Number of outcomes that count now.
        #[field(metric: GAUGE)]
        pub samples: u32,
        /// The ratio of errors among the outcomes that count now.
        #[field(metric: named(GAUGE, "err_rate_30s"))]
        pub error_ratio: f64,
        /// Number of consecutive 429 responses.
        #[field(metric: GAUGE)]
        pub consec429: u32,
        /// Number of consecutive failures, for a consecutive breaker.
        #[field(metric: GAUGE)]
        pub failures: u32,
        /// Counts of how calls ended since the limiter was created.
        pub outcomes: OutcomeCounts,
        /// The pace learned from response headers; `None` = the limiter does not read them.
        pub pace: Option<PaceSnapshot>,
        /// The latest changes of the breaker's state, the newest last.
        pub transitions: Vec<TransitionSnapshot>,
        /// The total number of changes of the breaker's state.
        #[field(json: None, c: None, metric: COUNTER)]
        pub transitions_total: u64,
        /// The kind of breaker: `none`, `fsm` (five states) or `consecutive`.
        #[field(json: None)]
        pub breaker: BreakerKind,
    }
    rust_only {
        /// The breaker's state.
        pub state: BreakerState,
        /// Time until the state's timer is due, which may be before `eta`; `None` = the state has no timer.
        pub timer: Option<Duration>,
        /// How long a half-open breaker has granted calls without any success or failure reported. `None` = another
        /// state, or every probe has been answered (R146).
        pub unanswered_for: Option<Duration>,
    }

    /// A gate that a Retry-After closed.
    pub struct GateSnapshot {
        /// Time until the gate opens.
        pub opens_in: Duration,
        /// The id of the process that recorded the Retry-After.
        pub pid: u32,
        /// The program name of that process.
        pub program: String,
        /// How long ago the Retry-After was recorded.
        pub recorded: Duration,
    }

    /// Counts of how calls ended since a limiter was created.
    #[derive(Copy, Default, PartialEq, Eq)]
    pub struct OutcomeCounts {
        /// Calls that succeeded.
        pub ok: u64,
        /// Calls that ended with 429.
        #[field(json: Some("429"))]
        pub throttled: u64,
        /// Calls that ended with 5xx.
        #[field(json: Some("5xx"))]
        pub server: u64,
        /// Calls without a response.
        pub net: u64,
        /// Calls that ended with any other 4xx, which says nothing about the server.
        pub ignored: u64,
        /// Histogram of the recorded latencies. The counts are for up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000,
        /// 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
        #[field(json: None)]
        pub latency: [u64; 16],
        /// The sum of these latencies.
        #[field(json: None)]
        pub latency_sum: Duration,
    }

    /// The pace learned from response headers.
    pub struct PaceSnapshot {
        /// The smallest gap between calls, learned from response headers.
        #[field(metric: GAUGE)]
        pub interval: Duration,
        /// The window that determines the gap; `None` = no window does.
        pub bottleneck: Option<String>,
        /// The provider's windows as the headers described them.
        pub windows: Vec<PaceWindowSnapshot>,
    }

    /// One window of the provider at one moment, as response headers described it.
    pub struct PaceWindowSnapshot {
        /// The window's name.
        pub name: String,
        /// The window's limit.
        #[field(metric: GAUGE)]
        pub limit: u64,
        /// Remaining units of the window.
        #[field(metric: GAUGE)]
        pub remaining: u64,
        /// The used part of the window, from 0 to 1.
        pub usage: f64,
        /// Time until the window restarts; `None` = unknown.
        pub resets_in: Option<Duration>,
    }

    /// A change of the breaker's state.
    #[derive(PartialEq, Eq)]
    pub struct TransitionSnapshot {
        /// How long ago the state changed.
        pub ago: Duration,
        /// The state before.
        #[field(python: "from_state", one_of: Some("BreakerState"))]
        pub from: &'static str,
        /// The state after.
        #[field(python: "to_state", one_of: Some("BreakerState"))]
        pub to: &'static str,
        /// Why the state changed.
        #[field(one_of: Some("TransitionCause"))]
        pub reason: TransitionCause,
    }

    /// A pause at one moment.
    #[derive(PartialEq, Eq)]
    pub struct PauseSnapshot {
        /// How long the pause has lasted.
        pub paused_for: Duration,
        /// Time until the pause ends by itself; `None` = it lasts until the limiter is resumed.
        pub ends_in: Option<Duration>,
        /// The id of the process that paused the limiter. That process may have exited since.
        pub pid: u32,
        /// The program name of that process; for `shmlimit pause`, the name of its user.
        pub program: String,
        /// The reason that the operator gave; `None` = no reason was given.
        pub reason: Option<String>,
    }
}

/// Identifies a group of processes that take their turns in the queue together.
///
/// ```
/// assert_eq!(shmlimit::GroupId(255).to_string(), "00000000000000ff");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupId(pub u64);

/// Sixteen hexadecimal digits, as in JSON.
impl fmt::Display for GroupId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl FieldType for GroupId {
    const KIND: Kind = Kind::Id;
}

impl FieldValue for GroupId {
    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}
