//! The structs of a snapshot, as C sees them.
//!
//! Generated from src/limiter/fields.rs by scripts/languages/fields. The order of the fields is the binary interface:
//! new fields come at the end.

use crate::request::shmlimit_cost;
use std::ffi::c_char;

/// One rule at one moment.
#[repr(C)]
pub struct shmlimit_rule_snapshot {
    /// The rule's name.
    pub name: *const c_char,
    /// The unit that the rule counts, usually `requests`.
    pub unit: *const c_char,
    /// The rule's algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or
    /// `sliding_counter`.
    pub algorithm: *const c_char,
    /// Units that the rule allows per period.
    pub limit: u64,
    /// The rule's period.
    pub period_ns: u64,
    /// Maximum number of units that the rule allows at once.
    pub capacity: u64,
    /// Units that only high priorities may use.
    pub reserve: u64,
    /// Whole units that are left for high priorities, which may use the reserve.
    pub remaining: u64,
    /// Whole units that are left for background calls.
    pub remaining_background: u64,
    /// Time until one more unit is available if no call takes any; SHMLIMIT_NEVER = the rule has as many as it can
    /// have now.
    pub next_in_ns: u64,
    /// Time until `capacity` units are available; SHMLIMIT_NEVER = they are available now, or the breaker allows
    /// fewer now.
    pub full_in_ns: u64,
}

/// One attached process at one moment.
#[repr(C)]
pub struct shmlimit_participant_snapshot {
    /// The program name of the process.
    pub program: *const c_char,
    /// How long the process has been attached.
    pub attached_for_ns: u64,
    /// How long the process has held at least one permit without interruption; SHMLIMIT_NEVER = it holds none.
    pub held_for_ns: u64,
    /// How many calls of the process were granted.
    pub granted: u64,
    /// How many calls of the process were refused. A call that waited counts once, when it gives up.
    pub refused: u64,
    /// How often waiting calls of the process checked whether it was their turn.
    pub looked: u64,
    /// The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of
    /// a file that was deleted by hand.
    pub pid: u32,
    /// Permits that the process holds.
    pub held: u32,
}

/// One waiting call at one moment.
#[repr(C)]
pub struct shmlimit_waiter_snapshot {
    /// The program name of the process.
    pub program: *const c_char,
    /// How much of each unit the call costs. Units that it does not use are left out.
    pub costs: *const shmlimit_cost,
    /// How many elements `costs` has.
    pub cost_count: usize,
    /// Identifies the call's group. Processes that take their turns together have the same value.
    pub group: u64,
    /// How long the call has waited.
    pub waited_for_ns: u64,
    /// Time until the call checks again by itself; 0 = the check is due, or late.
    pub looks_in_ns: u64,
    /// Time until the call gives up; SHMLIMIT_NEVER = it has no deadline.
    pub gives_up_in_ns: u64,
    /// The id of the waiting process, in its own pid namespace.
    pub pid: u32,
    /// The call's priority: SHMLIMIT_PRIORITY_….
    pub priority: u32,
    /// 1 = yes, 0 = no: whether the call has missed its check, because its process is stopped, starved or dying.
    /// Other calls pass it, and it keeps its place.
    pub late: u32,
    /// Always 0.
    pub reserved: u32,
}

/// One window of the provider at one moment, as response headers described it.
#[repr(C)]
pub struct shmlimit_pace_window_snapshot {
    /// The window's name.
    pub name: *const c_char,
    /// The window's limit.
    pub limit: u64,
    /// Remaining units of the window.
    pub remaining: u64,
    /// Time until the window restarts; SHMLIMIT_NEVER = unknown.
    pub resets_in_ns: u64,
    /// The used part of the window, from 0 to 1.
    pub usage: f64,
}

/// A change of the breaker's state.
#[repr(C)]
pub struct shmlimit_transition_snapshot {
    /// The state before.
    pub from: *const c_char,
    /// The state after.
    pub to: *const c_char,
    /// Why the state changed.
    pub reason: *const c_char,
    /// How long ago the state changed.
    pub ago_ns: u64,
}

