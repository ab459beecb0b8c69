//! The ramp: after successful probes, the rate rises step by step to the full rate (R62).

use super::effective::{apply_rates, base_rate, first_terms, rate, throttle_rate};
use crate::growth::{exponent, grown};
use crate::health_state::{Health, HealthStateMemory, HealthStateView, RAMPING};
use crate::policy::{LEAST_RAMP_FACTOR, PerSecond, PolicyWords, StoredBreaker};
use crate::rule::{self, Need, RuleContext, When};
use crate::state::{BreakerState, Memory, RuleState, View};
use crate::time::{Nanos, Time};

/// The rate at which Normal begins after successful probes: the rate of Throttle, if it is below the full rate.
pub(super) fn ramp_start<W: PolicyWords>(words: &W) -> Option<PerSecond> {
    Some(throttle_rate(words)).filter(|start| *start < base_rate(words))
}

/// A ramp at one of its steps. Each rate is computed from the number of steps since the ramp began, and rounded
/// once.
struct Ramp {
    /// The rate at which the ramp began.
    start: PerSecond,
    step: u32,
    rate: PerSecond,
    /// The time at which the next step is due.
    due: Time,
    base: PerSecond,
    factor: u32,
    every: Nanos,
}

impl Ramp {
    fn of<V: View>(v: &V, health: &Health, breaker: &StoredBreaker) -> Ramp {
        // The smallest factor that a policy allows. With a smaller one, a damaged word could lead to a million
        // steps.
        let factor = breaker.ramp_factor.max(LEAST_RAMP_FACTOR);
        let (start, rate) = (v.ramp_from(), rate(v, health));
        // If the factor has changed since the last step, the ramp starts again from the present rate.
        let (start, step) = exponent(start.0, factor, rate.0).map_or((rate, 0), |step| (start, step));
        let every = Nanos(breaker.ramp_every.0.max(1));
        Ramp { start, step, rate, due: health.until, base: base_rate(v), factor, every }
    }

    fn is_done(&self) -> bool {
        self.rate >= self.base
    }

    /// Makes the next step if it is due at `time`. Returns its rate, where 0 is the full rate, and the time
    /// when it was due.
    fn step_until(&mut self, time: Time) -> Option<(PerSecond, Time)> {
        if self.due > time || self.is_done() {
            return None;
        }
        self.step = self.step.saturating_add(1);
        let next = PerSecond(grown(self.start.0, self.factor, self.step, self.base.0));
        // If the rate did not rise, the ramp would never end.
        self.rate = next.max(PerSecond(self.rate.0.saturating_add(1))).min(self.base);
        let at = self.due;
        self.due = at.plus(self.every);
        Some((if self.is_done() { PerSecond(0) } else { self.rate }, at))
    }
}

/// Makes all steps that are due.
pub(super) fn ramp<M: Memory>(m: &mut M, health: &mut Health, breaker: &StoredBreaker, now: Time) {
    let mut ramp = Ramp::of(m, health, breaker);
    if ramp.start != m.ramp_from() {
        m.set_ramp_from(ramp.start);
    }
    let mut steps = std::iter::from_fn(|| ramp.step_until(now));
    apply_rates(m, steps.by_ref());
    // If the breaker controls no rule, `apply_rates` stops early. The rate still rises.
    steps.for_each(drop);
    let done = ramp.is_done();
    health.flag(RAMPING, !done);
    health.rate = if done { PerSecond(0) } else { ramp.rate };
    health.until = if done { Time::ZERO } else { ramp.due };
}

/// The time at which the first rule admits a cost that its present terms would admit at `ready` (R4).
///
/// A step of the ramp may come before that time. It raises the rate, but also the capacity and the reserve.
/// Therefore a cost that needs a full bucket, or a call that leaves the reserve alone, may have to wait longer.
#[cold]
#[inline(never)]
pub(crate) fn admitted_at<V: View>(v: &V, now: Time, state: RuleState, need: Need, mut ready: Time) -> Time {
    let health = v.health();
    if health.state() != BreakerState::Normal || !health.has(RAMPING) {
        return ready;
    }
    let mut ramp = Ramp::of(v, &health, &v.breaker_policy());
    let (mut at, mut state) = (RuleContext::of(v, 0, now), state);
    while let Some((rate, due)) = ramp.step_until(ready) {
        let Some(terms) = first_terms(v, rate) else { break };
        let old = at.terms;
        at = RuleContext { terms, now: due.max(at.now), ..at };
        state = rule::rescaled(&at, &old, state);
        ready = match rule::earliest(v, &at, state, need) {
            When::Now => at.now,
            When::At(time) => time,
            When::Never => break,
        };
    }
    ready
}
