//! The directory that holds limiters: which one it is, and whether it can be trusted.

pub(crate) mod creation_lock;
pub(crate) mod self_test;
pub(crate) mod users;

pub use creation_lock::LockedDirectory;
pub use users::{Generation, PreviousLimiter};

use crate::clock_source::ClockSource;
use crate::error::Error;
use crate::layout;
use crate::paths::{CREATION_LOCK, Candidate};
use crate::sys::{self, Account, Distrust, FileFacts, FileSystem};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A directory that passed the checks.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    /// The group that shares it, if it is shared.
    shared_with: Option<Account>,
    owner: Account,
    /// Whether this user may have limiters here. A trusted directory may still belong to another user.
    open_to_me: bool,
    /// Whether the user named it. The checks are stricter for a default, because other users could have put a
    /// directory there.
    chosen: bool,
    /// The reason why a better directory was skipped, as text for people.
    pub note: Option<String>,
    /// The reason why the usual default was not used, as text for people: its file system is not suitable for
    /// limiters.
    pub fallback: Option<String>,
    /// The clock of the limiters that are opened and created here.
    pub clock: ClockSource,
}

/// Exceptions from the usual rules.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowances {
    /// Create a missing directory.
    pub make: bool,
    /// Trust a network file system (R135).
    pub network: bool,
}

impl Directory {
    /// Finds the first usable directory of `candidates`. A default that exists but cannot be used is skipped with a note.
    /// A directory that the user chose is used or refused.
    pub fn find(candidates: &[Candidate], allowed: Allowances) -> Result<Directory, Error> {
        let (found, note) = Directory::look(candidates, allowed);
        Ok(Directory { note, ..found? })
    }

    /// Like [`find`](Self::find), but returns the note even if no directory is usable, because it may explain why.
    pub fn look(candidates: &[Candidate], allowed: Allowances) -> (Result<Directory, Error>, Option<String>) {
        let (mut note, mut fallback) = (None, None);
        if let Some(missing) = sys::MISSING {
            return (Err(Error::Unsupported { missing }), note);
        }
        for (index, candidate) in candidates.iter().enumerate() {
            let is_last = index + 1 == candidates.len();
            if !is_last
                && !candidate.chosen
                && let Some(problem) = unsuited(&candidate.path)
            {
                let problem = format!("directory {}: {problem}", candidate.path.display());
                if candidate.made {
                    fallback = Some(problem);
                } else if candidate.path.exists() {
                    note = Some(format!("{problem} (skipped)"));
                }
                continue;
            }
            if is_last || candidate.made {
                let opened = Directory::open(candidate, allowed);
                return (opened.map(|opened| Directory { fallback, ..opened }), note);
            }
            match Directory::open(candidate, Allowances { make: false, ..allowed }) {
                Ok(directory) if directory.open_to_me => return (Ok(directory), None),
                Ok(_) => {
                    let path = candidate.path.display();
                    note = Some(format!("directory {path}: it is not shared with this user (skipped)"));
                }
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => note = Some(format!("{error} (skipped)")),
            }
        }
        (Err(no_candidate()), note)
    }

