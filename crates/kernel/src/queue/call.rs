//! A call that wants to wait: what it says when it comes, and what it is told.

use crate::request::{AcquireRequest, Priority, Refusal};
use crate::state::Ticket;
use crate::state::View;
use crate::time::Time;

/// Who wants to wait, and for what.
#[derive(Clone, Copy, Debug)]
pub struct NewWaiter {
    /// The attachment that waits, see [`EntryHead::owner`](crate::state::EntryHead::owner).
    pub owner: u64,
    /// With whom it shares its turns.
    pub group: u64,
    /// What it asks for.
    pub request: AcquireRequest,
    /// Gives up then; the end of time if never.
    pub deadline: Time,
    /// Whether it sleeps where a ring wakes it.
    pub can_be_woken: bool,
}

impl NewWaiter {
    /// As it stands in the queue: where there are no priorities, all are equal (R102).
    pub(super) fn with_effective_priority<V: View>(&self, v: &V) -> NewWaiter {
        let priority = if v.queueing().priorities { self.request.priority } else { Priority::Background };
        NewWaiter { request: AcquireRequest { priority, ..self.request }, ..*self }
    }
}

/// A place in the queue, as the one who waits there remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueTicket {
    /// Where its entry is.
    pub place: usize,
    /// Tells it from others that have been there before or come after it.
    pub number: u64,
    /// Its appointment: look again then, or when rung.
    pub until: Time,
    /// Whether the appointment is kept for a time: what the call waits for comes by itself, and it is known when. Else some
    /// other call must give it.
    pub timed: bool,
    /// Whether its owner should look for the dead: it is near its turn, and somebody is ahead or late, or permits are
    /// short.
    pub suspects_dead: bool,
}

/// What became of a call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOutcome {
    /// It may be made.
    Granted(Ticket),
    /// Not yet.
    Waiting(QueueTicket),
    /// It has left the queue, or never entered it: why not, and until when.
    Refused(Refusal),
    /// Its entry is gone; whoever still wants to wait enters anew. (The state was lost, or the entry's owner is not who
    /// looks.)
    Gone,
}

/// Who is to be woken after the change is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "somebody sleeps who should not"]
pub enum Wake {
    /// Nobody's time came nearer.
    None,
    /// The one at this place.
    One(usize),
}
