//! Operations of waiting calls: enter the queue, check for the turn, leave. Also finds the call to wake after a
//! change.

use super::call::{NewWaiter, QueueOutcome, QueueTicket, Wake};
use super::order::{
    Needs, Rank, Subject, Survey, first_after, first_of_background, has_given_up, survey, taken,
};
use super::turn::{check, check_behind};
use super::{GRACE, LONGEST_SLEEP, NOT_WORTH_A_WAKE, WEIGHTS};
use crate::MAX_RULES;
use crate::admission;
use crate::policy::{Fairness, WHOLE_SHARE};
use crate::request::{AcquireRequest, Priority, Reason, Refusal};
use crate::state::{Entry, EntryHead, Memory, Progress, Turn, View, WAITERS, WaiterCounts, slot_of};
use crate::time::{Nanos, Time};

/// Requests a call, and enters the queue if it must wait. With an empty queue this is the same as
/// [`decide::acquire`](crate::decide::acquire).
pub fn enter<M: Memory>(m: &mut M, who: &NewWaiter, now: Time) -> (QueueOutcome, Wake) {
    let now = admission::prepare(m, now);
    let who = &who.with_effective_priority(m);
    let priority = who.request.priority;
    // A process that was stopped until long after the deadline has given up meanwhile (R132).
    let in_time = now <= who.deadline.plus(GRACE);
    if in_time
        && (m.waiting().is_empty() || who.request.is_peek())
        && let Ok(ticket) = admission::charge_all(m, slot_of(who.owner), &who.request, true, now)
    {
        return (QueueOutcome::Granted(ticket), Wake::None);
    }
    let progress = m.progress();
    let clock = progress.clocks[priority as usize];
    let number = EntryHead::number(progress.arrivals, who.can_be_woken, priority);
    let weight = weight(m, &who.request);
    let fifo = m.queueing().fairness == Fairness::Fifo;
    let (turn, end) = turn_of(m, who.group, priority);
    let rank = if fifo { Rank::last_of(priority) } else { Rank::new(priority, clock.max(end), number) };
    let found = survey(m, &Subject { place: None, priority, group: who.group, rank }, now);
    // Behind all waiting calls, including those that came while turns were fair.
    let tag = if fifo { clock.max(found.last_tag) } else { clock.max(end) };
    let checked = check(m, &who.request, &found, false, now);
    let key = Turn::places(who.group, priority).0;
    if in_time
        && checked.is_now()
        && let Ok(ticket) = admission::charge_all(m, slot_of(who.owner), &who.request, true, now)
    {
        if !found.waiting.is_empty() {
            move_on(m, &who.request, &found, tag, weight);
            if !fifo {
                m.set_turn(turn, Turn { key, end: tag.saturating_add(weight) });
            }
        }
        return (QueueOutcome::Granted(ticket), Wake::None);
    }
    if let Some(refusal) = checked.refusal_by_deadline(m, &who.request, who.deadline, now) {
        return (QueueOutcome::Refused(refusal), Wake::None);
    }
    let Some(place) = found.free.or(found.stale) else {
        let refusal = checked.refusal(m, &who.request, now);
        return (
            QueueOutcome::Refused(Refusal { reason: Reason::QueueFull, rule: None, ..refusal }),
            Wake::None,
        );
    };
    let until = checked.next_look(&found, who, now);
    let entry_head =
        EntryHead { owner: who.owner, number, tag, wake_at: until, deadline: who.deadline, group: who.group };
    let stale = m.entry_head(place).priority();
    m.set_entry(place, &Entry { entry_head, cost: who.request.cost, weight, since: now });
    let mut places = m.places(place / 64);
    places.0 |= 1 << (place % 64);
    m.set_places(place / 64, places);
    let waiting = match found.free {
        Some(_) => found.waiting,
        None => found.waiting.minus(stale),
    };
    m.set_waiting(waiting.plus(priority));
    m.set_progress(Progress { arrivals: progress.arrivals.wrapping_add(1), ..progress });
    if !fifo {
        m.set_turn(turn, Turn { key, end: tag.saturating_add(weight) });
    }
    (
        QueueOutcome::Waiting(QueueTicket {
            place,
            number,
            until,
            timed: checked.is_timed(),
            suspects_dead: checked.suspects_dead(&found),
        }),
        Wake::None,
    )
}

