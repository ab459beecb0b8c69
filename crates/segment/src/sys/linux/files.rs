//! Opens and describes files without following links or trusting the umask.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::access::{Access, Account, let_in};
use crate::sys::FileFacts;

/// How often opening and creating may miss each other. Each miss requires another process to create *and* delete
/// the file.
const OPEN_OR_CREATE_TRIES: u32 = 16;

/// With `O_NONBLOCK`, because opening a FIFO that another user put there would block forever.
fn careful() -> OFlag {
    OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK
}

pub fn facts(file: &File) -> io::Result<FileFacts> {
    Ok(facts_from(&fstat(file)?))
}

pub fn facts_at(dir: &File, name: &str) -> io::Result<FileFacts> {
    Ok(facts_from(&fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
}

// The widths of the fields differ between architectures; on some, these casts change nothing.
#[allow(clippy::unnecessary_cast)]
pub(super) fn facts_from(stat: &FileStat) -> FileFacts {
    let kind = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
    FileFacts {
        regular: kind == SFlag::S_IFREG,
        directory: kind == SFlag::S_IFDIR,
        access: Access { uid: stat.st_uid, gid: stat.st_gid, mode: stat.st_mode & 0o7777 },
        links: stat.st_nlink as u64,
        len: u64::try_from(stat.st_size).unwrap_or(0),
        dev: stat.st_dev as u64,
        ino: stat.st_ino as u64,
    }
}

pub fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    Ok(open(path, flags, Mode::empty())?.into())
}

pub fn open_file_at(dir: &File, name: &str) -> io::Result<File> {
    Ok(openat(dir, name, careful(), Mode::empty())?.into())
}

/// Opens and creates in two steps. Only the process that created the file may set its mode, and in sticky
/// directories the kernel refuses a plain `O_CREAT` (`fs.protected_regular`) even if the file exists.
pub fn open_or_create_at(dir: &File, name: &str, shared_with: Option<Account>) -> io::Result<File> {
    for _ in 0..OPEN_OR_CREATE_TRIES {
        match openat(dir, name, careful(), Mode::empty()) {
            Err(Errno::ENOENT) => {}
            opened => return Ok(opened?.into()),
        }
        match create_at(dir, name, shared_with) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program keeps creating and deleting the file"))
}

/// Creates a file that must not exist, with exactly that access.
pub(super) fn create_at(dir: &File, name: &str, shared_with: Option<Account>) -> io::Result<File> {
    let flags = careful() | OFlag::O_CREAT | OFlag::O_EXCL;
    let file = File::from(openat(dir, name, flags, private())?);
    if let Err(error) = let_in(&file, shared_with) {
        let _ = unlink_at(dir, name);
        return Err(error);
    }
    Ok(file)
}

/// The mode of a file before its final mode is set. No other user can open the file in between.
pub(super) fn private() -> Mode {
    Mode::S_IRUSR | Mode::S_IWUSR
}

/// Removes a file for good. It is renamed first, so that a mapping of it does not look as if the file had been
/// deleted by hand (see [`is_deleted_in_use`]).
pub fn remove_at(dir: &File, name: &str) -> io::Result<()> {
    let gone = format!(".shmlimit-{}-{:x}.gone", std::process::id(), super::wall_now());
    renameat(dir, name, dir, gone.as_str())?;
    unlink_at(dir, &gone)
}

/// Whether any process that this process may inspect, itself included, maps a file that was deleted at `path`.
pub fn is_deleted_in_use(path: &Path) -> bool {
    let end = format!("{} (deleted)", path.display());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    processes.filter(|entry| is_process(&entry.file_name())).any(|entry| {
        let maps = std::fs::read(entry.path().join("maps")).unwrap_or_default();
        maps.split(|byte| *byte == b'\n').any(|line| line.ends_with(end.as_bytes()))
    })
}

pub fn unlink_at(dir: &File, name: &str) -> io::Result<()> {
    Ok(unlinkat(dir, name, UnlinkatFlags::NoRemoveDir)?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    pub fn directory() -> (tempfile::TempDir, File) {
        let path = tempfile::tempdir().unwrap();
        let dir = open_directory(path.path()).unwrap();
        (path, dir)
    }

    #[test]
    fn facts_describe_files_links_and_directories() {
        let (path, dir) = directory();
        let file = open_or_create_at(&dir, "lock", None).unwrap();
        file.set_len(5).unwrap();
        std::fs::hard_link(path.path().join("lock"), path.path().join("second")).unwrap();
        let seen = facts(&file).unwrap();
        assert_eq!(seen, facts_at(&dir, "second").unwrap());
        assert!(seen.regular && !seen.directory);
        assert!(
            seen.access.is_mine() && seen.access.permission_mismatch(seen.access.owner(), None).is_none()
        );
        assert_eq!((seen.links, seen.len), (2, 5));
        let seen = facts(&dir).unwrap();
        assert!(seen.directory && !seen.regular);
    }

    #[test]
    fn p5_links_are_not_followed_and_fifos_do_not_block() {
        let (path, dir) = directory();
        open_or_create_at(&dir, "real", None).unwrap();
        symlink("real", path.path().join("link")).unwrap();
        symlink(".", path.path().join("loop")).unwrap();
        let too_many_links = Some(nix::libc::ELOOP);
        assert_eq!(open_file_at(&dir, "link").unwrap_err().raw_os_error(), too_many_links);
        assert_eq!(open_or_create_at(&dir, "link", None).unwrap_err().raw_os_error(), too_many_links);
        assert!(open_directory(&path.path().join("loop")).is_err());
        let seen = facts_at(&dir, "link").unwrap();
        assert!(!seen.regular && !seen.directory);
        nix::unistd::mkfifo(&path.path().join("fifo"), private()).unwrap();
        let fifo = open_file_at(&dir, "fifo").unwrap();
        assert!(!facts(&fifo).unwrap().regular);
    }

    #[test]
    fn opening_an_existing_file_keeps_its_mode_and_content() {
        let (_path, dir) = directory();
        let group = Account::from(nix::unistd::getegid().as_raw());
        open_or_create_at(&dir, "lock", Some(group)).unwrap().set_len(9).unwrap();
        let again = facts(&open_or_create_at(&dir, "lock", None).unwrap()).unwrap();
        assert_eq!(
            (again.access.permission_mismatch(again.access.owner(), Some(group)), again.len),
            (None, 9)
        );
        unlink_at(&dir, "lock").unwrap();
        assert_eq!(facts_at(&dir, "lock").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open_file_at(&dir, "lock").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
