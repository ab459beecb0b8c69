//! The circuit breaker: reacts to too many failures. Five states (R49), or closed, open and half open (R78), in
//! one state machine.
//!
//! ```text
//!            too many errors             still too many
//!   Normal ─────────────────> Throttle ─────────────────> Sleep ──┐
//!     ▲                          │                         ▲ │    │ too often (optional), operator
//!     │ probes succeed           │ well again              │ │ timer
//!     └───────────── HalfOpen <──┴───────────────────────  │ ▼    ▼
//!                       │  └────────── a probe fails ──────┘    CacheOnly
//!                       └── consecutive: closed ─> open ─> half open ─> closed
//! ```
//!
//! Nothing here waits. Each operation first checks which timers are due, and each timer acts at the time when
//! it was due. The effective limits of a state (rate, permits) are applied when the state begins. Therefore
//! decisions do not read the state at all while it is Normal or Throttle.

mod consecutive;
mod effective;
mod enter;
mod fsm;
mod operator;
mod ramp;
mod tick;
mod timers;

pub use super::state::{BreakerState, TransitionCause};
pub use effective::{EFFECTIVE_WORDS, effective_words, is_effective, terms_range};
pub(super) use effective::{came_back, install};
pub use operator::{BreakerCommand, clear_gate, force};
pub(super) use ramp::admitted_at;
pub(super) use tick::tick;
pub(super) use timers::{block, schedule_check};
pub use timers::{due, eta};

use super::health_state::{HealthStateMemory, HealthStateView};
use super::outcome::{self, OutcomeClass, Report};
use super::policy::{BreakerKind, PerSecond, Policy};
use super::state::{Health, Memory, RAMPING, Transition, View};
use super::time::{Nanos, Time};

/// Evaluates a recorded outcome. `wait` is the wait that follows from its Retry-After, if that counts.
pub(super) fn record<M: Memory>(
    m: &mut M,
    health: &mut Health,
    report: &Report<'_>,
    wait: Option<Nanos>,
    now: Time,
) -> Evaluated {
    let breaker = m.breaker_policy();
    let class = report.class;
    let counts =
        class != OutcomeClass::Ignored && (class != OutcomeClass::Net || breaker.counts_network_errors());
    // A call that was granted before the probing began says nothing about the server now (R140).
    let probing = health.state() == BreakerState::HalfOpen;
    let late = probing && report.granted_at.is_some_and(|granted| granted < health.since);
    if !counts || late {
        outcome::age(m, health, now);
        return Evaluated::of(health);
    }
    health.unanswered = 0;
    let was_empty = outcome::push(m, health, class, now);
    health.consec429 = if class == OutcomeClass::Throttled { health.consec429.saturating_add(1) } else { 0 };
    let evaluated = Evaluated::of(health);
    match breaker.kind() {
        BreakerKind::None => {}
        BreakerKind::Fsm => fsm::evaluate(m, health, &breaker, class, wait, was_empty, now),
        BreakerKind::Consecutive => consecutive::evaluate(m, health, &breaker, class, now),
    }
    evaluated
}

/// The outcome window at the evaluation: with the new outcome, but before its consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evaluated {
    pub(super) samples: u32,
    pub(super) errors: u64,
    pub(super) consec429: u32,
}

impl Evaluated {
    fn of(health: &Health) -> Evaluated {
        Evaluated { samples: health.samples, errors: health.errors, consec429: health.consec429 }
    }
}

/// The effective rate in units per second, for reports. Zero while every call is blocked.
pub fn rate<V: View>(v: &V) -> PerSecond {
    let health = v.health();
    if health.state().blocks().is_some() { PerSecond(0) } else { effective::rate(v, &health) }
}

/// The effective rate as units per period of the first rule, if the rate is that rule's own. Billionths of a
/// unit per second cannot always express it exactly.
pub fn rate_of_rule<V: View>(v: &V) -> Option<(u64, Nanos)> {
    let is_own = v.breaker_policy().rate_base.0 == 0 && rate(v) == effective::base_rate(v);
    v.first_rule().filter(|_| is_own).map(|first| (first.limit, first.period))
}

/// The number of calls that may be in flight in the present state. `None` means any number.
pub fn concurrency<V: View>(v: &V) -> Option<u32> {
    effective::concurrency(v, v.health().state())
}

/// Carries the breaker's state over to another policy (R110), whose words are already stored. [`install`] then
/// applies the effective limits.
pub(super) fn adopt<M: Memory>(m: &mut M, old: &Policy, new: &Policy, now: Time) {
    let mut health = m.health();
    if old.breaker().kind() != new.breaker().kind() {
        // The states of one kind have no meaning for the other kind. The gate and the counts stay.
        let from = health.state();
        let Health { gate_until, run, oldest, mut transitions, .. } = health;
        if from != BreakerState::Normal {
            m.set_transition(
                transitions,
                &Transition { at: now, from, to: BreakerState::Normal, cause: TransitionCause::Forced },
            );
            transitions = transitions.wrapping_add(1);
        }
        health = Health { since: now, gate_until, run, oldest, transitions, ..Health::default() };
    } else {
        health.rate = effective::carried_over(m, &health, old);
        if health.has(RAMPING) && health.rate.0 == 0 {
            health.until = Time::ZERO;
            health.flag(RAMPING, false);
        }
    }
    m.set_health(&health);
}
