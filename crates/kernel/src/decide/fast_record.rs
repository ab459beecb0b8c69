//! Recording that a call ended well while all is well: what happens most, and so has a short way.

use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::outcome::{self, OutcomeClass};
use crate::state::{Core, Held, Memory};
use crate::ticket::Ticket;
use crate::time::{Nanos, Time};

/// [`record`](super::record) for the usual case: the call ended well, nothing needs attention, nobody waits, and no
/// failure is remembered. What headers said is not for here. Returns how many outcomes count now. Nothing in any other case, and nothing is changed.
#[inline(always)]
pub fn record_success_fast<M: Memory>(
    m: &mut M,
    slot: usize,
    ticket: &Ticket,
    latency: Option<Nanos>,
    now: Time,
) -> Option<u32> {
    let core = m.core();
    let now = now.max(core.latest);
    let calm = m.calm()?;
    let held = m.held(slot);
    if now >= m.next_check() || !m.waiting().is_empty() || m.has_written_off() {
        return None;
    }
    if ticket.permit.total == 0 || held.total < ticket.permit.total {
        return None;
    }
    let (oldest, samples) = outcome::make_room(m, calm, now)?;
    m.set_outcome(oldest.wrapping_add(samples), outcome::entry(OutcomeClass::Ok, now));
    m.set_calm(oldest, samples + 1);
    m.add_ok();
    if let Some(latency) = latency {
        m.add_latency(latency);
    }
    let back = ticket.permit;
    m.set_core(Core {
        latest: now,
        in_flight: core.in_flight.saturating_sub(back.total),
        in_flight_background: core.in_flight_background.saturating_sub(back.background),
    });
    m.set_held(
        slot,
        Held {
            total: held.total.saturating_sub(back.total),
            background: held.background.saturating_sub(back.background),
        },
    );
    Some(samples + 1)
}
