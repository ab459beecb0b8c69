//! Passes over the queue: the calls ahead of a call, and the first call.

use super::{
    EACH_WAITER, GRACE, LONGEST_BOUND, LONGEST_SLEEP, SHORTEST_BOUND, STALE_AFTER, UNWOKEN_BOUND, USUAL_SLEEP,
};
use crate::policy::{Fairness, WHOLE_SHARE};
use crate::request::Priority;
use crate::rule::{self, Need, RuleContext, When};
use crate::state::{Entry, EntryHead, PlaceSet, View, WAITERS, WaiterCounts};
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};

/// A position in the order. A smaller rank is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// 0 for the background call that is owed its share. Otherwise by falling priority.
    class: u8,
    tag: u64,
    number: u64,
}

impl Rank {
    #[inline]
    pub(super) fn new(priority: Priority, tag: u64, number: u64) -> Rank {
        Rank { class: 3 - priority as u8, tag, number }
    }

    /// A rank behind all calls of this priority.
    pub(super) fn last_of(priority: Priority) -> Rank {
        Rank::new(priority, u64::MAX, u64::MAX)
    }

    #[inline]
    fn of(entry_head: &EntryHead) -> Rank {
        Rank::new(entry_head.priority(), entry_head.tag, entry_head.number)
    }
}

/// The needs of a set of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) cost: [u64; MAX_UNITS],
    pub(super) calls: u32,
    /// Permits to be left for those calls.
    pub(super) permits: u32,
    /// The number of those permits that are for background calls.
    pub(super) background: u32,
}

impl Needs {
    fn add(&mut self, cost: [u64; MAX_UNITS], times: u64) {
        for (sum, cost) in self.cost.iter_mut().zip(cost) {
            *sum = sum.saturating_add(cost.saturating_mul(times));
        }
        let calls = u32::try_from(times).unwrap_or(u32::MAX);
        self.calls = self.calls.saturating_add(calls);
    }

    /// Adds a waiting call, with its permit if the call could use one now.
    pub(super) fn add_entry<V: View>(&mut self, v: &V, entry: &Entry, now: Time) {
        self.add(entry.cost, 1);
        if could_use_permit(v, entry, now) {
            self.permits = self.permits.saturating_add(1);
            self.background += u32::from(entry.entry_head.priority().is_background());
        }
    }
}

/// A waiting call that a pass found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) place: usize,
    pub(super) rank: Rank,
    pub(super) entry_head: EntryHead,
}

impl Found {
    /// Whether it goes first because background calls are owed their share.
    pub(super) fn is_owed(&self) -> bool {
        self.rank.class == 0
    }
}

/// The result of a pass over the queue, from the position of one call.
pub(super) struct Survey {
    /// The numbers of waiting calls, including the subject if it waits.
    pub(super) waiting: WaiterCounts,
    /// The needs of the calls ahead that are expected to check in time.
    pub(super) ahead: Needs,
    /// The cost that is expected to go before this call if the groups that wait now continue to wait. At least
    /// that of `ahead`.
    pub(super) expected: [u64; MAX_UNITS],
    /// The smallest tag of the other calls of its priority.
    pub(super) next_tag: Option<u64>,
    /// The largest tag of the other calls of its priority.
    pub(super) last_tag: u64,
    /// The number of groups of its priority that wait, including the call's own.
    pub(super) groups: u64,
    /// A free place.
    pub(super) free: Option<usize>,
    /// A place that may be taken because its owner has not checked for so long.
    pub(super) stale: Option<usize>,
    /// Whether any other call is late.
    pub(super) late: bool,
    /// The place of the background call that is owed its share.
    pub(super) owed: Option<usize>,
}

/// The call for which a survey is made.
pub(super) struct Subject {
    /// Its place, if it has one.
    pub(super) place: Option<usize>,
    pub(super) priority: Priority,
    pub(super) group: u64,
    pub(super) rank: Rank,
}

/// Whether a call is late. The calls of exited processes become late sooner or later.
pub fn is_late(entry_head: &EntryHead, now: Time) -> bool {
    !is_expected(entry_head, now)
}

/// Whether the deadline passed so long ago that the call cannot be served any more. Its owner is stopped, or
/// could not leave the queue.
pub fn has_given_up(entry_head: &EntryHead, now: Time) -> bool {
    entry_head.deadline.plus(GRACE) < now
}

/// Whether a call is expected to check in time: its wake-up time is not long over, it is not further away than
/// the longest sleep, and the deadline has not passed.
#[inline]
pub(super) fn is_expected(entry_head: &EntryHead, now: Time) -> bool {
    let late = now > entry_head.wake_at.plus(GRACE);
    let damaged = entry_head.wake_at > now.plus(LONGEST_SLEEP).plus(GRACE);
    !late && !damaged && entry_head.deadline >= now
}

