//! Finds dead processes, and gives back what they held.

use crate::attach::process_state::{self, Attachment};
use crate::attach::{Segment, Tx};
use crate::error::Error;
use crate::layout::SLOTS;
use crate::lock::{Claim, Deadline, Os};
use crate::memory::Reader;
use crate::{slots, wake_word};
use shmlimit_kernel::queue::{self, EntryHead, PlaceSet, Wake};
use shmlimit_kernel::state::View;
use std::sync::atomic::Ordering;

/// Up to this many waiters can all be examined without a noticeable delay.
const FEW: usize = 64;

impl Segment {
    /// Gives back what dead participants held, and takes them out of the queue, at most once per interval
    /// `reclaim_bound`. Returns whether there were any.
    pub fn reclaim(&self, attachment: &Attachment, deadline: &Deadline) -> Result<bool, Error> {
        let raw = attachment.clock.now_coarse();
        let last = self.process_state.word(process_state::RECLAIMED_AT).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.reclaim_bound {
            return Ok(false);
        }
        self.process_state.word(process_state::RECLAIMED_AT).store(raw, Ordering::Relaxed);
        let waiters = self.waiters();
        let suspects = self.suspicious(attachment, &waiters);
        let reclaimed = self.remove_stale_entries(attachment, &suspects, deadline)?;
        let found = self.reclaim_dead(attachment, &suspects, deadline)?;
        // Processes often die together, for example all that were started from one terminal. Without this step they
        // would be found one by one.
        if found && suspects.len() < waiters.len() {
            self.reclaim_dead(attachment, &waiters, deadline)?;
        }
        Ok(reclaimed || found)
    }

    /// Frees the slots of dead processes among `waiters` and among the participants that hold permits. Returns
    /// whether that changed anything.
    fn reclaim_dead(
        &self,
        attachment: &Attachment,
        waiters: &[EntryHead],
        deadline: &Deadline,
    ) -> Result<bool, Error> {
        let mut waits = [false; SLOTS];
        for slot in waiters.iter().map(EntryHead::slot).filter(|slot| *slot < SLOTS) {
            waits[slot] = true;
        }
        // Include slots without an owner: damage may have cleared the mark, and a reset counts what is held there.
        let suspects: Vec<usize> = (0..SLOTS)
            .filter(|slot| {
                *slot != attachment.slot && (waits[*slot] || slots::held(&self.words, *slot).total > 0)
            })
            .collect();
        if suspects.is_empty() {
            return Ok(false);
        }
        let liveness = match self.liveness() {
            // A missing file descriptor is not a reason to fail a call. The call is refused, and dead processes are
            // found next time.
            Err(Error::Io { .. }) => return Ok(false),
            liveness => liveness?,
        };
        let mut reclaimed = false;
        for slot in suspects {
            if !liveness.is_alive(slot)? {
                let (had_something, wake) = self.reclaim_slot(attachment, slot, deadline)?;
                self.wake_within(attachment, wake, deadline);
                reclaimed |= had_something;
            }
        }
        Ok(reclaimed)
    }

    /// Frees the slots of all dead processes, including those that held nothing. Also removes queue entries that
    /// have no owner. Returns the number of slots.
    pub fn reclaim_all(&self, attachment: &Attachment, deadline: &Deadline) -> Result<usize, Error> {
        let liveness = self.liveness()?;
        let mut reclaimed = 0;
        for slot in (0..SLOTS).filter(|slot| *slot != attachment.slot) {
            let used = slots::is_owned(&self.words, slot) || slots::held(&self.words, slot).total > 0;
            if used && !liveness.is_alive(slot)? {
                let (_, wake) = self.reclaim_slot(attachment, slot, deadline)?;
                self.wake_within(attachment, wake, deadline);
                reclaimed += 1;
            }
        }
        self.remove_stale_entries(attachment, &self.waiters(), deadline)?;
        Ok(reclaimed)
    }

    /// The other living participants, as their slots describe them.
    pub fn others(&self, attachment: &Attachment) -> Result<Vec<slots::Participant>, Error> {
        let there = self.participants()?.into_iter();
        Ok(there.filter(|(one, alive)| *alive && one.slot != attachment.slot).map(|(one, _)| one).collect())
    }

    fn waiters(&self) -> Vec<EntryHead> {
        let view = Reader(self.words.cells());
        let taken = |(block, places): (usize, PlaceSet)| places.map(move |place| 64 * block + place);
        let places = self.sleepers().into_iter().enumerate().flat_map(taken);
        places.map(|place| view.entry_head(place)).collect()
    }

