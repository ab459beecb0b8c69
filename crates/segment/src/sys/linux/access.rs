//! Ownership and access rights of a file, from its Unix owner, group and mode.
//!
//! A private directory has mode 0700, and a private file 0600. A directory is shared on purpose if it has the
//! set-group-id bit and its group may write to it (2770). Files in it then belong to that group (0660).

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{Gid, Group, Uid, User, fchown, getegid, geteuid, getgroups};

use crate::sys::{DefaultDirectory, Distrust};

const SET_GROUP_ID: u32 = 0o2000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
const SHARED_DIRECTORY: u32 = 0o2770;

/// A user or a group of users, as the system knows it.
///
/// ```
/// # use shmlimit_segment::sys as shmlimit;
/// use shmlimit::Account;
///
/// assert_eq!(Account::from(1000).to_string(), "1000");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account(Id);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    User(u32),
    Group(u32),
}

impl Account {
    /// The group with that name or number; `None` if this machine has no group of that name.
    ///
    /// ```
    /// # use shmlimit_segment::sys as shmlimit;
    /// use shmlimit::Account;
    ///
    /// assert_eq!(Account::group("1000")?, Some(Account::from(1000)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn group(name: &str) -> io::Result<Option<Account>> {
        match name.parse::<u32>() {
            Ok(gid) => Ok(Some(Account::from(gid))),
            Err(_) => Ok(Group::from_name(name)?.map(|group| Account::from(group.gid.as_raw()))),
        }
    }

    /// Its name if the system has one for it, else its number.
    ///
    /// ```
    /// # use shmlimit_segment::sys as shmlimit;
    /// assert_eq!(shmlimit::Account::from(0).name(), "root");
    /// ```
    pub fn name(&self) -> String {
        let name = match self.0 {
            Id::User(uid) => User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name),
            Id::Group(gid) => Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| group.name),
        };
        name.unwrap_or_else(|| self.to_string())
    }

    fn gid(self) -> u32 {
        match self.0 {
            Id::User(id) | Id::Group(id) => id,
        }
    }
}

/// The group with that number.
impl From<u32> for Account {
    fn from(gid: u32) -> Account {
        Account(Id::Group(gid))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Id::User(id) | Id::Group(id) => id.fmt(f),
        }
    }
}

/// See the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Permission bits with set-id and sticky bits, without the file type.
    pub(super) mode: u32,
}

impl Access {
    pub fn owner(&self) -> Account {
        Account(Id::User(self.uid))
    }

    pub fn is_mine(&self) -> bool {
        self.uid == effective_uid()
    }

    pub fn directory_is_open_to_me(&self, shared_with: Option<Account>) -> bool {
        open_to(effective_uid(), self.uid, shared_with)
    }

    pub fn trusted(&self, chosen: bool) -> Result<Option<Account>, Distrust> {
        let ours = self.uid == 0 || self.is_mine();
        // Root is rarely a member of the group, but root sets up shared directories. Root does not share the
        // directories of other users.
        let attachment = in_group(self.gid) || (effective_uid() == 0 && ours);
        // Any user can create a directory at a default path and share it with a group that every user is in. So a
        // directory that was not chosen must also belong to this user or to root.
        let shared = is_open_to_group(self.mode) && attachment && (chosen || ours);
        if self.mode & OTHERS_WRITE != 0 {
            // In a sticky directory such as /tmp, users cannot rename files of others. Elsewhere a new directory
            // would be no safer.
            let remedy = match self.is_mine() && self.mode & STICKY == 0 {
                true => "close it with: chmod 700 {}",
                false => "create one of your own with: mkdir -m 700 {}/shmlimit, and choose it with --dir",
            };
            return Err(Distrust::new(
                format!("every user can write to it (mode {:04o})", self.mode),
                remedy,
            ));
        }
        if !shared && !ours {
            return Err(Distrust::new(
                format!("it belongs to user {}", self.uid),
                "run as that user, or choose another with --dir",
            ));
        }
        if is_open_to_group(self.mode) && !shared {
            return Err(no_attachment(self.gid));
        }
        if self.mode & GROUP_WRITES != 0 && !shared {
            return Err(Distrust::new(
                format!(
                    "its group may write to it (mode {:04o}), but the set-group-id bit that marks a shared directory \
                     is missing",
                    self.mode
                ),
                "close it with: chmod g-w {}, or share it with its group with: chmod 2770 {}",
            ));
        }
        Ok(shared.then(|| Account::from(self.gid)))
    }

    pub fn danger(&self, owner: Account, shared_with: Option<Account>) -> Option<String> {
        let shared = shared_with == Some(Account::from(self.gid));
        if !self.is_mine() && self.owner() != owner && !shared {
            return Some(format!("it belongs to user {}", self.uid));
        }
        if self.mode & OTHERS_WRITE != 0 || (self.mode & GROUP_WRITES != 0 && !shared) {
            return Some(format!("other users may write to it (mode {:04o})", self.mode));
        }
        None
    }

