//! A limiter at one moment, in plain C structs.

use crate::boundary::{call, guard};
use crate::code::SHMLIMIT_OK;
use crate::grant::{nanos, nanos_or_never};
use crate::input::Slot;
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{
    SHMLIMIT_PRIORITY_BACKGROUND, SHMLIMIT_PRIORITY_USER, SHMLIMIT_PRIORITY_WEBHOOK, shmlimit_cost,
};
use crate::texts::Texts;
use shmlimit::kernel::policy::BreakerKind;
use shmlimit::{Condition, Priority, Snapshot};
use std::ffi::c_char;

/// One rule at one moment.
#[repr(C)]
#[allow(non_camel_case_types)]
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
#[allow(non_camel_case_types)]
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
#[allow(non_camel_case_types)]
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
#[allow(non_camel_case_types)]
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
#[allow(non_camel_case_types)]
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

/// A limiter at one moment. Made by shmlimit_snapshot_take(), and freed with everything in it by shmlimit_snapshot_free().
/// Its lists are lists of pointers, so that all of these structs can grow at their ends.
#[repr(C)]
#[allow(non_camel_case_types)]
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
    /// In how long it ends by itself; SHMLIMIT_NEVER if it does not.
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
    pub held_by_dead: u32,
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
}

/// A list of structs, and the pointers to them that C gets.
struct List<T> {
    _values: Box<[T]>,
    pointers: Box<[*const T]>,
}

impl<T> List<T> {
    fn new(values: impl Iterator<Item = T>) -> List<T> {
        let values: Box<[T]> = values.collect();
        let pointers = values.iter().map(|value| value as *const T).collect();
        List { _values: values, pointers }
    }
}

/// What C gets is the first field of what is freed.
#[repr(C)]
struct Kept {
    shown: shmlimit_snapshot,
    _texts: Texts,
    _costs: Vec<Box<[shmlimit_cost]>>,
    _rules: List<shmlimit_rule_snapshot>,
    _participants: List<shmlimit_participant_snapshot>,
    _waiters: List<shmlimit_waiter_snapshot>,
    _windows: List<shmlimit_window_snapshot>,
    _transitions: List<shmlimit_transition>,
}

impl Kept {
    fn new(snapshot: &Snapshot) -> Kept {
        let Snapshot { policy, condition, .. } = snapshot;
        let mut texts = Texts::default();
        let rules = List::new(snapshot.rules.iter().zip(policy.rules()).map(|(rule, settings)| {
            shmlimit_rule_snapshot {
                name: texts.add(&rule.name),
                unit: texts.add(&rule.unit),
                algorithm: texts.add(rule.algorithm),
                limit: rule.limit,
                period_ns: nanos(rule.period),
                capacity: rule.capacity,
                reserve: settings.reserve,
                remaining: rule.remaining,
                remaining_background: rule.remaining_background,
            }
        }));
        let participants = List::new(snapshot.participants.iter().map(|one| shmlimit_participant_snapshot {
            program: texts.add(&one.program),
            attached_for_ns: nanos(one.attached_for),
            held_for_ns: nanos_or_never(one.held_for),
            granted: one.granted,
            refused: one.refused,
            looked: one.looked,
            pid: one.pid,
            held: one.held,
        }));
        let mut costs: Vec<Box<[shmlimit_cost]>> = Vec::new();
        let waiters = List::new(snapshot.queue.iter().map(|one| {
            let cost =
                |(unit, amount): &(String, u64)| shmlimit_cost { unit: texts.add(unit), amount: *amount };
            let list: Box<[shmlimit_cost]> = one.cost.iter().map(cost).collect();
            let waiter = shmlimit_waiter_snapshot {
                program: texts.add(&one.program),
                costs: list.as_ptr(),
                cost_count: list.len(),
                group: one.group,
                waited_for_ns: nanos(one.waited_for),
                looks_in_ns: nanos(one.looks_in),
                gives_up_in_ns: nanos_or_never(one.gives_up_in),
                pid: one.pid,
                priority: number_of(one.priority),
                late: u32::from(one.late),
                reserved: 0,
            };
            costs.push(list);
            waiter
        }));
        let windows = condition.pace.iter().flat_map(|pace| &pace.windows);
        let windows = List::new(windows.map(|window| shmlimit_window_snapshot {
            name: texts.add(&window.name),
            limit: window.limit,
            remaining: window.remaining,
            resets_in_ns: nanos_or_never(window.resets_in),
        }));
        let transitions =
            List::new(condition.transitions.iter().map(|(transition, ago)| shmlimit_transition {
                from: texts.add(transition.from.as_str(condition.breaker)),
                to: texts.add(transition.to.as_str(condition.breaker)),
                reason: texts.add(transition.cause.as_str()),
                ago_ns: nanos(*ago),
            }));
        let mut shown = shown(snapshot, condition, &mut texts);
        (shown.rules, shown.rule_count) = (rules.pointers.as_ptr(), rules.pointers.len());
        (shown.participants, shown.participant_count) =
            (participants.pointers.as_ptr(), participants.pointers.len());
        (shown.waiters, shown.waiter_count) = (waiters.pointers.as_ptr(), waiters.pointers.len());
        (shown.windows, shown.window_count) = (windows.pointers.as_ptr(), windows.pointers.len());
        (shown.transitions, shown.transition_count) =
            (transitions.pointers.as_ptr(), transitions.pointers.len());
        Kept {
            shown,
            _texts: texts,
            _costs: costs,
            _rules: rules,
            _participants: participants,
            _waiters: waiters,
            _windows: windows,
            _transitions: transitions,
        }
    }
}

