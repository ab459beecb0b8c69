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
    /// The state without the runs that are too old by now.
    #[inline]
    fn live<V: View>(v: &V, at: &RuleContext, ring: &Ring, state: RuleState) -> SlidingLogState {
        let words = SlidingLogState::read(state);
        // The words are damaged, so the runs in use are not known. The rule counts as used up.
        if words.stretch.first == UNKNOWN || words.stretch.len() > ring.runs() {
            return SlidingLogState { total: u64::MAX, ..words };
        }
        let Some(old) = at.now.0.checked_sub(at.terms.period().0) else { return words };
        let Stretch { first, next } = words.stretch;
        let begin = ring.first_after(v, words.stretch, Time(old));
        if begin == first {
            return words;
        }
        let dead = ring.sum(v, Stretch { first, next: begin });
        let total = if begin == next { 0 } else { words.total.saturating_sub(dead) };
        SlidingLogState { stretch: Stretch { first: begin, next }, total, ..words }
    }

    /// Whether a charge at `now` is added to the newest run: that run has the same time, or there is no more
    /// room.
    fn grows<V: View>(&self, v: &V, ring: &Ring, now: Time) -> bool {
        let len = self.stretch.len();
        len > 0 && (len >= ring.runs() || ring.time(v, self.stretch.last()) == now)
    }

    fn charge<V: View>(self, v: &V, ring: &Ring, now: Time, cost: u64) -> Charging {
        let Stretch { first, next } = self.stretch;
        let next = if self.grows(v, ring, now) { next } else { next.wrapping_add(1) };
        let added = cost.min(MOST.saturating_sub(self.total));
        let total = self.total.saturating_add(added);
        (SlidingLogState { stretch: Stretch { first, next }, total, ..self }.write(), Charge(added))
    }

    /// The time at which the `k`th oldest unit is too old. There are at least `k` units.
    fn time_without<V: View>(&self, v: &V, at: &RuleContext, ring: &Ring, k: u64) -> Time {
        ring.time_of_unit(v, self.stretch, k).plus(at.terms.period())
    }
}

impl RateAlgorithm for SlidingLog {
    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
        let room = at.terms.limit(need.leave_reserve);
        if need.cost > room {
            return When::Never;
        }
        let ring = Ring::of(&at.terms);
        let words = SlidingLogState::live(v, at, &ring, state);
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
        let words = SlidingLogState::live(v, at, &ring, state);
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

    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        let left = at.terms.limit(need.leave_reserve).checked_sub(need.cost)?;
        let ring = Ring::of(&at.terms);
        let words = SlidingLogState::live(v, at, &ring, state);
        (words.total <= left).then(|| words.charge(v, &ring, at.now, need.cost))
    }

    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging {
        let ring = Ring::of(&at.terms);
        SlidingLogState::live(v, at, &ring, state).charge(v, &ring, at.now, cost)
    }

    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
        let words = SlidingLogState::live(v, at, &Ring::of(&at.terms), state);
        at.terms.limit(leave_reserve).saturating_sub(words.total)
    }

    fn sane<V: View>(v: &V, at: &RuleContext, state: RuleState) -> bool {
        let (ring, SlidingLogState { stretch, total, .. }) =
            (Ring::of(&at.terms), SlidingLogState::read(state));
        let ordered = || {
            let (first, last) = (ring.time(v, stretch.first), ring.time(v, stretch.last()));
            first <= last && last <= at.now
        };
        stretch.len() <= ring.runs()
            && total <= MOST
            && ring.sum(v, stretch) == total
            && (stretch.len() == 0 || ordered())
    }

    fn store<M: Memory>(m: &mut M, at: &RuleContext, _: u64, (state, charge): Charging) {
        let ring = Ring::of(&at.terms);
        let (before, after) =
            (SlidingLogState::read(m.rule(at.rule)).stretch, SlidingLogState::read(state).stretch);
        if after.next == before.next {
            ring.grow(m, after.last(), at.now, charge.0);
        } else {
            ring.push(m, after.last(), at.now, charge.0);
        }
        m.set_rule(at.rule, state);
    }

    // Refunds exactly the charged units, to the run that was charged, which is found by its time. Later runs do
    // not change.
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged) {
        let ring = Ring::of(&at.terms);
        let words = SlidingLogState::read(m.rule(at.rule));
        let Stretch { first, next } = words.stretch;
        let before = Time(charged.at.0.saturating_sub(1));
        let run = if charged.at == Time::ZERO { first } else { ring.first_after(m, words.stretch, before) };
        if run == next || ring.time(m, run) != charged.at {
            return;
        }
        let back = cost.min(ring.count(m, run)).min(words.total);
        ring.shrink(m, words.stretch, run, back);
        // Empty runs at either end are removed to make room.
        let mut stretch = words.stretch;
        for _ in 0..POPS {
            if stretch.len() == 0 {
                break;
            } else if ring.count(m, stretch.last()) == 0 {
                stretch.next = stretch.last();
            } else if ring.count(m, stretch.first) == 0 {
                stretch.first = stretch.first.wrapping_add(1);
            } else {
                break;
            }
        }
        m.set_rule(at.rule, SlidingLogState { stretch, total: words.total - back, ..words }.write());
    }

    fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
        let total = at.terms.limit(false).min(MOST);
        Ring::of(&at.terms).push(m, 0, at.now, total);
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
