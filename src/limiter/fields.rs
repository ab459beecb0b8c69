//! What a snapshot shows: every struct and field, for Rust, JSON, C, Python, metrics and the documents.
//!
//! A new field is a line here and its value where the struct is filled: `snapshot.rs`, `condition.rs` or `pause.rs`. Then
//! `scripts/languages/fields` writes the rest. A sentence about `None` is about `null` in JSON, and about `NULL`, 0 or
//! `SHMLIMIT_NEVER` in C.

use super::document::Value;
use super::outcome::OutcomeCode;
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
        /// The directory it lives in.
        pub directory: PathBuf,
        /// The provider whose limits these are.
        pub provider: String,
        /// Most calls in flight, as configured; `None` = any number.
        pub concurrency: Option<u32>,
        /// Most background calls in flight, as configured; `None` = as many as of any priority.
        pub concurrency_background: Option<u32>,
        /// Permits that are out.
        #[field(metric: GAUGE)]
        pub in_flight: u32,
        /// Permits that background calls hold.
        #[field(metric: GAUGE)]
        pub in_flight_background: u32,
        /// Permits whose holder has exited. They are reclaimed as soon as a call needs one.
        #[field(metric: GAUGE)]
        pub held_by_exited: u32,
        /// How often a damaged state had to be started afresh.
        #[field(metric: COUNTER)]
        pub resets: u64,
        /// Counts of all processes since the limiter was made, also of those that have exited.
        pub counts: Counts,
        /// The pause that an operator ordered; `None` = the limiter is not paused.
        #[field(c: Some("pause"))]
        pub paused: Option<PauseSnapshot>,
        /// How the server is doing: breaker, gate, outcomes, pace.
        #[field(flat: true)]
        pub condition: Condition,
        /// Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`.
        #[field(one_of: Some("Fairness"))]
        pub fairness: Fairness,
        /// The share that background calls get in any case, from 0 to 1.
        pub background_share: f64,
        /// The rules, in the order of the configuration.
        pub rules: Vec<RuleSnapshot>,
        /// The processes that are attached and alive.
        pub participants: Vec<ParticipantSnapshot>,
        /// The calls that wait, in the order in which they will be served. A background call that is owed its
        /// `background_share` comes before all others.
        pub queue: Vec<WaiterSnapshot>,
    }
    rust_only {
        /// The effective policy.
        pub policy: Policy,
        /// When the snapshot was taken, by the wall clock, or by the limiter's [`TestClock`](crate::TestClock).
        pub taken_at: SystemTime,
    }

    /// What was counted since a limiter was made, by every process that ever used it.
    #[derive(Default, PartialEq, Eq)]
    pub struct Counts {
        /// Calls granted.
        #[field(metric: COUNTER)]
        pub granted: u64,
        /// Calls refused. A call that waited counts once, when it gives up.
        #[field(metric: COUNTER)]
        pub refused: u64,
        /// How often waiting calls looked whether it was their turn.
        #[field(metric: COUNTER)]
        pub looked: u64,
        /// Answers found in a cache.
        #[field(metric: COUNTER)]
        pub cache_hits: u64,
        /// Answers not found in a cache.
        #[field(metric: named(COUNTER, "cache_miss"))]
        pub cache_misses: u64,
        /// Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`.
        pub codes: Vec<(OutcomeCode, u64)>,
        /// How many callers were told to wait before they try again, by how long: up to 1, 2, 5, 10, 25, 50, 100, 250, 500,
        /// 1000, 2500, 5000, 10000, 30000 and 60000 ms, each; the last: longer.
        #[field(json: None)]
        pub sleep: [u64; 16],
        /// The time that callers were told to wait, all together.
        #[field(json: None)]
        pub sleep_sum: Duration,
    }

    /// One rule at one moment.
    pub struct RuleSnapshot {
        /// The rule's name.
        pub name: String,
        /// Its algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or `sliding_counter`.
        #[field(one_of: Some("Algorithm"))]
        pub algorithm: &'static str,
        /// The unit that it counts, usually `requests`.
        pub unit: String,
        /// Units that the rule allows per period.
        #[field(metric: GAUGE)]
        pub limit: u64,
        /// The rule's period.
        #[field(metric: GAUGE)]
        pub period: Duration,
        /// Most units that the rule allows at once.
        #[field(metric: GAUGE)]
        pub capacity: u64,
        /// Units that only high priorities may use.
        pub reserve: u64,
        /// Whole units of the rule that are left for high priorities, which may use the reserve.
        #[field(metric: GAUGE)]
        pub remaining: u64,
        /// Whole units of the rule that are left for the background.
        #[field(metric: GAUGE)]
        pub remaining_background: u64,
        /// In how long there is one more unit if no call takes any; `None` = there are as many as there can be now.
        pub next_in: Option<Duration>,
        /// In how long there are as many units as `capacity`; `None` = there are, or the breaker allows fewer now.
        pub full_in: Option<Duration>,
    }

    /// One attached process at one moment.
    pub struct ParticipantSnapshot {
        /// The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of a
        /// file that was deleted by hand.
        pub pid: u32,
        /// Its program name.
        pub program: String,
        /// How long it has been attached.
        pub attached_for: Duration,
        /// Permits it holds.
        pub held: u32,
        /// How long it has held at least one permit without a break; `None` = it holds none.
        pub held_for: Option<Duration>,
        /// How often it was granted a call.
        pub granted: u64,
        /// How often it was refused a call. A call that waited counts once, when it gives up.
        pub refused: u64,
        /// How often its waiting calls looked whether it was their turn.
        pub looked: u64,
    }

    /// One waiting call at one moment.
    pub struct WaiterSnapshot {
        /// The id of the process that waits, in its own pid namespace.
        pub pid: u32,
        /// Its program name.
        pub program: String,
        /// The call's priority: `background`, `user` or `webhook`.
        #[field(one_of: Some("Priority"))]
        pub priority: Priority,
        /// Stands for the call's group: equal for the processes that take their turns together.
        pub group: GroupId,
        /// How much of each unit the call needs. Units of which it needs nothing are left out.
        #[field(c: Some("costs"))]
        pub cost: Vec<(String, u64)>,
        /// How long it has waited.
        pub waited_for: Duration,
        /// In how long it will look again by itself; 0 = it is about to, or late.
        pub looks_in: Duration,
        /// Whether it has not looked when it should: it is stopped, starved or dying. Others pass it over, and it keeps its
        /// place.
        pub late: bool,
        /// In how long it gives up; `None` = it waits as long as it takes.
        pub gives_up_in: Option<Duration>,
    }

    /// Breaker, gate, outcomes and pace at one moment.
    pub struct Condition {
        /// The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`; of a consecutive breaker `closed`,
        /// `open` or `half_open`; without a breaker `normal`.
        #[field(json: Some("state"), c: Some("state"), python: "state", one_of: Some("BreakerState"))]
        pub state_name: &'static str,
        /// How long the state has lasted; if it has never changed, since the limiter was made.
        pub state_for: Duration,
        /// Why the state began; `None` = it has never changed.
        #[field(one_of: Some("TransitionCause"))]
        pub reason: Option<TransitionCause>,
        /// In how long the state ends by itself; `None` = it does not. A Sleep is not over before the gate opens. In other
        /// states it is the time of the next rise of the rate.
        pub eta: Option<Duration>,
        /// Whether an operator has put the limiter offline.
        pub offline: bool,
        /// Units a second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it is the
        /// rate of the first rule.
        #[field(metric: named(GAUGE, "rate_current"))]
        pub rate: f64,
        /// Most calls in flight in this state; `None` = any number.
        #[field(metric: named(GAUGE, "concurrency_current"))]
        pub concurrency_now: Option<u32>,
        /// The gate that a Retry-After closed; `None` = it is open.
        pub gate: Option<GateSnapshot>,
        /// Outcomes that count now.
        #[field(metric: GAUGE)]
        pub samples: u32,
        /// The ratio of errors among the outcomes that count now.
        #[field(metric: named(GAUGE, "err_rate_30s"))]
        pub error_ratio: f64,
        /// Successive 429.
        #[field(metric: GAUGE)]
        pub consec429: u32,
        /// Successive failures, of a consecutive breaker.
        #[field(metric: GAUGE)]
        pub failures: u32,
        /// How calls ended since the limiter was made.
        pub outcomes: OutcomeCounts,
        /// The pace that response headers taught; `None` = the limiter does not read them.
        pub pace: Option<PaceSnapshot>,
        /// The newest changes of the breaker's state, the newest last.
        pub transitions: Vec<TransitionSnapshot>,
        /// How many changes of the breaker's state there were, ever.
        #[field(json: None, c: None, metric: COUNTER)]
        pub transitions_total: u64,
        /// The kind of breaker: `none`, `fsm` (five states) or `consecutive`.
        #[field(json: None)]
        pub breaker: BreakerKind,
    }
    rust_only {
        /// The breaker's state.
        pub state: BreakerState,
        /// In how long the state's timer is due, which may be before `eta`; `None` if it has none.
        pub timer: Option<Duration>,
        /// While half open: for how long calls have been granted without any success or failure reported. `None` in every
        /// other state, and while every probe is answered (R146).
        pub unanswered_for: Option<Duration>,
    }

    /// A gate that a Retry-After closed.
    pub struct GateSnapshot {
        /// In how long it opens.
        pub opens_in: Duration,
        /// The id of the process that recorded the Retry-After.
        pub pid: u32,
        /// The program name of that process.
        pub program: String,
        /// How long ago it was recorded.
        pub recorded: Duration,
    }

    /// How calls ended since a limiter was made.
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
        /// Calls without an answer.
        pub net: u64,
        /// Calls that ended with any other 4xx, which says nothing about the server.
        pub ignored: u64,
        /// How many of the calls whose latency was recorded took up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000,
        /// 10000, 30000 and 60000 ms, each; the last: longer.
        #[field(json: None)]
        pub latency: [u64; 16],
        /// The latencies of these calls, all together.
        #[field(json: None)]
        pub latency_sum: Duration,
    }

    /// The pace that response headers taught.
    pub struct PaceSnapshot {
        /// The smallest gap between calls that response headers taught.
        #[field(metric: GAUGE)]
        pub interval: Duration,
        /// The window that the gap is for; `None` = there is none.
        pub bottleneck: Option<String>,
        /// What the headers said of each window of the provider's.
        pub windows: Vec<PaceWindowSnapshot>,
    }

    /// One window of the provider's at one moment, as response headers told of it.
    pub struct PaceWindowSnapshot {
        /// The window's name.
        pub name: String,
        /// The window's limit.
        #[field(metric: GAUGE)]
        pub limit: u64,
        /// What is left of the window.
        #[field(metric: GAUGE)]
        pub remaining: u64,
        /// How much of the window is used, from 0 to 1.
        pub usage: f64,
        /// In how long it starts anew; `None` = unknown.
        pub resets_in: Option<Duration>,
    }

    /// A change of the breaker's state.
    #[derive(PartialEq, Eq)]
    pub struct TransitionSnapshot {
        /// How long ago it was.
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
        /// How long it has lasted.
        pub paused_for: Duration,
        /// In how long it ends by itself; `None` = it lasts until the limiter is resumed.
        pub ends_in: Option<Duration>,
        /// The id of the process that paused the limiter. That process may have ended since.
        pub pid: u32,
        /// The program name of that process; of `shmlimit pause`, its user.
        pub program: String,
        /// Why, as the operator put it; `None` = no reason was given.
        pub reason: Option<String>,
    }
}

/// Stands for a group of processes that take their turns in the queue together.
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
