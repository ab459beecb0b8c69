//! Fills the structs of a snapshot.
//!
//! Generated from src/limiter/fields.rs by scripts/languages/fields.

use super::structs::*;
use super::{Owned, priority};
use crate::grant::{nanos, nanos_or_never};
use crate::request::shmlimit_cost;
use std::ptr::null;

pub(super) fn rule(one: &shmlimit::RuleSnapshot, owned: &mut Owned) -> shmlimit_rule_snapshot {
    shmlimit_rule_snapshot {
        name: owned.text(&one.name),
        unit: owned.text(&one.unit),
        algorithm: owned.text(&one.algorithm),
        limit: one.limit,
        period_ns: nanos(one.period),
        capacity: one.capacity,
        reserve: one.reserve,
        remaining: one.remaining,
        remaining_background: one.remaining_background,
        next_in_ns: nanos_or_never(one.next_in),
        full_in_ns: nanos_or_never(one.full_in),
    }
}

pub(super) fn participant(one: &shmlimit::ParticipantSnapshot, owned: &mut Owned) -> shmlimit_participant_snapshot {
    shmlimit_participant_snapshot {
        program: owned.text(&one.program),
        attached_for_ns: nanos(one.attached_for),
        held_for_ns: nanos_or_never(one.held_for),
        granted: one.granted,
        refused: one.refused,
        looked: one.looked,
        pid: one.pid,
        held: one.held,
    }
}

pub(super) fn waiter(one: &shmlimit::WaiterSnapshot, owned: &mut Owned) -> shmlimit_waiter_snapshot {
    let costs = one.cost.iter().map(|element| shmlimit_cost { unit: owned.text(&element.0), amount: element.1 }).collect();
    let (costs, cost_count) = owned.list(costs);
    shmlimit_waiter_snapshot {
        program: owned.text(&one.program),
        costs,
        cost_count,
        group: one.group.0,
        waited_for_ns: nanos(one.waited_for),
        looks_in_ns: nanos(one.looks_in),
        gives_up_in_ns: nanos_or_never(one.gives_up_in),
        pid: one.pid,
        priority: priority(one.priority),
        late: u32::from(one.late),
        reserved: 0,
    }
}

pub(super) fn pace_window(one: &shmlimit::PaceWindowSnapshot, owned: &mut Owned) -> shmlimit_pace_window_snapshot {
    shmlimit_pace_window_snapshot {
        name: owned.text(&one.name),
        limit: one.limit,
        remaining: one.remaining,
        resets_in_ns: nanos_or_never(one.resets_in),
        usage: one.usage,
    }
}

pub(super) fn transition(one: &shmlimit::TransitionSnapshot, owned: &mut Owned) -> shmlimit_transition_snapshot {
    shmlimit_transition_snapshot {
        from: owned.text(&one.from),
        to: owned.text(&one.to),
        reason: owned.text(one.reason.as_str()),
        ago_ns: nanos(one.ago),
    }
}

pub(super) fn snapshot(one: &shmlimit::Snapshot, owned: &mut Owned) -> shmlimit_snapshot {
    let counts = &one.counts;
    let codes = counts.codes.iter().map(|element| shmlimit_code_count { code: owned.text(&element.0.to_string()), count: element.1 }).collect();
    let (codes, code_count) = owned.pointers(codes);
    let pause = one.paused.as_ref();
    let condition = &one.condition;
    let gate = condition.gate.as_ref();
    let outcomes = &condition.outcomes;
    let pace = condition.pace.as_ref();
    let pace_windows = pace.iter().flat_map(|part| &part.windows).map(|element| pace_window(element, owned)).collect();
    let (pace_windows, pace_window_count) = owned.pointers(pace_windows);
    let transitions = condition.transitions.iter().map(|element| transition(element, owned)).collect();
    let (transitions, transition_count) = owned.pointers(transitions);
    let rules = one.rules.iter().map(|element| rule(element, owned)).collect();
    let (rules, rule_count) = owned.pointers(rules);
    let participants = one.participants.iter().map(|element| participant(element, owned)).collect();
    let (participants, participant_count) = owned.pointers(participants);
    let queue = one.queue.iter().map(|element| waiter(element, owned)).collect();
    let (queue, queue_count) = owned.pointers(queue);
    shmlimit_snapshot {
        size: size_of::<shmlimit_snapshot>(),
        name: owned.text(&one.name),
        directory: owned.text(&one.directory.to_string_lossy()),
        provider: owned.text(&one.provider),
        breaker: owned.text(condition.breaker.as_str()),
        state: owned.text(&condition.state_name),
        reason: condition.reason.map_or(null(), |name| owned.text(name.as_str())),
        gate_program: gate.map_or(null(), |gate| owned.text(&gate.program)),
        pace_bottleneck: pace.map_or(null(), |pace| pace.bottleneck.as_ref().map_or(null(), |text| owned.text(text))),
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
        ignored: outcomes.ignored,
        latency_sum_ns: nanos(outcomes.latency_sum),
        latency: outcomes.latency,
        resets: one.resets,
        concurrency: one.concurrency.unwrap_or(0),
        concurrency_background: one.concurrency_background.unwrap_or(0),
        concurrency_now: condition.concurrency_now.unwrap_or(0),
        in_flight: one.in_flight,
        in_flight_background: one.in_flight_background,
        held_by_exited: one.held_by_exited,
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
        queue,
        queue_count,
        pace_windows,
        pace_window_count,
        transitions,
        transition_count,
        granted: counts.granted,
        refused: counts.refused,
        looked: counts.looked,
        cache_hits: counts.cache_hits,
        cache_misses: counts.cache_misses,
        sleep: counts.sleep,
        sleep_sum_ns: nanos(counts.sleep_sum),
        codes,
        code_count,
        pause_program: pause.map_or(null(), |pause| owned.text(&pause.program)),
        pause_reason: pause.map_or(null(), |pause| pause.reason.as_ref().map_or(null(), |text| owned.text(text))),
        paused_for_ns: pause.map_or(0, |pause| nanos(pause.paused_for)),
        pause_ends_in_ns: pause.map_or(0, |pause| nanos_or_never(pause.ends_in)),
        paused: u32::from(pause.is_some()),
        pause_pid: pause.map_or(0, |pause| pause.pid),
        fairness: owned.text(one.fairness.as_str()),
        background_share: one.background_share,
        gate: u32::from(gate.is_some()),
        pace: u32::from(pace.is_some()),
    }
}
