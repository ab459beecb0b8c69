//! A call that wants to wait: what it says when it comes, and what it is told.

use crate::ask::{Ask, Priority, Refusal};
use crate::state::View;
use crate::ticket::Ticket;
use crate::time::Time;

/// Who wants to wait, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// The attachment that waits, see [`Standing::owner`](crate::state::Standing::owner).
    pub owner: u64,
    /// With whom it shares its turns.
    pub group: u64,
    /// What it asks for.
    pub ask: Ask,
    /// Gives up then; the end of time if never.
    pub deadline: Time,
    /// Whether it sleeps where a ring wakes it.
    pub can_be_rung: bool,
}

impl Newcomer {
    /// As it stands in the queue: where there are no priorities, all are equal (R102).
    pub(super) fn classed<V: View>(&self, v: &V) -> Newcomer {
        let priority = if v.queueing().priorities { self.ask.priority } else { Priority::Background };
        Newcomer { ask: Ask { priority, ..self.ask }, ..*self }
    }
}

/// A place in the queue, as the one who waits there remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Where its entry is.
    pub place: usize,
    /// Tells it from others that have been there before or come after it.
    pub number: u64,
    /// Its appointment: look again then, or when rung.
    pub until: Time,
    /// Whether its owner should look for the dead: it is near its turn, and somebody is ahead or late, or permits are
    /// short.
    pub doubts: bool,
}

/// What became of a call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may be made.
    Granted(Ticket),
    /// Not yet.
    Waiting(Wait),
    /// It has left the queue, or never entered it: why not, and until when.
    Refused(Refusal),
    /// Its entry is gone; whoever still wants to wait enters anew. (The state was lost, or the entry's owner is not who
    /// looks.)
    Gone,
}

/// Who is to be woken after the change is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "somebody sleeps who should not"]
pub enum Ring {
    /// Nobody's time came nearer.
    Nobody,
    /// The one at this place.
    One(usize),
}
