//! Whose turn is it: one queue for all who wait, whatever they wait for.
//!
//! **Order.** Priority first. Within a priority, by *tag*, the start time of the call in a clock that counts budget
//! instead of seconds (start-time fair queueing): a group's calls lie one after the other on that clock, so that each
//! group gets the same amount, however many of its calls wait. Equal tags go by arrival. With `fairness = "fifo"` a tag is
//! never below those already there, so that arrival decides. If the background has a guaranteed share and is behind
//! it, its first call goes before everybody.
//!
//! **Turn.** A call goes when the rules and the permits have room for it *and for all that is ahead of it*. So nobody
//! needs to be handed anything: each sleeps until its appointment, the time at which that will be so, and looks; one
//! who is late or stopped takes nothing from those ahead of it and delays nobody behind it. Who does not look at its
//! appointment is passed over after [`GRACE`], and keeps its place.
//!
//! **Appointments** are kept by each waiter for itself. It books the time at which it expects to go if the groups that
//! wait now go on waiting (they usually do: a thread that was served comes again), so that in the steady state
//! everybody wakes once, and in time. When it turns out earlier, because somebody left, gave back or did not come
//! again, whoever changed that rings the one whose turn it is now ([`Wake`]). A ring may be lost with its ringer, so
//! nobody sleeps longer than a bound, the shorter the nearer it is to its turn.
//!
//! Everything here is derived by passes over the entries that are taken; what is stored besides them (a count, a
//! clock for each priority, and where each group's last turn ended) cannot contradict them.

mod call;
mod check;
mod order;
mod wait;

pub use super::state::{
    ENTRY_HEAD_WORDS, ENTRY_WORDS, PROGRESS_WORDS, TURN_WINDOW, TURN_WORDS, TURNS, WAITERS,
};
pub use super::state::{Entry, EntryHead, PlaceSet, Progress, Turn, WaiterCounts};
pub use call::{NewWaiter, QueueOutcome, QueueTicket, Wake};
pub use order::{Marked, all, giving_up_before, has_given_up, in_order, is_late};
pub(crate) use wait::settle_share;
pub use wait::{abandon, changed, enter, leave, look, no_overtaking};

use super::time::Nanos;

/// Who has not looked so long after its appointment is passed over.
pub const GRACE: Nanos = Nanos::from_millis(10);
/// Who has not looked for so long loses its place if there is no other.
pub const STALE_AFTER: Nanos = Nanos::from_secs(60);
/// Nobody sleeps longer, however many wait.
pub const LONGEST_SLEEP: Nanos = Nanos::from_secs(5);
/// The longest sleep of those who know their time, unless very many wait.
pub const USUAL_SLEEP: Nanos = Nanos::from_secs(1);
/// The longest sleep of the first in the queue when nobody can know its time; for each place behind it once more.
pub const SHORTEST_BOUND: Nanos = Nanos::from_millis(20);
/// The same of one that cannot be rung, because no thread of its process sleeps for it.
pub const UNWOKEN_BOUND: Nanos = Nanos::from_millis(2);
/// The longest sleep of those whose time nobody can know, unless very many wait.
pub const LONGEST_BOUND: Nanos = Nanos::from_millis(200);
/// Where very many wait, all may sleep so long for each of them: then all together look 250 times a second.
pub const EACH_WAITER: Nanos = Nanos::from_millis(4);
/// Nobody is rung who will look within this time by itself.
pub const NOT_WORTH_A_WAKE: Nanos = Nanos(50_000);

/// The least and the most that a call counts on the clock of its priority, in nanoseconds of budget. Calls that cost
/// less than the least have equal turns; the most keeps the clock from ending within any real time.
const WEIGHTS: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 42;
