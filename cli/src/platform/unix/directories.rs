//! Permissions and free space of directories, for the doctor.

use crate::platform::{FreeSpace, UnsafeParent};
use nix::sys::statvfs::statvfs;
use nix::unistd::{Uid, User};
use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Returns a parent directory in which another user could replace this directory.
pub fn unsafe_parent(path: &Path) -> Option<UnsafeParent> {
    let me = Uid::effective().as_raw();
    path.ancestors().skip(1).find_map(|parent| {
        let facts = std::fs::metadata(parent).ok()?;
        let (open, sticky) = (facts.mode() & OTHERS_WRITE != 0, facts.mode() & STICKY != 0);
        let foreign = facts.uid() != 0 && facts.uid() != me && me != 0;
        let problem = match (open && !sticky, foreign) {
            (true, _) => {
                let mode = facts.mode() & 0o7777;
                format!("every user can write to it (mode {mode:04o}), and could replace {}", path.display())
            }
            (_, true) => format!("it belongs to {}, who could replace {}", user(facts.uid()), path.display()),
            _ => return None,
        };
        Some((parent.to_owned(), problem))
    })
}

/// Returns the user who runs this program. Under sudo, it is the user who called sudo.
pub fn user_name() -> String {
    let uid = Uid::effective();
    let sudo = || std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
    uid.is_root().then(sudo).flatten().unwrap_or_else(|| user(uid.as_raw()))
}

/// Returns the name of a user, or the number if there is no name.
pub(super) fn user(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    }
}

pub fn free_space(path: &Path) -> Option<FreeSpace> {
    let room = statvfs(path).ok()?;
    Some(FreeSpace {
        free: room.blocks_available().saturating_mul(room.fragment_size()),
        // Some file systems do not count files.
        another_file: room.files() == 0 || room.files_available() > 0,
    })
}

/// Restricts a directory of this user that all users may write, but never one such as /tmp. Returns `None` for other
/// directories. With `only_ask` nothing is changed.
pub fn restrict_directory(path: &Path, only_ask: bool) -> Option<Result<String, String>> {
    let facts = std::fs::symlink_metadata(path).ok()?;
    let ours = facts.is_dir() && facts.uid() == Uid::effective().as_raw();
    let open = facts.mode() & OTHERS_WRITE != 0 && facts.mode() & STICKY == 0;
    if !ours || !open {
        return None;
    }
    let closed = facts.mode() & 0o7777 & !OTHERS_WRITE;
    if !only_ask && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(closed)) {
        return Some(Err(error.to_string()));
    }
    Some(Ok(format!("closed to others (mode {closed:04o})")))
}

/// Returns whether the file belongs to this user and has the form that creators of limiters give it.
pub fn is_own_leftover(file: &Metadata) -> bool {
    let me = Uid::effective().as_raw();
    file.is_file() && file.nlink() == 1 && file.uid() == me && file.mode() & OTHERS_WRITE == 0
}
