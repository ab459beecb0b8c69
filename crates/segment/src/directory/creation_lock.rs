//! The creation lock: limiters of a directory are created, replaced and removed one at a time.
//!
//! It is a lock on the file `ratelimit.lock`. The file is never deleted. Other bytes of the same file say which
//! processes use which limiter (`users.rs`).

use super::Directory;
use crate::error::Error;
use crate::paths::CREATION_LOCK;
use crate::sys;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait for another process that creates or removes a limiter.
pub(crate) const CREATION_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A directory whose creation lock this process holds.
#[derive(Debug)]
pub struct LockedDirectory {
    /// The directory.
    pub(crate) directory: File,
    /// The file of the creation lock, which this process has locked.
    pub(crate) creation_lock: File,
    /// The path of the directory, for messages.
    pub(crate) path: PathBuf,
}

impl Directory {
    /// Runs `work` while holding the creation lock, so that limiters are created and removed one at a time.
    pub fn with_creation_lock<R>(
        &self,
        work: impl FnOnce(&LockedDirectory) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let directory = self.handle()?;
        let creation_lock = sys::open_or_create_at(&directory, CREATION_LOCK, self.shared_with)
            .map_err(Error::io("open", self.path.join(CREATION_LOCK)))?;
        self.lock_and_run(directory, creation_lock, work)
    }

    /// Does the same without creating the file of the creation lock. If there is no such file, no process creates or
    /// removes a limiter. Then `work` does not run and the answer is `None`.
    pub(crate) fn with_existing_creation_lock<R>(
        &self,
        work: impl FnOnce(&LockedDirectory) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let directory = self.handle()?;
        match sys::open_file_at(&directory, CREATION_LOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => {
                let creation_lock = opened.map_err(Error::io("open", self.path.join(CREATION_LOCK)))?;
                self.lock_and_run(directory, creation_lock, work).map(Some)
            }
        }
    }

    fn lock_and_run<R>(
        &self,
        directory: File,
        creation_lock: File,
        work: impl FnOnce(&LockedDirectory) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let path = self.path.join(CREATION_LOCK);
        self.check_file(&path, &sys::facts(&creation_lock).map_err(Error::io("examine", &path))?)?;
        let deadline = Instant::now() + CREATION_LOCK_TIMEOUT;
        while !sys::try_lock_creation(&creation_lock).map_err(Error::io("lock", &path))? {
            if Instant::now() >= deadline {
                return Err(Error::io("lock", &path)(io::ErrorKind::WouldBlock.into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let locked = LockedDirectory { directory, creation_lock, path: self.path.clone() };
        let result = work(&locked);
        // Unlock explicitly: a child forked meanwhile shares the lock and would keep it.
        sys::unlock_creation(&locked.creation_lock);
        result
    }
}