    fn open(candidate: &Candidate, allowed: Allowances) -> Result<Directory, Error> {
        let path = std::path::absolute(&candidate.path).map_err(Error::io("find", &candidate.path))?;
        // Remove a slash or a dot at the end: with one, the system would follow a link in the last component.
        let path: PathBuf = path.components().collect();
        let handle = match sys::open_directory(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && allowed.make => {
                make(&path)?;
                sys::open_directory(&path)
            }
            other => other,
        };
        let handle = handle.map_err(|source| not_a_directory(&path, source))?;
        if let (FileSystem::Network(kind), false) =
            (sys::file_system(&handle).map_err(Error::io("examine", &path))?, allowed.network)
        {
            return Err(Error::NetworkFileSystem { path, kind });
        }
        let (facts, shared_with) = inspect(&path, &handle, candidate.chosen)?;
        let (owner, open_to_me) = (facts.access.owner(), facts.access.directory_is_open_to_me(shared_with));
        Ok(Directory {
            path,
            shared_with,
            owner,
            open_to_me,
            chosen: candidate.chosen,
            note: None,
            fallback: None,
            clock: ClockSource::default(),
        })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is emptied when the machine boots.
    pub fn is_volatile(&self) -> bool {
        self.handle().is_ok_and(|handle| matches!(sys::file_system(&handle), Ok(FileSystem::Volatile)))
    }

    /// Opens the directory. The descriptor is not kept, because a daemon may close every descriptor it did not open
    /// itself. So the directory is checked again each time: another user may have put a different one in its place.
    pub fn handle(&self) -> Result<File, Error> {
        let handle = sys::open_directory(&self.path).map_err(Error::io("open", &self.path))?;
        inspect(&self.path, &handle, self.chosen)?;
        Ok(handle)
    }

    /// The group that shares it, if it is shared.
    pub fn shared_with(&self) -> Option<Account> {
        self.shared_with
    }

    /// Shares this directory with a group, whose members may then use and create limiters here.
    pub fn share_with(&mut self, group: Account) -> Result<(), Error> {
        if self.shared_with == Some(group) {
            // It is shared already, perhaps by another member. Only that member could share it again.
            return Ok(());
        }
        let handle = self.handle()?;
        sys::share_directory(&handle, group).map_err(Error::io("share", &self.path))?;
        self.shared_with = Some(group);
        self.share_creation_lock(&handle)
    }

    /// Shares the creation lock too. One from before the directory was shared would keep the members from creating
    /// limiters.
    fn share_creation_lock(&self, handle: &File) -> Result<(), Error> {
        let path = self.path.join(CREATION_LOCK);
        let creation_lock = match sys::open_file_at(handle, CREATION_LOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(Error::io("open", &path))?,
        };
        self.check_file(&path, &sys::facts(&creation_lock).map_err(Error::io("examine", &path))?)?;
        sys::give_access(&creation_lock, self.owner, self.shared_with)
            .map_err(Error::io("change the permissions of", &path))
    }

    /// The facts about the directory, and its file system.
    pub fn facts(&self) -> Result<(FileFacts, FileSystem), Error> {
        let handle = self.handle()?;
        let facts = sys::facts(&handle).map_err(Error::io("examine", &self.path))?;
        Ok((facts, sys::file_system(&handle).map_err(Error::io("examine", &self.path))?))
    }

    /// Gives a file in this directory the permissions it would be created with. Does so only for a regular file
    /// with one name that belongs to this user or to the directory's owner. Returns the new permissions, for
    /// people, if that changed anything.
    pub fn fix_permissions(&self, file_name: &str) -> Result<Option<String>, Error> {
        let path = self.path.join(file_name);
        let file = sys::open_file_at(&self.handle()?, file_name).map_err(Error::io("open", &path))?;
        let facts = sys::facts(&file).map_err(Error::io("examine", &path))?;
        let ours = facts.access.is_mine() || facts.access.owner() == self.owner;
        let wrong = facts.access.permission_mismatch(self.owner, self.shared_with).is_some();
        let segment = file_name == CREATION_LOCK || begins_with_magic(&file);
        if !wrong || !facts.regular || facts.links != 1 || !ours || !segment {
            return Ok(None);
        }
        sys::give_access(&file, self.owner, self.shared_with)
            .map_err(Error::io("change the permissions of", &path))?;
        let facts = sys::facts(&file).map_err(Error::io("examine", &path))?;
        Ok(Some(facts.access.to_string()))
    }

    /// How the permissions of a file in this directory differ from those it would be created with.
    pub fn permission_mismatch(&self, file_name: &str) -> Result<Option<String>, Error> {
        let facts = sys::facts_at(&self.handle()?, file_name);
        let facts = facts.map_err(Error::io("examine", self.path.join(file_name)))?;
        Ok(facts.access.permission_mismatch(self.owner, self.shared_with))
    }

    /// Checks that a file may be a segment: it is ours, has one name, and is closed to other users (P5).
    pub(crate) fn check_file(&self, path: &Path, facts: &FileFacts) -> Result<(), Error> {
        let refuse = |problem: String| Err(Error::UnsafeFile { path: path.to_owned(), problem });
        if !facts.regular {
            return refuse("it is not a regular file".into());
        }
        if facts.links != 1 {
            return refuse(format!("it has {} names", facts.links));
        }
        facts.access.danger(self.owner, self.shared_with).map_or(Ok(()), refuse)
    }
}

/// Why the file system of a default directory is not suitable for limiters; `None` if it is. If the directory is
/// missing, checks the file system of its parent. The answer must be the same before and after the directory is
/// created, so that all processes of a user agree. Anything else that is wrong with the directory is an error of
/// [`Directory::open`].
fn unsuited(path: &Path) -> Option<String> {
    let handle = match sys::open_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The system's own directories may be links.
            let parent = path.parent().map_or(Err(error), std::fs::canonicalize);
            match parent.and_then(|parent| sys::open_directory(&parent)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Some("the directory above it is missing".into());
                }
                parent => parent,
            }
        }
        there => there,
    };
    match handle.and_then(|handle| sys::file_system(&handle)) {
        Ok(FileSystem::Lossy(kind)) => Some(format!("it is on {kind}, which loses locks")),
        Ok(FileSystem::Network(kind)) => Some(format!("it is on a {kind} file system")),
        _ => None,
    }
}

