//! What a state means for decisions: the rate and capacity of the first rule, and the permits (R54, R60, R62).
//!
//! The words that decisions read ("hot") are the policy's, except for these: `General` has the permits of the state, and
//! the first rule, if it is a token bucket, the rate of the state. They are put in force when a state begins, and the
//! first rule's tokens carried over: kept, and clipped to the new capacity.

use super::State;
use crate::kernel::MAX_RULES;
use crate::kernel::policy::{
    Algorithm, Breaker, BreakerKind, FirstRule, MILLION, PerSecond, Policy, PolicyWords,
};
use crate::kernel::rule::{self, At};
use crate::kernel::sheet::{Health, RAMPING, SheetView};
use crate::kernel::state::{General, Held, Memory, View};
use crate::kernel::terms::{TERMS_WORDS, Terms};
use crate::kernel::time::Time;

/// How many words decisions read of what is in force: general (2), queueing, attention, zero, then the rules' terms.
pub const HOT_WORDS: usize = TERMS_AT + MAX_RULES * TERMS_WORDS;
const TERMS_AT: usize = 8;

/// Where among them the terms of rule `rule` are.
#[inline]
pub const fn terms_range(rule: usize) -> std::ops::Range<usize> {
    let start = TERMS_AT.saturating_add(rule.saturating_mul(TERMS_WORDS));
    start..start.saturating_add(TERMS_WORDS)
}

