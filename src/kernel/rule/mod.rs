//! The algorithms, behind one trait, and the one place that chooses between them.
//!
//! Another algorithm is a file with an `impl` of [`Count`] and an arm in `with_algorithm!`.

mod bucket;

pub use bucket::Bucket;

use super::policy::Algorithm;
use super::state::RuleState;
use super::terms::Terms;
use super::time::Time;

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
}

/// How one algorithm counts. Nothing here may panic, whatever the words are.
pub trait Count {
    /// When `cost` is admitted; `leave_reserve` for callers who must leave the reserve (R107).
    fn earliest(terms: &Terms, state: RuleState, now: Time, cost: u64, leave_reserve: bool) -> When;
    /// When `cost` is admitted if `ahead` is taken before it, each part as soon as it is admitted. A cost that is
    /// admitted at some time behind nothing is so behind anything.
    fn earliest_behind(
        terms: &Terms,
        state: RuleState,
        now: Time,
        ahead: u64,
        cost: u64,
        leave_reserve: bool,
    ) -> When;
    /// [`Count::charge`] if [`Count::earliest`] is now.
    #[inline]
    fn admit(
        terms: &Terms,
        state: RuleState,
        now: Time,
        cost: u64,
        leave_reserve: bool,
    ) -> Option<(RuleState, Charge)> {
        match Self::earliest(terms, state, now, cost, leave_reserve) {
            When::Now => Some(Self::charge(terms, state, now, cost)),
            When::At(_) | When::Never => None,
        }
    }
    /// Takes `cost`, admitted or not.
    fn charge(terms: &Terms, state: RuleState, now: Time, cost: u64) -> (RuleState, Charge);
    /// Gives back what can still be given back of `cost`, part or all of what was charged (R129).
    fn refund(terms: &Terms, state: RuleState, now: Time, cost: u64, charged: &Charged) -> RuleState;
    /// Whole units still to be had.
    fn available(terms: &Terms, state: RuleState, now: Time, leave_reserve: bool) -> u64;
    /// Whether stored words can be a state of this rule; `latest` is the last time anything was charged.
    fn sane(terms: &Terms, state: RuleState, latest: Time) -> bool;
    /// The state with nothing to be had at `now`: where a rule starts that lost its past.
    fn empty(terms: &Terms, now: Time) -> RuleState;
    /// The state under changed terms of the same family (R110): what was to be had is kept, clipped to the new
    /// capacity, and rounded down; a larger capacity is no gift.
    /// Unchanged terms give the unchanged state.
    fn rescale(old: &Terms, new: &Terms, state: RuleState, now: Time) -> RuleState;
    /// The same state, made so that no charge made until now can be refunded from it: their numbers mean
    /// something else by now.
    fn forget(state: RuleState, now: Time) -> RuleState;
}

/// Runs `$call` with `$count` naming the algorithm of `$terms`, or `$other` if its words are damaged.
macro_rules! with_algorithm {
    ($terms:expr, $count:ident => $call:expr, $other:expr) => {
        match Algorithm::from_code($terms.kind()) {
            Some(Algorithm::TokenBucket | Algorithm::Gcra) => {
                type $count = Bucket;
                $call
            }
            None => $other,
        }
    };
}

/// See [`Count::earliest`].
#[inline(always)]
pub fn earliest(terms: &Terms, state: RuleState, now: Time, cost: u64, leave_reserve: bool) -> When {
    with_algorithm!(terms, A => A::earliest(terms, state, now, cost, leave_reserve), When::Never)
}

/// See [`Count::earliest_behind`].
pub fn earliest_behind(
    terms: &Terms,
    state: RuleState,
    now: Time,
    ahead: u64,
    cost: u64,
    leave_reserve: bool,
) -> When {
    with_algorithm!(terms, A => A::earliest_behind(terms, state, now, ahead, cost, leave_reserve), When::Never)
}

/// See [`Count::admit`].
#[inline(always)]
pub fn admit(
    terms: &Terms,
    state: RuleState,
    now: Time,
    cost: u64,
    leave_reserve: bool,
) -> Option<(RuleState, Charge)> {
    with_algorithm!(terms, A => A::admit(terms, state, now, cost, leave_reserve), None)
}

/// Replaces an estimated cost by the actual one (R129): more is charged even below zero, less is refunded.
#[inline]
pub fn settle(terms: &Terms, state: RuleState, now: Time, actual: u64, charged: &Charged) -> RuleState {
    match actual.checked_sub(charged.cost) {
        Some(more) => with_algorithm!(terms, A => A::charge(terms, state, now, more).0, state),
        None => {
            with_algorithm!(terms, A => A::refund(terms, state, now, charged.cost - actual, charged), state)
        }
    }
}

/// See [`Count::available`].
#[inline]
pub fn available(terms: &Terms, state: RuleState, now: Time, leave_reserve: bool) -> u64 {
    with_algorithm!(terms, A => A::available(terms, state, now, leave_reserve), 0)
}

/// See [`Count::sane`].
pub fn sane(terms: &Terms, state: RuleState, latest: Time) -> bool {
    with_algorithm!(terms, A => A::sane(terms, state, latest), false)
}

/// See [`Count::empty`].
pub fn empty(terms: &Terms, now: Time) -> RuleState {
    with_algorithm!(terms, A => A::empty(terms, now), RuleState::default())
}

/// See [`Count::rescale`]; between algorithms of different families nothing can be kept but "empty".
pub fn rescale(old: &Terms, new: &Terms, state: RuleState, now: Time) -> RuleState {
    match (Algorithm::from_code(old.kind()), Algorithm::from_code(new.kind())) {
        (Some(Algorithm::TokenBucket | Algorithm::Gcra), Some(Algorithm::TokenBucket | Algorithm::Gcra)) => {
            Bucket::rescale(old, new, state, now)
        }
        _ => empty(new, now),
    }
}

/// See [`Count::forget`].
pub fn forget(terms: &Terms, state: RuleState, now: Time) -> RuleState {
    with_algorithm!(terms, A => A::forget(state, now), state)
}
