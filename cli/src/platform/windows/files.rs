//! Log files, public files and programs. A file inherits its access list from its directory.

use crate::platform::{FreeSpace, UnsafeParent};
use shmlimit_segment::sys::tool::{free_space as bytes_free, is_file_at, try_lock_writing, unlock_writing};
use std::collections::hash_map::RandomState;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The extensions of programs that the system or its shell can start. Others in PATHEXT are documents.
const PROGRAMS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
/// Names that mean a device in every directory, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Opens the reparse point itself, such as a link or a junction, instead of its target.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x0400;

/// The error message for a link.
pub const LINK_REFUSED: &str =
    "it is a link or another reparse point, and those are not followed; give the name of the file itself";

/// Opens a log, and creates it if it does not exist. Other processes may rename it meanwhile. A link is not followed.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = if is_device(path) { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
    // Read access is needed too: a lock requires full read or write access, and append access is neither.
    let file = OpenOptions::new().append(true).read(true).create(true).custom_flags(flags).open(path)?;
    match file.metadata() {
        Ok(facts) if is_reparse_point(&facts) => Err(io::Error::other(LINK_REFUSED)),
        // A device has no metadata.
        _ => Ok(file),
    }
}

/// Returns whether the path is a link, which is not followed.
pub fn is_link(path: &Path) -> bool {
    !is_device(path) && fs::symlink_metadata(path).is_ok_and(|facts| is_reparse_point(&facts))
}

fn is_reparse_point(facts: &Metadata) -> bool {
    facts.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Returns the maximum size of a file that this process may write. Windows has no limit.
pub fn largest_file() -> u64 {
    u64::MAX
}

/// Tries to take the lock of a writer without waiting. Returns whether it succeeded.
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_writing(file)
}

pub fn unlock(file: &File) -> io::Result<()> {
    unlock_writing(file)
}

/// Returns whether the path refers to the open file.
pub fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    is_file_at(file, path)
}

/// Creates a new file for all users who may read the directory.
pub fn create_public(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Returns whether the name is a device such as NUL or COM1, in any directory.
pub fn is_device(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let is_port = |kind: &str| {
        stem.strip_prefix(kind).is_some_and(|port| port.len() == 1 && port.as_bytes()[0].is_ascii_digit())
    };
    DEVICES.contains(&stem) || is_port("com") || is_port("lpt")
}

/// Creates a directory in the user's own temporary directory, which no other user can read.
pub fn private_directory() -> io::Result<PathBuf> {
    let temporary = env::temp_dir();
    loop {
        let directory =
            temporary.join(format!("shmlimit-{:016x}", RandomState::new().build_hasher().finish()));
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
}

/// Returns whether the directory has an executable program with this name.
pub fn is_executable(directory: &Path, program: &str) -> bool {
    self::program(directory, Some(OsStr::new(program))).is_some()
}

/// Returns the program with that name in a directory, with the first extension of PATHEXT that exists.
pub fn program(directory: &Path, name: Option<&OsStr>) -> Option<PathBuf> {
    let name = name?;
    let with = |ending: &str| {
        let mut name = name.to_owned();
        name.push(ending);
        directory.join(name)
    };
    let endings = env::var("PATHEXT").unwrap_or_else(|_| PROGRAMS.join(";"));
    let endings =
        endings.split(';').map(str::to_lowercase).filter(|ending| PROGRAMS.contains(&ending.as_str()));
    endings.map(|ending| with(&ending)).find(|path| path.is_file())
}

/// Not checked here, because the library checks the access list of the directory itself.
pub fn unsafe_parent(_path: &Path) -> Option<UnsafeParent> {
    None
}

pub fn free_space(path: &Path) -> Option<FreeSpace> {
    bytes_free(path).ok().map(|free| FreeSpace { free, another_file: true })
}

/// Does nothing, because access lists are explicit.
pub fn restrict_directory(_path: &Path, _only_ask: bool) -> Option<Result<String, String>> {
    None
}

/// Every regular file counts. The system decides whether this user may delete it.
pub fn is_own_leftover(file: &Metadata) -> bool {
    file.is_file()
}
