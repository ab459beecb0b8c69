//! The condition of a limiter in one word, and its severity.

use shmlimit::{BreakerState, Snapshot};

/// How bad the condition of a limiter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Calls pass.
    Normal,
    /// Calls pass more slowly than usual, or must wait briefly.
    Slow,
    /// No call passes.
    Blocked,
}

impl Severity {
    /// Returns the severity as a level from 0 to 1, which decides the colour.
    pub const fn level(self) -> f64 {
        match self {
            Severity::Normal => 1.0,
            Severity::Slow => 0.1,
            Severity::Blocked => 0.0,
        }
    }
}

/// Returns the condition in one word, and its severity.
pub fn assess(snapshot: &Snapshot) -> (&'static str, Severity) {
    let now = &snapshot.condition;
    let used_up = snapshot.rules.iter().any(|rule| rule.remaining == 0);
    let all_in_flight = now.concurrency_now.is_some_and(|most| free_permits(snapshot, most) == 0);
    match now.state {
        _ if now.offline => ("offline", Severity::Blocked),
        _ if snapshot.paused.is_some() && !snapshot.policy.is_passthrough() => ("paused", Severity::Blocked),
        state if state.blocks().is_some() => (now.state_name, Severity::Blocked),
        _ if now.gate.is_some() => ("paused by Retry-After", Severity::Blocked),
        BreakerState::Throttle | BreakerState::HalfOpen => (now.state_name, Severity::Slow),
        _ if snapshot.policy.is_passthrough() => ("passthrough", Severity::Normal),
        _ if used_up => ("used up", Severity::Slow),
        _ if all_in_flight => ("all in flight", Severity::Slow),
        _ => ("ready", Severity::Normal),
    }
}

/// Returns the permits that a caller can get. Permits of exited processes count as free.
pub fn free_permits(snapshot: &Snapshot, most: u32) -> u32 {
    most.saturating_sub(snapshot.in_flight.saturating_sub(snapshot.held_by_exited))
}
