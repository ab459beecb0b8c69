//! The directory that holds segments: which one, may it be trusted, and the gate to it.

use crate::error::Error;
use crate::paths::{GATE, Place};
use crate::sys::{self, FileFacts, FileSystem};
use fs4::FileExt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SET_GROUP_ID: u32 = 0o2000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// How long to wait for somebody who is making or removing a limiter.
pub(super) const GATE_PATIENCE: Duration = Duration::from_secs(2);

/// A directory that passed the checks.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    /// The group that shares it, if it is shared.
    group: Option<u32>,
    owner: u32,
    /// Somebody named it; the defaults are looked for where others could have put something.
    chosen: bool,
    /// Why a better directory was passed over, for people.
    pub note: Option<String>,
}

/// What is allowed beyond the usual.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowances {
    /// Make a missing directory.
    pub make: bool,
    /// Trust a network file system (R135).
    pub network: bool,
}

impl Directory {
    /// The first usable of these places. A default place that exists but cannot be used is passed over with a
    /// note; a chosen one is used or refused.
    pub fn find(places: &[Place], allowed: Allowances) -> Result<Directory, Error> {
        let (found, note) = Directory::look(places, allowed);
        Ok(Directory { note, ..found? })
    }

    /// The same, with the note also where there is no usable directory: it may be the reason why.
    pub fn look(places: &[Place], allowed: Allowances) -> (Result<Directory, Error>, Option<String>) {
        let mut note = None;
        let Some((last, better)) = places.split_last() else { return (Err(no_place()), note) };
        for place in better {
            match Directory::open(place, Allowances { make: false, ..allowed }) {
                Ok(directory) if directory.is_open_to(sys::effective_uid()) => return (Ok(directory), None),
                Ok(_) => {
                    let path = place.path.display();
                    note = Some(format!("directory {path}: it is not shared with this user (passed over)"));
                }
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => note = Some(format!("{error} (passed over)")),
            }
        }
        (Directory::open(last, allowed), note)
    }

    fn open(place: &Place, allowed: Allowances) -> Result<Directory, Error> {
        let path = std::path::absolute(&place.path).map_err(Error::io("find", &place.path))?;
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
        let (facts, group) = examine(&path, &handle, place.chosen)?;
        Ok(Directory { path, group, owner: facts.uid, chosen: place.chosen, note: None })
    }

