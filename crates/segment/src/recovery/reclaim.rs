//! Finding the dead, and giving back what they held.

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

/// So many waiters can all be examined without anybody noticing.
const FEW: usize = 64;

impl Segment {
    /// Gives back what dead participants held, and takes them out of the queue; at most once per bound. Says whether
    /// there were any.
    pub fn reclaim(&self, attachment: &Attachment, deadline: &Deadline) -> Result<bool, Error> {
        let raw = attachment.clock.now_coarse();
        let last = self.process_state.word(process_state::RECLAIMED_AT).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.reclaim_bound {
            return Ok(false);
        }
        self.process_state.word(process_state::RECLAIMED_AT).store(raw, Ordering::Relaxed);
        let waiters = self.waiters();
        let suspects = self.suspicious(attachment, &waiters);
        let reclaimed = self.forget_strangers(attachment, &suspects, deadline)?;
        let found = self.reclaim_dead(attachment, &suspects, deadline)?;
        // Who dies often does so with others, such as all that one terminal started. They would be found one by one.
        if found && suspects.len() < waiters.len() {
            self.reclaim_dead(attachment, &waiters, deadline)?;
        }
        Ok(reclaimed || found)
    }

    /// Frees the slots of those among `waiters`, and of those who hold permits, that are dead. Says whether that changed
    /// anything.
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
        // Also slots that nobody owns: damage may have cleared the mark, and a reset counts what is held there.
        let suspects: Vec<usize> = (0..SLOTS)
            .filter(|slot| {
                *slot != attachment.slot && (waits[*slot] || slots::held(&self.words, *slot).total > 0)
            })
            .collect();
        if suspects.is_empty() {
            return Ok(false);
        }
        let liveness = match self.liveness() {
            // No descriptor to spare is no reason to fail a call: it is refused, and the dead are found next time.
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

    /// Frees the slots of all the dead, also of those who held nothing, and takes out of the queue whoever is in it
    /// without an owner. Says how many slots that were.
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
        self.forget_strangers(attachment, &self.waiters(), deadline)?;
        Ok(reclaimed)
    }

    /// Who else is attached and lives, in the words of its slot.
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

    /// Those in the queue who may be dead: all of them, as long as they are few. Where very many wait, some of them,
    /// and those who have not looked in time, as the dead do not.
    fn suspicious(&self, attachment: &Attachment, waiters: &[EntryHead]) -> Vec<EntryHead> {
        let now = self.now(attachment);
        // Eight or so of very many: where a crowd has died, one of them is among those.
        let sampled = |index: usize| waiters.len() <= FEW || index.is_multiple_of(waiters.len() / 8);
        let suspicious = waiters
            .iter()
            .enumerate()
            .filter(|(index, entry_head)| sampled(*index) || queue::is_late(entry_head, now));
        suspicious.map(|(_, entry_head)| *entry_head).collect()
    }

    /// Takes those out of the queue whose owner is not attached any more (only damage can leave them there), and those
    /// whose deadline is over, but who could not leave: they would keep everybody from the short way.
    fn forget_strangers(
        &self,
        attachment: &Attachment,
        waiters: &[EntryHead],
        deadline: &Deadline,
    ) -> Result<bool, Box<Error>> {
        let now = self.now(attachment);
        let is_stranger = |entry_head: &EntryHead| {
            !slots::is_entered(&self.words, entry_head.owner) || queue::has_given_up(entry_head, now)
        };
        // A count of waiters who are not there would keep everybody from the short way for ever.
        let miscounted = !self.waiting().is_empty() && self.sleepers().iter().all(|places| places.0 == 0);
        if !miscounted && !waiters.iter().any(is_stranger) {
            return Ok(false);
        }
        let (forgotten, wake) = self.transact(attachment, deadline, |tx, now| {
            let forgotten = queue::abandon(tx, is_stranger);
            let wake = queue::changed(tx, now);
            self.commit(tx).map(|()| (forgotten, wake))
        })??;
        self.wake_within(attachment, wake, deadline);
        Ok(forgotten > 0)
    }

    /// Frees the slot of a dead participant. Says whether it had anything, and who is to be rung for that.
    pub(crate) fn reclaim_slot(
        &self,
        attachment: &Attachment,
        slot: usize,
        deadline: &Deadline,
    ) -> Result<(bool, Wake), Error> {
        let Some(liveness_lock) = self.backing.take_liveness_lock(slot) else {
            return Ok((false, Wake::None));
        };
        // It may have died with the lock, which then nobody but the one with its liveness lock can take.
        let (reclaimed, wake) =
            self.transact_slowly(attachment, Claim::Reclaimer(slot), deadline, &|tx: &mut Tx<'_>, now| {
                let reclaimed = slots::leave(tx, slot);
                let wake = queue::changed(tx, now);
                self.commit(tx).map(|()| (reclaimed, wake))
            })??;
        drop(liveness_lock);
        Ok((!reclaimed.is_nothing(), wake))
    }

    /// Which participants there are, and whether they live.
    pub fn participants(&self) -> Result<Vec<(slots::Participant, bool)>, Error> {
        let liveness = self.liveness()?;
        slots::all(&self.words).map(|p| Ok((p, liveness.is_alive(p.slot)?))).collect()
    }

    /// Nobody slept at `place`: reclaims it if its owner is dead, and rings the next.
    #[cold]
    pub(crate) fn wake_behind(&self, attachment: &Attachment, place: usize, deadline: &Deadline) {
        let mut next = self.reclaim_if_dead(attachment, place, deadline);
        // Ends at the first who lives: each round frees the slot of a dead one.
        while let Wake::One(place) = next
            && !wake_word::wake(&self.words, &self.backing, place)
        {
            next = self.reclaim_if_dead(attachment, place, deadline);
        }
    }

    /// Who is to be rung instead.
    fn reclaim_if_dead(&self, attachment: &Attachment, place: usize, deadline: &Deadline) -> Wake {
        let slot = Reader(self.words.cells()).entry_head(place).slot();
        if slot == attachment.slot || slot >= SLOTS {
            return Wake::None;
        }
        // Whatever fails here: whoever waits behind it finds out by itself, a little later.
        let Ok(probe) = self.backing.probe() else { return Wake::None };
        match self.backing.is_alive(&probe, slot) {
            Ok(false) => self.reclaim_slot(attachment, slot, deadline).map_or(Wake::None, |(_, wake)| wake),
            _ => Wake::None,
        }
    }
}