/// Reads the facts about a directory and the group that shares it. Returns an error if the directory cannot be
/// trusted.
fn inspect(path: &Path, handle: &File, chosen: bool) -> Result<(FileFacts, Option<Account>), Error> {
    let facts = sys::facts(handle).map_err(Error::io("examine", path))?;
    let shared_with = facts.access.trusted(chosen).map_err(|distrust| distrusted(path, distrust))?;
    Ok((facts, shared_with))
}

fn distrusted(path: &Path, Distrust { problem, remedy }: Distrust) -> Error {
    let remedy = remedy.replace("{}", &path.display().to_string());
    Error::Directory { path: path.to_owned(), problem, remedy }
}

/// Whether a file begins as a segment of any version does.
pub(crate) fn begins_with_magic(mut file: &File) -> bool {
    let mut magic = [0; 8];
    file.read_exact(&mut magic).is_ok() && u64::from_ne_bytes(magic) == layout::MAGIC
}

fn make(path: &Path) -> Result<(), Error> {
    match sys::make_directory(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("create directory", path)(error))
        }
        _ => Ok(()),
    }
}

fn no_candidate() -> Error {
    Error::Directory {
        path: PathBuf::new(),
        problem: "there is no directory to look in".into(),
        remedy: "choose one with --dir".into(),
    }
}

fn not_a_directory(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotADirectory => Error::Directory {
            path: path.to_owned(),
            problem: "it is a link or a file, not a directory".into(),
            remedy: "name the directory itself with --dir".into(),
        },
        io::ErrorKind::PermissionDenied => match sys::why_closed(path) {
            Some(distrust) => distrusted(path, distrust),
            None => Error::io("open directory", path)(source),
        },
        _ => Error::io("open directory", path)(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::open_to_anybody;

    #[test]
    fn note_about_a_skipped_directory_is_returned_even_if_no_other_is_usable() {
        let home = tempfile::tempdir().unwrap();
        let candidate = |name: &str, made| Candidate { path: home.path().join(name), chosen: false, made };
        let candidates = [candidate("open", false), candidate("missing", true)];
        let allowed = Allowances::default();
        assert!(matches!(Directory::look(&candidates, allowed), (Err(Error::Io { .. }), None)));
        std::fs::create_dir(&candidates[0].path).unwrap();
        open_to_anybody(&candidates[0].path);
        let (found, note) = Directory::look(&candidates, allowed);
        assert!(matches!(found, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound));
        assert!(note.is_some_and(|note| note.contains("every user can write") && note.contains("skipped")));
        std::fs::create_dir(&candidates[1].path).unwrap();
        let found = Directory::find(&candidates, allowed).unwrap();
        assert!(found.path() == candidates[1].path && found.note.is_some());
    }

    #[test]
    fn untrusted_directory_that_replaces_a_trusted_one_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("limits");
        let candidate = [Candidate::chosen(path.clone())];
        let directory = Directory::find(&candidate, Allowances { make: true, network: false }).unwrap();
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        open_to_anybody(&path);
        assert!(matches!(directory.handle(), Err(Error::Directory { .. })));
    }

    /// Wine has no access lists that contain groups.
    #[cfg(unix)]
    #[test]
    fn sharing_a_directory_shares_its_creation_lock() {
        let home = tempfile::tempdir().unwrap();
        let candidate = [Candidate::chosen(home.path())];
        let mut directory = Directory::find(&candidate, Allowances::default()).unwrap();
        directory.with_creation_lock(|_| Ok(())).unwrap();
        let group = Account::from(nix::unistd::getegid().as_raw());
        directory.share_with(group).unwrap();
        let creation_lock = sys::facts_at(&directory.handle().unwrap(), CREATION_LOCK).unwrap();
        assert_eq!(creation_lock.access.permission_mismatch(creation_lock.access.owner(), Some(group)), None);
    }

    #[cfg(unix)]
    #[test]
    fn root_can_reopen_a_directory_that_it_shared_with_a_group() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("not tested: only root can give a directory to a group it is no member of");
            return;
        }
        let foreign_group = Account::from(54_321);
        let path = tempfile::tempdir().unwrap();
        let candidate = [Candidate::chosen(path.path())];
        let mut directory = Directory::find(&candidate, Allowances::default()).unwrap();
        directory.share_with(foreign_group).unwrap();
        let again = Directory::find(&candidate, Allowances::default()).unwrap();
        assert_eq!(again.shared_with(), Some(foreign_group));
    }
}
