//! Finding the dead, and giving back what they held.

use super::attach::{Segment, Tx};
use super::join::{Member, presence};
use super::layout::SLOTS;
use super::lock::{Claim, Os};
use super::memory::Reader;
use super::slots;
use crate::error::Error;
use crate::kernel::queue::{self, Places, Standing};
use crate::kernel::state::View;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So many waiters can all be examined without anybody noticing.
const FEW: usize = 64;

impl Segment {
    /// Gives back what dead participants held, and takes them out of the queue; at most once per bound. Says whether
    /// there were any.
    pub fn reap(&self, member: &Member, patience: Duration) -> Result<bool, Error> {
        let raw = member.clock.now_coarse();
        let last = self.presence.word(presence::REAPED).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.reap_bound {
            return Ok(false);
        }
        self.presence.word(presence::REAPED).store(raw, Ordering::Relaxed);
        let waiters = self.suspicious_waiters(member);
        let mut reaped = self.forget_strangers(member, &waiters, patience)?;
        // Also slots that nobody owns: damage may have cleared the mark, and a reset counts what is held there.
        let suspects: Vec<usize> = (0..SLOTS)
            .filter(|slot| {
                let waits = waiters.iter().any(|standing| standing.slot() == *slot);
                *slot != member.slot && (waits || slots::held(&self.words, *slot).total > 0)
            })
            .collect();
        if suspects.is_empty() {
            return Ok(reaped);
        }
        let probe = match self.backing.reopen() {
            Ok(probe) => probe,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(self.gone()),
            // No descriptor to spare is no reason to fail a call: it is refused, and the dead are found next time.
            Err(_) => return Ok(reaped),
        };
        for slot in suspects {
            if !self.backing.is_alive(&probe, slot)? {
                reaped |= self.bury(member, slot, patience)?;
            }
        }
        Ok(reaped)
    }

    /// Those in the queue who may be dead: all of them, as long as they are few. Where very many wait, only those who
    /// have not looked in time, as the dead do not.
    fn suspicious_waiters(&self, member: &Member) -> Vec<Standing> {
        let (view, now) = (Reader(self.words.cells()), self.now(member));
        let taken = |(group, places): (usize, Places)| places.map(move |place| 64 * group + place);
        let places = self.sleepers().into_iter().enumerate().flat_map(taken);
        let mut waiters: Vec<Standing> = places.map(|place| view.standing(place)).collect();
        if waiters.len() > FEW {
            waiters.retain(|standing| queue::is_late(standing, now));
        }
        waiters
    }

    /// Takes those out of the queue whose owner is not attached any more (only damage can leave them there), and those
    /// whose deadline is over, but who could not leave: they would keep everybody from the short way.
    fn forget_strangers(
        &self,
        member: &Member,
        waiters: &[Standing],
        patience: Duration,
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
        let (forgotten, ring) = self.transact(member, patience, |tx, now| {
            let forgotten = queue::abandon(tx, is_stranger);
            let ring = queue::changed(tx, now);
            self.commit(tx).map(|()| (forgotten, ring))
        })??;
        self.ring(member, ring);
        Ok(forgotten > 0)
    }

    /// Frees the slot of a dead participant.
    pub(super) fn bury(&self, member: &Member, slot: usize, patience: Duration) -> Result<bool, Error> {
        let Some(pulse) = self.backing.take_pulse(slot) else { return Ok(false) };
        // It may have died with the lock, which then nobody but the one with its pulse can take.
        let (reaped, ring) =
            self.transact_slowly(member, Claim::Undertaker(slot), patience, &|tx: &mut Tx<'_>, now| {
                let reaped = slots::leave(tx, slot);
                let ring = queue::changed(tx, now);
                self.commit(tx).map(|()| (reaped, ring))
            })??;
        drop(pulse);
        self.ring(member, ring);
        Ok(!reaped.is_nothing())
    }

    /// Which participants there are, and whether they live.
    pub fn participants(&self) -> Result<Vec<(slots::Participant, bool)>, Error> {
        let probe = self.reopen()?;
        (0..SLOTS)
            .filter_map(|slot| slots::participant(&self.words, slot))
            .map(|p| Ok((p, self.backing.is_alive(&probe, p.slot)?)))
            .collect()
    }
}
