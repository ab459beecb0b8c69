//! A limiter at one moment, in plain values.

use super::Limiter;
use super::condition::Condition;
use super::document::{Document, Value, document};
use super::events;
use super::outcome::OutcomeCode;
use super::pause::PauseSnapshot;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::health_state::HealthStateView;
use shmlimit_kernel::ledger::{self, Ledger};
use shmlimit_kernel::log_context::Recent;
use shmlimit_kernel::policy::WHOLE_SHARE;
use shmlimit_kernel::rule::{self, Need, RuleContext, When};
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Policy, Priority, Time, decide, queue};
use shmlimit_segment::Error;
use shmlimit_segment::slots::{self, Participant};
use shmlimit_segment::{Segment, Wakeups, layout, program_name};
use std::path::PathBuf;
use std::time::Duration;

/// A limiter at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// The directory it lives in.
    pub directory: PathBuf,
    /// The effective policy.
    pub policy: Policy,
    /// Its rules, in order.
    pub rules: Vec<RuleSnapshot>,
    /// Permits that are out.
    pub in_flight: u32,
    /// Those of them that background calls hold.
    pub in_flight_background: u32,
    /// Those of them whose holder has died: they come back as soon as somebody needs one.
    pub held_by_exited: u32,
    /// Who is attached. The dead are not listed.
    pub participants: Vec<ParticipantSnapshot>,
    /// Who waits, in the order in which they will be served.
    pub queue: Vec<WaiterSnapshot>,
    /// The pause that is on, if an operator has paused the limiter (R148).
    pub paused: Option<PauseSnapshot>,
    /// How the server is doing: breaker, gate, outcomes, pace.
    pub condition: Condition,
    /// What was counted since the limiter was made, by all who ever used it.
    pub counts: Counts,
    /// How often a damaged state had to be started afresh.
    pub resets: u64,
}

/// What was counted since a limiter was made, by all who ever used it, also those who are gone (R116).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls granted.
    pub granted: u64,
    /// Calls refused. One that waited counts once, if it gave up.
    pub refused: u64,
    /// How often waiting calls looked whether it was their turn.
    pub looked: u64,
    /// Answers found in a cache ([`Limiter::count_cache`]).
    pub cache_hits: u64,
    /// Answers not found there.
    pub cache_misses: u64,
    /// How many were told to wait before they try again, by how long: see [`OutcomeCounts::LATENCY_BOUNDS`].
    ///
    /// [`OutcomeCounts::LATENCY_BOUNDS`]: crate::OutcomeCounts::LATENCY_BOUNDS
    pub sleep: [u64; 16],
    /// Nanoseconds of that, all together.
    pub sleep_sum: u64,
    /// How often calls ended how, in order; what never happened is left out.
    pub codes: Vec<(OutcomeCode, u64)>,
}

/// One rule at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuleSnapshot {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub unit: String,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// Whole units there are, for those who may use the reserve.
    pub remaining: u64,
    /// Whole units there are for the background.
    pub remaining_background: u64,
    /// Most units at once.
    pub capacity: u64,
    /// Units per period.
    pub limit: u64,
    /// The period.
    pub period: Duration,
    /// In how long there is one more unit, if nobody takes any; `None` if there are as many as there can be now.
    pub next_in: Option<Duration>,
    /// In how long there are as many as `capacity`; `None` if there are, or while the breaker allows fewer.
    pub full_in: Option<Duration>,
}

/// One attached process at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParticipantSnapshot {
    /// Process id, in its own pid namespace.
    pub pid: u32,
    /// Program name.
    pub program: String,
    /// How long it has been attached.
    pub attached_for: Duration,
    /// Permits it holds.
    pub held: u32,
    /// How long it has held at least one permit without a break.
    pub held_for: Option<Duration>,
    /// How often it was granted a call.
    pub granted: u64,
    /// How often it was refused one. A call that waits counts once, when it gives up.
    pub refused: u64,
    /// How often its waiting calls looked whether it was their turn.
    pub looked: u64,
}

/// One waiting call at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WaiterSnapshot {
    /// Process id of who waits, in its own pid namespace.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// For whom the call is made.
    pub priority: Priority,
    /// Stands for its group: equal for those who have their turns together.
    pub group: u64,
    /// How much of each unit it needs, without those of which it needs nothing.
    pub cost: Vec<(String, u64)>,
    /// How long it has waited.
    pub waited_for: Duration,
    /// In how long it will look again, by its appointment; zero if it is about to.
    pub looks_in: Duration,
    /// It has not looked when it should: stopped, starved or dead. Others pass it over; it keeps its place.
    pub late: bool,
    /// In how long it gives up; `None` = it waits as long as it takes.
    pub gives_up_in: Option<Duration>,
}

