//! Ownership and access rights of a file, from its owner and its access control list.
//!
//! A private file or directory is open to its owner, the system and the administrators, who can take any file
//! anyway. A directory is shared on purpose if its list was written explicitly (it inherits nothing) and lets one
//! more account change it. A new file inherits the list of its directory.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, READ_CONTROL, WRITE_DAC,
};

use super::acl::{Descriptor, Right, Rights};
use super::native::{check, reopened, wide_path};
use super::sid::Account;
use crate::sys::{DefaultDirectory, Distrust};

/// Accounts that can take any file anyway.
const MASTERS: [Account; 3] = [Account::SYSTEM, Account::ADMINISTRATORS, Account::TRUSTED_INSTALLER];
/// Accounts that stand for the owner in inheritable lists.
const OWNERS: [Account; 3] = [Account::OWNER_RIGHTS, Account::CREATOR_OWNER, Account::CREATOR_GROUP];
/// Read, write, execute and delete: everything except changing the list itself.
const USE: &str = "0x1301bf";
/// All access rights of a semaphore.
const WAKE_WORD_USE: &str = "0x1f0003";

/// See the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    rights: Rights,
    me: Account,
}

impl Access {
    pub(super) fn of(file: &File) -> io::Result<Access> {
        Ok(Access { rights: Rights::of(file)?, me: Account::me()? })
    }

    pub fn owner(&self) -> Account {
        self.rights.owner
    }

    pub fn is_mine(&self) -> bool {
        self.owner() == self.me || (MASTERS.contains(&self.owner()) && self.owner().includes_me())
    }

    pub fn directory_is_open_to_me(&self, shared_with: Option<Account>) -> bool {
        let open = |right: &Right| right.changes && (right.who == self.me || right.who.includes_me());
        self.is_mine() || shared_with.is_some() || self.rights.given.iter().any(open)
    }

    pub fn trusted(&self, chosen: bool) -> Result<Option<Account>, Distrust> {
        let ours = self.owner() == self.me || MASTERS.contains(&self.owner());
        let others: Vec<Account> = self.strangers(|right| right.changes).collect();
        let purpose = self.rights.on_purpose;
        if let Some(anybody) = others.iter().find(|who| is_anybody(**who, purpose)) {
            let remedy = match self.owner() == self.me {
                // Uses identifiers (everyone, authenticated users, all users), because names depend on the language
                // of the system and variables depend on the shell. Names this user instead of "the owner", because
                // files that an elevated program creates there belong to the administrators.
                true => format!(
                    "close it with: icacls \"{{}}\" /inheritance:r /grant \"*{}:(OI)(CI)F\" /remove \"*S-1-1-0\" \
                     \"*S-1-5-11\" \"*S-1-5-32-545\", or choose another with --dir",
                    self.me
                ),
                false => "use --dir with a directory that only you may write to, such as AppData\\Local\\shmlimit in \
                          your profile"
                    .to_owned(),
            };
            return Err(Distrust::new(
                format!("every user can write to it ({} can)", anybody.name()),
                remedy,
            ));
        }
        let shared = match others[..] {
            [] => None,
            [one] if purpose && (one.includes_me() || self.is_mine()) && (chosen || ours) => Some(one),
            [one, ..] if ours => {
                return Err(Distrust::new(
                    format!("{} may write to it, but it was not shared on purpose", one.name()),
                    "share it with a group of users with: shmlimit init NAME --shared-with GROUP (NAME is a limiter), or choose \
                     another with --dir",
                ));
            }
            _ => None,
        };
        if shared.is_none() && !ours {
            return Err(Distrust::new(
                format!("it belongs to {}", self.owner().name()),
                "run as that user, let them share it with a group of yours with: shmlimit init NAME --shared-with GROUP (NAME is \
                 a limiter), or choose another with --dir",
            ));
        }
        Ok(shared)
    }

    pub fn danger(&self, owner: Account, shared_with: Option<Account>) -> Option<String> {
        let known = self.owner() == self.me || self.owner() == owner || MASTERS.contains(&self.owner());
        if !known && shared_with.is_none() {
            return Some(format!("it belongs to {}", self.owner().name()));
        }
        let stranger =
            self.strangers(|right| right.changes).find(|who| *who != owner && Some(*who) != shared_with)?;
        Some(format!("other users may write to it ({} may)", stranger.name()))
    }

    pub fn permission_mismatch(&self, owner: Account, shared_with: Option<Account>) -> Option<String> {
        let usable = |group| self.rights.given.iter().any(|right| right.who == group && right.changes);
        if let Some(group) = shared_with.filter(|group| !usable(*group)) {
            return Some(format!("is not shared with {}: members of the group cannot use it", group.name()));
        }
        let stranger = self
            .strangers(|right| right.changes || right.reads)
            .find(|who| *who != owner && Some(*who) != shared_with)?;
        Some(format!("is open to {}", stranger.name()))
    }

