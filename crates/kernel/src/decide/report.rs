//! Hearing how calls ended, and what response headers say.

use crate::backoff::{self, Advice};
use crate::breaker;
use crate::outcome::{self, Class, Report};
use crate::pace::{self, Observation};
use crate::sheet::{SheetMemory, SheetView};
use crate::state::{Core, Memory};
use crate::ticket::Ticket;
use crate::time::Time;

/// What a recorded outcome came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Outcomes in the window, this one included, before what it led to.
    pub samples: u32,
    /// Errors among them.
    pub errors: u64,
    /// Successive 429.
    pub consec429: u32,
    /// What the caller should do.
    pub advice: Advice,
    /// Whether it closed the gate, or closed it for longer (R73).
    pub closed_gate: bool,
}

/// Records how a call ended: settles its cost, gives its permit back, closes the gate for as long as the server said,
/// and moves the breaker (R130: all at once). `ticket` is the call's, if it has one.
pub fn record<M: Memory>(
    m: &mut M,
    slot: usize,
    ticket: Option<&Ticket>,
    report: &Report,
    now: Time,
) -> Verdict {
    let core = m.core();
    let now = now.max(core.latest);
    breaker::tick(m, now);
    if let Some(ticket) = ticket {
        // First of all: what can be given back depends on when the last change was.
        if let Some(actual) = report.actual {
            super::settle(m, ticket, actual, now);
        }
        super::release(m, slot, ticket);
    }
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    outcome::tally(m, report);
    let backoff = m.backoff_policy();
    let is_target = report.class.is_backoff_target();
    let wait = report.retry_after.filter(|_| is_target).map(|said| backoff::retry_after(&backoff, said));
    let mut health = m.health();
    let before = health.gate_until;
    if let Some(wait) = wait {
        health.gate_until = before.max(now.plus(wait));
    }
    health.run = match report.class {
        Class::Ok => 0,
        Class::Ignored => health.run,
        _ => health.run.saturating_add(1),
    };
    let evaluated = breaker::record(m, &mut health, report, wait, now);
    let advice = backoff::advise(&backoff, &health, report, wait);
    m.set_health(&health);
    breaker::attend(m, &health, now);
    Verdict {
        samples: evaluated.samples,
        errors: evaluated.errors,
        consec429: evaluated.consec429,
        advice,
        closed_gate: health.gate_until > before,
    }
}

/// Hears what response headers say: `said` gives it for the name of a window. Of windows that are not configured
/// nothing is asked (R92, R94).
pub fn observe<M: Memory>(m: &mut M, said: impl Fn(&str) -> Option<Observation>, now: Time) {
    let Some(adaptive) = m.adaptive_policy() else { return };
    let core = m.core();
    let now = now.max(core.latest);
    breaker::tick(m, now);
    m.set_core(Core { latest: now, ..core });
    for (i, window) in adaptive.windows().enumerate() {
        if let Some(said) = said(window.name.as_str()) {
            pace::observe(m, i, window, &said, now);
        }
    }
    pace::evaluate(m, &adaptive, now);
}
