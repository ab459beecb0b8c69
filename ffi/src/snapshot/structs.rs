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
    /// The unit that it counts, usually `requests`.
    pub unit: *const c_char,
    /// Its algorithm: `token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_log` or `sliding_counter`.
    pub algorithm: *const c_char,
    /// Units that the rule allows per period.
    pub limit: u64,
    /// The rule's period.
    pub period_ns: u64,
    /// Most units that the rule allows at once.
    pub capacity: u64,
    /// Units that only high priorities may use.
    pub reserve: u64,
    /// Whole units of the rule that are left for high priorities, which may use the reserve.
    pub remaining: u64,
    /// Whole units of the rule that are left for the background.
    pub remaining_background: u64,
    /// In how long there is one more unit if no call takes any; SHMLIMIT_NEVER = there are as many as there can be
    /// now.
    pub next_in_ns: u64,
    /// In how long there are as many units as `capacity`; SHMLIMIT_NEVER = there are, or the breaker allows fewer
    /// now.
    pub full_in_ns: u64,
}

/// One attached process at one moment.
#[repr(C)]
pub struct shmlimit_participant_snapshot {
    /// Its program name.
    pub program: *const c_char,
    /// How long it has been attached.
    pub attached_for_ns: u64,
    /// How long it has held at least one permit without a break; SHMLIMIT_NEVER = it holds none.
    pub held_for_ns: u64,
    /// How often it was granted a call.
    pub granted: u64,
    /// How often it was refused a call. A call that waited counts once, when it gives up.
    pub refused: u64,
    /// How often its waiting calls looked whether it was their turn.
    pub looked: u64,
    /// The process id, in that process's own pid namespace; for people, not for decisions. 0 = unknown: permits of
    /// a file that was deleted by hand.
    pub pid: u32,
    /// Permits it holds.
    pub held: u32,
}

/// One waiting call at one moment.
#[repr(C)]
pub struct shmlimit_waiter_snapshot {
    /// Its program name.
    pub program: *const c_char,
    /// How much of each unit the call needs. Units of which it needs nothing are left out.
    pub costs: *const shmlimit_cost,
    /// How many elements `costs` has.
    pub cost_count: usize,
    /// Stands for the call's group: equal for the processes that take their turns together.
    pub group: u64,
    /// How long it has waited.
    pub waited_for_ns: u64,
    /// In how long it will look again by itself; 0 = it is about to, or late.
    pub looks_in_ns: u64,
    /// In how long it gives up; SHMLIMIT_NEVER = it waits as long as it takes.
    pub gives_up_in_ns: u64,
    /// The id of the process that waits, in its own pid namespace.
    pub pid: u32,
    /// The call's priority: SHMLIMIT_PRIORITY_….
    pub priority: u32,
    /// 1 = yes, 0 = no: whether it has not looked when it should: it is stopped, starved or dying. Others pass it
    /// over, and it keeps its place.
    pub late: u32,
    /// Always 0.
    pub reserved: u32,
}