/// Checks whether it is a waiting call's turn.
pub fn look<M: Memory>(m: &mut M, owner: u64, wait: &QueueTicket, now: Time) -> (QueueOutcome, Wake) {
    let now = admission::prepare(m, now);
    let Some(entry) = entry_of(m, owner, wait) else { return (QueueOutcome::Gone, Wake::None) };
    let Entry { entry_head, weight, .. } = entry;
    let request = entry.request();
    let rank = Rank::new(request.priority, entry_head.tag, entry_head.number);
    let subject =
        Subject { place: Some(wait.place), priority: request.priority, group: entry_head.group, rank };
    let found = survey(m, &subject, now);
    m.set_waiting(found.waiting);
    let owed = found.owed == Some(wait.place);
    let checked = check(m, &request, &found, owed, now);
    // A moment after the deadline is noise. A process that was stopped until long after it has given up
    // meanwhile (R132).
    if checked.is_now()
        && !has_given_up(&entry_head, now)
        && let Ok(ticket) = admission::charge_all(m, slot_of(owner), &request, !owed, now)
    {
        clear(m, wait.place);
        m.set_waiting(found.waiting.minus(request.priority));
        move_on(m, &request, &found, entry_head.tag, weight);
        return (QueueOutcome::Granted(ticket), changed(m, now));
    }
    if let Some(refusal) = checked.refusal_by_deadline(m, &request, entry_head.deadline, now) {
        return (QueueOutcome::Refused(refusal), leave(m, owner, wait, now));
    }
    let who = NewWaiter {
        owner,
        group: entry_head.group,
        request,
        deadline: entry_head.deadline,
        can_be_woken: entry_head.can_be_woken(),
    };
    let until = checked.next_look(&found, &who, now);
    // A call that is a little late each time would be skipped forever. The queue therefore waits for it as long
    // as it was late.
    let lateness = now.since(entry_head.wake_at);
    let expected_at = if lateness > GRACE && lateness <= MAX_EXPECTED_LATENESS {
        until.plus(lateness).min(now.plus(LONGEST_SLEEP))
    } else {
        until
    };
    m.set_wake_at(wait.place, expected_at);
    // A call far behind looked for exited processes when it entered. After that, the calls in front do so.
    let suspects_dead = found.ahead.calls < RECLAIMING_WAITERS && checked.suspects_dead(&found);
    (
        QueueOutcome::Waiting(QueueTicket { until, timed: checked.is_timed(), suspects_dead, ..*wait }),
        Wake::None,
    )
}

/// Removes a waiting call that gives up.
pub fn leave<M: Memory>(m: &mut M, owner: u64, wait: &QueueTicket, now: Time) -> Wake {
    let Some(entry) = entry_of(m, owner, wait) else { return Wake::None };
    clear(m, wait.place);
    let waiting = m.waiting().minus(entry.entry_head.priority());
    m.set_waiting(waiting);
    forget_turn(m, &entry);
    changed(m, now)
}

/// Removes the waiting calls of participants that have exited. Returns the number of removed calls. The caller
/// then asks [`changed`] for the call to wake.
pub fn abandon<M: Memory>(m: &mut M, is_gone: impl Fn(&EntryHead) -> bool) -> usize {
    let mut gone = 0;
    let mut waiting = WaiterCounts::default();
    for block in 0..WAITERS / 64 {
        let mut left = m.places(block);
        for place in m.places(block) {
            let entry = m.entry(64 * block + place);
            if is_gone(&entry.entry_head) {
                left.0 &= !(1 << place);
                gone += 1;
                // The other calls of its group move up. That may write many words, and a transaction has room
                // for few. If a process dies with more calls than this, its whole group has usually died.
                if gone <= 8 {
                    m.set_places(block, left);
                    forget_turn(m, &entry);
                }
            } else {
                waiting = waiting.plus(entry.entry_head.priority());
            }
        }
        m.set_places(block, left);
    }
    m.set_waiting(waiting);
    gone
}

/// Finds the call to wake after something was returned, or a call ahead has left.
pub fn changed<M: Memory>(m: &mut M, now: Time) -> Wake {
    if m.waiting().is_empty() {
        return Wake::None;
    }
    let now = now.max(m.core().latest);
    // If all calls need the same unit, no call can go before the first. Otherwise another unit may have become
    // available.
    let depth = if m.general().units > 1 { 8 } else { 1 };
    let (mut ahead, mut after) = (Needs::default(), None);
    for _ in 0..depth {
        let Some(found) = first_after(m, after, now) else { break };
        let entry = m.entry(found.place);
        let checked = check_behind(m, &entry.request(), &ahead, ahead.cost, found.is_owed(), now);
        let asleep = found.entry_head.wake_at > now.plus(NOT_WORTH_A_WAKE) && found.entry_head.can_be_woken();
        let nearer = match checked.time {
            Some(time) => checked.permit && time.plus(NOT_WORTH_A_WAKE) < found.entry_head.wake_at,
            None => true,
        };
        if asleep && nearer {
            m.set_wake_at(found.place, now);
            return Wake::One(found.place);
        }
        ahead.add_entry(m, &entry, now);
        after = Some(found.rank);
    }
    Wake::None
}

/// The refusal that [`decide::acquire`](crate::decide::acquire) must return because other calls wait. A call
/// that does not wait must not overtake calls of its own priority or a higher one.
pub fn no_overtaking<V: View>(v: &V, request: &AcquireRequest, now: Time) -> Option<Refusal> {
    let priority = request.priority;
    let subject = Subject { place: None, priority, group: 0, rank: Rank::last_of(priority) };
    let checked = check(v, request, &survey(v, &subject, now), false, now);
    if checked.is_now() { None } else { Some(checked.refusal(v, request, now)) }
}