    /// Returns the waiters that may be dead. If there are few, these are all waiters. If there are very many, these
    /// are a sample of them and those that have not checked their turn in time, as dead processes do not.
    fn suspicious(&self, attachment: &Attachment, waiters: &[EntryHead]) -> Vec<EntryHead> {
        let now = self.now(attachment);
        // About eight of very many. If a large part of them has died, the sample contains at least one that died.
        let sampled = |index: usize| waiters.len() <= FEW || index.is_multiple_of(waiters.len() / 8);
        let suspicious = waiters
            .iter()
            .enumerate()
            .filter(|(index, entry_head)| sampled(*index) || queue::is_late(entry_head, now));
        suspicious.map(|(_, entry_head)| *entry_head).collect()
    }

    /// Removes entries from the queue whose owner is not attached any more (only damage can leave them there), and
    /// entries whose deadline is over but whose owner could not leave. Such entries would keep all calls from the
    /// fast path.
    fn remove_stale_entries(
        &self,
        attachment: &Attachment,
        waiters: &[EntryHead],
        deadline: &Deadline,
    ) -> Result<bool, Box<Error>> {
        let now = self.now(attachment);
        let is_stale = |entry_head: &EntryHead| {
            !slots::is_entered(&self.words, entry_head.owner) || queue::has_given_up(entry_head, now)
        };
        // A count of waiters that do not exist would keep all calls from the fast path for ever.
        let miscounted = !self.waiting().is_empty() && self.sleepers().iter().all(|places| places.0 == 0);
        if !miscounted && !waiters.iter().any(is_stale) {
            return Ok(false);
        }
        let (removed, wake) = self.transact(attachment, deadline, |tx, now| {
            let removed = queue::abandon(tx, is_stale);
            let wake = queue::changed(tx, now);
            self.commit(tx).map(|()| (removed, wake))
        })??;
        self.wake_within(attachment, wake, deadline);
        Ok(removed > 0)
    }

    /// Frees the slot of a dead participant. Returns whether the participant held anything, and which call to wake
    /// because of that.
    pub(crate) fn reclaim_slot(
        &self,
        attachment: &Attachment,
        slot: usize,
        deadline: &Deadline,
    ) -> Result<(bool, Wake), Error> {
        let Some(liveness_lock) = self.backing.take_liveness_lock(slot) else {
            return Ok((false, Wake::None));
        };
        // The participant may have died while it held the lock. Then only the process that has its liveness lock
        // can take it over.
        let (reclaimed, wake) =
            self.transact_slowly(attachment, Claim::Reclaimer(slot), deadline, &|tx: &mut Tx<'_>, now| {
                let reclaimed = slots::leave(tx, slot);
                let wake = queue::changed(tx, now);
                self.commit(tx).map(|()| (reclaimed, wake))
            })??;
        drop(liveness_lock);
        Ok((!reclaimed.is_nothing(), wake))
    }

    /// All participants, and whether each is alive.
    pub fn participants(&self) -> Result<Vec<(slots::Participant, bool)>, Error> {
        let liveness = self.liveness()?;
        slots::all(&self.words).map(|p| Ok((p, liveness.is_alive(p.slot)?))).collect()
    }

    /// Reclaims the owner of `place` if it is dead, because no process slept there, and wakes the next call.
    #[cold]
    pub(crate) fn wake_behind(&self, attachment: &Attachment, place: usize, deadline: &Deadline) {
        let mut next = self.reclaim_if_dead(attachment, place, deadline);
        // Ends at the first living owner: each round frees the slot of a dead one.
        while let Wake::One(place) = next
            && !wake_word::wake(&self.words, &self.backing, place)
        {
            next = self.reclaim_if_dead(attachment, place, deadline);
        }
    }

    /// Reclaims the owner of `place` if it is dead. Returns which call to wake instead.
    fn reclaim_if_dead(&self, attachment: &Attachment, place: usize, deadline: &Deadline) -> Wake {
        let slot = Reader(self.words.cells()).entry_head(place).slot();
        if slot == attachment.slot || slot >= SLOTS {
            return Wake::None;
        }
        // An error here is harmless: the calls behind this one find out by themselves, a little later.
        let Ok(probe) = self.backing.probe() else { return Wake::None };
        match self.backing.is_alive(&probe, slot) {
            Ok(false) => self.reclaim_slot(attachment, slot, deadline).map_or(Wake::None, |(_, wake)| wake),
            _ => Wake::None,
        }
    }
}
