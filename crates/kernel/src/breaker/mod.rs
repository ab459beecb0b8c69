//! What too many failures lead to: five states (R49), or closed, open and half open (R78), as one machine.
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
//! Nothing here waits: timers are looked at whenever anything is asked, and act at the time they were due. What a state
//! means for decisions (rate, permits) is put in force when it begins, so that deciding does not look at the state at
//! all while it is Normal or Throttle.

mod consecutive;
mod effective;
mod fsm;
mod operator;
mod ramp;

pub use effective::{HOT_WORDS, hot_words, is_in_force, terms_range};
pub(super) use effective::{came_back, install};
pub use operator::{Force, clear_gate, force};
pub(super) use ramp::admitted_at;

use super::ask::{Block, Reason};
use super::outcome::{self, Class, Report};
use super::pause;
use super::policy::{Breaker, BreakerKind, PerSecond, Policy};
use super::sheet::{ATTEMPT, Health, OFFLINE, RAMPING, SheetMemory, SheetView, Transition};
use super::state::{Core, Held, Memory, View};

pub use super::state::{Cause, State};
use super::time::{Nanos, Time};

/// The state, if it blocks every call; else the gate, if it is closed. To be asked after [`tick`].
pub(super) fn block(health: &Health, breaker: &Breaker, now: Time) -> Option<Block> {
    if let Some(reason) = health.state().blocks() {
        return Some(Block { reason, until: due(health, breaker) });
    }
    let closed = health.gate_until > now;
    closed.then_some(Block { reason: Reason::RetryAfter, until: Some(health.gate_until) })
}

/// When the state's timer is due, if it has one.
pub fn due(health: &Health, breaker: &Breaker) -> Option<Time> {
    match health.state() {
        State::Sleep | State::Open if !health.has(OFFLINE) => Some(health.until),
        State::CacheOnly if breaker.auto_recover > Nanos::ZERO => {
            Some(health.since.plus(breaker.auto_recover))
        }
        State::Normal if health.has(RAMPING) => Some(health.until),
        _ => None,
    }
}

/// The end of the present state as it is reported: when its timer is due. That of a Sleep is not before the gate opens,
/// which may be later: until then no call is made (R57).
pub fn eta(health: &Health, breaker: &Breaker) -> Option<Time> {
    let due = due(health, breaker);
    if health.state() == State::Sleep { due.map(|due| due.max(health.gate_until)) } else { due }
}

/// Does what timers that are due want done, each at its own time, and says again when attention is needed.
#[inline(always)]
pub(super) fn tick<M: Memory>(m: &mut M, now: Time) {
    if now >= m.attention() {
        run_timers(m, now);
    }
}

#[cold]
fn run_timers<M: Memory>(m: &mut M, now: Time) {
    let breaker = m.breaker_policy();
    let mut health = m.health();
    let before = health;
    // Each round leaves a state, or raises the rate as far as it is due; both come to an end.
    while let Some(at) = due(&health, &breaker).filter(|due| *due <= now) {
        match health.state() {
            State::Normal => ramp::ramp(m, &mut health, &breaker, now),
            State::CacheOnly => {
                enter(m, &mut health, State::Sleep, Cause::AutoRecover, at);
                health.flag(ATTEMPT, true);
                health.until = at.plus(breaker.sleep_min);
            }
            State::Open => enter(m, &mut health, State::HalfOpen, Cause::ResetTimeout, at),
            _ => enter(m, &mut health, State::HalfOpen, Cause::SleepExpired, at),
        }
    }
    effective::write_off(m, &mut health, &breaker, now);
    let resumed = pause::expire(m, now);
    let watched = m.attention();
    attend(m, &health, now);
    if health != before || resumed || m.attention() != watched {
        // What happens next must not be before what a timer just did, nor before a gate that was seen open (R3).
        let core = m.core();
        m.set_core(Core { latest: now.max(core.latest), ..core });
        m.set_health(&health);
    }
}

/// Says when attention is needed next.
pub(super) fn attend<M: Memory>(m: &mut M, health: &Health, now: Time) {
    m.set_attention(next_attention(m, health, now));
}

fn next_attention<V: View>(v: &V, health: &Health, now: Time) -> Time {
    let at_once = matches!(health.state(), State::HalfOpen)
        || health.state().blocks().is_some()
        || health.gate_until > now
        || pause::paused_until(v) > now
        || v.is_passthrough()
        || v.is_adaptive();
    match at_once {
        true => Time::ZERO,
        false if health.has(RAMPING) => health.until,
        false => Time(u64::MAX),
    }
}

