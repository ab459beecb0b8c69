//! Takes a snapshot: reads a limiter at one moment into the structs of `fields.rs`.

use super::Limiter;
use super::document::Document;
use super::events;
use super::fields::{
    Condition, Counts, GroupId, ParticipantSnapshot, PauseSnapshot, RuleSnapshot, Snapshot, WaiterSnapshot,
};
use super::outcome_code::OutcomeCode;
use super::schema;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::health_state::HealthStateView;
use shmlimit_kernel::ledger::{self, Ledger};
use shmlimit_kernel::log_context::RecentEvents;
use shmlimit_kernel::policy::WHOLE_SHARE;
use shmlimit_kernel::rule::{self, Need, RuleContext, When};
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Priority, Time, decide, queue};
use shmlimit_segment::Error;
use shmlimit_segment::slots::{self, Participant};
use shmlimit_segment::{Segment, Wakeups, layout, program_name};
use std::time::{Duration, SystemTime};

impl Snapshot {
    pub(super) fn take(limiter: &Limiter, link: &LimiterSegment) -> Result<Snapshot, Error> {
        let segment = &link.segment;
        let clock = segment.clock()?;
        segment.confirm(&clock)?;
        // A timer that is already due must act before the snapshot, so that the snapshot does not show its old
        // state.
        if !segment.look(|view| decide::is_settled(view, segment.now_by(&clock)))? {
            let recent = match segment.is_observed() {
                true => limiter.as_operator(tick)?,
                false => Some(tick(segment)?),
            };
            if let Some(recent) = recent {
                events::log_recent(link.name(), &recent);
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
            // Read in the same consistent read. A process that leaves in between would be missing in both, or
            // counted twice.
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
                reserve: rule.reserve,
                remaining,
                remaining_background,
                capacity: rule.burst,
                limit: rule.limit,
                period: rule.period,
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
                group: GroupId(entry_head.group),
                cost: cost.map(|(unit, cost)| (unit.as_str().to_owned(), cost)).collect(),
                waited_for: since(entry.since),
                looks_in: until(entry_head.wake_at),
                late: queue::is_late(&entry_head, now),
                gives_up_in: (entry_head.deadline < Time(u64::MAX)).then(|| until(entry_head.deadline)),
            })
        });
        let queue = queue.collect();
        let queueing = policy.queueing();
        Ok(Snapshot {
            name: limiter.name().to_owned(),
            directory: limiter.directory().to_owned(),
            provider: policy.provider().as_str().to_owned(),
            concurrency: policy.concurrency(),
            concurrency_background: policy.concurrency_background(),
            fairness: queueing.fairness,
            // The float nearest to a number of six digits prints as that number.
            background_share: f64::from(queueing.background_share) / f64::from(WHOLE_SHARE),
            rules: rules.collect(),
            policy,
            taken_at: SystemTime::UNIX_EPOCH + Duration::from_nanos(segment.clock_source().wall_now()),
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

    /// The snapshot as the object that `shmlimit status --json` prints, except for `next_change` and `warnings`,
    /// which the tool derives from the other fields.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let document = limiter.snapshot()?.document();
    /// assert_eq!(document[0], ("name".into(), "api".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn document(&self) -> Document {
        schema::document(self)
    }

    /// Whole units left for a priority: the minimum of all rules; `None` without rules (R7).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert_eq!(limiter.snapshot()?.remaining(shmlimit::Priority::User), Some(100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remaining(&self, priority: Priority) -> Option<u64> {
        let left = |rule: &RuleSnapshot| match priority {
            Priority::Background => rule.remaining_background,
            _ => rule.remaining,
        };
        self.rules.iter().map(left).min()
    }
}

/// Runs the timers that are due.
fn tick(segment: &Segment) -> Result<RecentEvents, Error> {
    let deadline = segment.deadline();
    let attachment = segment.attachment_within(&deadline)?;
    let (_, recent) = segment.change(&attachment, &deadline, |tx, now| {
        decide::tick(tx, now);
        Ok(((), Wakeups::NONE))
    })?;
    Ok(recent)
}

/// The counts of the processes that have left, added to those of the attached processes.
fn counts(
    mut ledger: Ledger,
    participants: impl Iterator<Item = Participant>,
    codes: Vec<(OutcomeCode, u64)>,
) -> Counts {
    participants.for_each(|one| ledger.add(one.granted, one.refused, one.looked));
    let Ledger { granted, refused, looked, cache_hits, cache_misses, sleep_sum, sleep, .. } = ledger;
    let sleep_sum = Duration::from_nanos(sleep_sum);
    Counts { granted, refused, looked, cache_hits, cache_misses, sleep, sleep_sum, codes }
}

/// Counts by outcome code. Plain successes are the total minus all others.
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

/// The age of the limiter, if its state is still the initial one. No transition says when that state began.
fn age_of_first(condition: &Condition, segment: &Segment) -> Duration {
    let made = segment.words().load(layout::header::CREATED);
    match condition.reason {
        None => Duration::from_nanos(segment.clock_source().wall_now().saturating_sub(made)),
        Some(_) => Duration::MAX,
    }
}
