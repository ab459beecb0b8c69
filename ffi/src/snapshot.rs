//! A limiter at one moment, in plain C structs.

mod shape;

use crate::boundary::{Texts, call};
use crate::code::SHMLIMIT_OK;
use crate::grant::{nanos, nanos_or_never};
use crate::guard::guard;
use crate::input::Slot;
use crate::limiter::{self, shmlimit_limiter};
use crate::request::{
    SHMLIMIT_PRIORITY_BACKGROUND, SHMLIMIT_PRIORITY_USER, SHMLIMIT_PRIORITY_WEBHOOK, shmlimit_cost,
};
pub use shape::*;
use shmlimit::{Priority, Snapshot};

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
    _codes: List<shmlimit_code_count>,
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
        let codes =
            List::new(snapshot.counts.codes.iter().map(|(code, count)| shmlimit_code_count {
                code: texts.add(&code.to_string()),
                count: *count,
            }));
        (shown.transitions, shown.transition_count) =
            (transitions.pointers.as_ptr(), transitions.pointers.len());
        (shown.codes, shown.code_count) = (codes.pointers.as_ptr(), codes.pointers.len());
        Kept {
            shown,
            _texts: texts,
            _costs: costs,
            _rules: rules,
            _participants: participants,
            _waiters: waiters,
            _windows: windows,
            _transitions: transitions,
            _codes: codes,
        }
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
pub unsafe extern "C-unwind" fn shmlimit_snapshot_take(
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
pub unsafe extern "C-unwind" fn shmlimit_snapshot_free(snapshot: *const shmlimit_snapshot) {
    guard((), || {
        if !snapshot.is_null() {
            // SAFETY: the caller's word that it came from here, as the first field of a `Kept`, and is freed once.
            drop(unsafe { Box::from_raw(snapshot.cast_mut().cast::<Kept>()) });
        }
    });
}