/// What is in force when a limiter is made.
pub fn hot_words(policy: &Policy) -> [u64; HOT_WORDS] {
    let encoded = policy.encode();
    let mut words = [0; HOT_WORDS];
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

/// Puts a policy in force, whose words are in place already, in the breaker's present state. The rules' states are the
/// caller's to carry over.
pub(in crate::kernel) fn install<M: Memory>(m: &mut M, policy: &Policy) {
    let health = m.health();
    m.set_general(general(policy));
    put_permits_in_force(m, &health);
    m.set_queueing(policy.queueing());
    for (i, terms) in Terms::all(policy).enumerate() {
        let terms = if i == 0 { first_terms(m, health.rate).unwrap_or(terms) } else { terms };
        m.set_terms(i, terms);
    }
}

/// Whether what is in force is what the policy and the breaker's state make.
pub fn is_in_force<V: View>(v: &V, policy: &Policy) -> bool {
    let health = v.health();
    let off = u32::try_from(health.written_off).unwrap_or(u32::MAX);
    let most = concurrency(v, health.state()).map(|most| most.saturating_add(off));
    let terms = |(i, terms): (usize, Terms)| {
        let wanted = if i == 0 { first_terms(v, health.rate).unwrap_or(terms) } else { terms };
        v.terms(i) == wanted
    };
    v.general() == General { concurrency: most, ..general(policy) }
        && v.queueing() == policy.queueing()
        && Terms::all(policy).enumerate().all(terms)
}

/// What a policy says besides its rules, while all is well.
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
    const DEFAULT: PerSecond = PerSecond::per_second(35);
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

/// Half the full rate in whole units, but not below 5, and never above the full one (R54).
pub(super) fn throttle_rate<W: PolicyWords>(words: &W) -> PerSecond {
    const LEAST: PerSecond = PerSecond::per_second(5);
    let base = base_rate(words);
    PerSecond::per_second(base.0 / 2 / PerSecond::ONE.0).max(LEAST).min(base)
}

/// The rate where nothing is blocked.
pub(super) fn rate<W: PolicyWords>(words: &W, health: &Health) -> PerSecond {
    if health.rate.0 == 0 { base_rate(words) } else { health.rate }
}

/// How many calls may be in flight in a state; nothing = any number.
pub(super) fn concurrency<W: PolicyWords>(words: &W, state: State) -> Option<u32> {
    let base = Some(words.permits().0).filter(|most| *most > 0);
    match state {
        State::Throttle => base.map(|most| (most / 2).max(1)),
        State::HalfOpen => {
            let probes = words.breaker_policy().probe_concurrency.max(1);
            Some(base.map_or(probes, |most| most.min(probes)))
        }
        _ => base,
    }
}

/// The terms of the first rule at a rate (0 = the full one), if a breaker drives it.
fn first_terms<W: PolicyWords>(words: &W, rate: PerSecond) -> Option<Terms> {
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
    Some(Terms::driven(&first, rate, u64::try_from(burst).unwrap_or(u64::MAX).max(1)))
}

/// Puts in force what the state in `health` means, from `at` on.
pub(super) fn put_in_force<M: Memory>(m: &mut M, health: &Health, at: Time) {
    put_permits_in_force(m, health);
    let Some(terms) = first_terms(m, health.rate) else { return };
    let old = m.terms(0);
    if old == terms {
        return;
    }
    // Timers act at the time they were due, but never before what was charged last.
    let here = At { rule: 0, terms, now: at.max(m.core().latest) };
    let state = m.rule(0);
    rule::rescale(m, &here, &old, state);
    rule::forget(m, &here);
    m.set_terms(0, terms);
}

fn put_permits_in_force<M: Memory>(m: &mut M, health: &Health) {
    let general = m.general();
    // What was written off is still out, and gives room to as many others.
    let off = u32::try_from(health.written_off).unwrap_or(u32::MAX);
    let concurrency = concurrency(m, health.state()).map(|most| most.saturating_add(off));
    if general.concurrency != concurrency {
        m.set_general(General { concurrency, ..general });
    }
}

/// After a recovery the rate starts at that of Throttle, and rises step by step (R62).
pub(super) fn start_ramp<M: Memory>(m: &mut M, health: &mut Health, breaker: &Breaker, now: Time) {
    let start = throttle_rate(m);
    if start < base_rate(m) {
        health.rate = start;
        health.flag(RAMPING, true);
        health.until = now.plus(breaker.ramp_every);
        put_in_force(m, health, now);
    }
}

/// One step up, due at `at`.
pub(super) fn ramp<M: Memory>(m: &mut M, health: &mut Health, breaker: &Breaker, at: Time) {
    let base = base_rate(m);
    let next = u128::from(rate(m, health).0) * u128::from(breaker.ramp_factor) / u128::from(MILLION);
    let next = PerSecond(u64::try_from(next).unwrap_or(u64::MAX));
    // One that does not rise (damaged words) would never end.
    let done = next >= base || next <= health.rate;
    health.flag(RAMPING, !done);
    health.rate = if done { PerSecond(0) } else { next };
    health.until =
        if done { Time::ZERO } else { at.plus(breaker.ramp_every).max(Time(at.0.saturating_add(1))) };
    put_in_force(m, health, at);
}

/// Writes off probes that have not reported back in time, so that others can be sent (R133).
pub(super) fn write_off<M: Memory>(m: &mut M, health: &mut Health, breaker: &Breaker, now: Time) {
    if health.state() != State::HalfOpen {
        return;
    }
    let out = u64::from(m.core().in_flight);
    let before = health.written_off;
    health.written_off = before.min(out);
    let probes = u64::from(concurrency(m, State::HalfOpen).unwrap_or(1));
    if out - health.written_off >= probes && now >= health.probe_until {
        (health.written_off, health.written_at) = (out, now);
        health.probe_until = now.plus(breaker.probe_timeout);
    }
    if health.written_off != before {
        put_permits_in_force(m, health);
    }
}

/// Permits that were granted at `granted_at` have come back: if they were written off, the room they left goes with them.
#[cold]
pub(in crate::kernel) fn came_back<M: Memory>(m: &mut M, permit: Held, granted_at: Time) {
    use crate::kernel::sheet::SheetMemory;
    let mut health = m.health();
    if health.state() == State::HalfOpen && granted_at < health.written_at {
        health.written_off = health.written_off.saturating_sub(u64::from(permit.total));
        m.set_health(&health);
        put_permits_in_force(m, &health);
    }
}
