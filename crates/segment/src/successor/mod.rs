//! The end of a segment: replaced, removed, or deleted by hand and followed by another.

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
    /// Marks it as replaced: whoever uses it opens it again by name. Those who wait are rung when there is something to
    /// open.
    pub fn retire(&self) -> Result<(), Error> {
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        self.transact(&attachment, &deadline, |tx, _| {
            tx.write(layout::RETIRED, layout::REPLACED);
            self.commit(tx)
        })??;
        Ok(())
    }

    /// Marks a deleted segment, so that all who still use it notice at their next call, and nothing is granted from it
    /// beside its successor. Where that cannot be done they notice by themselves, within a second. Says whether nobody
    /// has done so before, so that its state is the newest there is.
    pub fn hand_over(&self) -> bool {
        // The file was renamed, or its name is out of reach for this process alone (another root directory). The others may
        // go on using it for a while, so its state is not to be continued beside them.
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
                // Not committed is undone, and as good as not tried.
                tx.commit().is_ok()
            }
            _ => false,
        }
    }

    /// What a segment needs that goes on where this one was deleted. If this one is not the newest of its line, what was
    /// used since is not known: then nothing is left to be had. That is so if a successor was made from it, or if another
    /// segment had its name since, made by a process that could not see this one. To be called under the creation lock,
    /// with the generation that the name has there, so that one successor is made.
    pub fn succession(&self, generation: Generation) -> Result<InitialState, Error> {
        let newest = self.hand_over() && self.has_generation(generation);
        let seed = self.seed()?;
        if newest { Ok(seed) } else { InitialState::used_up(seed.policy, self.bounds.place, &self.clock) }
    }

    pub(crate) fn seed(&self) -> Result<InitialState, Error> {
        let raw = self.clock.first_now().map_err(Error::io("read the clock for", self.path()))?;
        InitialState::after(&self.words, raw).map_err(|problem| self.damaged(problem))
    }

    /// Marks it as removed, if `may` says so of the others who are attached: whoever still uses it is told that there is
    /// no such limiter. Says whether it was marked.
    pub fn retire_for_good(&self, may: impl Fn() -> Result<bool, Error>) -> Result<bool, Error> {
        let deadline = self.deadline();
        let attachment = self.attachment_within(&deadline)?;
        self.transact(&attachment, &deadline, |tx, _| {
            // Under the lock nobody can become a participant.
            let marked = may()?;
            if marked {
                tx.write(layout::RETIRED, layout::REMOVED);
                self.commit(tx)?;
                // So that only others are found registered.
                self.unregister_user();
            }
            Ok(marked)
        })?
    }

    /// Whether it was removed, and is not to come back by itself.
    pub fn is_removed(&self) -> bool {
        self.words.load(layout::RETIRED) == layout::REMOVED
    }

    /// Whether it was replaced or removed on purpose.
    pub fn is_retired(&self) -> bool {
        layout::is_retired(self.words.load(layout::RETIRED))
    }
}
