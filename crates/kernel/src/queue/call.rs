//! A call that enters the queue: its request, and the result.

use crate::request::{AcquireRequest, Priority, Refusal};
use crate::state::Ticket;
use crate::state::View;
use crate::time::Time;

/// A call that wants to wait.
#[derive(Clone, Copy, Debug)]
pub struct NewWaiter {
    /// The attachment that waits, see [`EntryHead::owner`](crate::state::EntryHead::owner).
    pub owner: u64,
    /// The group with which the call shares its turns.
    pub group: u64,
    /// The requested cost and priority.
    pub request: AcquireRequest,
    /// The time at which the call gives up. The largest time if it never does.
    pub deadline: Time,
    /// Whether the call sleeps on a wake word, so that another process can wake it.
    pub can_be_woken: bool,
}

impl NewWaiter {
    /// The call with the priority it has in the queue. Without priorities, all calls are equal (R102).
    pub(super) fn with_effective_priority<V: View>(&self, v: &V) -> NewWaiter {
        let priority = if v.queueing().priorities { self.request.priority } else { Priority::Background };
        NewWaiter { request: AcquireRequest { priority, ..self.request }, ..*self }
    }
}

/// A place in the queue, as the waiting call remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueTicket {
    /// The index of its entry.
    pub place: usize,
    /// The number that distinguishes the entry from earlier and later entries in the same place.
    pub number: u64,
    /// The wake-up time: the call checks again at this time, or when another process wakes it.
    pub until: Time,
    /// Whether only time is in the way, and the time is known. Otherwise another call must first return
    /// something.
    pub timed: bool,
    /// Whether the waiting process should look for exited processes. This is so if the call is near its turn
    /// and another call is ahead or late, or if permits are short.
    pub suspects_dead: bool,
}

/// The result for a call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOutcome {
    /// The call may be made.
    Granted(Ticket),
    /// The call must wait.
    Waiting(QueueTicket),
    /// The call has left the queue, or never entered it. The refusal has the reason and the time for the next
    /// try.
    Refused(Refusal),
    /// The entry no longer exists or belongs to another owner, for example because the state was lost. The
    /// caller enters the queue again if it still wants to wait.
    Gone,
}

/// The waiting call to wake after the change is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "somebody sleeps who should not"]
pub enum Wake {
    /// No waiting call may go earlier than before.
    None,
    /// The call at this place.
    One(usize),
}
