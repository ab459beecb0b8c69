//! The end of a segment: it is replaced, removed, or deleted by hand and continued by a successor.

mod permits;
mod release_file;

use crate::attach::Segment;
use crate::directory::users::Generation;
use crate::error::Error;
use crate::file::initial_state::InitialState;
use crate::journal::{Begun, Transaction};
use crate::layout;
use crate::lock::Claim;

impl Segment {
    /// Marks the segment as replaced: programs that use it open it again by name. Waiting calls are woken when
    /// there is a segment to open.
    pub fn retire(&self) -> Result<(), Error> {
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        self.transact(&attachment, &deadline, |tx, _| {
            tx.write(layout::RETIRED, layout::REPLACED);
            self.commit(tx)
        })??;
        Ok(())
    }

    /// Marks a deleted segment. All programs that still use it then notice at their next call, and nothing is
    /// granted from it beside its successor. If the mark is not possible, they notice by themselves within a
    /// second. Returns `true` if this call set the mark, so that this state is the newest.
    pub fn hand_over(&self) -> bool {
        // If the file is not deleted, it was renamed, or only this process cannot reach its name (another root
        // directory). Other programs may continue to use it for a while, so a second segment must not continue the
        // same state.
        if !self.words.are_deleted() {
            return false;
        }
        let Some(attachment) = self.present() else { return false };
        let deadline = self.deadline();
        let begun =
            Transaction::begin(&self.words, &self.backing, attachment.slot, Claim::Participant, &deadline);
        match begun {
            Ok(Begun { mut tx, .. }) if tx.load(layout::RETIRED) == layout::LIVE => {
                tx.write(layout::RETIRED, layout::HANDED_OVER);
                // A change that is not committed is undone, as if it had not been tried.
                tx.commit().is_ok()
            }
            _ => false,
        }
    }

    /// The initial state of a segment that continues this deleted one. If this segment is not the newest of its line,
    /// later usage is unknown. In that case the successor starts used up. That happens if a successor was made from
    /// this segment already, or if a process that could not see this segment has created another one with its name.
    /// Call this under the creation lock, with the generation that the name has there, so that only one successor is
    /// made.
    pub fn succession(&self, generation: Generation) -> Result<InitialState, Error> {
        let newest = self.hand_over() && self.has_generation(generation);
        let seed = self.seed()?;
        if newest { Ok(seed) } else { InitialState::used_up(seed.policy, self.bounds.place, &self.clock) }
    }

    pub(crate) fn seed(&self) -> Result<InitialState, Error> {
        let raw = self.clock.first_now().map_err(Error::io("read the clock for", self.path()))?;
        InitialState::after(&self.words, raw).map_err(|problem| self.damaged(problem))
    }

    /// Marks the segment as removed, if `may` agrees after checking which other processes are attached. Programs
    /// that still use it get the error that there is no such limiter. Returns whether it was marked.
    pub fn retire_for_good(&self, may: impl Fn() -> Result<bool, Error>) -> Result<bool, Error> {
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        self.transact(&attachment, &deadline, |tx, _| {
            // No process can attach while this one holds the lock.
            let marked = may()?;
            if marked {
                tx.write(layout::RETIRED, layout::REMOVED);
                self.commit(tx)?;
                // Unregister this process, so that only others are found registered.
                self.unregister_user();
            }
            Ok(marked)
        })?
    }

    /// Whether it was removed and must not be restored automatically.
    pub fn is_removed(&self) -> bool {
        self.words.load(layout::RETIRED) == layout::REMOVED
    }

    /// Whether it was replaced or removed on purpose, or handed over to a successor.
    pub fn is_retired(&self) -> bool {
        layout::is_retired(self.words.load(layout::RETIRED))
    }
}
