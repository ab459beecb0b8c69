//! What may be in the way besides rules and permits: a pause, the breaker's state, the gate, the pace.

use crate::breaker;
use crate::gate;
use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::pace;
use crate::pause;
use crate::request::{Block, Reason};
use crate::state::{BreakerState, Memory, View};
use crate::time::Time;

/// The layers that need attention, as they are now.
#[derive(Clone, Copy)]
pub(super) struct Layers {
    /// The first layer that blocks every call: the pause before the breaker and the gate (R148).
    pub(super) block: Option<Block>,
    /// What breaker and gate block, paused or not.
    breaker: Option<Block>,
    /// When the pause ends, if that is known; not after now = it does not matter.
    paused_until: Time,
    /// When the gate opens; not after now = it is open. It may be closed for longer than the state blocks.
    pub(super) gate: Time,
    /// When the pace lets the next call go; not after now = at once.
    pub(super) paced_until: Time,
    /// For which window of the headers.
    pub(super) bottleneck: Option<u8>,
}

impl Layers {
    #[inline(always)]
    pub(super) const fn none(now: Time) -> Layers {
        Layers {
            block: None,
            breaker: None,
            paused_until: now,
            gate: now,
            paced_until: now,
            bottleneck: None,
        }
    }

    /// Timers must have been let act.
    #[cold]
    pub(super) fn of<V: View>(v: &V, now: Time) -> Layers {
        let health = v.health();
        let breaker = breaker::block(&health, &v.breaker_policy(), now);
        let pause = pause::block(v, now);
        let block = pause.or(breaker);
        let paused_until = pause.and_then(|pause| pause.until).unwrap_or(now);
        let layers = Layers { block, breaker, paused_until, gate: health.gate_until, ..Layers::none(now) };
        let Some(adaptive) = v.adaptive_policy() else { return layers };
        let (paced_until, bottleneck) = pace::earliest(v, &adaptive, now);
        Layers { paced_until, bottleneck, ..layers }
    }

    /// When all of them that know their time let the next call go (R4: the latest); nothing = the breaker does not
    /// know. A pause without a known end is not among them: somebody may resume the limiter at any time.
    pub(super) fn open_at(&self, now: Time) -> Option<Time> {
        let others = self.gate.max(self.paced_until).max(self.paused_until).max(now);
        match self.breaker {
            Some(block) => block.until.map(|until| until.max(others)),
            None => Some(others),
        }
    }

    /// Whether a pause is in effect that lasts until the limiter is resumed.
    fn is_open_ended(&self) -> bool {
        self.block.is_some_and(|block| block.reason == Reason::Paused && block.until.is_none())
    }
}

/// When the layers besides rules and permits let a call go.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    /// When those that know their time do.
    pub(crate) at: Time,
    /// Whether a pause is on besides, of which nobody knows when it ends.
    pub(crate) open_ended: bool,
}

/// When pause, breaker, gate and pace let a call go behind `calls` others; nothing = the breaker does not know.
pub(crate) fn opening<V: View>(v: &V, calls: u32, now: Time) -> Option<Opening> {
    if now < v.next_check() || v.is_passthrough() {
        return Some(Opening { at: now, open_ended: false });
    }
    let layers = Layers::of(v, now);
    let open_ended = layers.is_open_ended();
    let behind = |open| if v.is_adaptive() { pace::behind(v, calls, open) } else { open };
    layers.open_at(now).map(|open| Opening { at: behind(open), open_ended })
}

/// Why the breaker refuses every call until an operator says otherwise, if it does.
pub(crate) fn refused_without_end<V: View>(v: &V, now: Time) -> Option<Reason> {
    Layers::of(v, now).breaker.filter(|block| block.until.is_none()).map(|block| block.reason)
}

/// Whether nothing is to be done at this time besides judging: no timer is due, and no pace to be judged anew.
#[inline]
pub fn is_settled<V: View>(v: &V, now: Time) -> bool {
    now.max(v.core().latest) < v.next_check() || is_settled_with_next_check(v, now.max(v.core().latest))
}

#[cold]
fn is_settled_with_next_check<V: View>(v: &V, now: Time) -> bool {
    let health = v.health();
    let due = breaker::due(&health, &v.breaker_policy());
    let until = pause::paused_until(v);
    // An open gate that is over still asks for attention, which the next transaction puts right.
    due.is_none_or(|due| due > now)
        && health.state() != BreakerState::HalfOpen
        && (health.state().blocks().is_some() || gate::is_closed(&health, now) || until > now)
        // One whose time is over is to be noted.
        && (until == Time::ZERO || until > now)
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
    if health.state() == BreakerState::HalfOpen {
        health.probe_until = now.plus(m.breaker_policy().probe_timeout);
        if health.unanswered == 0 {
            health.unanswered = now.0.saturating_add(1);
        }
        m.set_health(&health);
    }
}
