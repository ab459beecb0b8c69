//! Computes the effective limits of a breaker state: the rate and capacity of the first rule, and the permits
//! (R54, R60, R62).
//!
//! The words that decisions read come from the policy, with two exceptions. `General` has the permits of the
//! state. The first rule, if it is a token bucket, has the rate of the state. Both are applied when a state
//! begins. The tokens of the first rule are then kept, clipped to the new capacity.

use super::timers::compute_next_check;
use crate::MAX_RULES;
use crate::health_state::{Health, HealthStateMemory, HealthStateView};
use crate::policy::{Algorithm, BreakerKind, FirstRule, PerSecond, Policy, PolicyWords, StoredBreaker};
use crate::rule::{self, RuleContext};
use crate::state::{BreakerState, General, Held, Memory, View};
use crate::terms::{TERMS_WORDS, Terms};
use crate::time::{Nanos, Time};

/// Number of words with the effective limits: general (2), queueing, next check time, zero, then the terms of
/// the rules.
pub const EFFECTIVE_WORDS: usize = TERMS_AT + MAX_RULES * TERMS_WORDS;
const TERMS_AT: usize = 8;

/// The range of these words that holds the terms of rule `rule`.
#[inline]
pub const fn terms_range(rule: usize) -> std::ops::Range<usize> {
    // The remainder keeps a damaged index within the words, without a comparison.
    let start = TERMS_AT + rule % MAX_RULES * TERMS_WORDS;
    start..start + TERMS_WORDS
}

/// The effective limits of a new limiter.
pub fn effective_words(policy: &Policy) -> [u64; EFFECTIVE_WORDS] {
    let encoded = policy.encode();
    let mut words = [0; EFFECTIVE_WORDS];
    let mut put = |at: usize, values: &[u64]| words[at..at + values.len()].copy_from_slice(values);
    put(0, &general(policy).to_words());
    put(2, &[policy.queueing().to_word()]);
    let at_once = policy.is_passthrough() || policy.adaptive().is_some();
    put(3, &[if at_once { 0 } else { u64::MAX }]);
    for (i, terms) in Terms::all(policy).enumerate() {
        let terms = if i == 0 { first_terms(&encoded, PerSecond(0)).unwrap_or(terms) } else { terms };
        put(terms_range(i).start, &terms.to_words());
    }
    words
}

/// Applies a policy, whose words are already stored, in the breaker's present state. The caller carries over
/// the states of the rules.
pub(crate) fn install<M: Memory>(m: &mut M, policy: &Policy) {
    let health = m.health();
    m.set_general(general(policy));
    apply_permits(m, &health);
    m.set_queueing(policy.queueing());
    for (i, terms) in Terms::all(policy).enumerate() {
        let terms = if i == 0 { first_terms(m, health.rate).unwrap_or(terms) } else { terms };
        m.set_terms(i, terms);
    }
}

/// Whether the stored effective limits are those that follow from the policy and the breaker's state.
pub fn is_effective<V: View>(v: &V, policy: &Policy, now: Time) -> bool {
    let health = v.health();
    // A process whose clock is a little ahead may already have treated the gate as open.
    let next_check = compute_next_check(v, &health, now.plus(CLOCK_TOLERANCE));
    let terms = |(i, terms): (usize, Terms)| {
        let wanted = if i == 0 { first_terms(v, health.rate).unwrap_or(terms) } else { terms };
        v.terms(i) == wanted
    };
    // An unnecessary check, for example of a gate that has opened since, costs only time.
    (v.next_check() == next_check || v.next_check() == Time::ZERO)
        && v.general() == permits(v, &health, general(policy))
        && v.queueing() == policy.queueing()
        && Terms::all(policy).enumerate().all(terms)
}

/// Longer than the clocks of one machine can differ.
const CLOCK_TOLERANCE: Nanos = Nanos::from_secs(5);

/// The general settings of a policy (all except its rules), in the Normal state.
fn general(policy: &Policy) -> General {
    let background = policy.concurrency_background().filter(|_| policy.queueing().priorities);
    General {
        rules: policy.rules().len(),
        units: policy.units().count(),
        concurrency: policy.concurrency(),
        concurrency_background: background,
    }
}

/// The full rate (R50).
pub(super) fn base_rate<W: PolicyWords>(words: &W) -> PerSecond {
    const DEFAULT: PerSecond = PerSecond::whole(35);
    let stated = words.breaker_policy().rate_base;
    match words.first_rule() {
        _ if stated.0 > 0 => stated.min(PerSecond::FASTEST),
        Some(FirstRule { limit, period, .. }) => {
            let rate = u128::from(limit) * 1_000_000_000_000_000_000 / u128::from(period.0);
            PerSecond(u64::try_from(rate).unwrap_or(u64::MAX).clamp(1, PerSecond::FASTEST.0))
        }
        None => DEFAULT,
    }
}

/// Half the full rate in whole units, but at least 5 and at most the full rate (R54).
pub(super) fn throttle_rate<W: PolicyWords>(words: &W) -> PerSecond {
    const LEAST: PerSecond = PerSecond::whole(5);
    let base = base_rate(words);
    PerSecond::whole(base.0 / 2 / PerSecond::ONE.0).max(LEAST).min(base)
}

