//! The queue: one order for all waiting calls of a limiter, independent of the layer they wait for.
//!
//! **Order.** Calls are ordered by priority first, and within a priority by *tag*. A tag is the start time of a
//! call on a clock that counts budget instead of seconds (start-time fair queueing). On that clock the calls of
//! a group lie one after another, so that each group gets the same amount, no matter how many of its calls
//! wait. Equal tags are ordered by arrival. With `fairness = "fifo"` a new tag is never below the existing
//! tags, so the order is that of arrival. If background calls have a guaranteed share and have received less
//! than it, their first call goes before all other calls.
//!
//! **Turn.** A call goes when the rules and the permits have room for it *and for all calls ahead of it*.
//! Therefore no call has to hand anything to the next. Each waiting call sleeps until its wake-up time, at
//! which it expects to have its turn, and then checks. A call that is late or stopped takes nothing from the
//! calls ahead of it, and does not delay the calls behind it. If a call does not check within [`GRACE`] of its
//! wake-up time, it is skipped, but keeps its place.
//!
//! **Wake-up times.** Each waiting call sets its own. It is the time at which the call expects to go if the
//! groups that wait now continue to wait. They usually do, because a thread that was served comes again. So in
//! the steady state each call wakes once, and in time. A turn can come earlier if a call leaves, returns
//! something or does not come again. The process that made that change wakes the call whose turn it is now
//! ([`Wake`]). If that process dies first, the wake-up is lost. Therefore no call sleeps longer than a bound,
//! which is shorter the nearer the call is to its turn.
//!
//! Everything here is derived by passes over the occupied entries. Besides the entries, the queue stores only a
//! few words: a count, a clock for each priority, and the end of each group's last turn. They cannot contradict
//! the entries.

mod call;
mod order;
mod turn;
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

/// A call that has not checked for this long after its wake-up time is skipped.
pub const GRACE: Nanos = Nanos::from_millis(10);
/// A call that has not checked for this long loses its place if no other place is free.
pub const STALE_AFTER: Nanos = Nanos::from_secs(60);
/// The longest sleep of any call, even if very many calls wait.
pub const LONGEST_SLEEP: Nanos = Nanos::from_secs(5);
/// The longest sleep of calls that know their time, unless very many calls wait.
pub const USUAL_SLEEP: Nanos = Nanos::from_secs(1);
/// The longest sleep of the first call in the queue if its time cannot be known. Each place behind it adds the
/// same again.
pub const SHORTEST_BOUND: Nanos = Nanos::from_millis(20);
/// The same bound for a call that cannot be woken, because no thread of its process sleeps for it.
pub const UNWOKEN_BOUND: Nanos = Nanos::from_millis(2);
/// The longest sleep of calls whose time cannot be known, unless very many calls wait.
pub const LONGEST_BOUND: Nanos = Nanos::from_millis(200);
/// If very many calls wait, each may sleep this long for each of them. All calls together then check 250 times
/// per second.
pub const EACH_WAITER: Nanos = Nanos::from_millis(4);
/// A call that will check by itself within this time is not woken.
pub const NOT_WORTH_A_WAKE: Nanos = Nanos(50_000);

/// The least and the most that a call counts on the clock of its priority, in nanoseconds of budget. Calls that
/// cost less than the least have equal turns. The most keeps the clock from overflowing within any realistic
/// time.
const WEIGHTS: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 42;
