//! Log files, public files and programs. Access to a file is inherited from its directory.

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

/// Endings of programs that the system or its shell can start; others in PATHEXT are documents.
const PROGRAMS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];
/// Names that mean a device in every directory, with any ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// The file itself, also where a link, a junction or the like has its name.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x0400;

/// The error for a link.
pub const LINK_REFUSED: &str =
    "it is a link or another reparse point, and those are not followed; give the name of the file itself";

/// Opens a log, made if it is not there. Others may rename it meanwhile. A link is not followed.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let flags = if is_device(path) { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
    // Read too: a lock needs one of both rights in full, and appending alone is neither.
    let file = OpenOptions::new().append(true).read(true).create(true).custom_flags(flags).open(path)?;
    match file.metadata() {
        Ok(facts) if is_reparse_point(&facts) => Err(io::Error::other(LINK_REFUSED)),
        // A device has no such facts.
        _ => Ok(file),
    }
}

/// Whether a name is a link that is not followed.
pub fn is_link(path: &Path) -> bool {
    !is_device(path) && fs::symlink_metadata(path).is_ok_and(|facts| is_reparse_point(&facts))
}

fn is_reparse_point(facts: &Metadata) -> bool {
    facts.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// The largest file that this process may write: no limit here.
pub fn largest_file() -> u64 {
    u64::MAX
}

/// Whether the lock that writers have among themselves could be had at once.
pub fn try_lock(file: &File) -> io::Result<bool> {
    try_lock_writing(file)
}

pub fn unlock(file: &File) -> io::Result<()> {
    unlock_writing(file)
}

/// Whether the file that has this name is the one that is open.
pub fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    is_file_at(file, path)
}

/// A new file for all users that may read the directory.
pub fn create_public(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A name such as NUL or COM1, in whatever directory.
pub fn is_device(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let is_port = |kind: &str| {
        stem.strip_prefix(kind).is_some_and(|port| port.len() == 1 && port.as_bytes()[0].is_ascii_digit())
    };
    DEVICES.contains(&stem) || is_port("com") || is_port("lpt")
}

/// In the user's own directory for temporary files, which no other user can read.
pub fn private_directory() -> io::Result<PathBuf> {
    let place = env::temp_dir();
    loop {
        let directory = place.join(format!("shmlimit-{:016x}", RandomState::new().build_hasher().finish()));
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| directory),
        }
    }
}

/// Whether there is such a program in a directory.
pub fn is_executable(directory: &Path, program: &str) -> bool {
    self::program(directory, Some(OsStr::new(program))).is_some()
}

/// The program of that name in a directory, with the first ending of PATHEXT that there is.
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

/// Not looked at: the library looks at the list of access of the directory itself.
pub fn unsafe_parent(_path: &Path) -> Option<UnsafeParent> {
    None
}

pub fn free_space(path: &Path) -> Option<FreeSpace> {
    bytes_free(path).ok().map(|free| FreeSpace { free, another_file: true })
}

/// Access lists are explicit, so none is changed.
pub fn restrict_directory(_path: &Path, _only_ask: bool) -> Option<Result<String, String>> {
    None
}

/// Whether it may be removed at all is for the system to say.
pub fn is_own_leftover(file: &Metadata) -> bool {
    file.is_file()
}
