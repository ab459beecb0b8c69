//! The sliding log (R31 to R33): remembers every unit for a period, so that no interval of that length contains
//! more units than the limit.
//!
//! A unit that is exactly a period old no longer counts. The units charged at one instant form one run of the
//! [`Ring`]. The state holds the range of runs in use and their total, so that most decisions read one word of
//! the ring.
//!
//! There is room for more runs than units. Only refunded calls and settlements can fill the ring with runs that
//! are still young. In that case new units are added to the newest run, at the later time: units then count for
//! longer than they should, never for less.

use super::algorithm::{Charged, Charging, Need, RateAlgorithm, RuleContext, StateWords, When};
use super::ring::{Ring, Stretch};
use crate::state::{Charge, Memory, RuleState, UNKNOWN, View};
use crate::terms::Terms;
use crate::time::{Nanos, Time};
use bytemuck::{Pod, Zeroable};

/// A log of every unit with its time.
#[derive(Clone, Copy, Debug)]
pub struct SlidingLog;

/// More than any limit, and small enough that sums do not overflow.
const MOST: u64 = 1 << 62;
/// Maximum number of empty runs that one refund removes.
const POPS: usize = 64;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SlidingLogState {
    stretch: Stretch,
    /// The sum over the runs of the stretch.
    total: u64,
    /// Charges made before this time cannot be refunded any more.
    since: Time,
}

impl SlidingLogState {
    /// The state without the runs that are too old by now, and the place of its first run.
    #[inline(always)]
    fn live<V: View>(v: &V, at: &RuleContext, ring: &Ring, state: RuleState) -> (SlidingLogState, usize) {
        let words = SlidingLogState::read(state);
        let Stretch { first, next } = words.stretch;
        // The words are damaged, so the runs in use are not known. The rule counts as used up.
        if first == UNKNOWN || next < first || words.stretch.len() > ring.runs() {
            return (SlidingLogState { total: u64::MAX, ..words }, 0);
        }
        let place = ring.place(first);
        let Some(old) = at.now.0.checked_sub(at.terms.period().0) else { return (words, place) };
        let len = words.stretch.len();
        let dead = ring.until(v, place, len, Time(old));
        if dead == 0 {
            return (words, place);
        }
        let units = ring.sum(v, place, dead);
        let total = if dead == len { 0 } else { words.total.saturating_sub(units) };
        let stretch = Stretch { first: first.wrapping_add(dead), next };
        (SlidingLogState { stretch, total, ..words }, ring.later(place, dead))
    }

    /// Takes `cost` at `now`. `place` is the place of the first run.
    #[inline(always)]
    fn charge<V: View>(self, v: &V, ring: &Ring, place: usize, now: Time, cost: u64) -> Addition {
        let Stretch { first, next } = self.stretch;
        // A damaged length was replaced by a total that admits nothing. A settlement charges even then.
        let len = self.stretch.len().min(ring.runs());
        let newest = ring.later(place, len.wrapping_sub(1).min(ring.runs()));
        // The charge is added to the newest run if that has the same time, or if there is no more room.
        let begins = len == 0 || (len < ring.runs() && ring.time(v, newest) != now);
        let (place, next) =
            if begins { (ring.later(place, len), next.wrapping_add(1)) } else { (newest, next) };
        let added = cost.min(MOST.saturating_sub(self.total));
        let total = self.total.saturating_add(added);
        let state = SlidingLogState { stretch: Stretch { first, next }, total, ..self };
        Addition { state: state.write(), place, begins, added }
    }

    /// The time at which the `k`th oldest unit is too old. There are at least `k` units.
    fn time_without<V: View>(&self, v: &V, at: &RuleContext, ring: &Ring, k: u64) -> Time {
        ring.time_of_unit(v, self.stretch, k).plus(at.terms.period())
    }
}

/// A charge that is not stored yet.
#[derive(Clone, Copy)]
struct Addition {
    /// The state after it.
    state: RuleState,
    /// The place of the run that it is added to.
    place: usize,
    /// Whether that run is new.
    begins: bool,
    /// The units that are added.
    added: u64,
}