/// Everything but the lists.
fn shown(snapshot: &Snapshot, condition: &Condition, texts: &mut Texts) -> shmlimit_snapshot {
    let none = std::ptr::null();
    let (policy, counts) = (&snapshot.policy, &snapshot.counts);
    let (gate, pace, outcomes) = (condition.gate.as_ref(), condition.pace.as_ref(), &condition.outcomes);
    shmlimit_snapshot {
        size: size_of::<shmlimit_snapshot>(),
        name: texts.add(&snapshot.name),
        directory: texts.add(&snapshot.directory.to_string_lossy()),
        provider: texts.add(policy.provider().as_str()),
        breaker: texts.add(match condition.breaker {
            BreakerKind::None => "none",
            kind => kind.as_str(),
        }),
        state: texts.add(condition.state_name),
        reason: condition.cause.map_or(none, |cause| texts.add(cause.as_str())),
        gate_program: gate.map_or(none, |gate| texts.add(&gate.program)),
        pace_bottleneck: pace
            .and_then(|pace| pace.bottleneck.as_ref())
            .map_or(none, |window| texts.add(window)),
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
        held_by_dead: snapshot.held_by_dead,
        offline: u32::from(condition.offline),
        samples: condition.samples,
        consec429: condition.consec429,
        failures: condition.failures,
        gate_pid: gate.map_or(0, |gate| gate.pid),
        reserved: 0,
        rules: none.cast(),
        rule_count: 0,
        participants: none.cast(),
        participant_count: 0,
        waiters: none.cast(),
        waiter_count: 0,
        windows: none.cast(),
        window_count: 0,
        transitions: none.cast(),
        transition_count: 0,
        granted: counts.granted,
        refused: counts.refused,
        looked: counts.looked,
        cache_hits: counts.cache_hits,
        cache_misses: counts.cache_misses,
        sleep: counts.sleep,
        sleep_sum_ns: counts.sleep_sum,
    }
}

fn number_of(priority: Priority) -> u32 {
    match priority {
        Priority::Background => SHMLIMIT_PRIORITY_BACKGROUND,
        Priority::User => SHMLIMIT_PRIORITY_USER,
        Priority::Webhook => SHMLIMIT_PRIORITY_WEBHOOK,
    }
}

/// Everything there is to see of a limiter, for people and dashboards. Free it with shmlimit_snapshot_free(); `*snapshot` is
/// NULL after a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmlimit_snapshot_take(
    limiter: *const shmlimit_limiter,
    snapshot: *mut *const shmlimit_snapshot,
) -> i32 {
    call(|| {
        let place = Slot::new("snapshot", snapshot, std::ptr::null())?;
        let taken = limiter::limiter(limiter)?.snapshot()?;
        place.write(Box::into_raw(Box::new(Kept::new(&taken))).cast_const().cast::<shmlimit_snapshot>());
        Ok(SHMLIMIT_OK)
    })
}

/// Frees a snapshot and everything in it. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmlimit_snapshot_free(snapshot: *const shmlimit_snapshot) {
    guard((), || {
        if !snapshot.is_null() {
            // SAFETY: the caller's word that it came from here, as the first field of a `Kept`, and is freed once.
            drop(unsafe { Box::from_raw(snapshot.cast_mut().cast::<Kept>()) });
        }
    });
}
