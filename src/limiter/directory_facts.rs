//! The directory of limiters, for whoever looks after it.

use super::Limiter;
use shmlimit_segment::Error;
use shmlimit_segment::directory::{Allowances, Directory};
use shmlimit_segment::paths;
use shmlimit_segment::sys::{self, Account, Clock, FileSystem};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory that is used, and what it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DirectoryFacts {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its owner.
    pub owner: Account,
    /// Its permissions, as people write them.
    pub access: String,
    /// The group that shares it, if it is shared.
    pub shared_with: Option<Account>,
    /// What kind of place it is in.
    pub storage: Storage,
    /// Why a better directory was passed over, for people.
    pub note: Option<String>,
    /// Why the usual default was not used, for people: its file system is not one for limiters.
    pub fallback: Option<String>,
    directory: Directory,
}

/// What kind of place a directory is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// On this machine, and still there after a reboot.
    Disk,
    /// On this machine, in memory: emptied at boot.
    Memory,
    /// Other machines may see it. Holds its kind.
    Network(&'static str),
    /// On this machine, but no limiter can be opened there: the file system loses locks. Holds its kind.
    Lossy(&'static str),
}

impl Limiter {
    /// The directory that would be used (default: the usual one), and what it is. Makes nothing.
    pub fn directory_facts(
        directory: Option<&Path>,
        allow_network_fs: bool,
    ) -> Result<DirectoryFacts, Error> {
        let allowed = Allowances { make: false, network: allow_network_fs };
        let directory = Directory::find(&paths::places(directory), allowed)?;
        let (facts, file_system) = directory.facts()?;
        Ok(DirectoryFacts {
            path: directory.path().to_owned(),
            owner: facts.access.owner(),
            access: facts.access.to_string(),
            shared_with: directory.shared_with(),
            storage: match file_system {
                FileSystem::Local => Storage::Disk,
                FileSystem::Lossy(kind) => Storage::Lossy(kind),
                FileSystem::Volatile => Storage::Memory,
                FileSystem::Network(kind) => Storage::Network(kind),
            },
            note: directory.note.clone(),
            fallback: directory.fallback.clone(),
            directory,
        })
    }
}

impl DirectoryFacts {
    /// Tries with a file of its own whether memory can be shared there, and whether a process that holds a liveness lock is
    /// seen to live. Leaves nothing behind.
    pub fn self_test(&self) -> Result<(), Error> {
        self.directory.self_test()
    }

    /// How the permissions of a segment there, or of the creation lock, differ from those it would be made with, for people.
    pub fn permission_mismatch(&self, file_name: &str) -> Result<Option<String>, Error> {
        self.directory.permission_mismatch(file_name)
    }

    /// Gives a segment there, or the creation lock, the permissions it would be made with. What is not ours is left alone.
    /// Returns them, for people, if that changed anything.
    pub fn fix_permissions(&self, file_name: &str) -> Result<Option<String>, Error> {
        self.directory.fix_permissions(file_name)
    }
}

/// The clock that all limiters of the machine share, as this process reads it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClockFacts {
    /// Time since the machine was booted, counting suspend.
    pub since_boot: Duration,
    /// How far the clocks of this process's time namespace are ahead of the machine's, in nanoseconds.
    pub namespace_shift: i64,
    /// Time since 1970 (UTC).
    pub wall: Duration,
}

impl ClockFacts {
    /// Reads the clocks; an error if one of them, or the identity of the boot, cannot be had.
    pub fn read() -> io::Result<ClockFacts> {
        let clock = Clock::discover()?;
        sys::boot_id()?;
        let read = Clock::read();
        let now = clock.correct(read);
        Ok(ClockFacts {
            since_boot: Duration::from_nanos(now),
            namespace_shift: read.wrapping_sub(now) as i64,
            wall: Duration::from_nanos(sys::wall_now()),
        })
    }
}
