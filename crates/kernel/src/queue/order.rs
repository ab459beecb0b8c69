//! Passes over the queue: what is ahead of a call, and who is first.

use super::{
    EACH_WAITER, GRACE, LONGEST_BOUND, LONGEST_SLEEP, SHORTEST_BOUND, STALE_AFTER, UNWOKEN_BOUND, USUAL_SLEEP,
};
use crate::policy::{Fairness, WHOLE_SHARE};
use crate::request::Priority;
use crate::rule::{self, Need, RuleContext, When};
use crate::state::{Entry, EntryHead, PlaceSet, View, WAITERS, WaiterCounts};
use crate::time::{Nanos, Time};
use crate::{MAX_RULES, MAX_UNITS};

/// A place in the order; the smaller is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// 0 for the background call that is owed its share, then by falling priority.
    class: u8,
    tag: u64,
    number: u64,
}

impl Rank {
    #[inline]
    pub(super) fn new(priority: Priority, tag: u64, number: u64) -> Rank {
        Rank { class: 3 - priority as u8, tag, number }
    }

    /// Behind all of this priority.
    pub(super) fn last_of(priority: Priority) -> Rank {
        Rank::new(priority, u64::MAX, u64::MAX)
    }

    #[inline]
    fn of(entry_head: &EntryHead) -> Rank {
        Rank::new(entry_head.priority(), entry_head.tag, entry_head.number)
    }
}

/// What a set of calls needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) cost: [u64; MAX_UNITS],
    pub(super) calls: u32,
    /// Permits to be left for those calls.
    pub(super) permits: u32,
    /// Those of the permits that are for the background.
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

    /// Adds a call that stands in the queue, with its permit if it could use one now.
    pub(super) fn add_entry<V: View>(&mut self, v: &V, entry: &Entry, now: Time) {
        self.add(entry.cost, 1);
        if could_use_permit(v, entry, now) {
            self.permits = self.permits.saturating_add(1);
            self.background += u32::from(entry.entry_head.priority().is_background());
        }
    }
}

/// One who waits, found by a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) place: usize,
    pub(super) rank: Rank,
    pub(super) entry_head: EntryHead,
}

impl Found {
    /// Whether it goes first because the background is owed its share.
    pub(super) fn is_owed(&self) -> bool {
        self.rank.class == 0
    }
}

/// What a pass over the queue found, seen from one call.
pub(super) struct Survey {
    /// How many wait, the call itself included if it does.
    pub(super) waiting: WaiterCounts,
    /// What those ahead need who are expected to look in time.
    pub(super) ahead: Needs,
    /// What will go before it if the groups that wait now go on waiting; at least `ahead`.
    pub(super) expected: [u64; MAX_UNITS],
    /// The smallest tag of all others of its priority.
    pub(super) next_tag: Option<u64>,
    /// The largest tag of all others of its priority.
    pub(super) last_tag: u64,
    /// How many groups of its priority wait, the call's own included.
    pub(super) groups: u64,
    /// A place that nobody has.
    pub(super) free: Option<usize>,
    /// A place whose owner has not looked for so long that it may be taken.
    pub(super) stale: Option<usize>,
    /// Whether anybody else is late.
    pub(super) late: bool,
    /// The background call that is owed its share.
    pub(super) owed: Option<usize>,
}

/// The call a survey is made for.
pub(super) struct Subject {
    /// Its place, if it has one.
    pub(super) place: Option<usize>,
    pub(super) priority: Priority,
    pub(super) group: u64,
    pub(super) rank: Rank,
}

/// Whether it is late. Sooner or later the dead are, too.
pub fn is_late(entry_head: &EntryHead, now: Time) -> bool {
    !is_expected(entry_head, now)
}

/// Whether its deadline is so long over that it cannot be served any more: its owner is stopped, or could not leave.
pub fn has_given_up(entry_head: &EntryHead, now: Time) -> bool {
    entry_head.deadline.plus(GRACE) < now
}

/// Whether it will look, or is on its way: its appointment is not long over, not further ahead than anybody sleeps,
/// and it has not given up.
#[inline]
pub(super) fn is_expected(entry_head: &EntryHead, now: Time) -> bool {
    let late = now > entry_head.wake_at.plus(GRACE);
    let damaged = entry_head.wake_at > now.plus(LONGEST_SLEEP).plus(GRACE);
    !late && !damaged && entry_head.deadline >= now
}

