//! Finding the dead, and giving back what they held.

use super::attach::{Segment, Tx};
use super::join::{Member, presence};
use super::layout::SLOTS;
use super::lock::{Claim, Os};
use super::slots;
use crate::error::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Segment {
    /// Gives back what dead participants held; at most once per bound. Says whether anything was given back.
    pub fn reap(&self, member: &Member, patience: Duration) -> Result<bool, Error> {
        let raw = member.clock.now_coarse();
        let last = self.presence.word(presence::REAPED).load(Ordering::Relaxed);
        if raw.wrapping_sub(last) < self.reap_bound {
            return Ok(false);
        }
        self.presence.word(presence::REAPED).store(raw, Ordering::Relaxed);
        // Also slots that nobody owns: damage may have cleared the mark, and a reset counts what is held there.
        let holders: Vec<usize> =
            (0..SLOTS).filter(|slot| slots::held(&self.words, *slot).total > 0).collect();
        let probe = match self.backing.reopen() {
            Ok(probe) => probe,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(self.gone()),
            // No descriptor to spare is no reason to fail a call: it is refused, and the dead are found next time.
            Err(_) => return Ok(false),
        };
        let mut reaped = false;
        for slot in holders {
            if !self.backing.is_alive(&probe, slot)? {
                reaped |= self.bury(member, slot, patience)?;
            }
        }
        Ok(reaped)
    }

    /// Frees the slot of a dead participant.
    pub(super) fn bury(&self, member: &Member, slot: usize, patience: Duration) -> Result<bool, Error> {
        let Some(pulse) = self.backing.take_pulse(slot) else { return Ok(false) };
        // It may have died with the lock, which then nobody but the one with its pulse can take.
        let held =
            self.transact_slowly(member, Claim::Undertaker(slot), patience, &|tx: &mut Tx<'_>, _| {
                let held = slots::leave(tx, slot);
                self.commit(tx).map(|()| held)
            })??;
        drop(pulse);
        self.announce();
        Ok(held.total > 0)
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
