//! The structs of a snapshot, as C sees them, and how they are filled.

use crate::boundary::Owned;
use crate::grant::{nanos, nanos_or_never};
use crate::request::{
    SHMLIMIT_PRIORITY_BACKGROUND, SHMLIMIT_PRIORITY_USER, SHMLIMIT_PRIORITY_WEBHOOK, shmlimit_cost,
};
use shmlimit::{Priority, Snapshot, WaiterSnapshot};
use std::ffi::c_char;

/// One rule at one moment.
#[repr(C)]
pub struct shmlimit_rule_snapshot {
    /// Its name.
    pub name: *const c_char,
    /// What it counts.
    pub unit: *const c_char,
    /// Its algorithm.
    pub algorithm: *const c_char,
    /// Units per period.
    pub limit: u64,
    /// The period, in nanoseconds.
    pub period_ns: u64,
    /// Most units at once.
    pub capacity: u64,
    /// Units that only high priorities may use.
    pub reserve: u64,
    /// Whole units left, for high priorities.
    pub remaining: u64,
    /// Whole units left, for the background.
    pub remaining_background: u64,
}

/// One attached process at one moment.
#[repr(C)]
pub struct shmlimit_participant_snapshot {
    /// Program name.
    pub program: *const c_char,
    /// How long it has been attached, in nanoseconds.
    pub attached_for_ns: u64,
    /// How long it has held at least one permit without a break; SHMLIMIT_NEVER = it holds none.
    pub held_for_ns: u64,
    /// How often it was granted a call.
    pub granted: u64,
    /// How often it was refused one.
    pub refused: u64,
    /// How often its waiting calls looked whether it was their turn.
    pub looked: u64,
    /// Process id, in its own pid namespace.
    pub pid: u32,
    /// Permits it holds.
    pub held: u32,
}

/// One waiting call at one moment.
#[repr(C)]
pub struct shmlimit_waiter_snapshot {
    /// Program name of who waits.
    pub program: *const c_char,
    /// What it needs.
    pub costs: *const shmlimit_cost,
    /// How many costs there are.
    pub cost_count: usize,
    /// Stands for its group: equal for those who have their turns together.
    pub group: u64,
    /// How long it has waited, in nanoseconds.
    pub waited_for_ns: u64,
    /// In how long it will look again by itself.
    pub looks_in_ns: u64,
    /// In how long it gives up; SHMLIMIT_NEVER = it waits as long as it takes.
    pub gives_up_in_ns: u64,
    /// Process id of who waits, in its own pid namespace.
    pub pid: u32,
    /// SHMLIMIT_PRIORITY_….
    pub priority: u32,
    /// 1 = it has not looked when it should: stopped, starved or dying.
    pub late: u32,
    /// Always 0.
    pub reserved: u32,
}

/// What headers said of one window of the provider's.
#[repr(C)]
pub struct shmlimit_window_snapshot {
    /// Its name.
    pub name: *const c_char,
    /// Its limit.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// In how long it starts anew, in nanoseconds; SHMLIMIT_NEVER = unknown.
    pub resets_in_ns: u64,
}

/// A change of the breaker's state.
#[repr(C)]
pub struct shmlimit_transition {
    /// From which state.
    pub from: *const c_char,
    /// To which.
    pub to: *const c_char,
    /// Why.
    pub reason: *const c_char,
    /// How long ago, in nanoseconds.
    pub ago_ns: u64,
}

/// How often calls ended with one code.
#[repr(C)]
pub struct shmlimit_code_count {
    /// The HTTP status, or the name of an error: "200", "connect_timeout".
    pub code: *const c_char,
    /// How often.
    pub count: u64,
}