impl Snapshot {
    pub(super) fn take(limiter: &Limiter, link: &LimiterSegment) -> Result<Snapshot, Error> {
        let segment = &link.segment;
        let clock = segment.clock()?;
        segment.confirm(&clock)?;
        // What is shown should not be what was due to end a while ago.
        if !segment.look(|view| decide::is_settled(view, segment.now_by(&clock)))? {
            let news = match segment.is_observed() {
                true => limiter.as_operator(tick)?,
                false => Some(tick(segment)?),
            };
            if let Some(news) = news {
                events::news(link.name(), &news);
            }
        }
        let policy = segment.policy()?;
        let looked_at = segment.now_by(&clock);
        let (core, left, queue, condition, paused, counts) = segment.look(|view| {
            let now = looked_at.max(view.core().latest);
            let left = |i| {
                let (at, state) = (RuleContext::of(view, i, now), view.rule(i));
                let left = [false, true].map(|reserve| rule::available(view, &at, state, reserve));
                let when = |cost| match rule::earliest(view, &at, state, Need { cost, leave_reserve: false })
                {
                    When::At(then) => Some(Duration::from_nanos(then.since(now).0)),
                    When::Now | When::Never => None,
                };
                let capacity = policy.rules().get(i).map_or(0, |rule| rule.burst);
                let full = if at.terms.overdraft() == 0 { when(capacity) } else { None };
                (left, when(left[0].saturating_add(1)), full)
            };
            let left: Vec<_> = (0..view.general().rules).map(left).collect();
            let queue = if view.waiting().is_empty() { Vec::new() } else { queue::in_order(view, looked_at) };
            // In the same moment: who leaves meanwhile would be missing in both, or counted twice.
            let counts = counts(ledger::ledger(view), slots::all(segment.words()), codes(view));
            let paused = PauseSnapshot::current(view, now);
            (view.core(), left, queue, Condition::of(view, now), paused, counts)
        })?;
        let condition =
            Condition { state_for: condition.state_for.min(age_of_first(&condition, segment)), ..condition };
        let now = looked_at.max(core.latest);
        let units: Vec<_> = policy.units().collect();
        let rules = policy.rules().iter().zip(left).map(
            |(rule, ([remaining, remaining_background], next_in, full_in))| RuleSnapshot {
                name: rule.name.as_str().to_owned(),
                unit: units[usize::from(rule.unit)].as_str().to_owned(),
                algorithm: rule.algorithm.as_str(),
                remaining,
                remaining_background,
                capacity: rule.burst,
                limit: rule.limit,
                period: Duration::from_nanos(rule.period.0),
                next_in,
                full_in,
            },
        );
        let since = |then: Time| Duration::from_nanos(now.since(then).0);
        let participants = segment.participants()?;
        let (alive, dead): (Vec<_>, Vec<_>) = participants.into_iter().partition(|(_, alive)| *alive);
        let queue = queue.into_iter().filter_map(|(_, entry)| {
            let entry_head = entry.entry_head;
            let (owner, _) = alive.iter().find(|(owner, _)| owner.slot == entry_head.slot())?;
            let cost = units.iter().zip(entry.cost).filter(|(_, cost)| *cost > 0);
            let until = |then: Time| Duration::from_nanos(then.since(now).0);
            Some(WaiterSnapshot {
                pid: owner.pid,
                program: program_name(&owner.program),
                priority: entry_head.priority(),
                group: entry_head.group,
                cost: cost.map(|(unit, cost)| (unit.as_str().to_owned(), cost)).collect(),
                waited_for: since(entry.since),
                looks_in: until(entry_head.wake_at),
                late: queue::is_late(&entry_head, now),
                gives_up_in: (entry_head.deadline < Time(u64::MAX)).then(|| until(entry_head.deadline)),
            })
        });
        let queue = queue.collect();
        Ok(Snapshot {
            name: limiter.name().to_owned(),
            directory: limiter.directory().to_owned(),
            rules: rules.collect(),
            policy,
            in_flight: core.in_flight,
            in_flight_background: core.in_flight_background,
            held_by_exited: dead.iter().map(|(p, _)| p.held.total).fold(0, u32::saturating_add),
            participants: alive
                .into_iter()
                .map(|(p, _)| ParticipantSnapshot {
                    pid: p.pid,
                    program: program_name(&p.program),
                    attached_for: since(p.since),
                    held: p.held.total,
                    held_for: p.held_since.map(since),
                    granted: p.granted,
                    refused: p.refused,
                    looked: p.looked,
                })
                .collect(),
            queue,
            paused,
            condition,
            counts,
            resets: segment.words().load(layout::RESETS),
        })
    }

