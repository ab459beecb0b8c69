//! The directory of limiters, for programs that administer it.

use super::Limiter;
use shmlimit_segment::Error;
use shmlimit_segment::directory::{Allowances, Directory};
use shmlimit_segment::paths;
use shmlimit_segment::sys::{self, Account, Clock, FileSystem};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory that limiters use, and its properties.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let facts = shmlimit::Limiter::directory_facts(Some(directory.path()), false)?;
/// assert_eq!(facts.path, directory.path());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DirectoryFacts {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its owner.
    pub owner: Account,
    /// Its permissions, formatted for people.
    pub access: String,
    /// The group that shares it, if it is shared.
    pub shared_with: Option<Account>,
    /// The kind of storage it is on.
    pub storage: Storage,
    /// Why a better directory was not used, for people.
    pub note: Option<String>,
    /// Why the usual default was not used, for people: limiters cannot be on its file system.
    pub fallback: Option<String>,
    directory: Directory,
}

/// The kind of storage that a directory is on.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{Limiter, Storage};
///
/// let facts = Limiter::directory_facts(Some(directory.path()), false)?;
/// assert!(!matches!(facts.storage, Storage::Network(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// On this machine, and kept across a reboot.
    Disk,
    /// In this machine's memory, and emptied at boot.
    Memory,
    /// On a network file system, which other machines may see. Holds the type of the file system.
    Network(&'static str),
    /// On this machine, but no limiter can be opened there, because the file system loses locks. Holds the type of
    /// the file system.
    Lossy(&'static str),
}

impl Limiter {
    /// The directory that would be used (default: the usual one), and its properties. Creates nothing.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let facts = shmlimit::Limiter::directory_facts(Some(directory.path()), false)?;
    /// println!("{} belongs to {}", facts.path.display(), facts.owner.name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn directory_facts(
        directory: Option<&Path>,
        allow_network_fs: bool,
    ) -> Result<DirectoryFacts, Error> {
        let allowed = Allowances { make: false, network: allow_network_fs };
        let directory = Directory::find(&paths::candidates(directory), allowed)?;
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
    /// Tests with a temporary file whether memory can be shared in this directory, and whether a liveness lock
    /// shows that its process is alive. Leaves no file behind.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// shmlimit::Limiter::directory_facts(Some(directory.path()), false)?.self_test()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn self_test(&self) -> Result<(), Error> {
        self.directory.self_test()
    }

    /// How the permissions of a segment in this directory, or of the creation lock, differ from those of a new one,
    /// for people.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let facts = shmlimit::Limiter::directory_facts(Some(directory.path()), false)?;
    /// assert_eq!(facts.permission_mismatch("api.shm")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn permission_mismatch(&self, file_name: &str) -> Result<Option<String>, Error> {
        self.directory.permission_mismatch(file_name)
    }

    /// Gives a segment in this directory, or the creation lock, the permissions of a new one. A file of another
    /// owner is left alone. Returns the new permissions, for people, if that changed anything.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let facts = shmlimit::Limiter::directory_facts(Some(directory.path()), false)?;
    /// assert_eq!(facts.fix_permissions("api.shm")?, None); // nothing to fix
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fix_permissions(&self, file_name: &str) -> Result<Option<String>, Error> {
        self.directory.fix_permissions(file_name)
    }
}

/// The clock that all limiters of the machine share, as this process reads it.
///
/// ```
/// println!("booted {:?} ago", shmlimit::ClockFacts::read()?.since_boot);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClockFacts {
    /// Time since the machine was booted, including suspend.
    pub since_boot: Duration,
    /// How far the clocks of this process's time namespace are ahead of the machine's clocks, in nanoseconds.
    pub namespace_shift: i64,
    /// Wall-clock time since 1970 (UTC).
    pub wall: Duration,
}

impl ClockFacts {
    /// Reads the clocks. Fails if a clock or the identity of the boot is not available.
    ///
    /// ```
    /// assert!(!shmlimit::ClockFacts::read()?.wall.is_zero());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