/// A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by
/// shmlimit_snapshot_free(). Its lists are lists of pointers, so that all of these structs can grow at their ends.
#[repr(C)]
pub struct shmlimit_snapshot {
    /// sizeof(shmlimit_snapshot) of the library.
    pub size: usize,
    /// The limiter's name.
    pub name: *const c_char,
    /// The directory of the limiter.
    pub directory: *const c_char,
    /// The provider whose limits these are.
    pub provider: *const c_char,
    /// The kind of breaker: `none`, `fsm` (five states) or `consecutive`.
    pub breaker: *const c_char,
    /// The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`. A consecutive breaker has
    /// `closed`, `open` or `half_open`, and a limiter without a breaker has `normal`.
    pub state: *const c_char,
    /// Why the state began; NULL = it has never changed.
    pub reason: *const c_char,
    /// Of the gate: the program name of that process. NULL while `gate` is 0.
    pub gate_program: *const c_char,
    /// Of the pace: the window that determines the gap; NULL = no window does. NULL while `pace` is 0.
    pub pace_bottleneck: *const c_char,
    /// How long the state has lasted. A state that has never changed lasts since the limiter was created.
    pub state_for_ns: u64,
    /// Time until the state ends by itself; SHMLIMIT_NEVER = it does not. A Sleep does not end before the gate
    /// opens. In other states it is the time of the next rise of the rate.
    pub eta_ns: u64,
    /// Of the gate: time until the gate opens. 0 while `gate` is 0.
    pub gate_opens_in_ns: u64,
    /// Of the gate: how long ago the Retry-After was recorded. 0 while `gate` is 0.
    pub gate_recorded_ns: u64,
    /// Of the pace: the smallest gap between calls, learned from response headers. 0 while `pace` is 0.
    pub pace_interval_ns: u64,
    /// Units per second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it
    /// is the rate of the first rule.
    pub rate: f64,
    /// The ratio of errors among the outcomes that count now.
    pub error_ratio: f64,
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that ended with 429.
    pub throttled: u64,
    /// Calls that ended with 5xx.
    pub server: u64,
    /// Calls without a response.
    pub net: u64,
    /// Calls that ended with any other 4xx, which says nothing about the server.
    pub ignored: u64,
    /// The sum of these latencies.
    pub latency_sum_ns: u64,
    /// Histogram of the recorded latencies. The counts are for up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000,
    /// 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
    pub latency: [u64; 16],
    /// How often a damaged state was reset.
    pub resets: u64,
    /// Maximum number of calls in flight, as configured; 0 = unlimited.
    pub concurrency: u32,
    /// Maximum number of background calls in flight, as configured; 0 = no separate limit.
    pub concurrency_background: u32,
    /// Maximum number of calls in flight in this state; 0 = unlimited.
    pub concurrency_now: u32,
    /// Permits in use.
    pub in_flight: u32,
    /// Permits that background calls hold.
    pub in_flight_background: u32,
    /// Permits whose process has exited. They are reclaimed as soon as a call needs one.
    pub held_by_exited: u32,
    /// 1 = yes, 0 = no: whether an operator has put the limiter offline.
    pub offline: u32,
    /// Number of outcomes that count now.
    pub samples: u32,
    /// Number of consecutive 429 responses.
    pub consec429: u32,
    /// Number of consecutive failures, for a consecutive breaker.
    pub failures: u32,
    /// Of the gate: the id of the process that recorded the Retry-After. 0 while `gate` is 0.
    pub gate_pid: u32,
    /// Always 0.
    pub reserved: u32,
    /// The rules, in the order of the configuration.
    pub rules: *const *const shmlimit_rule_snapshot,
    /// How many elements `rules` has.
    pub rule_count: usize,
    /// The attached processes that are alive.
    pub participants: *const *const shmlimit_participant_snapshot,
    /// How many elements `participants` has.
    pub participant_count: usize,
    /// The waiting calls, in the order in which they will be served. A background call that is owed its
    /// `background_share` comes before all others.
    pub queue: *const *const shmlimit_waiter_snapshot,
    /// How many elements `queue` has.
    pub queue_count: usize,
    /// The provider's windows as the headers described them.
    pub pace_windows: *const *const shmlimit_pace_window_snapshot,
    /// How many elements `pace_windows` has.
    pub pace_window_count: usize,
    /// The latest changes of the breaker's state, the newest last.
    pub transitions: *const *const shmlimit_transition_snapshot,
    /// How many elements `transitions` has.
    pub transition_count: usize,
    /// Calls granted.
    pub granted: u64,
    /// Calls refused. A call that waited counts once, when it gives up.
    pub refused: u64,
    /// How often waiting calls checked whether it was their turn.
    pub looked: u64,
    /// Answers that were found in a cache.
    pub cache_hits: u64,
    /// Answers that were not found in a cache.
    pub cache_misses: u64,
    /// Histogram of how long callers were told to wait before they try again. The counts are for up to 1, 2, 5, 10,
    /// 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000 and 60000 ms, and for longer.
    pub sleep: [u64; 16],
    /// The total time that callers were told to wait.
    pub sleep_sum_ns: u64,
    /// Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`.
    pub codes: *const *const shmlimit_code_count,
    /// How many elements `codes` has.
    pub code_count: usize,
    /// Of the pause: the program name of that process; for `shmlimit pause`, the name of its user. NULL while
    /// `paused` is 0.
    pub pause_program: *const c_char,
    /// Of the pause: the reason that the operator gave; NULL = no reason was given. NULL while `paused` is 0.
    pub pause_reason: *const c_char,
    /// Of the pause: how long the pause has lasted. 0 while `paused` is 0.
    pub paused_for_ns: u64,
    /// Of the pause: time until the pause ends by itself; SHMLIMIT_NEVER = it lasts until the limiter is resumed. 0
    /// while `paused` is 0.
    pub pause_ends_in_ns: u64,
    /// 1 = there is a pause: its fields begin with `pause`. The pause that an operator ordered; 0 = the limiter is
    /// not paused.
    pub paused: u32,
    /// Of the pause: the id of the process that paused the limiter. That process may have exited since. 0 while
    /// `paused` is 0.
    pub pause_pid: u32,
    /// Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`.
    pub fairness: *const c_char,
    /// The share that background calls always get, from 0 to 1.
    pub background_share: f64,
    /// 1 = there is a gate: its fields begin with `gate`. The gate that a Retry-After closed; 0 = it is open.
    pub gate: u32,
    /// 1 = there is a pace: its fields begin with `pace`. The pace learned from response headers; 0 = the limiter
    /// does not read them.
    pub pace: u32,
}

/// How often calls ended with one code.
#[repr(C)]
pub struct shmlimit_code_count {
    /// The HTTP status, or the name of an error: "200", "connect_timeout".
    pub code: *const c_char,
    /// How often.
    pub count: u64,
}
