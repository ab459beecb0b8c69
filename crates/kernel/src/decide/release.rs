//! How a call ends, as far as permits and charges go: released, cancelled, settled, or reclaimed with its process.

use crate::breaker;
use crate::health_state::HealthStateView;
use crate::queue;
use crate::rule::{self, Charged, RuleContext};
use crate::state::Ticket;
use crate::state::{Core, Held, Memory};
use crate::time::Time;
use crate::{MAX_RULES, MAX_UNITS};

/// Gives the permit of a finished call back. What the rules were charged stays charged.
#[inline(always)]
pub fn release<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket) {
    if ticket.permit.total > 0 && return_permits(m, slot, ticket.permit) && m.has_written_off() {
        breaker::came_back(m, ticket.permit, ticket.granted_at);
    }
}

/// Takes a call back that was never sent: its permit and what the rules can still give back (R129).
pub fn cancel<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket, now: Time) {
    super::tick(m, now);
    // Whoever holds no permit was reclaimed or reset meanwhile, and its charges with it.
    if ticket.permit.total > 0 && return_permits(m, slot, ticket.permit) {
        settle_rules(m, ticket, [0; MAX_UNITS], now);
        breaker::came_back(m, ticket.permit, ticket.granted_at);
    }
}

/// Replaces the cost a ticket was charged by what the call really cost (R129). At most once a ticket.
pub fn settle<M: Memory>(m: &mut M, ticket: &Ticket, actual: [u64; MAX_UNITS], now: Time) {
    super::tick(m, now);
    if ticket.permit.total > 0 {
        settle_rules(m, ticket, actual, now);
    }
}

fn settle_rules<M: Memory>(m: &mut M, ticket: &Ticket, actual: [u64; MAX_UNITS], now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    m.set_core(Core { latest: now, ..core });
    for i in 0..m.general().rules.min(MAX_RULES) {
        let at = RuleContext::of(m, i, now);
        let (estimate, actual) = (ticket.cost[at.terms.unit()], actual[at.terms.unit()]);
        if estimate != actual {
            let (at_then, charge) = (ticket.granted_at, ticket.charges[i]);
            let charged = Charged { at: at_then, cost: estimate, charge, last: core.latest };
            rule::settle(m, &at, actual, &charged);
        }
    }
}

/// Returns whether the participant had such permits at all.
#[inline(always)]
fn return_permits<M: Memory>(m: &mut M, slot: usize, back: Held) -> bool {
    let held = m.held(slot);
    if held.total < back.total {
        return false;
    }
    let core = m.core();
    m.set_core(core.given_back(back));
    m.set_held(slot, held.minus(back));
    true
}

/// What was given back for a participant that is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Its permits.
    pub held: Held,
    /// How many of its calls waited.
    pub waited: usize,
}

impl Reclaimed {
    /// Whether it had nothing.
    pub fn is_nothing(self) -> bool {
        self == Reclaimed::default()
    }
}

/// Gives back all permits of a participant that is gone, and takes its calls out of the queue (R113, R131).
pub fn reclaim<M: Memory>(m: &mut M, slot: usize) -> Reclaimed {
    let held = m.held(slot);
    if held != Held::default() {
        return_permits(m, slot, held);
        if m.has_written_off() {
            // Each of them may be as old as the oldest. If one is not, a probe that hangs is written off once more, later;
            // the other way round there would be two probes at a time.
            breaker::came_back(m, held, m.held_since(slot));
        }
    }
    Reclaimed { held, waited: queue::abandon(m, |entry_head| entry_head.slot() == slot) }
}