    /// Whether this user could have limiters here; a trusted directory may still be somebody else's, such as
    /// root's without a group.
    fn is_open_to(&self, uid: u32) -> bool {
        uid == 0 || uid == self.owner || self.group.is_some()
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is emptied when the machine boots.
    pub fn is_volatile(&self) -> bool {
        self.handle().is_ok_and(|handle| matches!(sys::file_system(&handle), Ok(FileSystem::Volatile)))
    }

    /// Opens it. Not kept: a daemon may close every descriptor it did not open itself. So it is examined again:
    /// somebody else may have put another in its place meanwhile.
    pub fn handle(&self) -> Result<File, Error> {
        let handle = sys::open_directory(&self.path).map_err(Error::io("open", &self.path))?;
        examine(&self.path, &handle, self.chosen)?;
        Ok(handle)
    }

    /// Permissions of a file made here.
    pub fn file_mode(&self) -> u32 {
        if self.group.is_some() { 0o660 } else { 0o600 }
    }

    /// The group of a file made here, if it is shared.
    pub fn group(&self) -> Option<u32> {
        self.group
    }

    /// Shares this directory with a group: its members may use and make limiters here.
    pub fn share_with(&mut self, group: u32) -> Result<(), Error> {
        if self.group == Some(group) {
            // Done, perhaps by another member, who alone could do it again.
            return Ok(());
        }
        let handle = self.handle()?;
        sys::set_group(&handle, group).map_err(Error::io("change the group of", &self.path))?;
        set_mode(&handle, 0o2770).map_err(Error::io("change the permissions of", &self.path))?;
        self.group = Some(group);
        self.share_gate(&handle, group)
    }

    /// A gate from before the directory was shared would keep its members from making limiters.
    fn share_gate(&self, handle: &File, group: u32) -> Result<(), Error> {
        let path = self.path.join(GATE);
        let gate = match sys::open_file_at(handle, GATE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(Error::io("open", &path))?,
        };
        self.check_file(&path, &sys::facts(&gate).map_err(Error::io("examine", &path))?)?;
        sys::set_group(&gate, group).map_err(Error::io("change the group of", &path))?;
        set_mode(&gate, self.file_mode()).map_err(Error::io("change the permissions of", &path))
    }

    /// Whether a file here is one that a segment may be: ours, with one name, closed to others (P5).
    pub fn check_file(&self, path: &Path, facts: &FileFacts) -> Result<(), Error> {
        let refuse = |problem: String| Err(Error::UnsafeFile { path: path.to_owned(), problem });
        let shared = self.group.is_some_and(|group| group == facts.gid);
        if !facts.regular {
            return refuse("it is not a regular file".into());
        }
        if facts.links != 1 {
            return refuse(format!("it has {} names", facts.links));
        }
        if facts.uid != sys::effective_uid() && facts.uid != self.owner && !shared {
            return refuse(format!("it belongs to user {}", facts.uid));
        }
        if facts.mode & OTHERS_WRITE != 0 || (facts.mode & GROUP_WRITES != 0 && !shared) {
            return refuse(format!("others may write it (mode {:04o})", facts.mode));
        }
        Ok(())
    }

    /// Runs `work` while holding the gate, so that limiters are made and removed one at a time.
    pub fn through_gate<R>(&self, work: impl FnOnce(&File) -> Result<R, Error>) -> Result<R, Error> {
        let handle = self.handle()?;
        let path = self.path.join(GATE);
        let gate =
            sys::open_or_create_at(&handle, GATE, self.file_mode()).map_err(Error::io("open", &path))?;
        self.check_file(&path, &sys::facts(&gate).map_err(Error::io("examine", &path))?)?;
        let patience = Instant::now() + GATE_PATIENCE;
        while !try_lock(&gate).map_err(Error::io("lock", &path))? {
            if Instant::now() >= patience {
                return Err(Error::io("lock", &path)(io::ErrorKind::WouldBlock.into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let result = work(&handle);
        // Explicitly: a child forked meanwhile shares the lock and would keep it.
        let _ = FileExt::unlock(&gate);
        result
    }
}

fn try_lock(gate: &File) -> io::Result<bool> {
    match FileExt::try_lock(gate) {
        Ok(()) => Ok(true),
        Err(fs4::TryLockError::WouldBlock) => Ok(false),
        Err(fs4::TryLockError::Error(error)) => Err(error),
    }
}

/// What a directory is and the group it is shared with, or why it is not to be trusted.
fn examine(path: &Path, handle: &File, chosen: bool) -> Result<(FileFacts, Option<u32>), Error> {
    let facts = sys::facts(handle).map_err(Error::io("examine", path))?;
    let group = trusted(&facts, chosen).map_err(|(problem, remedy)| Error::Directory {
        remedy: remedy.replace("{}", &path.display().to_string()),
        path: path.to_owned(),
        problem,
    })?;
    Ok((facts, group))
}

/// The group a trusted directory is shared with, or why it is not to be trusted and what to do.
fn trusted(facts: &FileFacts, chosen: bool) -> Result<Option<u32>, (String, &'static str)> {
    let ours = facts.uid == 0 || facts.uid == sys::effective_uid();
    // Root is rarely a member, but it is who shares directories; those of others it does not share.
    let member = sys::in_group(facts.gid) || (sys::effective_uid() == 0 && ours);
    let open_to_group = is_open_to_group(facts.mode);
    // Anybody can put a directory where a default is looked for, and share it with a group that everybody is in.
    let shared = open_to_group && member && (chosen || ours);
    if facts.mode & OTHERS_WRITE != 0 {
        return Err((
            format!("anybody may write to it (mode {:04o})", facts.mode),
            "use one of your own: mkdir -m 700 {}/shmlimit",
        ));
    }
    if !shared && !ours {
        return Err((
            format!("it belongs to user {}", facts.uid),
            "run as that user, or choose another with --dir",
        ));
    }
    if open_to_group && !shared {
        return Err(no_member(facts.gid));
    }
    if facts.mode & GROUP_WRITES != 0 && !shared {
        return Err((
            format!(
                "its group may write to it (mode {:04o}), though it is not shared on purpose",
                facts.mode
            ),
            "close it with: chmod g-w {}, or share it with: shmlimit init NAME --shared-with GROUP",
        ));
    }
    Ok(shared.then_some(facts.gid))
}

fn make(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("make directory", path)(error))
        }
        _ => Ok(()),
    }
}

fn set_mode(handle: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    handle.set_permissions(std::fs::Permissions::from_mode(mode))
}

fn no_place() -> Error {
    Error::Directory {
        path: PathBuf::new(),
        problem: "no directory to look in".into(),
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
        // A shared directory is closed to others as a rule, so they cannot even look at it from inside.
        io::ErrorKind::PermissionDenied => match std::fs::symlink_metadata(path) {
            Ok(facts) if facts.is_dir() && is_open_to_group(facts.mode()) => {
                let (problem, remedy) = no_member(facts.gid());
                Error::Directory { path: path.to_owned(), problem, remedy: remedy.into() }
            }
            _ => Error::io("open directory", path)(source),
        },
        _ => Error::io("open directory", path)(source),
    }
}

/// Whether a directory is shared with its group on purpose.
fn is_open_to_group(mode: u32) -> bool {
    mode & (SET_GROUP_ID | GROUP_WRITES) == SET_GROUP_ID | GROUP_WRITES
}

fn no_member(group: u32) -> (String, &'static str) {
    (
        format!("it is shared with group {group}, of which this user is no member"),
        "join the group and log in again, or choose another with --dir",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_root_keeps_to_itself_is_not_open_to_others() {
        let of = |owner, group| Directory { path: PathBuf::new(), group, owner, chosen: false, note: None };
        assert!(!of(0, None).is_open_to(1000), "the next default must be tried");
        assert!(of(0, Some(50_000)).is_open_to(1000));
        assert!(of(1000, None).is_open_to(1000) && of(1000, None).is_open_to(0));
    }

    #[test]
    fn why_a_better_place_was_passed_over_is_told_also_if_there_is_no_other() {
        let home = tempfile::tempdir().unwrap();
        let place = |name: &str| Place { path: home.path().join(name), chosen: false };
        let places = [place("open"), place("missing")];
        let allowed = Allowances::default();
        assert!(matches!(Directory::look(&places, allowed), (Err(Error::Io { .. }), None)));
        std::fs::create_dir(&places[0].path).unwrap();
        set_mode(&File::open(&places[0].path).unwrap(), 0o777).unwrap();
        let (found, note) = Directory::look(&places, allowed);
        assert!(matches!(found, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound));
        assert!(note.is_some_and(|note| note.contains("anybody may write") && note.contains("passed over")));
        std::fs::create_dir(&places[1].path).unwrap();
        let found = Directory::find(&places, allowed).unwrap();
        assert!(found.path() == places[1].path && found.note.is_some());
    }

    fn facts(uid: u32, gid: u32, mode: u32) -> FileFacts {
        let (regular, directory) = (false, true);
        FileFacts { regular, directory, uid, gid, mode, links: 2, len: 0, dev: 0, ino: 0 }
    }

    /// Whoever owns a directory can put other files in it, whatever group it has.
    #[test]
    fn p5_a_stranger_cannot_put_a_shared_directory_where_a_default_is_looked_for() {
        let (me, stranger) = (sys::effective_uid(), sys::effective_uid() + 4711);
        let my_group = (0..).find(|gid| sys::in_group(*gid)).unwrap();
        assert_eq!(trusted(&facts(me, my_group, 0o2770), false), Ok(Some(my_group)));
        assert_eq!(trusted(&facts(0, my_group, 0o2770), false), Ok(Some(my_group)));
        let problem = trusted(&facts(stranger, my_group, 0o2770), false).unwrap_err().0;
        assert!(problem.contains("belongs to user"), "{problem}");
        assert_eq!(trusted(&facts(stranger, my_group, 0o2770), true), Ok(Some(my_group)), "a colleague's");
    }

    #[test]
    fn p5_nobody_not_even_root_shares_a_strangers_directory_without_being_a_member() {
        let foreign_group = (50_000..).find(|gid| !sys::in_group(*gid)).unwrap();
        let stranger = sys::effective_uid() + 4711;
        for chosen in [false, true] {
            assert!(trusted(&facts(stranger, foreign_group, 0o2770), chosen).is_err());
        }
        if sys::effective_uid() != 0 {
            let problem = trusted(&facts(0, foreign_group, 0o2775), true).unwrap_err().0;
            assert!(problem.contains("no member"), "{problem}");
        }
    }

    #[test]
    fn a_directory_put_in_the_place_of_the_trusted_one_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("limits");
        let place = [Place { path: path.clone(), chosen: true }];
        let directory = Directory::find(&place, Allowances { make: true, network: false }).unwrap();
        std::fs::remove_dir(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        set_mode(&File::open(&path).unwrap(), 0o777).unwrap();
        assert!(matches!(directory.handle(), Err(Error::Directory { .. })));
    }

    #[test]
    fn sharing_a_directory_shares_the_gate_it_has() {
        let home = tempfile::tempdir().unwrap();
        let place = [Place { path: home.path().to_owned(), chosen: true }];
        let mut directory = Directory::find(&place, Allowances::default()).unwrap();
        directory.through_gate(|_| Ok(())).unwrap();
        let group = sys::facts(&directory.handle().unwrap()).unwrap().gid;
        directory.share_with(group).unwrap();
        let gate = sys::facts_at(&directory.handle().unwrap(), GATE).unwrap();
        assert_eq!((gate.gid, gate.mode), (group, 0o660));
    }

    #[test]
    fn root_finds_a_directory_again_that_it_shared_with_a_group() {
        if sys::effective_uid() != 0 {
            eprintln!("not tested: only root can give a directory to a group it is no member of");
            return;
        }
        let foreign_group = (50_000..).find(|gid| !sys::in_group(*gid)).unwrap();
        let path = tempfile::tempdir().unwrap();
        let place = [Place { path: path.path().to_owned(), chosen: true }];
        let mut directory = Directory::find(&place, Allowances::default()).unwrap();
        directory.share_with(foreign_group).unwrap();
        let again = Directory::find(&place, Allowances::default()).unwrap();
        assert_eq!((again.group(), again.file_mode()), (Some(foreign_group), 0o660));
    }
}