impl RateAlgorithm for SlidingLog {
    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        let room = at.terms.limit(need.leave_reserve);
        if need.cost > room {
            return When::Never;
        }
        let ring = Ring::of(&at.terms);
        let (words, _) = SlidingLogState::live(v, at, &ring, state);
        match words.total.saturating_sub(room - need.cost) {
            0 => When::Now,
            k => When::At(words.time_without(v, at, &ring, k)),
        }
    }

    // A unit is admitted when the unit `limit` before it is too old. The calls ahead come in rounds of `limit`,
    // one period apart, each unit at the time of the same unit in the round before.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
        let (limit, room) = (at.terms.limit(false).max(1), at.terms.limit(need.leave_reserve));
        if need.cost > room {
            return When::Never;
        }
        let ring = Ring::of(&at.terms);
        let (words, _) = SlidingLogState::live(v, at, &ring, state);
        let k = words.total.saturating_add(ahead).saturating_sub(room - need.cost);
        if k == 0 {
            return When::Now;
        }
        // Unit k is one of the units ahead. It comes `rounds` rounds after a unit that is already present or
        // can be taken now.
        let rounds = k.saturating_sub(words.total).div_ceil(limit);
        let later = Nanos(at.terms.period().0.saturating_mul(rounds));
        match k.checked_sub(limit.saturating_mul(rounds)) {
            Some(k) if k > 0 => When::At(words.time_without(v, at, &ring, k).plus(later)),
            _ => When::At(at.now.plus(later)),
        }
    }

    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let ring = Ring::of(&at.terms);
        let (words, place) = SlidingLogState::live(v, at, &ring, state);
        let Addition { state, added, .. } = words.charge(v, &ring, place, at.now, cost);
        (state, Charge(added))
    }

    #[inline(always)]
    fn take<M: Memory>(m: &mut M, at: &RuleContext, state: RuleState, need: Need) -> Option<Charge> {
        let left = at.terms.limit(need.leave_reserve).checked_sub(need.cost)?;
        let ring = Ring::of(&at.terms);
        let (words, place) = SlidingLogState::live(m, at, &ring, state);
        if words.total > left {
            return None;
        }
        let addition = words.charge(m, &ring, place, at.now, need.cost);
        ring.add(m, addition.place, addition.begins, at.now, addition.added);
        m.replace_rule(at.rule, state, addition.state);
        Some(Charge(addition.added))
    }

    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        let (words, _) = SlidingLogState::live(v, at, &Ring::of(&at.terms), state);
        at.terms.limit(leave_reserve).saturating_sub(words.total)
    }

    fn sane<V: View>(v: &V, at: &RuleContext, state: RuleState) -> bool {
        let (ring, SlidingLogState { stretch, total, .. }) =
            (Ring::of(&at.terms), SlidingLogState::read(state));
        let first = ring.place(stretch.first);
        let ordered = || {
            let times = (ring.time(v, first), ring.time(v, ring.place(stretch.last())));
            times.0 <= times.1 && times.1 <= at.now
        };
        stretch.len() <= ring.runs()
            && total <= MOST
            && ring.sum(v, first, stretch.len()) == total
            && (stretch.len() == 0 || ordered())
    }

    fn store<M: Memory>(m: &mut M, at: &RuleContext, _: u64, (state, charge): Charging) {
        let ring = Ring::of(&at.terms);
        let (before, after) =
            (SlidingLogState::read(m.rule(at.rule)).stretch, SlidingLogState::read(state).stretch);
        ring.add(m, ring.place(after.last()), after.next != before.next, at.now, charge.0);
        m.set_rule(at.rule, state);
    }

    // Refunds exactly the charged units, to the run that was charged, which is found by its time. Later runs do
    // not change.
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let ring = Ring::of(&at.terms);
        let words = SlidingLogState::read(m.rule(at.rule));
        let Stretch { first, next } = words.stretch;
        let earlier = match charged.at.0.checked_sub(1) {
            Some(before) => ring.until(m, ring.place(first), words.stretch.len(), Time(before)),
            None => 0,
        };
        let run = first.wrapping_add(earlier);
        if run == next || ring.time(m, ring.place(run)) != charged.at {
            return;
        }
        let back = cost.min(ring.count(m, ring.place(run))).min(words.total);
        ring.shrink(m, words.stretch, run, back);
        // Empty runs at either end are removed to make room.
        let mut stretch = words.stretch;
        for _ in 0..POPS {
            if stretch.len() == 0 {
                break;
            } else if ring.count(m, ring.place(stretch.last())) == 0 {
                stretch.next = stretch.last();
            } else if ring.count(m, ring.place(stretch.first)) == 0 {
                stretch.first = stretch.first.wrapping_add(1);
            } else {
                break;
            }
        }
        m.set_rule(at.rule, SlidingLogState { stretch, total: words.total - back, ..words }.write());
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let total = at.terms.limit(false).min(MOST);
        Ring::of(&at.terms).add(m, 0, true, at.now, total);
        let stretch = Stretch { first: 0, next: 1 };
        m.set_rule(at.rule, SlidingLogState { stretch, total, since: Time(0) }.write());
    }

    // The terms determine the place of the runs and how long they are kept. Units that were not kept cannot be
    // carried over. A shorter period needs fewer units than were kept.
    fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
        let place = |terms: &Terms| (terms.log_at(), terms.log_capacity());
        let kept = place(old) == place(&at.terms) && at.terms.period() <= old.period();
        if kept { m.set_rule(at.rule, state) } else { Self::empty(m, at) }
    }
}