/// All occupied places.
pub(super) fn taken<V: View>(v: &V) -> impl Iterator<Item = usize> + '_ {
    (0..WAITERS / 64).flat_map(move |block| v.places(block).map(move |place| 64 * block + place))
}

/// The first background call that is expected to check in time. `None` if all background permits are in use. In
/// that case the call cannot go, so it must neither block calls that can go, nor accumulate credit for later.
pub(super) fn first_of_background<V: View>(v: &V, now: Time) -> Option<Found> {
    let most = v.general().concurrency_background;
    if most.is_some_and(|most| v.core().in_flight_background >= most) {
        return None;
    }
    taken(v)
        .map(|place| (place, v.entry_head(place)))
        .filter(|(_, entry_head)| entry_head.priority().is_background() && is_expected(entry_head, now))
        .map(|(place, entry_head)| Found { place, rank: Rank::of(&entry_head), entry_head })
        .min_by_key(|found| found.rank)
}

/// The background call that goes before all others because background calls are owed their share: the first
/// one, if it is expected to check in time.
fn owed<V: View>(v: &V, now: Time) -> Option<Found> {
    let share = v.queueing().background_share;
    if share == 0 || v.waiting().of(Priority::Background) == 0 {
        return None;
    }
    let first = first_of_background(v, now)?;
    let price = v.entry(first.place).weight.saturating_mul(u64::from(WHOLE_SHARE - share));
    (v.progress().owed >= price).then_some(Found { rank: Rank { class: 0, ..first.rank }, ..first })
}

/// Makes one pass over all waiting calls, from the position of `subject`.
pub(super) fn survey<V: View>(v: &V, subject: &Subject, now: Time) -> Survey {
    let owed = owed(v, now);
    let mut survey = Survey {
        waiting: WaiterCounts::default(),
        ahead: Needs::default(),
        expected: [0; MAX_UNITS],
        next_tag: None,
        last_tag: 0,
        groups: 1,
        free: None,
        stale: None,
        late: false,
        owed: owed.map(|found| found.place),
    };
    let rank = if survey.owed.is_some() && survey.owed == subject.place {
        Rank { class: 0, ..subject.rank }
    } else {
        subject.rank
    };
    let mut groups = Groups::new(v.waiting().total());
    // The calls ahead that go only once. The other groups are expected to come again, and their turns are added
    // below.
    let mut once = Needs::default();
    for block in 0..WAITERS / 64 {
        let places = v.places(block);
        if survey.free.is_none() && places.0 != u64::MAX {
            survey.free = Some(64 * block + places.0.trailing_ones() as usize);
        }
        for place in places.map(|place| 64 * block + place) {
            let entry_head = v.entry_head(place);
            let priority = entry_head.priority();
            survey.waiting = survey.waiting.plus(priority);
            if Some(place) == subject.place {
                continue;
            }
            let found = match owed {
                Some(owed) if owed.place == place => owed,
                _ => Found { place, rank: Rank::of(&entry_head), entry_head },
            };
            let same = priority == subject.priority;
            if same {
                survey.next_tag = Some(survey.next_tag.map_or(entry_head.tag, |tag| tag.min(entry_head.tag)));
                survey.last_tag = survey.last_tag.max(entry_head.tag);
            }
            if !is_expected(&entry_head, now) {
                survey.late = true;
                if entry_head.wake_at.plus(STALE_AFTER) < now {
                    survey.stale = Some(place);
                }
                continue;
            }
            if same {
                groups.note(v, &found);
            }
            if found.rank < rank {
                let entry = v.entry(place);
                survey.ahead.add_entry(v, &entry, now);
                if !same || entry_head.group == subject.group || entry_head.tag == rank.tag {
                    once.add(entry.cost, 1);
                }
            }
        }
    }
    let mut expected = once;
    for first in
        groups.firsts().map(|place| v.entry(place)).filter(|entry| entry.entry_head.group != subject.group)
    {
        survey.groups += 1;
        let entry_head = first.entry_head;
        if Rank::of(&entry_head) < rank && v.queueing().fairness == Fairness::Process {
            // A call with exactly this tag is already counted above.
            let turns =
                rank.tag.saturating_sub(entry_head.tag).div_ceil(first.weight.max(1)).min(WAITERS as u64);
            expected.add(first.cost, turns);
        }
    }
    survey.expected = std::array::from_fn(|unit| expected.cost[unit].max(survey.ahead.cost[unit]));
    survey
}

/// The first call of each group: a hash table of places on the stack. Each cell holds the place plus one.
struct Groups {
    places: [u16; Groups::LARGEST],
    size: usize,
}