/// Goes over to a state. Stores everything but the health itself, which is the caller's to store.
pub(super) fn enter<M: Memory>(m: &mut M, health: &mut Health, to: State, cause: Cause, at: Time) {
    let from = health.state();
    if from != to {
        m.set_transition(health.transitions, &Transition { at, from, to, cause });
        health.transitions = health.transitions.wrapping_add(1);
    }
    let breaker = m.breaker_policy();
    health.state = to as u32;
    health.since = at;
    health.until = Time::ZERO;
    health.flag(OFFLINE | RAMPING, false);
    (health.agreed, health.successes, health.unanswered) = (0, 0, 0);
    (health.written_off, health.written_at) = (Held::default(), Time::ZERO);
    // Only the way from CacheOnly over Sleep to HalfOpen, timer after timer, is an attempt (R65).
    if cause != Cause::SleepExpired {
        health.flag(ATTEMPT, false);
    }
    match to {
        State::Normal => {
            (health.sleeps, health.failures) = (0, 0);
            let by_probes = breaker.kind() == BreakerKind::Fsm && cause == Cause::ProbeOk;
            let start = ramp::ramp_start(m).filter(|_| by_probes);
            health.rate = start.unwrap_or_default();
            if let Some(start) = start {
                m.set_ramp_from(start);
                health.flag(RAMPING, true);
                health.until = at.plus(breaker.ramp_every);
            }
        }
        State::Throttle => health.rate = effective::throttle_rate(m),
        State::HalfOpen => {
            // Errors from before would keep the ratio up (R60). The other breaker goes by counts: its window tells the
            // error rate of the latest outcomes, whatever its state (R42).
            if breaker.kind() == BreakerKind::Fsm {
                outcome::clear(health);
                (health.consec429, health.sustained) = (0, 0);
            }
            // Less than the rate of Throttle is only what is left of earlier probes, whose rate may have been patched
            // since (R110).
            let before = effective::rate(m, health).max(effective::throttle_rate(m));
            health.rate = breaker.probe_rate.min(before);
            health.probe_until = at.plus(breaker.probe_timeout);
        }
        State::Sleep | State::CacheOnly | State::Open => {}
    }
    effective::put_in_force(m, health, at);
}

/// What a recorded outcome leads to. `wait` is what its Retry-After comes to, if it has one that counts.
pub(super) fn record<M: Memory>(
    m: &mut M,
    health: &mut Health,
    report: &Report<'_>,
    wait: Option<Nanos>,
    now: Time,
) -> Evaluated {
    let breaker = m.breaker_policy();
    let class = report.class;
    let counts = class != Class::Ignored && (class != Class::Net || breaker.counts_network_errors());
    // Granted before the probing began, it says nothing about now (R140).
    let probing = health.state() == State::HalfOpen;
    let late = probing && report.granted_at.is_some_and(|granted| granted < health.since);
    if !counts || late {
        outcome::age(m, health, now);
        return Evaluated::of(health);
    }
    health.unanswered = 0;
    let was_empty = outcome::push(m, health, class, now);
    health.consec429 = if class == Class::Throttled { health.consec429.saturating_add(1) } else { 0 };
    let evaluated = Evaluated::of(health);
    match breaker.kind() {
        BreakerKind::None => {}
        BreakerKind::Fsm => fsm::evaluate(m, health, &breaker, class, wait, was_empty, now),
        BreakerKind::Consecutive => consecutive::evaluate(m, health, &breaker, class, now),
    }
    evaluated
}

/// The window as it was when an outcome was judged: with the outcome, before what it led to.
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

/// The rate in force, in units per second: nothing while every call is blocked (for people; see `effective`).
pub fn rate<V: View>(v: &V) -> PerSecond {
    let health = v.health();
    if health.state().blocks().is_some() { PerSecond(0) } else { effective::rate(v, &health) }
}

/// The rate in force as the first rule has it, units a period, if it is that rule's own: billionths of a unit per second
/// are not always enough to say it.
pub fn rate_of_rule<V: View>(v: &V) -> Option<(u64, Nanos)> {
    let is_own = v.breaker_policy().rate_base.0 == 0 && rate(v) == effective::base_rate(v);
    v.first_rule().filter(|_| is_own).map(|first| (first.limit, first.period))
}

/// How many calls may be in flight in the present state; nothing = any number.
pub fn concurrency<V: View>(v: &V) -> Option<u32> {
    effective::concurrency(v, v.health().state())
}

/// Carries the breaker's state over to another policy (R110), whose words are in place already. What it means is put in
/// force by [`install`].
pub(super) fn adopt<M: Memory>(m: &mut M, old: &Policy, new: &Policy, now: Time) {
    let mut health = m.health();
    if old.breaker().kind() != new.breaker().kind() {
        // Its states mean nothing to the other kind. The gate and the counts stay.
        let from = health.state();
        let Health { gate_until, run, oldest, mut transitions, .. } = health;
        if from != State::Normal {
            m.set_transition(
                transitions,
                &Transition { at: now, from, to: State::Normal, cause: Cause::Forced },
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
