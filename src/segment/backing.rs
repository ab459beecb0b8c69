//! The file behind a segment, and what the lock asks of the operating system.

use super::lock::Os;
use crate::error::Error;
use crate::sys::sync::AtomicU32;
use crate::sys::{self, Clock, FileFacts, Meeting, SharedMap, TakenPulse};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which file a segment is. No descriptor is kept: a daemon may close all it did not open itself, and its numbers
/// may then mean other files.
#[derive(Debug, Clone)]
pub(crate) struct Backing {
    path: PathBuf,
    device: u64,
    inode: u64,
    meeting: Meeting,
}

impl Backing {
    /// The file at an absolute path with these facts, mapped here.
    pub fn new(path: PathBuf, facts: &FileFacts, map: &SharedMap) -> Backing {
        Backing { path, device: facts.dev, inode: facts.ino, meeting: Meeting::new(facts, map) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is(&self, facts: &FileFacts) -> bool {
        (facts.dev, facts.ino) == (self.device, self.inode)
    }

    /// A new open file description of this very file; `NotFound` if it was deleted or replaced.
    pub fn reopen(&self) -> io::Result<File> {
        let (directory, name) = self.directory()?;
        let file = sys::open_file_at(&directory, name)?;
        if self.is(&sys::facts(&file)?) { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether the path still leads to this file.
    pub fn is_in_place(&self) -> bool {
        let facts = self.directory().and_then(|(directory, name)| sys::facts_at(&directory, name));
        match facts {
            Ok(facts) => self.is(&facts),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn directory(&self) -> io::Result<(File, &str)> {
        let parent = self.path.parent().ok_or(io::ErrorKind::NotFound)?;
        let name = self.path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::NotFound)?;
        Ok((sys::open_directory(parent)?, name))
    }

    /// Whether the owner of a slot lives, as seen through `file`.
    pub fn is_alive(&self, file: &File, slot: usize) -> Result<bool, Error> {
        sys::pulse_is_held(file, slot as u32).map_err(Error::io("examine locks of", &self.path))
    }
}

impl Os for Backing {
    type Pulse = TakenPulse;

    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        self.meeting.wait(word, expected, limit);
    }

    fn sleep_in_time(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        self.meeting.wait_in_time(word, expected, limit);
    }

    fn wake(&self, word: &AtomicU32) -> bool {
        self.meeting.wake(word)
    }

    fn take_pulse(&self, slot: usize) -> Option<TakenPulse> {
        // An error is no proof of death; the caller then waits as for a living owner.
        TakenPulse::take(self.reopen().ok()?, slot as u32).ok()?
    }

    fn now(&self) -> u64 {
        Clock::from_words([0; 2]).now()
    }
}
