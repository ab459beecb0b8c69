//! The algorithms, behind one trait, and the one place that chooses between them.
//!
//! Another algorithm is a file with an `impl` of [`Count`] and an arm in `with_algorithm!`.

mod bucket;
mod calendar;
mod counter;
mod log;
mod passes;
mod ring;
mod window;

pub use bucket::Bucket;
pub use calendar::{Absence, Counted, catch_up, counted};
pub use counter::SlidingCounter;
pub use log::SlidingLog;
pub use passes::Passes;
pub use window::FixedWindow;

use super::state::{Memory, RuleState, UNKNOWN, View};
use super::terms::{Kind, Terms};
use super::time::{Nanos, Time};

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

/// What a rule wants to see again when a charge is taken back; what it means is the algorithm's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge(pub u64);

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

/// Which rule, by which terms, and when.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Its place in the policy.
    pub rule: usize,
    /// Its terms.
    pub terms: Terms,
    /// The time of the decision, never before the latest change.
    pub now: Time,
}

impl At {
    /// Rule `rule` of `v`, as it is in force.
    #[inline(always)]
    pub fn of<V: View>(v: &V, rule: usize, now: Time) -> At {
        At { rule, terms: v.terms(rule), now }
    }
}

/// How one algorithm counts. Nothing here may panic, whatever the words are.
///
/// The first half judges: it changes nothing, so that all rules can be asked before any is charged (R38). The second
/// half changes the state.
pub trait Count {
    /// When `cost` is admitted; `leave_reserve` for callers who must leave the reserve (R107).
    fn earliest<V: View>(v: &V, at: &At, state: RuleState, cost: u64, leave_reserve: bool) -> When;
    /// When `cost` is admitted if `ahead` is taken before it, each part as soon as it is admitted. "Now" is exact; a
    /// later time may be too early, never too late. A cost that is admitted at some time behind nothing is so behind
    /// anything.
    fn earliest_behind<V: View>(
        v: &V,
        at: &At,
        state: RuleState,
        ahead: u64,
        cost: u64,
        leave_reserve: bool,
    ) -> When;
    /// [`Count::charge`] if [`Count::earliest`] is now.
    #[inline]
    fn admit<V: View>(
        v: &V,
        at: &At,
        state: RuleState,
        cost: u64,
        leave_reserve: bool,
    ) -> Option<(RuleState, Charge)> {
        match Self::earliest(v, at, state, cost, leave_reserve) {
            When::Now => Some(Self::charge(v, at, state, cost)),
            When::At(_) | When::Never => None,
        }
    }
    /// The state with `cost` taken, admitted or not; to be stored by [`Count::store`].
    fn charge<V: View>(v: &V, at: &At, state: RuleState, cost: u64) -> (RuleState, Charge);
    /// Whole units still to be had.
    fn available<V: View>(v: &V, at: &At, state: RuleState, leave_reserve: bool) -> u64;
    /// Whether stored words can be a state of this rule; `at.now` is the last time anything was charged.
    fn sane<V: View>(v: &V, at: &At, state: RuleState) -> bool;

    /// Stores what [`Count::charge`] gave for `cost` at this very time.
    #[inline(always)]
    fn store<M: Memory>(m: &mut M, at: &At, cost: u64, charged: (RuleState, Charge)) {
        let _ = cost;
        m.set_rule(at.rule, charged.0);
    }
    /// Gives back what can still be given back of `cost`, part or all of what was charged (R129), not before
    /// [`RuleState::since`].
    fn refund<M: Memory>(m: &mut M, at: &At, cost: u64, charged: &Charged);
    /// Leaves nothing to be had: where a rule starts that lost its past.
    fn empty<M: Memory>(m: &mut M, at: &At);
    /// Carries `state`, from under the terms `old`, over to changed terms of the same kind (R110): what was to be had is
    /// kept, clipped to the new capacity, and rounded down; a larger capacity is no gift. GCRA, a leaky bucket and windows
    /// keep what was used instead. Unchanged terms give the unchanged state.
    fn rescale<M: Memory>(m: &mut M, at: &At, old: &Terms, state: RuleState);
}

/// Runs `$call` with `$count` naming the algorithm of `$at`, or `$other` if its words are damaged.
macro_rules! with_algorithm {
    ($at:expr, $count:ident => $call:expr, $other:expr) => {
        match $at.terms.kind() {
            Some(Kind::Bucket) => {
                type $count = Bucket;
                $call
            }
            Some(Kind::Passes) => {
                type $count = Passes;
                $call
            }
            Some(Kind::FixedWindow) => {
                type $count = FixedWindow;
                $call
            }
            Some(Kind::Log) => {
                type $count = SlidingLog;
                $call
            }
            Some(Kind::Counter) => {
                type $count = SlidingCounter;
                $call
            }
            None => $other,
        }
    };
}

/// See [`Count::earliest`].
#[inline(always)]
pub fn earliest<V: View>(v: &V, at: &At, state: RuleState, cost: u64, leave_reserve: bool) -> When {
    if at.terms.is_bucket() {
        return Bucket::earliest(v, at, state, cost, leave_reserve);
    }
    earliest_of_others(v, at.rule, at.now, state, cost, leave_reserve)
}