/// Updates the share that background calls are owed, after a call was granted while others wait.
pub(crate) fn settle_share<M: Memory>(m: &mut M, request: &AcquireRequest) {
    let share = m.queueing().background_share;
    if share == 0 {
        return;
    }
    let mut progress = m.progress();
    let weight = weight(m, request);
    progress.owed = if m.waiting().of(Priority::Background) == 0 {
        0
    } else if request.priority.is_background() {
        progress.owed.saturating_sub(weight.saturating_mul(u64::from(WHOLE_SHARE - share)))
    } else if first_of_background(m, m.core().latest).is_some() {
        progress.owed.saturating_add(weight.saturating_mul(u64::from(share)))
    } else {
        // A call that could have gone and did not come gets no credit. Otherwise that credit would keep all
        // other calls waiting.
        progress.owed
    };
    m.set_progress(progress);
}

/// Number of calls at the head of the queue that look for exited processes at each check. If all calls did so,
/// a long queue would do little else.
const RECLAIMING_WAITERS: u32 = 8;

/// A call that was later than this the last time gets no extra waiting time, because that would cost the others
/// too much.
const MAX_EXPECTED_LATENESS: Nanos = Nanos::from_millis(25);

/// The assumed number of groups for each group that waits. The other groups are making calls at the moment and
/// come again. A clock that counted only the waiting groups would run ahead of them and take their next turn.
const ABSENT_GROUPS: u64 = 4;

/// Advances the clock of a priority after one of its calls was granted while others wait.
///
/// A new call's turn is not before the turns of the calls that wait. On the other hand, a steady stream of new
/// calls must not postpone waiting calls forever. Therefore each grant advances the clock by its share, or
/// somewhat less ([`ABSENT_GROUPS`]).
fn move_on<M: Memory>(m: &mut M, request: &AcquireRequest, found: &Survey, tag: u64, weight: u64) {
    let mut progress = m.progress();
    let clock = &mut progress.clocks[request.priority as usize];
    let reached = found.next_tag.map_or(tag, |next| next.min(tag));
    *clock = clock.saturating_add(weight / found.groups.saturating_mul(ABSENT_GROUPS)).max(reached);
    m.set_progress(progress);
    settle_share(m, request);
}

/// The length of a call on the clock of its priority: the time that its cost takes from the budget of the
/// slowest rule.
fn weight<V: View>(v: &V, request: &AcquireRequest) -> u64 {
    let time = |rule| {
        let terms = v.terms(rule);
        terms.step().times(request.cost[terms.unit()], terms.den()).ceil()
    };
    let longest = (0..v.general().rules.min(MAX_RULES)).map(time).max().unwrap_or(0);
    longest.clamp(*WEIGHTS.start(), *WEIGHTS.end())
}

/// The index at which a group's turns are remembered, and the end of its last turn. The end is 0 if it is
/// forgotten.
fn turn_of<V: View>(v: &V, group: u64, priority: Priority) -> (usize, u64) {
    let (key, places) = Turn::places(group, priority);
    let turns = places.map(|index| (index, v.turn(index)));
    if let Some((index, turn)) = turns.clone().find(|(_, turn)| turn.key == key) {
        return (index, turn.end);
    }
    // The entry whose turn ended first is the least loss.
    turns.min_by_key(|(_, turn)| turn.end).map_or((0, 0), |(index, _)| (index, 0))
}

/// The part of a transaction's room that moving up leaves to the rest of the transaction.
const JOURNAL_RESERVE: usize = 64;

/// Gives back the turn of a call that left: later calls of its group move up.
fn forget_turn<M: Memory>(m: &mut M, left: &Entry) {
    if m.queueing().fairness == Fairness::Fifo {
        return;
    }
    let EntryHead { group, number, .. } = left.entry_head;
    let priority = left.entry_head.priority();
    let is_later = |entry_head: &EntryHead| {
        entry_head.group == group && entry_head.priority() == priority && entry_head.number > number
    };
    // Either all calls move or none. Otherwise the calls that did not move would stand behind new calls of
    // their own group. A group with too many calls loses the turn.
    let later = taken(m).filter(|place| is_later(&m.entry_head(*place))).count();
    if m.room() < later + JOURNAL_RESERVE {
        return;
    }
    for block in 0..WAITERS / 64 {
        for place in m.places(block) {
            let place = 64 * block + place;
            let entry_head = m.entry_head(place);
            if is_later(&entry_head) {
                m.set_tag(place, entry_head.tag.saturating_sub(left.weight));
            }
        }
    }
    let (index, end) = turn_of(m, group, priority);
    let key = Turn::places(group, priority).0;
    if end > 0 {
        m.set_turn(index, Turn { key, end: end.saturating_sub(left.weight) });
    }
}

fn entry_of<V: View>(v: &V, owner: u64, wait: &QueueTicket) -> Option<Entry> {
    let there = wait.place < WAITERS && v.places(wait.place / 64).0 >> (wait.place % 64) & 1 == 1;
    let entry = v.entry(wait.place);
    (there && entry.entry_head.owner == owner && entry.entry_head.number == wait.number).then_some(entry)
}

fn clear<M: Memory>(m: &mut M, place: usize) {
    let mut places = m.places(place / 64);
    places.0 &= !(1 << (place % 64));
    m.set_places(place / 64, places);
}