/// A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by shmlimit_snapshot_free().
/// Its lists are lists of pointers, so that all of these structs can grow at their ends.
#[repr(C)]
pub struct shmlimit_snapshot {
    /// sizeof(shmlimit_snapshot) of the library.
    pub size: usize,
    /// The limiter's name.
    pub name: *const c_char,
    /// The directory it lives in.
    pub directory: *const c_char,
    /// Whose limits these are.
    pub provider: *const c_char,
    /// What kind of breaker there is: "none", "fsm" (five states), "consecutive".
    pub breaker: *const c_char,
    /// Its state.
    pub state: *const c_char,
    /// Why the state began; NULL if it has never changed.
    pub reason: *const c_char,
    /// Who closed the gate: program name; NULL while it is open.
    pub gate_program: *const c_char,
    /// The window that the pace is for; NULL if there is none.
    pub pace_bottleneck: *const c_char,
    /// How long the state has lasted, in nanoseconds.
    pub state_for_ns: u64,
    /// In how long it ends by itself; SHMLIMIT_NEVER if it does not. A Sleep is not over before the gate opens.
    pub eta_ns: u64,
    /// In how long the gate that a Retry-After closed opens; 0 while it is open.
    pub gate_opens_in_ns: u64,
    /// How long ago it was closed.
    pub gate_recorded_ns: u64,
    /// The smallest gap between calls that headers taught; 0 if none.
    pub pace_interval_ns: u64,
    /// Units a second that the breaker allows; 0 while every call is blocked.
    pub rate: f64,
    /// The ratio of errors among the outcomes that count now.
    pub error_ratio: f64,
    /// How calls ended since the limiter was made: well.
    pub ok: u64,
    /// With 429.
    pub throttled: u64,
    /// With 5xx.
    pub server: u64,
    /// Without an answer.
    pub net: u64,
    /// With any other 4xx.
    pub other: u64,
    /// Nanoseconds all calls took together whose time was told.
    pub latency_sum_ns: u64,
    /// How many of them took up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000 ms, each; the
    /// last: longer.
    pub latency: [u64; 16],
    /// How often a damaged state was started afresh.
    pub resets: u64,
    /// Most calls in flight, as configured; 0 = any number.
    pub concurrency: u32,
    /// Most of them for the background; 0 = as many as any.
    pub concurrency_background: u32,
    /// Most calls in flight in this state; 0 = any number.
    pub concurrency_now: u32,
    /// Permits that are out.
    pub in_flight: u32,
    /// Those of them that background calls hold.
    pub in_flight_background: u32,
    /// Those of them whose holder has died: they come back as soon as somebody needs one.
    pub held_by_exited: u32,
    /// 1 = an operator put it offline.
    pub offline: u32,
    /// Outcomes that count now.
    pub samples: u32,
    /// Successive 429.
    pub consec429: u32,
    /// Successive failures, of a consecutive breaker.
    pub failures: u32,
    /// Who closed the gate: process id.
    pub gate_pid: u32,
    /// Always 0.
    pub reserved: u32,
    /// The rules, in the order of the configuration.
    pub rules: *const *const shmlimit_rule_snapshot,
    /// How many rules there are.
    pub rule_count: usize,
    /// Who is attached. The dead are not listed.
    pub participants: *const *const shmlimit_participant_snapshot,
    /// How many of them there are.
    pub participant_count: usize,
    /// Who waits, in the order in which they will be served.
    pub waiters: *const *const shmlimit_waiter_snapshot,
    /// How many of them there are.
    pub waiter_count: usize,
    /// The windows that headers told of.
    pub windows: *const *const shmlimit_window_snapshot,
    /// How many of them there are.
    pub window_count: usize,
    /// The newest changes of state, the newest last.
    pub transitions: *const *const shmlimit_transition,
    /// How many of them are listed.
    pub transition_count: usize,
    /// Calls granted since the limiter was made, to all who ever used it.
    pub granted: u64,
    /// Calls refused. One that waited counts once, if it gave up.
    pub refused: u64,
    /// How often waiting calls looked whether it was their turn.
    pub looked: u64,
    /// Answers found in a cache; see shmlimit_count_cache().
    pub cache_hits: u64,
    /// Answers not found there.
    pub cache_misses: u64,
    /// How many were told to wait before they try again, by how long: as `latency`.
    pub sleep: [u64; 16],
    /// Nanoseconds of that, all together.
    pub sleep_sum_ns: u64,
    /// How calls ended since the limiter was made.
    pub codes: *const *const shmlimit_code_count,
    /// How many of them are listed.
    pub code_count: usize,
    /// Program name of the process that paused the limiter; NULL if it is not paused.
    pub pause_program: *const c_char,
    /// Why; NULL without a reason, or if it is not paused.
    pub pause_reason: *const c_char,
    /// How long the pause has lasted, in nanoseconds; 0 if it is not paused.
    pub paused_for_ns: u64,
    /// In how long the pause ends; SHMLIMIT_NEVER = when the limiter is resumed; 0 if it is not paused.
    pub pause_ends_in_ns: u64,
    /// 1 = an operator has paused the limiter.
    pub paused: u32,
    /// Process id of the process that paused it; that process may have ended since.
    pub pause_pid: u32,
}