    /// The snapshot as the object that `shmlimit status --json` prints, except for `next_change` and `warnings`, which the
    /// tool derives from the rest.
    pub fn document(&self) -> Document {
        let queueing = self.policy.queueing();
        let rules = self.rules.iter().zip(self.policy.rules());
        let mut document = document! {
            "name": &self.name,
            "directory": self.directory.display().to_string(),
            "provider": self.policy.provider().as_str(),
            "concurrency": self.policy.concurrency(),
            "concurrency_background": self.policy.concurrency_background(),
            "in_flight": self.in_flight,
            "in_flight_background": self.in_flight_background,
            "held_by_exited": self.held_by_exited,
            "resets": self.resets,
            "counts": document! {
                "granted": self.counts.granted,
                "refused": self.counts.refused,
                "looked": self.counts.looked,
                "cache_hits": self.counts.cache_hits,
                "cache_misses": self.counts.cache_misses,
                "codes": Value::counts(self.counts.codes.iter().copied()),
            },
            "paused": self.paused.as_ref().map(PauseSnapshot::document),
        };
        document.extend(self.condition.document());
        document.extend(document! {
            "fairness": queueing.fairness.as_str(),
            // The nearest float to a number of six digits is written as that number.
            "background_share": f64::from(queueing.background_share) / f64::from(WHOLE_SHARE),
            "rules": Value::list(rules.map(|(rule, settings)| document! {
                "name": &rule.name,
                "algorithm": rule.algorithm,
                "unit": &rule.unit,
                "limit": rule.limit,
                "period_ns": rule.period,
                "capacity": rule.capacity,
                "reserve": settings.reserve,
                "remaining": rule.remaining,
                "remaining_background": rule.remaining_background,
                "next_in_ns": rule.next_in,
                "full_in_ns": rule.full_in,
            })),
            "participants": Value::list(self.participants.iter().map(|one| document! {
                "pid": one.pid,
                "program": &one.program,
                "attached_ns": one.attached_for,
                "held": one.held,
                "held_ns": one.held_for,
                "granted": one.granted,
                "refused": one.refused,
                "looked": one.looked,
            })),
            "queue": Value::list(self.queue.iter().map(|one| document! {
                "pid": one.pid,
                "program": &one.program,
                "priority": one.priority.as_str(),
                "group": format!("{:016x}", one.group),
                "cost": Value::counts(one.cost.iter().map(|(unit, cost)| (unit, *cost))),
                "waited_ns": one.waited_for,
                "looks_in_ns": one.looks_in,
                "late": one.late,
                "gives_up_in_ns": one.gives_up_in,
            })),
        });
        document
    }

    /// Whole units left for a priority: the least over all rules; `None` without rules (R7).
    pub fn remaining(&self, priority: Priority) -> Option<u64> {
        let left = |rule: &RuleSnapshot| match priority {
            Priority::Background => rule.remaining_background,
            _ => rule.remaining,
        };
        self.rules.iter().map(left).min()
    }
}

/// Lets timers act that are due.
fn tick(segment: &Segment) -> Result<Recent, Error> {
    let deadline = segment.deadline();
    let attachment = segment.attachment_within(&deadline)?;
    let (_, news) = segment.change(&attachment, &deadline, |tx, now| {
        decide::tick(tx, now);
        Ok(((), Wakeups::NONE))
    })?;
    Ok(news)
}

/// What those who have left counted, and those who have not.
fn counts(
    mut ledger: Ledger,
    participants: impl Iterator<Item = Participant>,
    codes: Vec<(OutcomeCode, u64)>,
) -> Counts {
    participants.for_each(|one| ledger.add(one.granted, one.refused, one.looked));
    let Ledger { granted, refused, looked, cache_hits, cache_misses, sleep_sum, sleep, .. } = ledger;
    Counts { granted, refused, looked, cache_hits, cache_misses, sleep, sleep_sum, codes }
}

/// How often calls ended how: the usual success is what remains of all.
fn codes<V: View>(view: &V) -> Vec<(OutcomeCode, u64)> {
    let mut codes: Vec<(OutcomeCode, u64)> =
        ledger::codes(view).map(|(number, count)| (OutcomeCode::of(number), count)).collect();
    let others =
        codes.iter().filter(|(code, _)| code.is_ok()).fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
    match view.tallies().ok.saturating_sub(others) {
        0 => {}
        usual => codes.push((OutcomeCode::Status(ledger::USUAL), usual)),
    }
    codes.sort_unstable();
    codes
}

/// How old the limiter is, if its state is still the one it was made with: no transition says when that began.
fn age_of_first(condition: &Condition, segment: &Segment) -> Duration {
    let made = segment.words().load(layout::header::CREATED);
    match condition.cause {
        None => Duration::from_nanos(segment.clock_source().wall_now().saturating_sub(made)),
        Some(_) => Duration::MAX,
    }
}
