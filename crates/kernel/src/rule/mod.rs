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

use super::MAX_UNITS;
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

/// The time at which a rule admits its part of `cost`. `None` if that is never, or if the general form must decide.
///
/// In line for buckets, like [`take`].
#[inline(always)]
pub fn admits_at<V: View>(
    v: &V,
    rule: usize,
    now: Time,
    cost: &[u64; MAX_UNITS],
    leave_reserve: bool,
) -> Option<Time> {
    let [head] = v.terms_words(rule, 0);
    let kind = Terms::of_head(head);
    let need = Need { cost: cost[kind.unit()], leave_reserve };
    match need.cost {
        0 => Some(now),
        _ if kind.is_bucket() => Bucket::room_at(v, rule, head, need),
        _ => match earliest_of_others(v, rule, now, need) {
            When::Now => Some(now),
            When::At(time) => Some(time),
            When::Never => None,
        },
    }
}

// This is a separate function, so that it does not make the loop over buckets longer.
#[inline(never)]
fn earliest_of_others<V: View>(v: &V, rule: usize, now: Time, need: Need) -> When {
    earliest(v, &RuleContext::of(v, rule, now), v.rule(rule), need)
}

/// See [`RateAlgorithm::earliest`].
pub fn earliest<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> When {
    with_algorithm!(at, A => A::earliest(v, at, state, need), When::Never)
}

/// See [`RateAlgorithm::earliest_behind`].
pub fn earliest_behind<V: View>(v: &V, at: &RuleContext, state: RuleState, ahead: u64, need: Need) -> When {
    with_algorithm!(at, A => A::earliest_behind(v, at, state, ahead, need), When::Never)
}

/// Charges a rule, whose terms begin with the word `head`, if it admits the call. `None` if it does not, or if the
/// general form must decide. A function of its own, because the loop over the rules is faster without its registers.
#[inline(never)]
pub fn take<M: Memory>(m: &mut M, rule: usize, head: u64, now: Time, need: Need) -> Option<Charge> {
    if Terms::of_head(head).is_bucket() {
        return Bucket::take_room(m, rule, head, now, need);
    }
    take_other(m, rule, now, need)
}

#[inline(never)]
fn take_other<M: Memory>(m: &mut M, rule: usize, now: Time, need: Need) -> Option<Charge> {
    let (at, state) = (RuleContext::of(m, rule, now), m.rule(rule));
    // Damaged terms do not say reliably which unit they count, so such a rule is asked even if the cost is 0.
    if need.cost == 0 && at.terms.kind().is_some() {
        return Some(Charge::default());
    }
    with_algorithm!(at, A => A::take(m, &at, state, need), None)
}

/// See [`RateAlgorithm::admit`].
pub fn admit<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Option<Charging> {
    with_algorithm!(at, A => A::admit(v, at, state, need), None)
}

/// See [`RateAlgorithm::store`].
pub fn store<M: Memory>(m: &mut M, at: &RuleContext, cost: u64, charged: Charging) {
    with_algorithm!(at, A => A::store(m, at, cost, charged), ());
}

/// Replaces an estimated cost by the actual one (R129). A higher cost is charged even below zero, and a lower
/// one is refunded.
pub fn settle<M: Memory>(m: &mut M, rule: usize, actual: u64, charged: &Charged, now: Time) {
    let (at, state) = (RuleContext::of(m, rule, now), m.rule(rule));
    match actual.checked_sub(charged.cost) {
        Some(more) => with_algorithm!(at, A => {
            let after = A::charge(m, &at, state, more);
            A::store(m, &at, more, after);
        }, ()),
        None if charged.at < state.since() => {}
        None => with_algorithm!(at, A => A::refund(m, &at, charged.cost - actual, charged), ()),
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
