//! What a state means for decisions: the rate and capacity of the first rule, and the permits (R54, R60, R62).
//!
//! The words that decisions read ("hot") are the policy's, except for these: `General` has the permits of the state, and
//! the first rule, if it is a token bucket, the rate of the state. They are put in force when a state begins, and the
//! first rule's tokens carried over: kept, and clipped to the new capacity.

use super::State;
use crate::kernel::MAX_RULES;
use crate::kernel::policy::{
    Algorithm, Breaker, BreakerKind, FASTEST_RAMP, FirstRule, MILLION, PerSecond, Policy, PolicyWords,
    SLOWEST_RAMP,
};
use crate::kernel::rule::{At, Bucket};
use crate::kernel::sheet::{Health, RAMPING, SheetView};
use crate::kernel::state::{General, Memory, RuleState, View};
use crate::kernel::terms::{TERMS_WORDS, Terms};
use crate::kernel::time::{Nanos, Time};

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
pub fn is_in_force<V: View>(v: &V, policy: &Policy, now: Time) -> bool {
    let health = v.health();
    // A gate that is about to open may count as open already for one whose clock is a little ahead.
    let attention = super::next_attention(v, &health, now.plus(A_MOMENT));
    let off = u32::try_from(health.written_off).unwrap_or(u32::MAX);
    let most = concurrency(v, health.state()).map(|most| most.saturating_add(off));
    let terms = |(i, terms): (usize, Terms)| {
        let wanted = if i == 0 { first_terms(v, health.rate).unwrap_or(terms) } else { terms };
        v.terms(i) == wanted
    };
    // Looking when nothing is there to be seen (a gate that has opened since) costs time only.
    (v.attention() == attention || v.attention() == Time::ZERO)
        && v.general() == General { concurrency: most, ..general(policy) }
        && v.queueing() == policy.queueing()
        && Terms::all(policy).enumerate().all(terms)
}

/// Longer than clocks of one machine are apart.
const A_MOMENT: Nanos = Nanos::from_secs(5);

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
    let mut first = Driven::of(m);
    first.set_rate(m, health.rate, at);
    first.put_in_force(m);
}

/// The first rule as a breaker drives it. A copy, stored once: however many steps a timer has to catch up with, they
/// change no more words than one.
struct Driven {
    terms: Terms,
    state: RuleState,
}

impl Driven {
    fn of<V: View>(v: &V) -> Driven {
        Driven { terms: v.terms(0), state: v.rule(0) }
    }

    /// Another rate from `at` on; nothing changes where the breaker does not drive the rule.
    fn set_rate<V: View>(&mut self, v: &V, rate: PerSecond, at: Time) {
        let Some(terms) = first_terms(v, rate).filter(|terms| *terms != self.terms) else { return };
        // Timers act at the time they were due, but never before what was charged last.
        let here = At { rule: 0, terms, now: at.max(v.core().latest) };
        *self = Driven { terms, state: Bucket::driven(&here, &self.terms, self.state) };
    }

    fn put_in_force<M: Memory>(self, m: &mut M) {
        if m.terms(0) != self.terms {
            m.set_rule(0, self.state);
            m.set_terms(0, self.terms);
        }
    }
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

/// All steps up that are due by now, each at its own time.
pub(super) fn ramp<M: Memory>(m: &mut M, health: &mut Health, breaker: &Breaker, now: Time) {
    let base = base_rate(m);
    // Damaged words must not make more steps than a policy can.
    let factor = breaker.ramp_factor.max(SLOWEST_RAMP);
    let every = breaker.ramp_every.max(FASTEST_RAMP);
    let mut first = Driven::of(m);
    while health.has(RAMPING) && health.until <= now {
        let at = health.until;
        let next = u128::from(rate(m, health).0) * u128::from(factor) / u128::from(MILLION);
        let next = PerSecond(u64::try_from(next).unwrap_or(u64::MAX));
        // One that does not rise (damaged words) would never end.
        let done = next >= base || next <= health.rate;
        health.flag(RAMPING, !done);
        health.rate = if done { PerSecond(0) } else { next };
        health.until = if done { Time::ZERO } else { at.plus(every) };
        first.set_rate(m, health.rate, at);
    }
    first.put_in_force(m);
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

/// A permit that was granted at `granted_at` has come back: if it was written off, the room it left goes with it.
#[cold]
pub(in crate::kernel) fn came_back<M: Memory>(m: &mut M, granted_at: Time) {
    use crate::kernel::sheet::SheetMemory;
    let mut health = m.health();
    if health.state() == State::HalfOpen && granted_at < health.written_at {
        health.written_off = health.written_off.saturating_sub(1);
        m.set_health(&health);
        put_permits_in_force(m, &health);
    }
}
