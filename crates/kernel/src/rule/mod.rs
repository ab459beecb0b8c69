//! The algorithms behind one trait, and the one place that chooses between them.
//!
//! A new algorithm touches three files: a variant of [`Algorithm`](crate::policy::Algorithm) and its kind in
//! `policy/rule.rs`, an `impl` of [`RateAlgorithm`] in a new file, and an arm in `with_algorithm!` here.

mod algorithm;
mod bucket;
mod calendar;
mod counter;
mod gcra_window;
mod log;
mod ring;
mod window;

pub use super::state::Charge;
pub use algorithm::{Charged, Charging, Need, RateAlgorithm, RuleContext, When, Window};
pub use bucket::Bucket;
pub use calendar::{Absence, Counted};
pub use counter::SlidingCounter;
pub use gcra_window::GcraWindow;
pub use log::SlidingLog;
pub use window::FixedWindow;

use super::policy::AlgorithmKind;
use super::state::{Memory, RuleState, UNKNOWN, View};
use super::terms::Terms;
use super::time::{Nanos, Time};

/// Evaluates `$call` with `$count` as the type of the algorithm of `$at`, or `$other` if the words are damaged.
macro_rules! with_algorithm {
    ($at:expr, $count:ident => $call:expr, $other:expr) => {
        match $at.terms.kind() {
            Some(AlgorithmKind::Bucket) => {
                type $count = Bucket;
                $call
            }
            Some(AlgorithmKind::GcraWindow) => {
                type $count = GcraWindow;
                $call
            }
            Some(AlgorithmKind::FixedWindow) => {
                type $count = FixedWindow;
                $call
            }
            Some(AlgorithmKind::Log) => {
                type $count = SlidingLog;
                $call
            }
            Some(AlgorithmKind::Counter) => {
                type $count = SlidingCounter;
                $call
            }
            None => $other,
        }
    };
}

/// See [`RateAlgorithm::earliest`].
#[inline(always)]
pub fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
    if at.terms.is_bucket() {
        return Bucket::earliest(v, at, state, need);
    }
    earliest_of_others(v, at.rule, at.now, state, need)
}

// This is a separate function, like `admit_others`, and takes the index of the rule instead of its terms.
// Otherwise the terms would be kept in memory for it in every round of a loop that does not need them.
#[inline(never)]
fn earliest_of_others<V: View>(v: &V, rule: usize, now: Time, state: RuleState, need: Need) -> When {
    let at = &RuleContext::of(v, rule, now);
    with_algorithm!(at, A => A::earliest(v, at, state, need), When::Never)
}

/// See [`RateAlgorithm::earliest_behind`].
pub fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
    with_algorithm!(at, A => A::earliest_behind(v, at, state, ahead, need), When::Never)
}

/// See [`RateAlgorithm::admit`].
#[inline(always)]
pub fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
    if at.terms.is_bucket() {
        return Bucket::admit(v, at, state, need);
    }
    admit_others(v, at.rule, at.now, state, need)
}

#[inline(never)]
fn admit_others<V: View>(v: &V, rule: usize, now: Time, state: RuleState, need: Need) -> Option<Charging> {
    let at = &RuleContext::of(v, rule, now);
    with_algorithm!(at, A => A::admit(v, at, state, need), None)
}

/// See [`RateAlgorithm::store`].
#[inline(never)]
pub fn store<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: Charging) {
    with_algorithm!(at, A => A::store(m, at, cost, charged), ());
}

/// Replaces an estimated cost by the actual one (R129). A higher cost is charged even below zero, and a lower
/// one is refunded.
pub fn settle<M: Memory>(m: &mut M, at: &RuleContext, actual: u64, charged: &Charged) {
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

/// See [`RateAlgorithm::available`].
#[inline]
pub fn available<V: View>(v: &V, at: &RuleContext, state: RuleState, leave_reserve: bool) -> u64 {
    with_algorithm!(at, A => A::available(v, at, state, leave_reserve), 0)
}

/// How long to hold back a call that a leaky bucket admits, so that calls go out evenly (R25). `state` is the
/// state before the charge.
#[inline]
pub fn delay(at: &RuleContext, state: RuleState) -> Nanos {
    if at.terms.is_leaky() { Bucket::level(at, state) } else { Nanos::ZERO }
}

/// The calendar window of a rule that has one.
pub fn window<V: View>(v: &V, at: &RuleContext, state: RuleState) -> Option<Window> {
    with_algorithm!(at, A => A::window(v, at, state), None)
}

/// The count of a rule in its calendar window. The default if the rule does not follow the calendar.
pub fn counted<V: View>(v: &V, at: &RuleContext) -> Counted {
    let words = with_algorithm!(at, A => A::CALENDAR, None);
    words.map_or(Counted::default(), |words| calendar::counted(v.rule(at.rule), words))
}

/// Corrects a rule that follows the calendar after the machine was off. See `calendar::catch_up`.
pub fn catch_up<M: Memory>(m: &mut M, at: &RuleContext, absence: Absence, before: Counted) {
    if let Some(words) = with_algorithm!(at, A => A::CALENDAR, None) {
        calendar::catch_up(m, at, words, absence, before);
    }
}

/// See [`RateAlgorithm::sane`].
pub fn sane<V: View>(v: &V, at: &RuleContext, state: RuleState) -> bool {
    // No operation writes this word in any algorithm. (The refunds of a bucket would have to wrap around to
    // exactly this value.)
    !state.0.contains(&UNKNOWN) && with_algorithm!(at, A => A::sane(v, at, state), false)
}

/// See [`RateAlgorithm::empty`].
pub fn empty<M: Memory>(m: &mut M, at: &RuleContext) {
    with_algorithm!(at, A => A::empty(m, at), ());
}

/// See [`RateAlgorithm::rescale`]. Between algorithms of different kinds nothing can be carried over, so the
/// rule starts empty.
pub fn rescale<M: Memory>(m: &mut M, at: &RuleContext, old: &Terms, state: RuleState) {
    if old.kind() == at.terms.kind() {
        with_algorithm!(at, A => A::rescale(m, at, old, state), ());
    } else {
        empty(m, at);
    }
}

/// The state of a bucket carried over to changed terms, as [`rescale`] would store it.
pub fn rescaled(at: &RuleContext, old: &Terms, state: RuleState) -> RuleState {
    Bucket::rescaled(at, old, state)
}

/// Makes sure that no earlier charge is refunded any more, because the meaning of the stored values has
/// changed.
pub fn forget<M: Memory>(m: &mut M, at: &RuleContext) {
    let state = m.rule(at.rule);
    m.set_rule(at.rule, state.forgetful(at.now));
}