/// A snapshot for C. Its texts and lists are kept in `owned`.
pub(super) fn shown(snapshot: &Snapshot, owned: &mut Owned) -> shmlimit_snapshot {
    let none = std::ptr::null();
    let condition = &snapshot.condition;
    let (policy, counts, pause) = (&snapshot.policy, &snapshot.counts, snapshot.paused.as_ref());
    let (gate, pace, outcomes) = (condition.gate.as_ref(), condition.pace.as_ref(), &condition.outcomes);
    let rules = snapshot.rules.iter().zip(policy.rules());
    let rules = rules.map(|(rule, settings)| shmlimit_rule_snapshot {
        name: owned.text(&rule.name),
        unit: owned.text(&rule.unit),
        algorithm: owned.text(rule.algorithm),
        limit: rule.limit,
        period_ns: nanos(rule.period),
        capacity: rule.capacity,
        reserve: settings.reserve,
        remaining: rule.remaining,
        remaining_background: rule.remaining_background,
    });
    let rules = rules.collect();
    let (rules, rule_count) = owned.pointers(rules);
    let participants = snapshot.participants.iter().map(|one| shmlimit_participant_snapshot {
        program: owned.text(&one.program),
        attached_for_ns: nanos(one.attached_for),
        held_for_ns: nanos_or_never(one.held_for),
        granted: one.granted,
        refused: one.refused,
        looked: one.looked,
        pid: one.pid,
        held: one.held,
    });
    let participants = participants.collect();
    let (participants, participant_count) = owned.pointers(participants);
    let waiters = snapshot.queue.iter().map(|one| waiter(one, owned)).collect();
    let (waiters, waiter_count) = owned.pointers(waiters);
    let windows = pace.iter().flat_map(|pace| &pace.windows).map(|window| shmlimit_window_snapshot {
        name: owned.text(&window.name),
        limit: window.limit,
        remaining: window.remaining,
        resets_in_ns: nanos_or_never(window.resets_in),
    });
    let windows = windows.collect();
    let (windows, window_count) = owned.pointers(windows);
    let transitions = condition.transitions.iter().map(|(transition, ago)| shmlimit_transition {
        from: owned.text(transition.from.as_str(condition.breaker)),
        to: owned.text(transition.to.as_str(condition.breaker)),
        reason: owned.text(transition.cause.as_str()),
        ago_ns: nanos(*ago),
    });
    let transitions = transitions.collect();
    let (transitions, transition_count) = owned.pointers(transitions);
    let codes = counts.codes.iter();
    let codes = codes
        .map(|(code, count)| shmlimit_code_count { code: owned.text(&code.to_string()), count: *count })
        .collect();
    let (codes, code_count) = owned.pointers(codes);
    shmlimit_snapshot {
        size: size_of::<shmlimit_snapshot>(),
        name: owned.text(&snapshot.name),
        directory: owned.text(&snapshot.directory.to_string_lossy()),
        provider: owned.text(policy.provider().as_str()),
        breaker: owned.text(condition.breaker.as_str()),
        state: owned.text(condition.state_name),
        reason: condition.cause.map_or(none, |cause| owned.text(cause.as_str())),
        gate_program: gate.map_or(none, |gate| owned.text(&gate.program)),
        pace_bottleneck: pace
            .and_then(|pace| pace.bottleneck.as_ref())
            .map_or(none, |window| owned.text(window)),
        state_for_ns: nanos(condition.state_for),
        eta_ns: nanos_or_never(condition.eta),
        gate_opens_in_ns: gate.map_or(0, |gate| nanos(gate.opens_in)),
        gate_recorded_ns: gate.map_or(0, |gate| nanos(gate.recorded)),
        pace_interval_ns: pace.map_or(0, |pace| nanos(pace.interval)),
        rate: condition.rate,
        error_ratio: condition.error_ratio,
        ok: outcomes.ok,
        throttled: outcomes.throttled,
        server: outcomes.server,
        net: outcomes.net,
        other: outcomes.other,
        latency_sum_ns: outcomes.latency_sum,
        latency: outcomes.latency,
        resets: snapshot.resets,
        concurrency: policy.concurrency().unwrap_or(0),
        concurrency_background: policy.concurrency_background().unwrap_or(0),
        concurrency_now: condition.concurrency.unwrap_or(0),
        in_flight: snapshot.in_flight,
        in_flight_background: snapshot.in_flight_background,
        held_by_exited: snapshot.held_by_exited,
        offline: u32::from(condition.offline),
        samples: condition.samples,
        consec429: condition.consec429,
        failures: condition.failures,
        gate_pid: gate.map_or(0, |gate| gate.pid),
        reserved: 0,
        rules,
        rule_count,
        participants,
        participant_count,
        waiters,
        waiter_count,
        windows,
        window_count,
        transitions,
        transition_count,
        granted: counts.granted,
        refused: counts.refused,
        looked: counts.looked,
        cache_hits: counts.cache_hits,
        cache_misses: counts.cache_misses,
        sleep: counts.sleep,
        sleep_sum_ns: counts.sleep_sum,
        codes,
        code_count,
        pause_program: pause.map_or(none, |pause| owned.text(&pause.program)),
        pause_reason: pause.and_then(|pause| pause.reason.as_ref()).map_or(none, |reason| owned.text(reason)),
        paused_for_ns: pause.map_or(0, |pause| nanos(pause.paused_for)),
        pause_ends_in_ns: pause.map_or(0, |pause| nanos_or_never(pause.ends_in)),
        paused: u32::from(pause.is_some()),
        pause_pid: pause.map_or(0, |pause| pause.pid),
    }
}

fn waiter(one: &WaiterSnapshot, owned: &mut Owned) -> shmlimit_waiter_snapshot {
    let cost = |(unit, amount): &(String, u64)| shmlimit_cost { unit: owned.text(unit), amount: *amount };
    let costs = one.cost.iter().map(cost).collect();
    let (costs, cost_count) = owned.list(costs);
    shmlimit_waiter_snapshot {
        program: owned.text(&one.program),
        costs,
        cost_count,
        group: one.group,
        waited_for_ns: nanos(one.waited_for),
        looks_in_ns: nanos(one.looks_in),
        gives_up_in_ns: nanos_or_never(one.gives_up_in),
        pid: one.pid,
        priority: match one.priority {
            Priority::Background => SHMLIMIT_PRIORITY_BACKGROUND,
            Priority::User => SHMLIMIT_PRIORITY_USER,
            Priority::Webhook => SHMLIMIT_PRIORITY_WEBHOOK,
        },
        late: u32::from(one.late),
        reserved: 0,
    }
}