    /// Permissions do not depend on the owner of the directory.
    pub fn permission_mismatch(&self, _owner: Account, shared_with: Option<Account>) -> Option<String> {
        let wanted = file_mode(shared_with);
        match shared_with {
            Some(group) if self.mode != wanted || self.gid != group.gid() => Some(format!(
                "has mode {:04o} and group {}, not {wanted:04o} and {}: members of the group cannot use it",
                self.mode,
                Account::from(self.gid).name(),
                group.name(),
            )),
            None if self.mode != wanted => Some(format!("has mode {:04o}, not {wanted:04o}", self.mode)),
            _ => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode {:04o}", self.mode)
    }
}

/// The last one is for containers: their `/var/tmp` is usually on overlayfs, which loses locks.
pub fn default_directories() -> Vec<DefaultDirectory> {
    let uid = effective_uid();
    vec![
        DefaultDirectory { path: "/var/run/shmlimit".into(), made: false },
        DefaultDirectory { path: format!("/var/tmp/shmlimit-{uid}").into(), made: true },
        DefaultDirectory { path: format!("/dev/shm/shmlimit-{uid}").into(), made: true },
    ]
}

/// The default directories from the time when limiters bore the name of an earlier program.
pub fn former_directories() -> Vec<PathBuf> {
    vec!["/var/run/anivault".into(), format!("/var/tmp/anivault-{}", effective_uid()).into()]
}

pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

pub fn share_directory(handle: &File, group: Account) -> io::Result<()> {
    fchown(handle, None, Some(Gid::from_raw(group.gid())))?;
    set_mode(handle, SHARED_DIRECTORY)
}

pub fn give_access(file: &File, _owner: Account, shared_with: Option<Account>) -> io::Result<()> {
    let_in(file, shared_with)
}

/// Sets the mode of a file: open to the group if there is one, else private.
pub(super) fn let_in(file: &File, shared_with: Option<Account>) -> io::Result<()> {
    if let Some(group) = shared_with {
        fchown(file, None, Some(Gid::from_raw(group.gid())))?;
    }
    set_mode(file, file_mode(shared_with))
}

/// A shared directory is usually closed to other users, so its facts can only be read from outside.
pub fn why_closed(path: &Path) -> Option<Distrust> {
    let facts = std::fs::symlink_metadata(path).ok()?;
    (facts.is_dir() && is_open_to_group(facts.mode())).then(|| no_attachment(facts.gid()))
}

fn file_mode(shared_with: Option<Account>) -> u32 {
    if shared_with.is_some() { 0o660 } else { 0o600 }
}

fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    Ok(fchmod(file, Mode::from_bits_truncate(mode))?)
}

/// Whether a user can use a trusted directory. A trusted directory may belong to another user, such as root, and
/// not be shared.
fn open_to(uid: u32, owner: u32, shared_with: Option<Account>) -> bool {
    uid == 0 || uid == owner || shared_with.is_some()
}

/// Whether a directory is shared with its group on purpose.
fn is_open_to_group(mode: u32) -> bool {
    mode & (SET_GROUP_ID | GROUP_WRITES) == SET_GROUP_ID | GROUP_WRITES
}

fn no_attachment(group: u32) -> Distrust {
    Distrust::new(
        format!("it is shared with group {group}, but this user is not a member"),
        "join the group and log in again, or choose another with --dir",
    )
}

fn effective_uid() -> u32 {
    geteuid().as_raw()
}

fn in_group(gid: u32) -> bool {
    getegid().as_raw() == gid || getgroups().is_ok_and(|groups| groups.contains(&Gid::from_raw(gid)))
}

/// Makes a directory writable by every user, which a directory of limiters must never be.
#[cfg(test)]
pub fn open_to_anybody(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(uid: u32, gid: u32, mode: u32) -> Access {
        Access { uid, gid, mode }
    }

    #[test]
    fn private_default_directory_of_root_is_not_open_to_others() {
        assert!(!open_to(1000, 0, None), "the next default must be tried");
        assert!(open_to(1000, 0, Some(Account::from(50_000))));
        assert!(open_to(1000, 1000, None) && open_to(0, 1000, None));
    }

    /// The owner of a directory can replace files in it, whatever its group is.
    #[test]
    fn p5_shared_default_directory_of_another_user_is_refused() {
        let (me, stranger) = (effective_uid(), effective_uid() + 4711);
        let my_group = (0..).find(|gid| in_group(*gid)).unwrap();
        let shared = Ok(Some(Account::from(my_group)));
        assert_eq!(access(me, my_group, 0o2770).trusted(false), shared);
        assert_eq!(access(0, my_group, 0o2770).trusted(false), shared);
        let problem = access(stranger, my_group, 0o2770).trusted(false).unwrap_err().problem;
        assert!(problem.contains("belongs to user"), "{problem}");
        assert_eq!(access(stranger, my_group, 0o2770).trusted(true), shared, "a colleague's");
    }

    #[test]
    fn p5_shared_directory_of_another_user_needs_group_membership_even_for_root() {
        let foreign_group = (50_000..).find(|gid| !in_group(*gid)).unwrap();
        let stranger = effective_uid() + 4711;
        for chosen in [false, true] {
            assert!(access(stranger, foreign_group, 0o2770).trusted(chosen).is_err());
        }
        if effective_uid() != 0 {
            let problem = access(0, foreign_group, 0o2775).trusted(true).unwrap_err().problem;
            assert!(problem.contains("no member"), "{problem}");
        }
    }

    #[test]
    fn groups_are_found_by_name_and_by_number() {
        let mine = Account::from(getegid().as_raw());
        assert_eq!(Account::group(&mine.to_string()).unwrap(), Some(mine));
        assert_eq!(Account::group("no such group, surely").unwrap(), None);
        let root = Account::group("root").unwrap().unwrap();
        assert_eq!((root, root.name()), (Account::from(0), "root".to_owned()));
    }
}