/// All places that are taken.
pub(super) fn taken<V: View>(v: &V) -> impl Iterator<Item = usize> + '_ {
    (0..WAITERS / 64).flat_map(move |block| v.places(block).map(move |place| 64 * block + place))
}

/// The first call of the background, of those that will look. None if all permits of the background are out: then it
/// cannot go, and must neither stand in the way of those who can nor save up for later.
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

/// The background call that goes before everybody because the background is owed its share: its first, if it will
/// look.
fn owed<V: View>(v: &V, now: Time) -> Option<Found> {
    let share = v.queueing().background_share;
    if share == 0 || v.waiting().of(Priority::Background) == 0 {
        return None;
    }
    let first = first_of_background(v, now)?;
    let price = v.entry(first.place).weight.saturating_mul(u64::from(WHOLE_SHARE - share));
    (v.progress().owed >= price).then_some(Found { rank: Rank { class: 0, ..first.rank }, ..first })
}

/// Looks at everybody once, from the place of `subject`.
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
    // Those ahead that go once; the other groups are expected to come again, and counted by their turns below.
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
            // Those with the very same tag are counted above, each for itself.
            let turns =
                rank.tag.saturating_sub(entry_head.tag).div_ceil(first.weight.max(1)).min(WAITERS as u64);
            expected.add(first.cost, turns);
        }
    }
    survey.expected = std::array::from_fn(|unit| expected.cost[unit].max(survey.ahead.cost[unit]));
    survey
}

/// The first of each group: a hash table of places, each one more than the place, on the stack.
struct Groups {
    places: [u16; Groups::LARGEST],
    size: usize,
}

impl Groups {
    const LARGEST: usize = 2 * WAITERS;

    /// For about so many: twice their number, so that looking ends soon.
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

/// The first behind `after`, or of all, that is expected to look in time.
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

/// Everybody who waits, in order of service, for people; late ones too.
pub fn in_order<V: View>(v: &V, now: Time) -> Vec<(usize, Entry)> {
    let owed = owed(v, now).map(|found| found.place);
    let mut entries: Vec<(usize, Entry)> = taken(v).map(|place| (place, v.entry(place))).collect();
    entries.sort_by_key(|(place, entry)| (Some(*place) != owed, Rank::of(&entry.entry_head)));
    entries
}

/// Whether a call that waits could use a permit now. Where all count the same unit, whoever stands behind one that
/// waits for the rate waits for it too, and nobody else can want its permit; so it is asked only where calls differ.
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

/// Until when one may sleep if nobody can know its time: the longer the more are ahead, and the more wait at all, so
/// that many sleepers cost little.
pub(super) fn bound(now: Time, ahead: u32, waiting: WaiterCounts, can_be_woken: bool) -> Time {
    let first = if can_be_woken { SHORTEST_BOUND } else { UNWOKEN_BOUND };
    let longest = LONGEST_BOUND.0.max(sleep_shared_by_all(waiting).0).min(LONGEST_SLEEP.0);
    now.plus(Nanos(first.0.saturating_mul(u64::from(ahead) + 1).min(longest)))
}

/// The longest sleep of those who know their time.
pub(super) fn longest_sleep(waiting: WaiterCounts) -> Nanos {
    Nanos(USUAL_SLEEP.0.max(sleep_shared_by_all(waiting).0).min(LONGEST_SLEEP.0))
}

fn sleep_shared_by_all(waiting: WaiterCounts) -> Nanos {
    Nanos(waiting.total() as u64 * EACH_WAITER.0)
}

/// Places in the queue: a bit for each.
pub type Marked = [PlaceSet; WAITERS / 64];

/// All who wait.
pub fn all<V: View>(v: &V) -> Marked {
    std::array::from_fn(|block| v.places(block))
}

/// Those of them who give up before a time.
pub fn giving_up_before<V: View>(v: &V, time: Time) -> Marked {
    std::array::from_fn(|block| {
        let gives_up = |place: &usize| v.entry_head(64 * block + place).deadline < time;
        PlaceSet(v.places(block).filter(gives_up).fold(0, |marked, place| marked | 1 << place))
    })
}
