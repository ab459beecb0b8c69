//! The layers that may block a call, apart from rules and permits: the pause, the breaker's state, the gate and
//! the pace.

use crate::breaker;
use crate::gate;
use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::pace;
use crate::pause;
use crate::request::{Block, Reason};
use crate::state::{BreakerState, Memory, View};
use crate::time::Time;

/// The state of these layers at one moment.
#[derive(Clone, Copy)]
pub(super) struct Layers {
    /// The first layer that blocks every call. The pause comes before the breaker and the gate (R148).
    pub(super) block: Option<Block>,
    /// The block by breaker or gate, whether or not the limiter is paused.
    breaker: Option<Block>,
    /// The end of the pause, if it is known. A time that is not after now has no effect.
    paused_until: Time,
    /// The time at which the gate opens. A time that is not after now means that the gate is open. The gate may
    /// stay closed for longer than the breaker's state blocks.
    pub(super) gate: Time,
    /// The time at which the pace allows the next call. A time that is not after now means at once.
    pub(super) paced_until: Time,
    /// The window of the response headers that the pace comes from.
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

    /// Reads the layers. Timers that are due must have run before.
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

    /// The time at which all layers with a known end allow the next call, which is the latest of their times
    /// (R4). `None` if the end of the breaker's state is not known. A pause without a known end does not count
    /// here, because an operator may resume the limiter at any time.
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

/// The time at which these layers, without rules and permits, allow a call.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    /// The time at which all layers with a known end allow it.
    pub(crate) at: Time,
    /// Whether a pause without a known end is in effect as well.
    pub(crate) open_ended: bool,
}

/// The time at which pause, breaker, gate and pace allow a call that has `calls` others ahead of it. `None` if
/// the end of the breaker's state is not known.
pub(crate) fn opening<V: View>(v: &V, calls: u32, now: Time) -> Option<Opening> {
    if now < v.next_check() || v.is_passthrough() {
        return Some(Opening { at: now, open_ended: false });
    }
    let layers = Layers::of(v, now);
    let open_ended = layers.is_open_ended();
    let behind = |open| if v.is_adaptive() { pace::behind(v, calls, open) } else { open };
    layers.open_at(now).map(|open| Opening { at: behind(open), open_ended })
}

/// The reason, if the breaker refuses every call until an operator changes its state.
pub(crate) fn refused_without_end<V: View>(v: &V, now: Time) -> Option<Reason> {
    Layers::of(v, now).breaker.filter(|block| block.until.is_none()).map(|block| block.reason)
}

/// Whether a check at this time needs no other work: no timer is due, and the pace does not have to be
/// evaluated again.
#[inline]
pub fn is_settled<V: View>(v: &V, now: Time) -> bool {
    now.max(v.core().latest) < v.next_check() || is_settled_with_next_check(v, now.max(v.core().latest))
}

#[cold]
fn is_settled_with_next_check<V: View>(v: &V, now: Time) -> bool {
    let health = v.health();
    let due = breaker::due(&health, &v.breaker_policy());
    let until = pause::paused_until(v);
    // If the closing time of the gate is over, the stored next check time is out of date. The next transaction
    // corrects it.
    due.is_none_or(|due| due > now)
        && health.state() != BreakerState::HalfOpen
        && (health.state().blocks().is_some() || gate::is_closed(&health, now) || until > now)
        // A pause that is over must still be marked as over.
        && (until == Time::ZERO || until > now)
        && !v.is_adaptive()
        && !v.is_passthrough()
}

/// Records an admission for the pace and for the probes of the breaker, if either needs it.
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
