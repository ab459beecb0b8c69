//! What may be in the way besides rules and permits: the breaker's state, the gate, the pace.

use crate::kernel::breaker::{self, Block, State};
use crate::kernel::pace;
use crate::kernel::policy::{Algorithm, BreakerKind};
use crate::kernel::sheet::{SheetMemory, SheetView};
use crate::kernel::state::{Memory, View};
use crate::kernel::time::{Nanos, Time};

/// The layers that need attention, as they are now.
#[derive(Clone, Copy)]
pub(super) struct Layers {
    /// What blocks every call.
    pub(super) block: Option<Block>,
    /// When the gate opens; not after now = it is open. It may be closed for longer than the state blocks.
    gate: Time,
    /// When the pace lets the next call go; not after now = at once.
    pub(super) paced_until: Time,
    /// For which window of the headers.
    pub(super) bottleneck: Option<u8>,
}

impl Layers {
    #[inline(always)]
    pub(super) const fn none(now: Time) -> Layers {
        Layers { block: None, gate: now, paced_until: now, bottleneck: None }
    }

    /// Timers must have been let act.
    #[cold]
    pub(super) fn of<V: View>(v: &V, now: Time) -> Layers {
        let health = v.health();
        let block = breaker::block(&health, &v.breaker_policy(), now);
        let gate = health.gate_until;
        if !v.is_adaptive() {
            return Layers { block, gate, ..Layers::none(now) };
        }
        let bottleneck = v.pace().bottleneck.checked_sub(1).map(|window| window as u8);
        Layers { block, gate, paced_until: pace::earliest(v, now), bottleneck }
    }

    /// When all of them let the next call go (R4: the latest); nothing = nobody knows.
    pub(super) fn open_at(&self, now: Time) -> Option<Time> {
        let others = self.gate.max(self.paced_until).max(now);
        match self.block {
            Some(block) => block.until.map(|until| until.max(others)),
            None => Some(others),
        }
    }
}

/// When breaker, gate and pace let a call go behind `calls` others; nothing = nobody knows.
pub(in crate::kernel) fn opening<V: View>(v: &V, calls: u32, now: Time) -> Option<Time> {
    if now < v.attention() || v.is_passthrough() {
        return Some(now);
    }
    let layers = Layers::of(v, now);
    let paced = if v.is_adaptive() { v.pace().interval.0.saturating_mul(u64::from(calls)) } else { 0 };
    layers.open_at(now).map(|at| at.plus(Nanos(paced)))
}

/// Whether a rule would admit a cost at some time, though it does not in the breaker's present state (R6).
#[cold]
pub(in crate::kernel) fn is_possible<V: View>(v: &V, rule: usize, cost: u64, leave_reserve: bool) -> bool {
    let driven = rule == 0 && v.breaker_policy().kind() == BreakerKind::Fsm;
    driven
        && v.first_rule().is_some_and(|first| {
            let reserve = if leave_reserve { first.reserve } else { 0 };
            first.algorithm == Algorithm::TokenBucket && cost.saturating_add(reserve) <= first.burst
        })
}

/// Whether nothing is to be done at this time besides judging: no timer is due, and no pace to be judged anew.
#[inline]
pub fn is_settled<V: View>(v: &V, now: Time) -> bool {
    now.max(v.core().latest) < v.attention() || is_settled_with_attention(v, now.max(v.core().latest))
}

#[cold]
fn is_settled_with_attention<V: View>(v: &V, now: Time) -> bool {
    let health = v.health();
    let due = breaker::due(&health, &v.breaker_policy());
    // An open gate that is over still asks for attention, which the next transaction puts right.
    due.is_none_or(|due| due > now)
        && health.state() != State::HalfOpen
        && (health.state().blocks().is_some() || health.gate_until > now)
        && !v.is_adaptive()
        && !v.is_passthrough()
}

/// Notes an admission where somebody wants to know.
#[cold]
pub(super) fn admitted<M: Memory>(m: &mut M, now: Time) {
    if m.is_adaptive() {
        pace::admitted(m, now);
    }
    let mut health = m.health();
    if health.state() == State::HalfOpen {
        health.probe_until = now.plus(m.breaker_policy().probe_timeout);
        m.set_health(&health);
    }
}
