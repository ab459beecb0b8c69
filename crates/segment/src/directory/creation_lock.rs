//! The creation lock: limiters of a directory are created, replaced and removed one at a time.
//!
//! It is a lock of the file `ratelimit.lock`, the *gate*. The file stays in the directory for good. Other bytes of the same
//! file say which processes use which limiter (`users.rs`).

use super::Directory;
use crate::error::Error;
use crate::paths::GATE;
use crate::sys;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait for somebody who is making or removing a limiter.
pub(crate) const GATE_PATIENCE: Duration = Duration::from_secs(2);

/// What a process has that is let through the gate.
#[derive(Debug)]
pub struct Passage {
    /// The directory.
    pub(crate) directory: File,
    /// The gate, which it has locked.
    pub(crate) gate: File,
    /// The path of the directory, for people.
    pub(crate) path: PathBuf,
}

impl Directory {
    /// Runs `work` while holding the gate, so that limiters are made and removed one at a time.
    pub fn through_gate<R>(&self, work: impl FnOnce(&Passage) -> Result<R, Error>) -> Result<R, Error> {
        let directory = self.handle()?;
        let gate = sys::open_or_create_at(&directory, GATE, self.shared_with)
            .map_err(Error::io("open", self.path.join(GATE)))?;
        self.pass(directory, gate, work)
    }

    /// The same, without creating the gate. Where there is none, no limiter is being made or removed: `work` does not run
    /// and the answer is `None`.
    pub(crate) fn through_existing_gate<R>(
        &self,
        work: impl FnOnce(&Passage) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let directory = self.handle()?;
        match sys::open_file_at(&directory, GATE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => {
                let gate = opened.map_err(Error::io("open", self.path.join(GATE)))?;
                self.pass(directory, gate, work).map(Some)
            }
        }
    }

    fn pass<R>(
        &self,
        directory: File,
        gate: File,
        work: impl FnOnce(&Passage) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let path = self.path.join(GATE);
        self.check_file(&path, &sys::facts(&gate).map_err(Error::io("examine", &path))?)?;
        let patience = Instant::now() + GATE_PATIENCE;
        while !sys::try_lock_gate(&gate).map_err(Error::io("lock", &path))? {
            if Instant::now() >= patience {
                return Err(Error::io("lock", &path)(io::ErrorKind::WouldBlock.into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let passage = Passage { directory, gate, path: self.path.clone() };
        let result = work(&passage);
        // Explicitly: a child forked meanwhile shares the lock and would keep it.
        sys::unlock_gate(&passage.gate);
        result
    }
}
