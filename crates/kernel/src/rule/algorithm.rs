//! The interface of every algorithm: the trait that `rule` dispatches to, and the types of its arguments and
//! results.

use crate::state::{Charge, Memory, RuleState, View};
use crate::terms::Terms;
use crate::time::Time;
use bytemuck::Pod;

/// The time at which a rule will admit a cost if nothing else is charged before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// At this time and not before, rounded up to a nanosecond (R4).
    At(Time),
    /// Never: the cost, or the cost plus the reserve, is more than the rule can ever hold (R6).
    Never,
}

impl When {
    /// `Now` if `time` is not after `now`, otherwise `At(time)`.
    #[inline(always)]
    pub fn at(time: Time, now: Time) -> When {
        if time <= now { When::Now } else { When::At(time) }
    }
}

/// The request of a call to one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The cost in units.
    pub cost: u64,
    /// Whether the reserve must be left alone (R107).
    pub leave_reserve: bool,
}

/// The state after a charge, and the value needed to refund that charge.
pub type Charging = (RuleState, Charge);

/// A charge as its ticket remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The time of the charge.
    pub at: Time,
    /// The charged cost.
    pub cost: u64,
    /// The value that the rule returned with the charge.
    pub charge: Charge,
    /// No later charge was made after this time.
    pub last: Time,
}

/// Gives an algorithm's names to the words of its state.
pub(super) trait StateWords: Pod {
    /// Reads the stored words.
    #[inline(always)]
    fn read(state: RuleState) -> Self {
        bytemuck::cast(state.0)
    }

    /// The words to store.
    #[inline(always)]
    fn write(self) -> RuleState {
        RuleState(bytemuck::cast(self))
    }
}

impl<S: Pod> StateWords for S {}

/// A rule, its terms, and the time of the decision.
#[derive(Clone, Copy, Debug)]
pub struct RuleContext {
    /// The index of the rule in the policy.
    pub rule: usize,
    /// The terms of the rule.
    pub terms: Terms,
    /// The time of the decision. It is never before the latest change.
    pub now: Time,
}

impl RuleContext {
    /// Rule `rule` of `v` with its effective terms.
    #[inline(always)]
    pub fn of<V: View>(v: &V, rule: usize, now: Time) -> RuleContext {
        RuleContext { rule, terms: v.terms(rule), now }
    }
}

/// The present calendar window of a rule, for reports (R29, R37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The units used in the window. For GCRA in its older burst mode, the free passes used.
    pub used: u64,
    /// The units used in the window before. Only for a sliding counter.
    pub before: u64,
    /// The time at which the next window begins.
    pub resets_at: Time,
}

/// The position of the calendar window in a rule's state: the time of its end, and in the next word its count.
#[derive(Clone, Copy, Debug)]
pub struct CalendarWords {
    /// The index of the window's end.
    pub until: usize,
    /// The index of the count of the window before, if that counts too.
    pub before: Option<usize>,
}

/// A rate algorithm. Its functions must not panic, whatever the words are.
///
/// The first half only decides and changes nothing, so that all rules can be asked before any is charged (R38).
/// The second half changes the state.
pub trait RateAlgorithm {
    /// The position of the calendar window in the state, if the algorithm has one.
    const CALENDAR: Option<CalendarWords> = None;

    /// The time at which `need` is admitted.
    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When;
    /// The time at which `need` is admitted if `ahead` is taken before it, each part as soon as it is admitted.
    /// "Now" is exact. A later time may be too early, but never too late. A cost that is ever admitted with
    /// nothing ahead is also ever admitted with anything ahead.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When;
    /// The same as [`RateAlgorithm::charge`] if [`RateAlgorithm::earliest`] is now. Otherwise `None`.
    #[inline]
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        match Self::earliest(v, at, state, need) {
            When::Now => Some(Self::charge(v, at, state, need.cost)),
            When::At(_) | When::Never => None,
        }
    }
    /// The state with `cost` taken, whether or not the cost is admitted. [`RateAlgorithm::store`] stores it.
    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging;
    /// The whole units that are still available.
    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64;
    /// Whether the stored words can be a state of this rule. `at.now` is the time of the last charge.
    fn sane<V: View>(v: &V, at: &RuleContext, state: RuleState) -> bool;

    /// The calendar window at this time, for reports (R29, R37). `None` if the algorithm has none.
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let _ = (v, at, state);
        None
    }

    /// [`RateAlgorithm::admit`] and [`RateAlgorithm::store`] in one step. `state` is the stored state of the rule.
    #[inline(always)]
    fn take<M: Memory>(m: &mut M, at: &RuleContext, state: RuleState, need: Need) -> Option<Charge> {
        let (after, charge) = Self::admit(m, at, state, need)?;
        m.replace_rule(at.rule, state, after);
        Some(charge)
    }
    /// Stores the result of [`RateAlgorithm::charge`] for `cost` at the same time.
    #[inline(always)]
    fn store<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: Charging) {
        let _ = cost;
        m.set_rule(at.rule, charged.0);
    }
    /// Refunds as much of `cost` as can still be refunded. `cost` is part or all of the charged cost (R129).
    /// Only for charges that are not older than [`RuleState::since`].
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged);
    /// Sets the state in which nothing is available. A rule whose past was lost starts with it.
    fn empty<M: Memory>(m: &mut M, at: &RuleContext);
    /// Carries `state` over from the terms `old` to changed terms of the same kind (R110). The available units
    /// are kept, clipped to the new capacity and rounded down. A larger capacity adds no units. GCRA, a leaky
    /// bucket and windows keep the used units instead. Unchanged terms give the unchanged state.
    ///
    /// The default keeps the counts. With another limit, the available units are that limit less the units used
    /// in this window, because the window must bound the units used. If the length of the window changes, the
    /// counts say nothing about the new window, so the rule starts empty.
    fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
        if old.period() == at.terms.period() { m.set_rule(at.rule, state) } else { Self::empty(m, at) }
    }
}