    /// The access of the semaphores on which users of a file wait for each other: every account that may change the
    /// file may use them.
    pub(super) fn of_wake_words(&self) -> io::Result<Descriptor> {
        let mut who = vec![self.me, self.owner()];
        who.extend(self.rights.given.iter().filter(|right| right.changes).map(|right| right.who));
        who.retain(|who| !OWNERS.contains(who));
        let entries: String = who.iter().map(|who| format!("(A;;{WAKE_WORD_USE};;;{who})")).collect();
        Descriptor::parse(&format!("D:{entries}"))
    }

    /// Accounts with matching rights other than the owner and the accounts that can take any file anyway.
    fn strangers(&self, given: impl Fn(&Right) -> bool) -> impl Iterator<Item = Account> {
        let usual = move |who: &Account| {
            *who == self.me || *who == self.owner() || MASTERS.contains(who) || OWNERS.contains(who)
        };
        self.rights
            .given
            .iter()
            .filter(move |right| given(right))
            .map(|right| right.who)
            .filter(move |who| !usual(who))
    }
}

/// Whether the account stands for every user. The group of all users does, unless a directory is shared with it on
/// purpose.
fn is_anybody(who: Account, on_purpose: bool) -> bool {
    who.is_anybody() || (who == Account::USERS && !on_purpose)
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<String> = self.strangers(|right| right.changes).map(|who| who.name()).collect();
        match others.is_empty() {
            true => f.write_str("private"),
            false => write!(f, "open to {}", others.join(", ")),
        }
    }
}

/// Always empty: on Windows, earlier versions had no other default.
pub fn former_directories() -> Vec<PathBuf> {
    Vec::new()
}

/// Uses `%ProgramData%`, which is set for every process of the machine: in a terminal, a service or a scheduled task.
pub fn default_directories() -> Vec<DefaultDirectory> {
    let data = std::env::var_os("ProgramData").map(PathBuf::from).filter(|path| path.is_absolute());
    data.map(|data| DefaultDirectory { path: data.join("AniVault"), made: true }).into_iter().collect()
}

/// Makes this user the owner even if the process is elevated. The system would make the administrators the owner
/// then, and the same user could not change the directory without elevation.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let private = list(&[Account::me()?], None, "OICI")?;
    let attributes = private.attributes();
    // SAFETY: path and attributes are alive for the whole call, and so is the descriptor they lead to.
    check(unsafe { CreateDirectoryW(wide_path(path)?.as_ptr(), &attributes) })
}

pub fn share_directory(handle: &File, group: Account) -> io::Result<()> {
    set(handle, &[Rights::of(handle)?.owner], Some(group), "OICI")
}

/// Files created with elevation belong to the administrators, so `owner` gets access in addition to the file's
/// owner.
pub fn give_access(file: &File, owner: Account, shared_with: Option<Account>) -> io::Result<()> {
    set(file, &[Rights::of(file)?.owner, owner], shared_with, "")
}

/// The system's error only says that access is denied. The owner can always read the list.
pub fn why_closed(path: &Path) -> Option<Distrust> {
    let facts = std::fs::symlink_metadata(path).ok()?;
    let owner = OpenOptions::new()
        .access_mode(READ_CONTROL)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
        .and_then(|directory| Ok(Rights::of(&directory)?.owner));
    let me = Account::me().ok().filter(|me| owner.is_ok_and(|owner| owner == *me));
    facts.is_dir().then(|| match me {
        Some(me) => Distrust::new(
            "its access list excludes its owner, who is this user",
            format!("change that with: icacls \"{{}}\" /grant \"*{me}:(OI)(CI)F\", or choose another with --dir"),
        ),
        None => Distrust::new(
            "it is not shared with this user",
            "let its owner share it with a group of yours with: shmlimit init NAME --shared-with GROUP (NAME is a limiter), or \
             choose another with --dir",
        ),
    })
}

/// Replaces the list of a file by a new one. The owner of the file can always do that.
fn set(file: &File, owners: &[Account], shared_with: Option<Account>, passed_on: &str) -> io::Result<()> {
    list(owners, shared_with, passed_on)?.apply(&reopened(file, READ_CONTROL | WRITE_DAC)?)
}

/// The descriptor of a file or directory that belongs to the first of these owners.
fn list(owners: &[Account], shared_with: Option<Account>, passed_on: &str) -> io::Result<Descriptor> {
    let mut masters = vec![Account::SYSTEM, Account::ADMINISTRATORS];
    masters.extend(owners);
    let all: String = masters.iter().map(|who| format!("(A;{passed_on};FA;;;{who})")).collect();
    let shared = shared_with.map(|group| format!("(A;{passed_on};{USE};;;{group})")).unwrap_or_default();
    let owner = owners.first().map(|owner| format!("O:{owner}")).unwrap_or_default();
    Descriptor::parse(&format!("{owner}D:P{all}{shared}"))
}

#[cfg(test)]
mod tests;
