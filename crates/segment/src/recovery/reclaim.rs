//! Finding the dead, and giving back what they held.

use crate::attach::process_state::{self, Member};
use crate::attach::{Segment, Tx};
use crate::error::Error;
use crate::layout::SLOTS;
use crate::lock::{Claim, Deadline, Os};
use crate::memory::Reader;
use crate::{slots, wake_word};
use shmlimit_kernel::queue::{self, Places, Ring, Standing};
use shmlimit_kernel::state::View;
use std::sync::atomic::Ordering;

/// So many waiters can all be examined without anybody noticing.
const FEW: usize = 64;

impl Segment {
    /// Gives back what dead participants held, and takes them out of the queue; at most once per bound. Says whether
    /// there were any.
    pub fn reap(&self, member: &Member, deadline: &Deadline) -> Result<bool, Error> {
        let raw = member.clock.now_coarse();
        let last = self.presence.word(process_state::REAPED).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.reap_bound {
            return Ok(false);
        }
        self.presence.word(process_state::REAPED).store(raw, Ordering::Relaxed);
        let waiters = self.waiters();
        let suspects = self.suspicious(member, &waiters);
        let reaped = self.forget_strangers(member, &suspects, deadline)?;
        let found = self.bury_the_dead(member, &suspects, deadline)?;
        // Who dies often does so with others, such as all that one terminal started. They would be found one by one.
        if found && suspects.len() < waiters.len() {
            self.bury_the_dead(member, &waiters, deadline)?;
        }
        Ok(reaped || found)
    }