impl Groups {
    const LARGEST: usize = 2 * WAITERS;

    /// A table for about `waiters` entries. It has twice that size, so that a search ends soon.
    fn new(waiters: usize) -> Groups {
        Groups { places: [0; Groups::LARGEST], size: (2 * waiters + 2).min(Groups::LARGEST) }
    }

    fn note<V: View>(&mut self, v: &V, found: &Found) {
        let start = (found.entry_head.group ^ found.entry_head.group >> 32) as usize;
        for i in 0..self.size {
            let cell = &mut self.places[start.wrapping_add(i) % self.size];
            let Some(other) = usize::from(*cell).checked_sub(1) else {
                *cell = found.place as u16 + 1;
                return;
            };
            let other = v.entry_head(other);
            if other.group == found.entry_head.group {
                if Rank::of(&found.entry_head) < Rank::of(&other) {
                    *cell = found.place as u16 + 1;
                }
                return;
            }
        }
    }

    fn firsts(&self) -> impl Iterator<Item = usize> + '_ {
        self.places[..self.size].iter().filter_map(|place| usize::from(*place).checked_sub(1))
    }
}

/// The first call behind `after`, or of all calls, that is expected to check in time.
pub(super) fn first_after<V: View>(v: &V, after: Option<Rank>, now: Time) -> Option<Found> {
    let owed = owed(v, now);
    taken(v)
        .map(|place| (place, v.entry_head(place)))
        .filter(|(_, entry_head)| is_expected(entry_head, now))
        .map(|(place, entry_head)| match owed {
            Some(owed) if owed.place == place => owed,
            _ => Found { place, rank: Rank::of(&entry_head), entry_head },
        })
        .filter(|found| after.is_none_or(|after| found.rank > after))
        .min_by_key(|found| found.rank)
}

/// All waiting calls in the order of service, including late ones. For reports.
pub fn in_order<V: View>(v: &V, now: Time) -> Vec<(usize, Entry)> {
    let owed = owed(v, now).map(|found| found.place);
    let mut entries: Vec<(usize, Entry)> = taken(v).map(|place| (place, v.entry(place))).collect();
    entries.sort_by_key(|(place, entry)| (Some(*place) != owed, Rank::of(&entry.entry_head)));
    entries
}

/// Whether a waiting call could use a permit now. If all calls count the same unit, every call behind one that
/// waits for the rate waits for the rate, too. Then no other call can want its permit, so the answer is yes
/// without asking the rules.
fn could_use_permit<V: View>(v: &V, entry: &Entry, now: Time) -> bool {
    let general = v.general();
    let leave_reserve = entry.entry_head.priority().is_background();
    let admits = |rule: usize| {
        let at = RuleContext::of(v, rule, now);
        let cost = entry.cost[at.terms.unit()];
        cost == 0 || rule::earliest(v, &at, v.rule(rule), Need { cost, leave_reserve }) == When::Now
    };
    general.units <= 1 || (0..general.rules.min(MAX_RULES)).all(admits)
}

/// The time until which a call may sleep if its turn cannot be predicted. The bound grows with the number of
/// calls ahead and with the number of all waiting calls, so that many sleeping calls cost little.
pub(super) fn bound(now: Time, ahead: u32, waiting: WaiterCounts, can_be_woken: bool) -> Time {
    let first = if can_be_woken { SHORTEST_BOUND } else { UNWOKEN_BOUND };
    let longest = LONGEST_BOUND.0.max(sleep_shared_by_all(waiting).0).min(LONGEST_SLEEP.0);
    now.plus(Nanos(first.0.saturating_mul(u64::from(ahead) + 1).min(longest)))
}

/// The longest sleep of calls that know their time.
pub(super) fn longest_sleep(waiting: WaiterCounts) -> Nanos {
    Nanos(USUAL_SLEEP.0.max(sleep_shared_by_all(waiting).0).min(LONGEST_SLEEP.0))
}

fn sleep_shared_by_all(waiting: WaiterCounts) -> Nanos {
    Nanos(waiting.total() as u64 * EACH_WAITER.0)
}

/// A set of places in the queue, one bit for each.
pub type Marked = [PlaceSet; WAITERS / 64];

/// The places of all waiting calls.
pub fn all<V: View>(v: &V) -> Marked {
    std::array::from_fn(|block| v.places(block))
}

/// The places of waiting calls with a deadline before `time`.
pub fn giving_up_before<V: View>(v: &V, time: Time) -> Marked {
    std::array::from_fn(|block| {
        let gives_up = |place: &usize| v.entry_head(64 * block + place).deadline < time;
        PlaceSet(v.places(block).filter(gives_up).fold(0, |marked, place| marked | 1 << place))
    })
}