/// One window of the provider's at one moment, as response headers told of it.
#[repr(C)]
pub struct shmlimit_pace_window_snapshot {
    /// The window's name.
    pub name: *const c_char,
    /// The window's limit.
    pub limit: u64,
    /// What is left of the window.
    pub remaining: u64,
    /// In how long it starts anew; SHMLIMIT_NEVER = unknown.
    pub resets_in_ns: u64,
    /// How much of the window is used, from 0 to 1.
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
    /// How long ago it was.
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
    /// The directory it lives in.
    pub directory: *const c_char,
    /// The provider whose limits these are.
    pub provider: *const c_char,
    /// The kind of breaker: `none`, `fsm` (five states) or `consecutive`.
    pub breaker: *const c_char,
    /// The breaker's state: `normal`, `throttle`, `sleep`, `half_open` or `cache_only`; of a consecutive breaker
    /// `closed`, `open` or `half_open`; without a breaker `normal`.
    pub state: *const c_char,
    /// Why the state began; NULL = it has never changed.
    pub reason: *const c_char,
    /// Of the gate: the program name of that process. NULL while `gate` is 0.
    pub gate_program: *const c_char,
    /// Of the pace: the window that the gap is for; NULL = there is none. NULL while `pace` is 0.
    pub pace_bottleneck: *const c_char,
    /// How long the state has lasted; if it has never changed, since the limiter was made.
    pub state_for_ns: u64,
    /// In how long the state ends by itself; SHMLIMIT_NEVER = it does not. A Sleep is not over before the gate
    /// opens. In other states it is the time of the next rise of the rate.
    pub eta_ns: u64,
    /// Of the gate: in how long it opens. 0 while `gate` is 0.
    pub gate_opens_in_ns: u64,
    /// Of the gate: how long ago it was recorded. 0 while `gate` is 0.
    pub gate_recorded_ns: u64,
    /// Of the pace: the smallest gap between calls that response headers taught. 0 while `pace` is 0.
    pub pace_interval_ns: u64,
    /// Units a second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker it
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
    /// Calls without an answer.
    pub net: u64,
    /// Calls that ended with any other 4xx, which says nothing about the server.
    pub ignored: u64,
    /// The latencies of these calls, all together.
    pub latency_sum_ns: u64,
    /// How many of the calls whose latency was recorded took up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500,
    /// 5000, 10000, 30000 and 60000 ms, each; the last: longer.
    pub latency: [u64; 16],
    /// How often a damaged state had to be started afresh.
    pub resets: u64,
    /// Most calls in flight, as configured; 0 = any number.
    pub concurrency: u32,
    /// Most background calls in flight, as configured; 0 = as many as of any priority.
    pub concurrency_background: u32,
    /// Most calls in flight in this state; 0 = any number.
    pub concurrency_now: u32,
    /// Permits that are out.
    pub in_flight: u32,
    /// Permits that background calls hold.
    pub in_flight_background: u32,
    /// Permits whose holder has exited. They are reclaimed as soon as a call needs one.
    pub held_by_exited: u32,
    /// 1 = yes, 0 = no: whether an operator has put the limiter offline.
    pub offline: u32,
    /// Outcomes that count now.
    pub samples: u32,
    /// Successive 429.
    pub consec429: u32,
    /// Successive failures, of a consecutive breaker.
    pub failures: u32,
    /// Of the gate: the id of the process that recorded the Retry-After. 0 while `gate` is 0.
    pub gate_pid: u32,
    /// Always 0.
    pub reserved: u32,
    /// The rules, in the order of the configuration.
    pub rules: *const *const shmlimit_rule_snapshot,
    /// How many elements `rules` has.
    pub rule_count: usize,
    /// The processes that are attached and alive.
    pub participants: *const *const shmlimit_participant_snapshot,
    /// How many elements `participants` has.
    pub participant_count: usize,
    /// The calls that wait, in the order in which they will be served. A background call that is owed its
    /// `background_share` comes before all others.
    pub queue: *const *const shmlimit_waiter_snapshot,
    /// How many elements `queue` has.
    pub queue_count: usize,
    /// What the headers said of each window of the provider's.
    pub pace_windows: *const *const shmlimit_pace_window_snapshot,
    /// How many elements `pace_windows` has.
    pub pace_window_count: usize,
    /// The newest changes of the breaker's state, the newest last.
    pub transitions: *const *const shmlimit_transition_snapshot,
    /// How many elements `transitions` has.
    pub transition_count: usize,
    /// Calls granted.
    pub granted: u64,
    /// Calls refused. A call that waited counts once, when it gives up.
    pub refused: u64,
    /// How often waiting calls looked whether it was their turn.
    pub looked: u64,
    /// Answers found in a cache.
    pub cache_hits: u64,
    /// Answers not found in a cache.
    pub cache_misses: u64,
    /// How many callers were told to wait before they try again, by how long: up to 1, 2, 5, 10, 25, 50, 100, 250,
    /// 500, 1000, 2500, 5000, 10000, 30000 and 60000 ms, each; the last: longer.
    pub sleep: [u64; 16],
    /// The time that callers were told to wait, all together.
    pub sleep_sum_ns: u64,
    /// Calls by their outcome: an HTTP status, or the name of an error such as `connect_timeout`.
    pub codes: *const *const shmlimit_code_count,
    /// How many elements `codes` has.
    pub code_count: usize,
    /// Of the pause: the program name of that process; of `shmlimit pause`, its user. NULL while `paused` is 0.
    pub pause_program: *const c_char,
    /// Of the pause: why, as the operator put it; NULL = no reason was given. NULL while `paused` is 0.
    pub pause_reason: *const c_char,
    /// Of the pause: how long it has lasted. 0 while `paused` is 0.
    pub paused_for_ns: u64,
    /// Of the pause: in how long it ends by itself; SHMLIMIT_NEVER = it lasts until the limiter is resumed. 0 while
    /// `paused` is 0.
    pub pause_ends_in_ns: u64,
    /// 1 = there is a pause: its fields begin with `pause`. The pause that an operator ordered; 0 = the limiter is
    /// not paused.
    pub paused: u32,
    /// Of the pause: the id of the process that paused the limiter. That process may have ended since. 0 while
    /// `paused` is 0.
    pub pause_pid: u32,
    /// Which waiting call of one priority is next: `process` (the processes take turns) or `fifo`.
    pub fairness: *const c_char,
    /// The share that background calls get in any case, from 0 to 1.
    pub background_share: f64,
    /// 1 = there is a gate: its fields begin with `gate`. The gate that a Retry-After closed; 0 = it is open.
    pub gate: u32,
    /// 1 = there is a pace: its fields begin with `pace`. The pace that response headers taught; 0 = the limiter
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
