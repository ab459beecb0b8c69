//! Files that others write or read too, and programs.

use fs4::FileExt;
use nix::unistd::mkdtemp;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// For everybody to read: whoever collects is somebody else, as a rule.
const PUBLIC: u32 = 0o644;
const LOG: u32 = 0o640;

/// Opens a log, made if it is not there. A pipe that nobody reads must not stop anybody.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let is_pipe = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    let flags = if is_pipe { nix::libc::O_NONBLOCK } else { 0 };
    OpenOptions::new().append(true).create(true).mode(LOG).custom_flags(flags).open(path)
}

/// Whether the lock that writers have among themselves could be had at once.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match FileExt::try_lock(file) {
        Ok(()) => Ok(true),
        Err(fs4::TryLockError::WouldBlock) => Ok(false),
        Err(fs4::TryLockError::Error(error)) => Err(error),
    }
}

pub fn unlock(file: &File) -> io::Result<()> {
    FileExt::unlock(file)
}

/// Whether the file that has this name is the one that is open.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (here, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
}

/// A new file for everybody to read.
pub fn create_public(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PUBLIC).open(path)?;
    file.set_permissions(Permissions::from_mode(PUBLIC))?;
    Ok(file)
}

/// A name such as /dev/stdout, whatever it leads to.
pub fn is_device(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent == Path::new("/dev") || parent == Path::new("/dev/fd"))
}

/// Where the user wants such things, else in memory if there is such a place, so that no disk takes part.
pub fn private_directory() -> io::Result<PathBuf> {
    let make = |place: &Path| mkdtemp(&place.join("shmlimit-XXXXXX"));
    let usual = std::env::temp_dir();
    let wanted = std::env::var_os("TMPDIR").is_some_and(|place| !place.is_empty());
    Ok(if wanted { make(&usual) } else { make(Path::new("/dev/shm")).or_else(|_| make(&usual)) }?)
}

/// Whether there is such a program in a directory.
pub fn can_be_run(directory: &Path, program: &str) -> bool {
    let can_run = |facts: fs::Metadata| facts.is_file() && facts.permissions().mode() & 0o111 != 0;
    directory.join(program).metadata().is_ok_and(can_run)
}
