//! The file behind a segment, and the operations that the lock needs from the operating system.

use crate::error::Error;
use crate::lock::Os;
use crate::sync::AtomicU32;
use crate::sys::{self, Clock, FileFacts, Parker, SharedMap, Spare, TakenLivenessLock};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Identifies the file of a segment. The file is opened again wherever it is needed, because a descriptor cannot be
/// relied on: a daemon may close all descriptors it did not open itself, and their numbers may then refer to other
/// files. The spare descriptor is therefore only for processes that may no longer open the file.
#[derive(Debug, Clone)]
pub struct Backing {
    path: PathBuf,
    device: u64,
    inode: u64,
    parker: Parker,
    spare: Spare,
}

/// A way to examine the locks of other processes.
#[derive(Debug)]
pub(crate) enum Probe {
    /// A new file description.
    Fresh(File),
    /// The spare description.
    Spare,
}

impl Backing {
    /// The file at an absolute path with these facts, mapped at `map`.
    pub(crate) fn new(path: PathBuf, facts: &FileFacts, map: &SharedMap) -> Backing {
        Backing {
            path,
            device: facts.dev,
            inode: facts.ino,
            parker: Parker::new(facts, map),
            spare: Spare::default(),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in its directory.
    pub fn file_name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }

    fn is(&self, facts: &FileFacts) -> bool {
        (facts.dev, facts.ino) == (self.device, self.inode)
    }

    /// A new open file description of this same file; `NotFound` if the file was deleted or replaced.
    pub(crate) fn reopen(&self) -> io::Result<File> {
        let (directory, name) = self.directory()?;
        let file = sys::open_file_at(&directory, name)?;
        if self.is(&sys::facts(&file)?) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Opens another file of the same directory.
    pub(crate) fn open_beside(&self, name: &str) -> io::Result<File> {
        sys::open_file_at(&self.directory()?.0, name)
    }

    /// Whether the path still leads to this file.
    pub(crate) fn is_in_place(&self) -> bool {
        let facts = self.directory().and_then(|(directory, name)| sys::facts_at(&directory, name));
        match facts {
            Ok(facts) => self.is(&facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            // This process cannot reach the file, but may still be able to tell whether it was deleted.
            Err(_) => self.spare.links() != Some(0),
        }
    }

    /// Keeps a description that holds no lock, in case this process gives up the right to open the file.
    pub(crate) fn keep(&self, file: File) {
        self.spare.keep(file);
    }

    /// Closes the spare description: nothing of the file is needed any more.
    pub(crate) fn forget(&self) {
        self.spare.forget();
    }

    /// A way to examine the locks of other processes. The error is `NotFound` if the file was deleted or replaced,
    /// and `PermissionDenied` if this process may no longer open it and has no other way.
    pub(crate) fn probe(&self) -> io::Result<Probe> {
        match self.reopen() {
            Ok(fresh) => Ok(Probe::Fresh(fresh)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            Err(error) => match self.spare.links() {
                Some(0) => Err(io::ErrorKind::NotFound.into()),
                Some(_) => Ok(Probe::Spare),
                None => Err(error),
            },
        }
    }

    fn directory(&self) -> io::Result<(File, &str)> {
        let parent = self.path.parent().ok_or(io::ErrorKind::NotFound)?;
        let name = self.file_name().ok_or(io::ErrorKind::NotFound)?;
        Ok((sys::open_directory(parent)?, name))
    }

    /// Whether the owner of a slot is alive.
    pub(crate) fn is_alive(&self, probe: &Probe, slot: usize) -> Result<bool, Error> {
        match probe {
            Probe::Fresh(file) => self.is_seen_alive(file, slot),
            Probe::Spare => {
                let held =
                    self.spare.liveness_lock_is_held(slot as u32).ok_or(io::ErrorKind::PermissionDenied);
                held.map_err(|kind| Error::io("examine locks of", &self.path)(kind.into()))
            }
        }
    }

    /// Whether the owner of a slot is alive, as seen through `file`.
    pub fn is_seen_alive(&self, file: &File, slot: usize) -> Result<bool, Error> {
        sys::liveness_lock_is_held(file, slot as u32).map_err(Error::io("examine locks of", &self.path))
    }
}

impl Os for Backing {
    type LivenessLock = TakenLivenessLock;

    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        self.parker.wait(word, expected, limit);
    }

    fn sleep_in_time(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        self.parker.wait_in_time(word, expected, limit);
    }

    fn wake(&self, word: &AtomicU32) -> bool {
        self.parker.wake(word)
    }

    fn take_liveness_lock(&self, slot: usize) -> Option<TakenLivenessLock> {
        // An error is not a proof of death. The caller then waits as for a living owner.
        match self.probe().ok()? {
            Probe::Fresh(file) => TakenLivenessLock::take(file, slot as u32).ok()?,
            Probe::Spare => self.spare.take(slot as u32),
        }
    }

    fn now(&self) -> u64 {
        Clock::from_words([0; 2]).now()
    }
}
