//! Changes to a limiter as a whole: a new policy, a pause, a reset of lost state. Also checks whether a state
//! is valid.

use crate::MAX_RULES;
use crate::breaker;
use crate::health_state::{HEALTH_STATE_HEAD_WORDS, HealthStateView, PAUSE_AT};
use crate::pause;
use crate::policy::Policy;
use crate::rule::{self, Absence, Counted, RuleContext};
use crate::state::{
    Core, Memory, PAUSE_WORDS, Pause, Pausing, PlaceSet, RuleState, View, WAITERS, WaiterCounts,
};
use crate::terms::Terms;
use crate::time::Time;

/// Resets a limiter whose state was lost. No permit is out, and the breaker is as new. Every rule starts
/// *empty*, so that no unit is granted twice. A pause stays (R148).
///
/// The caller clears the permits of the participants. A waiting call will find that its entry is gone, and
/// enters the queue again.
#[cold]
pub fn reset<M: Memory>(m: &mut M, policy: Option<&Policy>, now: Time) {
    for group in 0..WAITERS / 64 {
        m.set_places(group, PlaceSet::default());
    }
    m.set_waiting(WaiterCounts::default());
    m.set_core(Core { latest: now, in_flight: 0, in_flight_background: 0 });
    m.set_health_state(0, [0; HEALTH_STATE_HEAD_WORDS]);
    pause::keep_if_sane(m, now);
    if let Some(policy) = policy {
        breaker::install(m, policy);
    }
    for i in 0..m.general().rules.min(MAX_RULES) {
        let at = RuleContext::of(m, i, now);
        rule::empty(m, &at);
        rule::forget(m, &at);
    }
    let health = m.health();
    breaker::schedule_check(m, &health, now);
}

/// Carries the state over from one policy to another (R110). Before this, the caller has run the timers under
/// the old policy and stored the words of the new one.
///
/// Two rules are the same if they have the same name and unit. If several rules share a name, the nth is the
/// same as the nth. A rule that is new starts empty, because calls that it should have counted may have just
/// been made.
#[cold]
pub fn patch<M: Memory>(m: &mut M, old: &Policy, new: &Policy, now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    let before: [(RuleState, Terms); MAX_RULES] = std::array::from_fn(|i| (m.rule(i), m.terms(i)));
    m.set_core(Core { latest: now, ..core });
    breaker::adopt(m, old, new, now);
    breaker::install(m, new);
    for i in 0..new.rules().len() {
        let at = RuleContext::of(m, i, now);
        let from = same_rule(old, new, i);
        match from {
            Some(from) => rule::rescale(m, &at, &before[from].1, before[from].0),
            None => rule::empty(m, &at),
        }
        // A ticket identifies its charges by the rule's index, and measures them in the rule's fractions.
        if from != Some(i) || before[i] != (m.rule(i), at.terms) {
            rule::forget(m, &at);
        }
    }
    let health = m.health();
    breaker::schedule_check(m, &health, now);
}

/// The index in `old` of rule `i` of `new`.
fn same_rule(old: &Policy, new: &Policy, i: usize) -> Option<usize> {
    let identity = |policy: &Policy, i: usize| {
        let rule = policy.rules()[i];
        (rule.name, policy.units().nth(usize::from(rule.unit)))
    };
    let wanted = identity(new, i);
    let earlier = (0..i).filter(|j| identity(new, *j) == wanted).count();
    (0..old.rules().len()).filter(|j| identity(old, *j) == wanted).nth(earlier)
}

/// Whether operations can have produced this state. Otherwise the state must be [`reset`].
pub fn sane<V: View>(v: &V) -> bool {
    let core = v.core();
    core.in_flight_background <= core.in_flight
        && (0..v.general().rules.min(MAX_RULES)).all(|i| {
            let at = RuleContext::of(v, i, core.latest);
            at.terms.check() && rule::sane(v, &at, v.rule(i))
        })
}

/// The counts of all rules that follow the calendar, each in its present window.
pub fn counted<V: View>(v: &V, now: Time) -> [Counted; MAX_RULES] {
    std::array::from_fn(|i| match i < v.general().rules {
        true => rule::counted(v, &RuleContext::of(v, i, now)),
        false => Counted::default(),
    })
}

/// Corrects the calendar windows after the machine was off. `before` has their counts from the time when the
/// machine came back.
#[cold]
pub fn catch_up<M: Memory>(m: &mut M, absence: Absence, before: &[Counted; MAX_RULES], now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    m.set_core(Core { latest: now, ..core });
    for (i, before) in before.iter().enumerate().take(m.general().rules) {
        rule::catch_up(m, &RuleContext::of(m, i, now), absence, *before);
    }
}

/// Begins a pause. It replaces an earlier pause, which is returned if it was still in effect.
pub fn pause<M: Memory>(m: &mut M, asked: &Pausing<'_>, now: Time) -> Option<Pause> {
    change_pause(m, now, |_, now| Pause::begun(asked, now))
}

/// Ends the pause and returns it, if one was in effect.
pub fn resume<M: Memory>(m: &mut M, now: Time) -> Option<Pause> {
    change_pause(m, now, |before, _| before.ended())
}

fn change_pause<M: Memory>(
    m: &mut M,
    now: Time,
    change: impl FnOnce(&Pause, Time) -> Pause,
) -> Option<Pause> {
    let now = now.max(m.core().latest);
    breaker::tick(m, now);
    let before = m.pause();
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    m.set_health_state(PAUSE_AT, bytemuck::cast::<_, [u64; PAUSE_WORDS]>(change(&before, now)));
    let health = m.health();
    breaker::schedule_check(m, &health, now);
    Some(before).filter(|pause| pause.is_on(now))
}
