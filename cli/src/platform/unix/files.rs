//! Log files, public files and programs.

use fs4::FileExt;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc::{ELOOP, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::mkdtemp;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// All users may read the file, because the collector usually runs as another user.
const PUBLIC: u32 = 0o644;
const LOG: u32 = 0o640;

/// Opens a log, and creates it if it does not exist. A link is not followed: it may lead to a file that this user may
/// write to but the link's creator may not. A pipe without a reader must not block the open, even if the pipe was
/// created a moment ago.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    // Names such as /dev/stderr are links that the system created.
    let follow = if is_device(path) { 0 } else { O_NOFOLLOW };
    let flags = O_NONBLOCK | O_NOCTTY | follow;
    let opened = OpenOptions::new().append(true).create(true).mode(LOG).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(ELOOP) => io::Error::other(LINK_REFUSED),
        _ => error,
    })?;
    let facts = file.metadata()?;
    if facts.is_file() {
        check_origin(path, &facts)?;
    }
    if !facts.file_type().is_fifo() {
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    }
    Ok(file)
}

/// The error message for a link.
pub const LINK_REFUSED: &str =
    "it is a symbolic link, and links are not followed; give the name of the file itself";

/// Returns whether the path is a link, which is not followed.
pub fn is_link(path: &Path) -> bool {
    !is_device(path) && fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink())
}

/// Refuses a file that another user may have created in a directory that all users can write.
fn check_origin(path: &Path, facts: &Metadata) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let open_to_all = fs::metadata(parent)?.mode() & 0o002 != 0;
    let stranger = ![0, nix::unistd::geteuid().as_raw()].contains(&facts.uid());
    let why = match (stranger, facts.nlink()) {
        _ if !open_to_all => return Ok(()),
        (true, _) => "is another user's",
        (false, 2..) => "has a second name",
        (false, _) => return Ok(()),
    };
    Err(io::Error::other(format!(
        "it {why}, in a directory where every user can write; choose another directory"
    )))
}

/// Returns the maximum size of a file that this process may write. A larger write causes a signal that ends it.
pub fn largest_file() -> u64 {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(now, _)| now)
}

/// Tries to take the lock of a writer without waiting. Returns whether it succeeded.
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

/// Returns whether the path refers to the open file.
pub fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let (here, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
}

/// Creates a new file that all users can read.
pub fn create_public(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(PUBLIC).open(path)?;
    file.set_permissions(Permissions::from_mode(PUBLIC))?;
    Ok(file)
}

/// Returns whether the path is a name such as /dev/stdout, whatever it refers to.
pub fn is_device(path: &Path) -> bool {
    let directories = ["/dev", "/dev/fd", "/proc/self/fd"];
    path.parent().is_some_and(|parent| directories.iter().any(|directory| parent == Path::new(directory)))
}

/// Creates a directory where the user's settings say, else in memory if possible, so that no disk is involved.
pub fn private_directory() -> io::Result<PathBuf> {
    let make = |directory: &Path| mkdtemp(&directory.join("shmlimit-XXXXXX"));
    let usual = std::env::temp_dir();
    let wanted = std::env::var_os("TMPDIR").is_some_and(|directory| !directory.is_empty());
    Ok(if wanted { make(&usual) } else { make(Path::new("/dev/shm")).or_else(|_| make(&usual)) }?)
}

/// Returns whether the directory has an executable program with this name.
pub fn is_executable(directory: &Path, program: &str) -> bool {
    let can_run = |facts: fs::Metadata| facts.is_file() && facts.permissions().mode() & 0o111 != 0;
    directory.join(program).metadata().is_ok_and(can_run)
}