/// Converts the rate of `health`, which was set under the policy `old`, to the policy of `words`.
pub(super) fn carried_over<W: PolicyWords>(words: &W, health: &Health, old: &Policy) -> PerSecond {
    let (throttle, base) = (throttle_rate(words), base_rate(words));
    let old_throttle = throttle_rate(&old.encode());
    match health.state() {
        _ if health.rate.0 == 0 => PerSecond(0),
        // The rate before the probing is not stored. Most often it was that of Throttle.
        BreakerState::HalfOpen => {
            let before = if health.rate > old_throttle { base } else { throttle };
            words.breaker_policy().probe_rate.min(before)
        }
        BreakerState::Normal if health.rate >= base => PerSecond(0),
        BreakerState::Normal => health.rate,
        _ if health.rate == old_throttle => throttle,
        _ => health.rate.min(base),
    }
}

/// The rate in a state that does not block every call.
pub(super) fn rate<W: PolicyWords>(words: &W, health: &Health) -> PerSecond {
    if health.rate.0 == 0 { base_rate(words) } else { health.rate }
}

/// The number of calls that may be in flight in a state. `None` means any number.
pub(super) fn concurrency<W: PolicyWords>(words: &W, state: BreakerState) -> Option<u32> {
    let base = Some(words.permits().0).filter(|most| *most > 0);
    match state {
        BreakerState::Throttle => base.map(|most| (most / 2).max(1)),
        BreakerState::HalfOpen => {
            let breaker = words.breaker_policy();
            // "One test request at a time" (R79). The configured number applies only to the five-state breaker.
            let many = breaker.kind() == BreakerKind::Fsm;
            let probes = if many { breaker.probe_concurrency.max(1) } else { 1 };
            Some(base.map_or(probes, |most| most.min(probes)))
        }
        _ => base,
    }
}

/// The terms of the first rule at a rate (0 = the full rate), if the breaker controls that rule.
pub(super) fn first_terms<W: PolicyWords>(words: &W, rate: PerSecond) -> Option<Terms> {
    let breaker = words.breaker_policy();
    let first = words.first_rule().filter(|first| first.algorithm == Algorithm::TokenBucket)?;
    if breaker.kind() != BreakerKind::Fsm {
        return None;
    }
    let base = base_rate(words);
    let rate = if rate.0 == 0 { base } else { rate };
    if rate == base && breaker.rate_base.0 == 0 {
        return Some(Terms::configured(&first));
    }
    let burst = u128::from(first.burst) * u128::from(rate.0) / u128::from(base.0.max(1));
    Some(Terms::effective(&first, rate, u64::try_from(burst).unwrap_or(u64::MAX).max(1)))
}

/// Applies the state in `health` from the time `at` on.
pub(super) fn apply_effective<M: Memory>(m: &mut M, health: &Health, at: Time) {
    apply_permits(m, health);
    apply_rates(m, [(health.rate, at)]);
}

/// Applies several rates in order, each from its own time on. The tokens are the same as if each rate had been
/// applied when it was due. The result is stored once, because a transaction has room for a limited number of
/// changes.
pub(super) fn apply_rates<M: Memory>(m: &mut M, rates: impl IntoIterator<Item = (PerSecond, Time)>) {
    let (latest, before) = (m.core().latest, m.terms(0));
    let (mut terms, mut state) = (before, m.rule(0));
    let mut last = Time::ZERO;
    for (rate, at) in rates {
        let Some(next) = first_terms(m, rate) else { return };
        if next != terms {
            // A timer acts at the time when it was due, but never before the last charge.
            last = at.max(latest);
            state = rule::rescaled(&RuleContext { rule: 0, terms: next, now: last }, &terms, state);
            terms = next;
        }
    }
    if terms != before && m.is_policy_whole() {
        m.set_rule(0, state);
        rule::forget(m, &RuleContext { rule: 0, terms, now: last });
        m.set_terms(0, terms);
    }
}

fn apply_permits<M: Memory>(m: &mut M, health: &Health) {
    let before = m.general();
    let (_, background) = m.permits();
    let background = Some(background).filter(|most| *most > 0 && m.has_priorities());
    let general = permits(m, health, General { concurrency_background: background, ..before });
    if general != before && m.is_policy_whole() {
        m.set_general(general);
    }
}

/// The permits of a state. Written-off permits are still in flight, so the limit is raised by their number.
fn permits<W: PolicyWords>(words: &W, health: &Health, general: General) -> General {
    let Held { total, background } = health.written_off;
    General {
        concurrency: concurrency(words, health.state()).map(|most| most.saturating_add(total)),
        concurrency_background: general.concurrency_background.map(|most| most.saturating_add(background)),
        ..general
    }
}

/// Writes off probes that have not reported back in time, so that new probes can be sent (R133).
pub(super) fn write_off<M: Memory>(m: &mut M, health: &mut Health, breaker: &StoredBreaker, now: Time) {
    if health.state() != BreakerState::HalfOpen {
        return;
    }
    let core = m.core();
    let out = Held { total: core.in_flight, background: core.in_flight_background };
    let before = health.written_off;
    health.written_off =
        Held { total: before.total.min(out.total), background: before.background.min(out.background) };
    let probes = concurrency(m, BreakerState::HalfOpen).unwrap_or(1);
    if out.total - health.written_off.total >= probes && now >= health.probe_until {
        (health.written_off, health.written_at) = (out, now);
        health.probe_until = now.plus(breaker.probe_timeout);
    }
    if health.written_off != before {
        apply_permits(m, health);
    }
}

/// Handles the return of permits that were granted at `granted_at`. If they were written off, the limit is
/// lowered again by their number.
#[cold]
#[inline(never)]
pub(crate) fn came_back<M: Memory>(m: &mut M, permit: Held, granted_at: Time) {
    let mut health = m.health();
    if health.state() == BreakerState::HalfOpen && granted_at < health.written_at {
        health.written_off = health.written_off.minus(permit);
        m.set_health(&health);
        apply_permits(m, &health);
    }
}
