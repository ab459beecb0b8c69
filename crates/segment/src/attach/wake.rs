//! Wakes the calls that a change concerns. A change is one transaction; after it, the calls that wait on it are
//! woken.

use super::process_state::Attachment;
use super::{Segment, Tx};
use crate::error::Error;
use crate::layout::{self, CLOCK_OFFSET, PLACES};
use crate::lock::Deadline;
use crate::wake_word;
use shmlimit_kernel::log_context::{LogBaseline, RecentEvents};
use shmlimit_kernel::queue::{self, PlaceSet, WAITERS, WaiterCounts, Wake};
use shmlimit_kernel::state::View;
use shmlimit_kernel::time::Time;
use std::time::Duration;

/// The queue entries whose owners wait, one bit for each entry.
pub(crate) type Sleepers = queue::Marked;

/// Which waiting calls to wake for a change, once the lock is free again.
#[derive(Clone, Copy)]
pub struct Wakeups {
    /// The first call whose turn came nearer. It wakes the next one.
    first: Wake,
    /// All of these calls: the change concerns each of them.
    each: Option<Sleepers>,
}

impl Wakeups {
    /// No call.
    pub const NONE: Wakeups = Wakeups::first(Wake::None);

    /// The first call whose turn came nearer. It wakes the next one.
    pub const fn first(first: Wake) -> Wakeups {
        Wakeups { first, each: None }
    }

    /// Each of these calls.
    pub const fn each(each: Sleepers) -> Wakeups {
        Wakeups { first: Wake::None, each: Some(each) }
    }

    /// Also each of these calls.
    #[must_use]
    pub const fn and_each(self, each: Option<Sleepers>) -> Wakeups {
        Wakeups { each, ..self }
    }
}

impl Segment {
    /// Returns which call to wake for a change made in `tx`. Ask before the commit, and wake after the lock is
    /// free.
    #[inline(always)]
    pub fn after_change(&self, tx: &mut Tx<'_>, attachment: &Attachment) -> Wake {
        if tx.waiting().is_empty() { Wake::None } else { self.after_change_with_waiters(tx, attachment) }
    }

    #[cold]
    fn after_change_with_waiters(&self, tx: &mut Tx<'_>, attachment: &Attachment) -> Wake {
        let now = Time(self.raw_now(attachment).wrapping_add(tx.load(CLOCK_OFFSET)));
        queue::changed(tx, now)
    }

    /// Wakes the call that [`after_change`](Self::after_change) or the kernel named. If no process slept on that
    /// entry, its owner may be dead. In that case its slot is reclaimed and the next call is woken.
    #[inline(always)]
    pub fn wake_within(&self, attachment: &Attachment, wake: Wake, deadline: &Deadline) {
        if let Wake::One(place) = wake
            && !wake_word::wake(&self.words, &self.backing, place)
        {
            self.wake_behind(attachment, place, deadline);
        }
    }

    /// Wakes the calls that a change names. The lock must be free.
    pub fn wake(&self, attachment: &Attachment, wakeups: Wakeups, deadline: &Deadline) {
        if let Some(each) = wakeups.each {
            self.wake_all(each);
        }
        self.wake_within(attachment, wakeups.first, deadline);
    }

    /// Changes the state in one transaction: runs `work`, commits, and wakes the calls that it names. Returns the
    /// value of `work`, and the events on the way for the log (transitions, a pause that expired). An error of
    /// `work` undoes the change.
    pub fn change<T>(
        &self,
        attachment: &Attachment,
        deadline: &Deadline,
        work: impl Fn(&mut Tx<'_>, Time) -> Result<(T, Wakeups), Box<Error>>,
    ) -> Result<(T, RecentEvents), Box<Error>> {
        let (value, wakeups, recent) = self.transact(attachment, deadline, |tx, now| {
            let known = LogBaseline::of(tx);
            let (value, wakeups) = work(tx, now)?;
            let recent = RecentEvents::since(tx, known);
            self.commit(tx).map(|()| (value, wakeups, recent))
        })??;
        self.wake(attachment, wakeups, deadline);
        Ok((value, recent))
    }

    /// Wakes a call while this process detaches. It is no longer a participant, so it must not reclaim other
    /// processes.
    pub(crate) fn wake_last(&self, wake: Wake) {
        if let Wake::One(place) = wake {
            wake_word::wake(&self.words, &self.backing, place);
        }
    }

    /// The entries that are in the queue now.
    pub fn sleepers(&self) -> Sleepers {
        self.words.load_array::<{ WAITERS / 64 }>(PLACES).map(PlaceSet)
    }

    /// Wakes all calls that were in the queue, because an event concerns each of them.
    #[cold]
    pub fn wake_all(&self, sleepers: Sleepers) {
        for (block, places) in sleepers.into_iter().enumerate() {
            for place in places {
                wake_word::wake(&self.words, &self.backing, 64 * block + place);
            }
        }
    }

    /// How many calls wait. This is a hint, because it is read without the lock.
    #[inline(always)]
    pub fn waiting(&self) -> WaiterCounts {
        WaiterCounts(self.words.load(layout::WAITING))
    }

    /// Reads the wake word of an entry, under the lock.
    pub fn read_wake_word(&self, place: usize) -> u32 {
        wake_word::read(&self.words, place)
    }

    /// Sleeps until the wake word of an entry changes, for `limit` at most.
    pub fn sleep(&self, place: usize, wake_value: u32, limit: Duration) {
        wake_word::sleep(&self.words, &self.backing, place, wake_value, limit);
    }
}
