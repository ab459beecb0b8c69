//! Recovery after a process has died. This module recovers the lock and the change that the process left half done.
//! [`reclaim`] gives back the permits, slots and queue entries it held. [`liveness`] tells living processes from
//! dead ones.
//!
//! `lock.rs` takes the lock itself over from a dead holder, and `journal.rs` undoes its half-done change.
//! [`Segment::transact_slowly`] is what a call does next, before its own work.

pub(crate) mod liveness;
mod reclaim;

use crate::attach::process_state::Attachment;
use crate::attach::{Segment, Tx};
use crate::error::Error;
use crate::journal::{Begun, Found, Transaction};
use crate::lock::{Claim, Deadline};
use crate::{layout, sanity, slots, wall_clock};
use shmlimit_kernel::state::View;
use shmlimit_kernel::time::Time;

impl Segment {
    /// Waits for the lock, and repairs everything that it finds wrong.
    #[cold]
    #[inline(never)]
    pub(crate) fn transact_slowly<R>(
        &self,
        attachment: &Attachment,
        claim: Claim,
        deadline: &Deadline,
        work: &impl Fn(&mut Tx<'_>, Time) -> R,
    ) -> Result<R, Box<Error>> {
        let raw = self.raw_now(attachment);
        let place_due = self.is_place_due(raw);
        if place_due {
            self.check_place(raw)?;
        }
        let mut mended = false;
        loop {
            let begun = Transaction::begin(&self.words, &self.backing, attachment.slot, claim, deadline);
            let Begun { mut tx, found, taken_over } = begun.map_err(|held| self.busy(held))?;
            let mark = tx.load(layout::RETIRED);
            if layout::is_retired(mark) {
                return Err(self.gone().into());
            }
            let raw = self.raw_now(attachment);
            let now = wall_clock::restore_live_mark(&mut tx, raw, self.clock.wall_at(raw));
            // Keep the dead owner's liveness lock until the transaction has ended.
            let (taken_over, _liveness_lock) =
                taken_over.map_or((None, None), |(dead, liveness_lock)| (Some(dead), Some(liveness_lock)));
            let died = taken_over.is_some() || found != Found::Whole;
            if let Some(dead) = taken_over {
                slots::leave(&mut tx, dead);
            }
            let sane = mended
                || mark == layout::LIVE && self.is_sane(attachment, &tx, found, now, place_due, died)?;
            // Repair only once: if a process keeps corrupting the state, decisions use the state as it is.
            if mended || (taken_over.is_none() && sane) {
                if place_due && wall_clock::follow_wall(&mut tx, now, self.wall_at(now)) {
                    self.commit(&mut tx)?;
                }
                return Ok(work(&mut tx, now));
            }
            mended = true;
            let sleepers = self.sleepers();
            if !sane {
                sanity::reset(&mut tx, now);
            }
            self.commit(&mut tx)?;
            drop(tx);
            if !sane {
                self.log_reset();
            }
            // The process may have died between a change and its wake-up. So it is not known which call it had
            // to wake.
            self.wake_all(sleepers);
        }
    }

    /// Whether the state is one that committed transactions can leave. The usual check is a few comparisons. When
    /// the check of the place is `due`, once a second, everything that decisions read is checked against the
    /// policy. After a participant `died` during a change, the permits of all participants are checked too.
    fn is_sane(
        &self,
        attachment: &Attachment,
        tx: &Tx<'_>,
        found: Found,
        now: Time,
        due: bool,
        died: bool,
    ) -> Result<bool, Error> {
        if !due && !died {
            let held = tx.held(attachment.slot);
            return Ok(sanity::is_sane(tx, found, now) && slots::are_counted(held, &tx.core()));
        }
        let policy = sanity::policy(tx.words()).map_err(|problem| self.damaged(problem))?;
        Ok(match died {
            true => sanity::is_sound(tx, &policy, found, now),
            false => sanity::is_in_order(tx, &policy, found, now) && slots::are_all_counted(tx),
        })
    }

    /// Logs that a damaged state was reset. Call it without the lock: a log subscriber may take time.
    pub(crate) fn log_reset(&self) {
        let name = self.path().file_stem().unwrap_or_default().to_string_lossy();
        tracing::warn!(target: "shmlimit", limiter = %name, event = "reset", "damaged state: starting empty");
    }
}