    /// Frees the slots of those among `waiters`, and of those who hold permits, that are dead. Says whether that changed
    /// anything.
    fn bury_the_dead(
        &self,
        member: &Member,
        waiters: &[Standing],
        deadline: &Deadline,
    ) -> Result<bool, Error> {
        let mut waits = [false; SLOTS];
        for slot in waiters.iter().map(Standing::slot).filter(|slot| *slot < SLOTS) {
            waits[slot] = true;
        }
        // Also slots that nobody owns: damage may have cleared the mark, and a reset counts what is held there.
        let suspects: Vec<usize> = (0..SLOTS)
            .filter(|slot| {
                *slot != member.slot && (waits[*slot] || slots::held(&self.words, *slot).total > 0)
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
        let mut reaped = false;
        for slot in suspects {
            if !liveness.is_alive(slot)? {
                let (had_something, ring) = self.bury(member, slot, deadline)?;
                self.ring_within(member, ring, deadline);
                reaped |= had_something;
            }
        }
        Ok(reaped)
    }

    /// Frees the slots of all the dead, also of those who held nothing, and takes out of the queue whoever is in it
    /// without an owner. Says how many slots that were.
    pub fn bury_all(&self, member: &Member, deadline: &Deadline) -> Result<usize, Error> {
        let liveness = self.liveness()?;
        let mut buried = 0;
        for slot in (0..SLOTS).filter(|slot| *slot != member.slot) {
            let used = slots::is_owned(&self.words, slot) || slots::held(&self.words, slot).total > 0;
            if used && !liveness.is_alive(slot)? {
                let (_, ring) = self.bury(member, slot, deadline)?;
                self.ring_within(member, ring, deadline);
                buried += 1;
            }
        }
        self.forget_strangers(member, &self.waiters(), deadline)?;
        Ok(buried)
    }

    /// Who else is attached and lives, in the words of its slot.
    pub fn others(&self, member: &Member) -> Result<Vec<slots::Participant>, Error> {
        let there = self.participants()?.into_iter();
        Ok(there.filter(|(one, alive)| *alive && one.slot != member.slot).map(|(one, _)| one).collect())
    }

    fn waiters(&self) -> Vec<Standing> {
        let view = Reader(self.words.cells());
        let taken = |(block, places): (usize, Places)| places.map(move |place| 64 * block + place);
        let places = self.sleepers().into_iter().enumerate().flat_map(taken);
        places.map(|place| view.standing(place)).collect()
    }

    /// Those in the queue who may be dead: all of them, as long as they are few. Where very many wait, some of them,
    /// and those who have not looked in time, as the dead do not.
    fn suspicious(&self, member: &Member, waiters: &[Standing]) -> Vec<Standing> {
        let now = self.now(member);
        // Eight or so of very many: where a crowd has died, one of them is among those.
        let sampled = |index: usize| waiters.len() <= FEW || index.is_multiple_of(waiters.len() / 8);
        let suspicious = waiters
            .iter()
            .enumerate()
            .filter(|(index, standing)| sampled(*index) || queue::is_late(standing, now));
        suspicious.map(|(_, standing)| *standing).collect()
    }

    /// Takes those out of the queue whose owner is not attached any more (only damage can leave them there), and those
    /// whose deadline is over, but who could not leave: they would keep everybody from the short way.
    fn forget_strangers(
        &self,
        member: &Member,
        waiters: &[Standing],
        deadline: &Deadline,
    ) -> Result<bool, Box<Error>> {
        let now = self.now(member);
        let is_stranger = |standing: &Standing| {
            !slots::is_entered(&self.words, standing.owner) || queue::has_given_up(standing, now)
        };
        // A count of waiters who are not there would keep everybody from the short way for ever.
        let miscounted = !self.waiting().is_empty() && self.sleepers().iter().all(|places| places.0 == 0);
        if !miscounted && !waiters.iter().any(is_stranger) {
            return Ok(false);
        }
        let (forgotten, ring) = self.transact(member, deadline, |tx, now| {
            let forgotten = queue::abandon(tx, is_stranger);
            let ring = queue::changed(tx, now);
            self.commit(tx).map(|()| (forgotten, ring))
        })??;
        self.ring_within(member, ring, deadline);
        Ok(forgotten > 0)
    }

    /// Frees the slot of a dead participant. Says whether it had anything, and who is to be rung for that.
    pub(crate) fn bury(
        &self,
        member: &Member,
        slot: usize,
        deadline: &Deadline,
    ) -> Result<(bool, Ring), Error> {
        let Some(pulse) = self.backing.take_pulse(slot) else { return Ok((false, Ring::Nobody)) };
        // It may have died with the lock, which then nobody but the one with its pulse can take.
        let (reaped, ring) =
            self.transact_slowly(member, Claim::Undertaker(slot), deadline, &|tx: &mut Tx<'_>, now| {
                let reaped = slots::leave(tx, slot);
                let ring = queue::changed(tx, now);
                self.commit(tx).map(|()| (reaped, ring))
            })??;
        drop(pulse);
        Ok((!reaped.is_nothing(), ring))
    }

    /// Which participants there are, and whether they live.
    pub fn participants(&self) -> Result<Vec<(slots::Participant, bool)>, Error> {
        let liveness = self.liveness()?;
        slots::all(&self.words).map(|p| Ok((p, liveness.is_alive(p.slot)?))).collect()
    }

    /// Nobody slept at `place`: reclaims it if its owner is dead, and rings the next.
    #[cold]
    pub(crate) fn ring_behind(&self, member: &Member, place: usize, deadline: &Deadline) {
        let mut next = self.bury_if_dead(member, place, deadline);
        // Ends at the first who lives: each round frees the slot of a dead one.
        while let Ring::One(place) = next
            && !wake_word::ring(&self.words, &self.backing, place)
        {
            next = self.bury_if_dead(member, place, deadline);
        }
    }

    /// Who is to be rung instead.
    fn bury_if_dead(&self, member: &Member, place: usize, deadline: &Deadline) -> Ring {
        let slot = Reader(self.words.cells()).standing(place).slot();
        if slot == member.slot || slot >= SLOTS {
            return Ring::Nobody;
        }
        // Whatever fails here: whoever waits behind it finds out by itself, a little later.
        let Ok(probe) = self.backing.probe() else { return Ring::Nobody };
        match self.backing.is_alive(&probe, slot) {
            Ok(false) => self.bury(member, slot, deadline).map_or(Ring::Nobody, |(_, ring)| ring),
            _ => Ring::Nobody,
        }
    }
}
