//! What every algorithm does: the trait that `rule` dispatches to, and the types of its questions and answers.

use crate::state::{Charge, Memory, RuleState, View};
use crate::terms::Terms;
use crate::time::Time;
use bytemuck::Pod;

/// When a rule will admit a cost if nothing else is charged meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// First then, rounded up to a nanosecond (R4).
    At(Time),
    /// The cost, or the cost and the reserve, is more than the rule ever has (R6).
    Never,
}

impl When {
    /// Now if it is not later than that.
    #[inline(always)]
    pub fn at(time: Time, now: Time) -> When {
        if time <= now { When::Now } else { When::At(time) }
    }
}

/// What a call needs of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How many units.
    pub cost: u64,
    /// Whether it must leave the reserve alone (R107).
    pub leave_reserve: bool,
}

/// A state with a cost taken, and what to remember for taking that back.
pub type Charging = (RuleState, Charge);

/// A charge as its ticket remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charged {
    /// When it was made.
    pub at: Time,
    /// How much.
    pub cost: u64,
    /// What the rule said then.
    pub charge: Charge,
    /// Nothing was charged after this.
    pub last: Time,
}

/// The words of a state with the names that an algorithm gives them.
pub(super) trait StateWords: Pod {
    /// From the stored words.
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

/// Which rule, by which terms, and when.
#[derive(Clone, Copy, Debug)]
pub struct RuleContext {
    /// Its place in the policy.
    pub rule: usize,
    /// Its terms.
    pub terms: Terms,
    /// The time of the decision, never before the latest change.
    pub now: Time,
}

impl RuleContext {
    /// Rule `rule` of `v`, as it is effective.
    #[inline(always)]
    pub fn of<V: View>(v: &V, rule: usize, now: Time) -> RuleContext {
        RuleContext { rule, terms: v.terms(rule), now }
    }
}

/// The calendar window a rule is in, for people (R29, R37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// What was used in it; of the older burst mode, the free passes.
    pub used: u64,
    /// Of a sliding counter: what was used in the window before.
    pub before: u64,
    /// When the next one begins.
    pub resets_at: Time,
}

/// Where a rule's state keeps its calendar window: the time of its end, and in the next word what it counted.
#[derive(Clone, Copy, Debug)]
pub struct CalendarWords {
    /// The index of the window's end.
    pub until: usize,
    /// The index of the count of the window before, if that counts too.
    pub before: Option<usize>,
}

/// How one algorithm counts. Nothing here may panic, whatever the words are.
///
/// The first half judges: it changes nothing, so that all rules can be asked before any is charged (R38). The second
/// half changes the state.
pub trait RateAlgorithm {
    /// Where the state keeps its calendar window, if the algorithm has one.
    const CALENDAR: Option<CalendarWords> = None;

    /// When `need` is admitted.
    fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When;
    /// When `need` is admitted if `ahead` is taken before it, each part as soon as it is admitted. "Now" is exact; a
    /// later time may be too early, never too late. A cost that is admitted at some time behind nothing is so behind
    /// anything.
    fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When;
    /// [`RateAlgorithm::charge`] if [`RateAlgorithm::earliest`] is now.
    #[inline]
    fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
        match Self::earliest(v, at, state, need) {
            When::Now => Some(Self::charge(v, at, state, need.cost)),
            When::At(_) | When::Never => None,
        }
    }
    /// The state with `cost` taken, admitted or not; to be stored by [`RateAlgorithm::store`].
    fn charge<V: View>(v: &V, at: &RuleContext, state: RuleState, cost: u64) -> Charging;
    /// Whole units still to be had.
    fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64;
    /// Whether stored words can be a state of this rule; `at.now` is the last time anything was charged.
    fn sane<V: View>(v: &V, at: &RuleContext, state: RuleState) -> bool;

    /// The calendar window at this time, for people (R29, R37); nothing if the algorithm has none.
    fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
        let _ = (v, at, state);
        None
    }

    /// Stores what [`RateAlgorithm::charge`] gave for `cost` at this very time.
    #[inline(always)]
    fn store<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: Charging) {
        let _ = cost;
        m.set_rule(at.rule, charged.0);
    }
    /// Gives back what can still be given back of `cost`, part or all of what was charged (R129), not before
    /// [`RuleState::since`].
    fn refund<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: &Charged);
    /// Leaves nothing to be had: where a rule starts that lost its past.
    fn empty<M: Memory>(m: &mut M, at: &RuleContext);
    /// Carries `state`, from under the terms `old`, over to changed terms of the same kind (R110): what was to be had is
    /// kept, clipped to the new capacity, and rounded down; a larger capacity is no gift. GCRA, a leaky bucket and windows
    /// keep what was used instead. Unchanged terms give the unchanged state.
    ///
    /// By default counts stay as they are: with another limit, what is to be had is that limit less what was used in this
    /// window, which is what the window is there to bound. Of windows of another length nothing is known.
    fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
        if old.period() == at.terms.period() { m.set_rule(at.rule, state) } else { Self::empty(m, at) }
    }
}
