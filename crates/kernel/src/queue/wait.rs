//! Entering the queue, looking whether it is one's turn, leaving, and who is to be rung after a change.

use super::call::{NewWaiter, QueueOutcome, QueueTicket, Wake};
use super::check::{check, check_behind};
use super::order::{
    Needs, Rank, Subject, Survey, first_after, first_of_background, has_given_up, survey, taken,
};
use super::{GRACE, LONGEST_SLEEP, NOT_WORTH_A_WAKE, WEIGHTS};
use crate::MAX_RULES;
use crate::admission;
use crate::policy::{Fairness, WHOLE_SHARE};
use crate::request::{AcquireRequest, Priority, Reason, Refusal};
use crate::state::{Entry, EntryHead, Memory, Progress, Turn, View, WAITERS, WaiterCounts, slot_of};
use crate::time::{Nanos, Time};

/// Asks, and enters the queue if the call must wait. In an empty queue this is [`decide::acquire`](crate::decide::acquire).
pub fn enter<M: Memory>(m: &mut M, who: &NewWaiter, now: Time) -> (QueueOutcome, Wake) {
    let now = admission::prepare(m, now);
    let who = &who.with_effective_priority(m);
    let priority = who.request.priority;
    // Who was stopped until long after its deadline has given up meanwhile (R132).
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
    // Behind everybody, also those who came while turns were fair.
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

/// One who waits looks whether it is its turn.
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
    // A moment after the deadline is noise. One that was stopped until long after it has given up meanwhile (R132).
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
    // Who comes a little too late again and again would be passed over for ever: it is waited for as long as it was late.
    let lateness = now.since(entry_head.wake_at);
    let expected_at = if lateness > GRACE && lateness <= MAX_EXPECTED_LATENESS {
        until.plus(lateness).min(now.plus(LONGEST_SLEEP))
    } else {
        until
    };
    m.set_wake_at(wait.place, expected_at);
    // Those far behind looked for the dead when they came; since then that is for those in front.
    let suspects_dead = found.ahead.calls < RECLAIMING_WAITERS && checked.suspects_dead(&found);
    (
        QueueOutcome::Waiting(QueueTicket { until, timed: checked.is_timed(), suspects_dead, ..*wait }),
        Wake::None,
    )
}

/// One who waits gives up.
pub fn leave<M: Memory>(m: &mut M, owner: u64, wait: &QueueTicket, now: Time) -> Wake {
    let Some(entry) = entry_of(m, owner, wait) else { return Wake::None };
    clear(m, wait.place);
    let waiting = m.waiting().minus(entry.entry_head.priority());
    m.set_waiting(waiting);
    forget_turn(m, &entry);
    changed(m, now)
}

/// Removes whatever waits for participants that are gone. Says how many calls that were; the caller then asks who is
/// to be rung.
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
                // Others of its group move up. That may write many words, and a transaction has room for few: where a
                // process dies with more calls than this, usually its whole group has died.
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

/// Who is to be rung after something was given back, or somebody ahead has gone.
pub fn changed<M: Memory>(m: &mut M, now: Time) -> Wake {
    if m.waiting().is_empty() {
        return Wake::None;
    }
    let now = now.max(m.core().latest);
    // Where all calls need the same, nobody can go before the first. Else another unit may have become free.
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

/// What [`decide::acquire`](crate::decide::acquire) must refuse because others wait: who does not wait overtakes nobody of its priority or
/// above.
pub fn no_overtaking<V: View>(v: &V, request: &AcquireRequest, now: Time) -> Option<Refusal> {
    let priority = request.priority;
    let subject = Subject { place: None, priority, group: 0, rank: Rank::last_of(priority) };
    let checked = check(v, request, &survey(v, &subject, now), false, now);
    if checked.is_now() { None } else { Some(checked.refusal(v, request, now)) }
}

/// Keeps account of what the background is owed, after a call was granted while others wait.
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
        // What could have gone and did not come is not made up for: it would keep all others waiting.
        progress.owed
    };
    m.set_progress(progress);
}

/// So many calls at the head of the queue look for the dead each time: if all did, a crowd would do little else.
const RECLAIMING_WAITERS: u32 = 8;

/// Who came later than this the last time is not waited for any longer than others: it would cost them too much.
const MAX_EXPECTED_LATENESS: Nanos = Nanos::from_millis(25);

/// How many groups there may be for each that waits. The others make their calls just now and come again; a clock
/// that counts only those who wait runs away from them, and takes their next turn.
const ABSENT_GROUPS: u64 = 4;

/// Moves the clock of a priority on, after one of its calls was granted while others wait.
///
/// A newcomer's turn is not before the turns of those who wait. And newcomers who come on and on do not put those off
/// for ever: each grant moves the clock on by its share, or rather less ([`ABSENT_GROUPS`]).
fn move_on<M: Memory>(m: &mut M, request: &AcquireRequest, found: &Survey, tag: u64, weight: u64) {
    let mut progress = m.progress();
    let clock = &mut progress.clocks[request.priority as usize];
    let reached = found.next_tag.map_or(tag, |next| next.min(tag));
    *clock = clock.saturating_add(weight / found.groups.saturating_mul(ABSENT_GROUPS)).max(reached);
    m.set_progress(progress);
    settle_share(m, request);
}

/// How long a call counts on the clock of its priority: the time that it takes of the slowest rule's budget.
fn weight<V: View>(v: &V, request: &AcquireRequest) -> u64 {
    let time = |rule| {
        let terms = v.terms(rule);
        terms.step().times(request.cost[terms.unit()], terms.den()).ceil()
    };
    let longest = (0..v.general().rules.min(MAX_RULES)).map(time).max().unwrap_or(0);
    longest.clamp(*WEIGHTS.start(), *WEIGHTS.end())
}

/// Where a group's turns are remembered, and where the last one ended; 0 if that is forgotten.
fn turn_of<V: View>(v: &V, group: u64, priority: Priority) -> (usize, u64) {
    let (key, places) = Turn::places(group, priority);
    let turns = places.map(|index| (index, v.turn(index)));
    if let Some((index, turn)) = turns.clone().find(|(_, turn)| turn.key == key) {
        return (index, turn.end);
    }
    // The one that ended first is the least loss.
    turns.min_by_key(|(_, turn)| turn.end).map_or((0, 0), |(index, _)| (index, 0))
}

/// What moving up leaves of a transaction to the rest of it.
const JOURNAL_RESERVE: usize = 64;

/// A call that left costs its group no turn: those that came after it move up.
fn forget_turn<M: Memory>(m: &mut M, left: &Entry) {
    if m.queueing().fairness == Fairness::Fifo {
        return;
    }
    let EntryHead { group, number, .. } = left.entry_head;
    let priority = left.entry_head.priority();
    let is_later = |entry_head: &EntryHead| {
        entry_head.group == group && entry_head.priority() == priority && entry_head.number > number
    };
    // All or none: else those that did not move would stand behind newcomers of their own group. A group so large pays
    // for the turn.
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