// Kept apart, as `admit_others`, and told which rule rather than its terms: else these would be kept in memory for it,
// in every round of a loop that has no use for it.
#[inline(never)]
fn earliest_of_others<V: View>(
    v: &V,
    rule: usize,
    now: Time,
    state: RuleState,
    cost: u64,
    leave_reserve: bool,
) -> When {
    let at = &At::of(v, rule, now);
    with_algorithm!(at, A => A::earliest(v, at, state, cost, leave_reserve), When::Never)
}

/// See [`Count::earliest_behind`].
pub fn earliest_behind<V: View>(
    v: &V,
    at: &At,
    state: RuleState,
    ahead: u64,
    cost: u64,
    leave_reserve: bool,
) -> When {
    with_algorithm!(at, A => A::earliest_behind(v, at, state, ahead, cost, leave_reserve), When::Never)
}

/// See [`Count::admit`].
#[inline(always)]
pub fn admit<V: View>(
    v: &V,
    at: &At,
    state: RuleState,
    cost: u64,
    leave_reserve: bool,
) -> Option<(RuleState, Charge)> {
    if at.terms.is_bucket() {
        return Bucket::admit(v, at, state, cost, leave_reserve);
    }
    admit_others(v, at.rule, at.now, state, cost, leave_reserve)
}

#[inline(never)]
fn admit_others<V: View>(
    v: &V,
    rule: usize,
    now: Time,
    state: RuleState,
    cost: u64,
    leave_reserve: bool,
) -> Option<(RuleState, Charge)> {
    let at = &At::of(v, rule, now);
    with_algorithm!(at, A => A::admit(v, at, state, cost, leave_reserve), None)
}

/// See [`Count::store`].
#[inline(never)]
pub fn store<M: Memory>(m: &mut M, at: &At, cost: u64, charged: (RuleState, Charge)) {
    with_algorithm!(at, A => A::store(m, at, cost, charged), ());
}

/// Replaces an estimated cost by the actual one (R129): more is charged even below zero, less is refunded.
pub fn settle<M: Memory>(m: &mut M, at: &At, actual: u64, charged: &Charged) {
    match actual.checked_sub(charged.cost) {
        Some(more) => with_algorithm!(at, A => {
            let state = m.rule(at.rule);
            let after = A::charge(m, at, state, more);
            A::store(m, at, more, after);
        }, ()),
        None if charged.at < m.rule(at.rule).since() => {}
        None => with_algorithm!(at, A => A::refund(m, at, charged.cost - actual, charged), ()),
    }
}

/// See [`Count::available`].
#[inline]
pub fn available<V: View>(v: &V, at: &At, state: RuleState, leave_reserve: bool) -> u64 {
    with_algorithm!(at, A => A::available(v, at, state, leave_reserve), 0)
}

/// When a call that a leaky bucket admits should be let out, so that calls go out evenly (R25): how long from now.
/// `state` is from before the charge.
#[inline]
pub fn delay(at: &At, state: RuleState) -> Nanos {
    if at.terms.is_leaky() { Bucket::level(at, state) } else { Nanos::ZERO }
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

/// The calendar window of a rule that has one.
pub fn window<V: View>(v: &V, at: &At, state: RuleState) -> Option<Window> {
    match at.terms.kind()? {
        Kind::FixedWindow => Some(FixedWindow::window(v, at, state)),
        Kind::Counter => Some(SlidingCounter::window(v, at, state)),
        Kind::Passes => Some(Passes::window(v, at, state)),
        Kind::Bucket | Kind::Log => None,
    }
}

/// See [`Count::sane`].
pub fn sane<V: View>(v: &V, at: &At, state: RuleState) -> bool {
    // No operation makes such a word, whatever it counts (a bucket's refunds would have to come round exactly there).
    !state.0.contains(&UNKNOWN) && with_algorithm!(at, A => A::sane(v, at, state), false)
}

/// See [`Count::empty`].
pub fn empty<M: Memory>(m: &mut M, at: &At) {
    with_algorithm!(at, A => A::empty(m, at), ());
}

/// See [`Count::rescale`]; between algorithms of different kinds nothing can be kept but "empty".
pub fn rescale<M: Memory>(m: &mut M, at: &At, old: &Terms, state: RuleState) {
    if old.kind() == at.terms.kind() {
        with_algorithm!(at, A => A::rescale(m, at, old, state), ());
    } else {
        empty(m, at);
    }
}

/// The state of a bucket carried over to changed terms, as [`rescale`] would store it.
pub fn rescaled(at: &At, old: &Terms, state: RuleState) -> RuleState {
    Bucket::rescaled(at, old, state)
}

/// Makes sure that no charge made until now is refunded any more: their numbers mean something else by now.
pub fn forget<M: Memory>(m: &mut M, at: &At) {
    let state = m.rule(at.rule);
    m.set_rule(at.rule, state.forgetful(at.now));
}
