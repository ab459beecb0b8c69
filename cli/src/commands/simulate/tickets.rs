//! Stores calls that were granted and have not ended, to find which one ends next and which one was granted last.

use shmlimit_kernel::{MAX_UNITS, Ticket, Time};
use std::collections::VecDeque;

/// The number of calls that are stored with their full cost. A script that never ends its calls must not use up the
/// memory.
const REMEMBERED: usize = 1 << 16;

/// Calls in flight.
#[derive(Default)]
pub struct Tickets {
    whole: VecDeque<Ticket>,
    /// Older calls, of which only the permit is stored: background calls, and the others.
    bare: [Option<Bare>; 2],
}

#[derive(Clone, Copy)]
struct Bare {
    ticket: Ticket,
    count: u64,
}

/// A call that ends, and whether its cost is still known.
pub struct Ending {
    pub ticket: Ticket,
    pub can_settle: bool,
}

impl Tickets {
    pub fn add(&mut self, ticket: Ticket) {
        if self.whole.len() == REMEMBERED
            && let Some(mut oldest) = self.whole.pop_front()
        {
            oldest.cost = [0; MAX_UNITS];
            let bare = &mut self.bare[usize::from(oldest.permit.background == 0)];
            let count = bare.map_or(0, |bare| bare.count) + 1;
            *bare = Some(Bare { ticket: oldest, count });
        }
        self.whole.push_back(ticket);
    }

    /// Takes the call whose outcome comes next.
    pub fn oldest(&mut self) -> Option<Ending> {
        if let Some(ticket) = self.take_bare() {
            return Some(Ending { ticket, can_settle: false });
        }
        self.whole.pop_front().map(|ticket| Ending { ticket, can_settle: true })
    }

    /// Takes a call that was granted before `time`.
    pub fn granted_before(&mut self, time: Time) -> Option<Ticket> {
        // Calls without their cost are older than the others. Their stored time is that of the latest one.
        let bare = self.bare.iter().flatten().map(|bare| bare.ticket).next();
        let oldest = bare.or_else(|| self.whole.front().copied())?;
        if oldest.granted_at < time { self.oldest().map(|ending| ending.ticket) } else { None }
    }

    /// Takes the call that was granted last.
    pub fn latest(&mut self) -> Option<Ticket> {
        self.whole.pop_back().or_else(|| self.take_bare())
    }

    fn take_bare(&mut self) -> Option<Ticket> {
        let slot = self.bare.iter_mut().find(|slot| slot.is_some())?;
        let bare = slot.as_mut()?;
        let ticket = bare.ticket;
        bare.count -= 1;
        if bare.count == 0 {
            *slot = None;
        }
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmlimit_kernel::{AcquireRequest, LocalMemory, Policy, PolicyDraft, Priority, decide};

    fn ticket(memory: &mut LocalMemory, priority: Priority, at: u64) -> Ticket {
        let ticket = decide::acquire(memory, 0, &AcquireRequest::one(priority), Time(at)).unwrap();
        decide::release(memory, 0, &ticket);
        ticket
    }

    #[test]
    fn oldest_call_ends_first_and_latest_is_cancelled() {
        let mut memory = LocalMemory::new(&Policy::new(&PolicyDraft::default()).unwrap());
        let mut tickets = Tickets::default();
        for at in 1..=3 {
            tickets.add(ticket(&mut memory, Priority::User, at));
        }
        assert_eq!(tickets.latest().unwrap().granted_at, Time(3));
        let ending = tickets.oldest().unwrap();
        assert_eq!((ending.ticket.granted_at, ending.can_settle), (Time(1), true));
        assert_eq!(tickets.latest().unwrap().granted_at, Time(2));
        assert!(tickets.latest().is_none() && tickets.oldest().is_none());
    }

    #[test]
    fn with_too_many_calls_permits_are_kept_and_costs_forgotten() {
        let mut memory = LocalMemory::new(&Policy::new(&PolicyDraft::default()).unwrap());
        let (mine, others) =
            (ticket(&mut memory, Priority::User, 1), ticket(&mut memory, Priority::Background, 2));
        let mut tickets = Tickets::default();
        for i in 0..REMEMBERED as u64 + 10 {
            tickets.add(if i % 5 == 0 { mine } else { others });
        }
        let mut ends = [0; 2];
        for _ in 0..10 {
            let ending = tickets.oldest().unwrap();
            assert!(!ending.can_settle && ending.ticket.cost == [0; MAX_UNITS]);
            ends[ending.ticket.permit.background as usize] += 1;
        }
        assert_eq!(ends, [2, 8]);
        assert_eq!(std::iter::from_fn(|| tickets.oldest()).filter(|e| e.can_settle).count(), REMEMBERED);
    }
}
