//! Ends a call with respect to permits and charges: released, cancelled, settled, or reclaimed with its
//! process.

use crate::breaker;
use crate::health_state::HealthStateView;
use crate::queue;
use crate::rule::{self, Charged};
use crate::state::Ticket;
use crate::state::{Core, Held, Memory};
use crate::terms::Terms;
use crate::time::Time;
use crate::{MAX_RULES, MAX_UNITS};

/// The short form of [`release`] for the usual case: no call waits for the permit, and no probe was written off. In any
/// other case returns `false` and changes nothing.
#[inline(always)]
pub fn release_at_once<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket) -> bool {
    if !m.waiting().is_empty() || m.has_written_off() {
        return false;
    }
    if ticket.permit.total > 0 {
        return_permits(m, slot, ticket.permit);
    }
    true
}

/// Returns the permit of a finished call. The charges to the rules stay.
pub fn release<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket) {
    if ticket.permit.total > 0 && return_permits(m, slot, ticket.permit) && m.has_written_off() {
        breaker::came_back(m, ticket.permit, ticket.granted_at);
    }
}

/// Cancels a call that was never sent: returns its permit and refunds as much as the rules can still refund
/// (R129).
pub fn cancel<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket, now: Time) {
    super::tick(m, now);
    // A participant without such a permit was reclaimed or reset meanwhile, and its charges with it.
    if ticket.permit.total > 0 && return_permits(m, slot, ticket.permit) {
        settle_at(m, ticket, &[0; MAX_UNITS], now);
        breaker::came_back(m, ticket.permit, ticket.granted_at);
    }
}

/// Replaces the charged cost of a ticket by the actual cost of the call (R129). Call it at most once per
/// ticket.
pub fn settle<M: Memory>(m: &mut M, ticket: &Ticket, actual: [u64; MAX_UNITS], now: Time) {
    super::tick(m, now);
    if ticket.permit.total > 0 {
        settle_at(m, ticket, &actual, now);
    }
}

fn settle_at<M: Memory>(m: &mut M, ticket: &Ticket, actual: &[u64; MAX_UNITS], now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    m.set_core(Core { latest: now, ..core });
    settle_rules(m, ticket, actual, core.latest, now);
}

/// Settles the charges of all rules at `now`. The last change before was made at `last`.
#[inline]
pub(super) fn settle_rules<M: Memory>(
    m: &mut M,
    ticket: &Ticket,
    actual: &[u64; MAX_UNITS],
    last: Time,
    now: Time,
) {
    for i in 0..m.general().rules.min(MAX_RULES) {
        let [head] = m.terms_words(i, 0);
        let unit = Terms::of_head(head).unit();
        let (cost, actual) = (ticket.cost[unit], actual[unit]);
        if cost != actual {
            let charged = Charged { at: ticket.granted_at, cost, charge: ticket.charges[i], last };
            rule::settle(m, i, actual, &charged, now);
        }
    }
}

/// Returns the permits. Returns whether the participant held as many.
#[inline(always)]
fn return_permits<M: Memory>(m: &mut M, slot: usize, back: Held) -> bool {
    let held = m.held(slot);
    if held.total < back.total {
        return false;
    }
    let core = m.core();
    m.replace_core(core, core.given_back(back));
    m.replace_held(slot, held, held.minus(back), core.latest);
    true
}

/// The permits and queue entries that were reclaimed from a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// The reclaimed permits.
    pub held: Held,
    /// The number of its calls that were waiting.
    pub waited: usize,
}

impl Reclaimed {
    /// Whether the participant had nothing to reclaim.
    pub fn is_nothing(self) -> bool {
        self == Reclaimed::default()
    }
}

/// Returns all permits of a participant that has exited, and removes its calls from the queue (R113, R131).
pub fn reclaim<M: Memory>(m: &mut M, slot: usize) -> Reclaimed {
    let held = m.held(slot);
    if held != Held::default() {
        return_permits(m, slot, held);
        if m.has_written_off() {
            // Each of these permits may be as old as the oldest. If one is newer, a probe that hangs is written
            // off once more, later. The opposite assumption would allow two probes at a time.
            breaker::came_back(m, held, m.held_since(slot));
        }
    }
    Reclaimed { held, waited: queue::abandon(m, |entry_head| entry_head.slot() == slot) }
}
