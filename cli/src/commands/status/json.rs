//! `status --json`: one object per limiter.

use crate::ui::limiter::json::{ChangeLine, ConditionLine, PauseLine};
use crate::ui::limiter::next_change::Change;
use crate::ui::limiter::warnings::{self, Warning};
use crate::ui::time::nanos;
use serde::Serialize;
use shmlimit::{Counts, ParticipantSnapshot, RuleSnapshot, Snapshot, WaiterSnapshot};
use shmlimit_kernel::policy::WHOLE_SHARE;
use std::collections::BTreeMap;

/// One line of `--json`. The keys are a contract: docs/status-json.md.
#[derive(Serialize)]
pub struct Line<'s> {
    name: &'s str,
    directory: String,
    provider: String,
    concurrency: Option<u32>,
    concurrency_background: Option<u32>,
    in_flight: u32,
    in_flight_background: u32,
    held_by_dead: u32,
    resets: u64,
    counts: CountsLine,
    paused: Option<PauseLine>,
    #[serde(flatten)]
    condition: ConditionLine,
    next_change: Option<ChangeLine>,
    warnings: Vec<Warning>,
    fairness: &'static str,
    background_share: f64,
    rules: Vec<RuleLine<'s>>,
    participants: Vec<ParticipantLine<'s>>,
    queue: Vec<WaiterLine<'s>>,
}

#[derive(Serialize)]
struct CountsLine {
    granted: u64,
    refused: u64,
    looked: u64,
    cache_hits: u64,
    cache_misses: u64,
    codes: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct RuleLine<'s> {
    name: &'s str,
    algorithm: &'s str,
    unit: &'s str,
    limit: u64,
    period_ns: u64,
    capacity: u64,
    reserve: u64,
    remaining: u64,
    remaining_background: u64,
    next_in_ns: Option<u64>,
    full_in_ns: Option<u64>,
}

#[derive(Serialize)]
struct ParticipantLine<'s> {
    pid: u32,
    program: &'s str,
    attached_ns: u64,
    held: u32,
    held_ns: Option<u64>,
    granted: u64,
    refused: u64,
    looked: u64,
}

#[derive(Serialize)]
struct WaiterLine<'s> {
    pid: u32,
    program: &'s str,
    priority: &'static str,
    group: String,
    cost: BTreeMap<&'s str, u64>,
    waited_ns: u64,
    looks_in_ns: u64,
    late: bool,
    gives_up_in_ns: Option<u64>,
}

impl<'s> From<&'s Snapshot> for Line<'s> {
    fn from(snapshot: &'s Snapshot) -> Line<'s> {
        let queueing = snapshot.policy.queueing();
        let rules = snapshot.rules.iter().zip(snapshot.policy.rules());
        Line {
            name: &snapshot.name,
            directory: snapshot.directory.display().to_string(),
            provider: snapshot.policy.provider().as_str().to_owned(),
            concurrency: snapshot.policy.concurrency(),
            concurrency_background: snapshot.policy.concurrency_background(),
            in_flight: snapshot.in_flight,
            in_flight_background: snapshot.in_flight_background,
            held_by_dead: snapshot.held_by_dead,
            resets: snapshot.resets,
            counts: CountsLine::from(&snapshot.counts),
            paused: snapshot.paused.as_ref().map(PauseLine::from),
            condition: ConditionLine::from(&snapshot.condition),
            next_change: Change::of(snapshot).map(ChangeLine::from),
            warnings: warnings::of(&snapshot.name, &snapshot.condition),
            rules: rules.map(|(rule, settings)| RuleLine::new(rule, settings.reserve)).collect(),
            fairness: queueing.fairness.as_str(),
            // The nearest float to a number of six digits is written as that number.
            background_share: f64::from(queueing.background_share) / f64::from(WHOLE_SHARE),
            participants: snapshot.participants.iter().map(ParticipantLine::from).collect(),
            queue: snapshot.queue.iter().map(WaiterLine::from).collect(),
        }
    }
}

impl From<&Counts> for CountsLine {
    fn from(counts: &Counts) -> CountsLine {
        let codes = counts.codes.iter().map(|(code, count)| (code.to_string(), *count)).collect();
        let Counts { granted, refused, looked, cache_hits, cache_misses, .. } = *counts;
        CountsLine { granted, refused, looked, cache_hits, cache_misses, codes }
    }
}

impl<'s> RuleLine<'s> {
    fn new(rule: &'s RuleSnapshot, reserve: u64) -> RuleLine<'s> {
        RuleLine {
            name: &rule.name,
            algorithm: rule.algorithm,
            unit: &rule.unit,
            limit: rule.limit,
            period_ns: nanos(rule.period),
            capacity: rule.capacity,
            reserve,
            remaining: rule.remaining,
            remaining_background: rule.remaining_background,
            next_in_ns: rule.next_in.map(nanos),
            full_in_ns: rule.full_in.map(nanos),
        }
    }
}

impl<'s> From<&'s ParticipantSnapshot> for ParticipantLine<'s> {
    fn from(one: &'s ParticipantSnapshot) -> ParticipantLine<'s> {
        ParticipantLine {
            pid: one.pid,
            program: &one.program,
            attached_ns: nanos(one.attached_for),
            held: one.held,
            held_ns: one.held_for.map(nanos),
            granted: one.granted,
            refused: one.refused,
            looked: one.looked,
        }
    }
}

impl<'s> From<&'s WaiterSnapshot> for WaiterLine<'s> {
    fn from(one: &'s WaiterSnapshot) -> WaiterLine<'s> {
        WaiterLine {
            pid: one.pid,
            program: &one.program,
            priority: one.priority.as_str(),
            group: format!("{:016x}", one.group),
            cost: one.cost.iter().map(|(unit, cost)| (unit.as_str(), *cost)).collect(),
            waited_ns: nanos(one.waited_for),
            looks_in_ns: nanos(one.looks_in),
            late: one.late,
            gives_up_in_ns: one.gives_up_in.map(nanos),
        }
    }
}
