//! The gate: closed to every call for as long as a server asked for with Retry-After (R73).

use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::outcome::Reporter;
use crate::request::{Block, Reason};
use crate::state::{GateNote, Health, Memory};
use crate::time::{Nanos, Time};

/// Closes the gate until `wait` from now. Returns whether that is later than before. A shorter wait changes
/// nothing.
pub(crate) fn close(health: &mut Health, wait: Nanos, now: Time) -> bool {
    let before = health.gate_until;
    health.gate_until = before.max(now.plus(wait));
    health.gate_until > before
}

/// Stores which process reported the outcome that closed the gate.
pub(crate) fn note_closed_by<M: Memory>(m: &mut M, reporter: Reporter, now: Time) {
    m.set_gate_note(&GateNote { at: now, pid: reporter.pid, program: reporter.program });
}

/// Opens the gate, and clears the note about the process that closed it.
pub(crate) fn open<M: Memory>(m: &mut M) -> Health {
    let health = Health { gate_until: Time::ZERO, ..m.health() };
    m.set_health(&health);
    m.set_gate_note(&GateNote::default());
    health
}

/// Whether the gate is closed.
pub(crate) fn is_closed(health: &Health, now: Time) -> bool {
    health.gate_until > now
}

/// The block while the gate is closed.
pub(crate) fn block(health: &Health, now: Time) -> Option<Block> {
    is_closed(health, now).then_some(Block { reason: Reason::RetryAfter, until: Some(health.gate_until) })
}
