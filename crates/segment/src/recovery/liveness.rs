//! Which participants of a segment are alive, and which holders of inherited permits still have them.

use crate::attach::Segment;
use crate::directory::users;
use crate::error::Error;
use crate::file::backing::{Backing, Probe};
use crate::layout::header;
use crate::paths::CREATION_LOCK;
use crate::slots;
use crate::words::Words;
use std::cell::OnceCell;
use std::fs::File;
use std::io;

/// Checks whether holders of inherited permits still have them. Opens the creation lock when it is first needed.
pub struct InheritedHolders<'s> {
    backing: &'s Backing,
    words: &'s Words,
    file: OnceCell<io::Result<File>>,
}

impl<'s> InheritedHolders<'s> {
    /// The holders of a segment's inherited permits.
    pub fn new(backing: &'s Backing, words: &'s Words) -> InheritedHolders<'s> {
        InheritedHolders { backing, words, file: OnceCell::new() }
    }

    /// Whether the holder of an inherited slot still has its permits; `None` if the slot is not inherited.
    pub fn is_held(&self, slot: usize) -> Option<bool> {
        let word = slots::inherited(self.words, slot);
        (word != 0).then(|| match self.file.get_or_init(|| self.backing.open_beside(CREATION_LOCK)) {
            Ok(creation_lock) => {
                let (name, own) = (self.backing.file_name(), self.words.load(header::GENERATION));
                // If the check fails, the holder counts as alive.
                name.is_none_or(|name| users::is_held(creation_lock, name, own, word).unwrap_or(true))
            }
            // If the creation lock was deleted too, no holder can be found there any more.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        })
    }
}

/// Tells which participants are alive, and which holders of inherited permits still have them.
pub(crate) struct Liveness<'s> {
    backing: &'s Backing,
    probe: Probe,
    creation_lock: InheritedHolders<'s>,
}

impl Liveness<'_> {
    pub(crate) fn is_alive(&self, slot: usize) -> Result<bool, Error> {
        self.creation_lock.is_held(slot).map_or_else(|| self.backing.is_alive(&self.probe, slot), Ok)
    }
}

impl Segment {
    pub(crate) fn liveness(&self) -> Result<Liveness<'_>, Error> {
        Ok(Liveness {
            backing: &self.backing,
            probe: self.probe()?,
            creation_lock: InheritedHolders::new(&self.backing, &self.words),
        })
    }
}
