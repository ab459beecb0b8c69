//! A file that gets its name only when it is complete.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, RenameFlags, openat, posix_fallocate, renameat, renameat2};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::Mode;
use nix::unistd::linkat;

use super::access::{Account, let_in};
use super::files::{create_at, private, unlink_at};
use super::liveness::LivenessLock;
use crate::sys::Hold;

/// How many names are tried. A collision requires a leftover file of the same pid and nanosecond.
const TEMPORARY_NAME_TRIES: u32 = 16;

/// A new file that has no name yet; see the contract.
#[derive(Debug)]
pub struct UnnamedFile {
    file: File,
    /// Set only where the file system has no `O_TMPFILE`. A process that is killed meanwhile leaves this name
    /// behind.
    temporary: Option<TemporaryName>,
}

pub fn unnamed_file(dir: &File, shared_with: Option<Account>, len: u64) -> io::Result<UnnamedFile> {
    // The kernel would not only refuse: it sends SIGXFSZ, which ends a program that does not expect it.
    if len > getrlimit(Resource::RLIMIT_FSIZE)?.0 {
        return Err(Errno::EFBIG.into());
    }
    let unnamed = match without_any_name(dir) {
        Ok(file) => UnnamedFile { file, temporary: None },
        // Old kernels mistake the flag for O_DIRECTORY (EISDIR); some file systems call it invalid.
        Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::EINVAL) => with_temporary_name(dir)?,
        Err(error) => return Err(error.into()),
    };
    let_in(&unnamed.file, shared_with)?;
    reserve(&unnamed.file, len)?;
    Ok(unnamed)
}

impl UnnamedFile {
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn keeps_locks(&self) -> io::Result<bool> {
        Ok(!matches!(LivenessLock::hold(self.reopen()?, 0, &self.reopen()?)?, Hold::Lost))
    }

    /// Opens a new description of the file, which no other process can open.
    fn reopen(&self) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
        Ok(nix::fcntl::open(self.ours().as_str(), flags, Mode::empty())?.into())
    }

    fn ours(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    pub fn link(self, dir: &File, name: &str) -> io::Result<()> {
        match self.temporary {
            None => {
                linkat(AT_FDCWD, self.ours().as_str(), dir, name, AtFlags::AT_SYMLINK_FOLLOW)?;
            }
            Some(temporary) => temporary.rename(dir, name)?,
        }
        Ok(())
    }
}

impl UnnamedFile {
    /// Uses one rename, so a file of that name always exists: the old one or this one.
    pub fn replace(self, dir: &File, name: &str) -> io::Result<()> {
        let temporary = match self.temporary {
            Some(temporary) => temporary,
            None => {
                let temporary = TemporaryName { dir: dir.try_clone()?, name: beside(name), renamed: false };
                // The caller holds the creation lock, so a file of this name was left by a process that was killed
                // here.
                match unlink_at(dir, &temporary.name) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                let (ours, own) = (self.ours(), temporary.name.as_str());
                linkat(AT_FDCWD, ours.as_str(), dir, own, AtFlags::AT_SYMLINK_FOLLOW)?;
                temporary
            }
        };
        temporary.replace(dir, name)
    }
}

/// Removes its file when dropped, unless the file was renamed.
#[derive(Debug)]
struct TemporaryName {
    dir: File,
    name: String,
    renamed: bool,
}

impl TemporaryName {
    fn replace(mut self, dir: &File, name: &str) -> io::Result<()> {
        match renameat2(&self.dir, self.name.as_str(), dir, name, RenameFlags::RENAME_EXCHANGE) {
            // The old file now has the temporary name and loses it here, so its mappings do not look deleted by
            // hand.
            Ok(()) => return Ok(()),
            // There is no file to exchange with, or this file system does not support the exchange.
            Err(Errno::ENOENT | Errno::EINVAL | Errno::ENOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        renameat(&self.dir, self.name.as_str(), dir, name)?;
        self.renamed = true;
        Ok(())
    }

    /// Renames instead of linking and unlinking: in between the file would have two names, which processes that
    /// open it treat as an attack.
    fn rename(mut self, dir: &File, name: &str) -> io::Result<()> {
        renameat2(&self.dir, self.name.as_str(), dir, name, RenameFlags::RENAME_NOREPLACE)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = unlink_at(&self.dir, &self.name);
        }
    }
}

fn without_any_name(dir: &File) -> Result<File, Errno> {
    let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    Ok(openat(dir, ".", flags, private())?.into())
}

fn with_temporary_name(dir: &File) -> io::Result<UnnamedFile> {
    // Done before the file exists: a failure afterwards would leave the file behind.
    let own_dir = dir.try_clone()?;
    let (file, name) = free_name(|name| create_at(dir, name, None))?;
    Ok(UnnamedFile { file, temporary: Some(TemporaryName { dir: own_dir, name, renamed: false }) })
}

/// The temporary name of the file that will replace `name`. It is always the same, so a process that is killed in
/// the middle leaves at most one file, and the next replacement removes it.
fn beside(name: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    format!(".shmlimit-0-{hash:016x}.tmp")
}

/// Calls `take` with temporary names until one is free.
fn free_name<R>(take: impl Fn(&str) -> io::Result<R>) -> io::Result<(R, String)> {
    let pid = std::process::id();
    for _ in 0..TEMPORARY_NAME_TRIES {
        let name = format!(".shmlimit-{pid}-{:x}.tmp", super::wall_now());
        match take(&name) {
            Ok(taken) => return Ok((taken, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no temporary name was free"))
}

/// Allocates the space now: `set_len` succeeds on a full disk, and the first store into the mapping would raise
/// SIGBUS.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    let len = i64::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    loop {
        match posix_fallocate(file, 0, len) {
            Err(Errno::EINTR) => {}
            done => return Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::files::tests::directory;
    use crate::sys::linux::files::{facts, facts_at, open_directory, open_or_create_at};

    fn names(path: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(path.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn both_ways(dir: &File) -> [UnnamedFile; 2] {
        let named = with_temporary_name(dir).unwrap();
        let_in(&named.file, None).unwrap();
        reserve(&named.file, 8192).unwrap();
        [unnamed_file(dir, None, 8192).unwrap(), named]
    }

    #[test]
    fn linked_file_has_exactly_the_requested_access_and_length() {
        let (path, dir) = directory();
        for unnamed in both_ways(&dir) {
            let file = unnamed.file().try_clone().unwrap();
            unnamed.link(&dir, "segment").unwrap();
            let seen = facts(&file).unwrap();
            assert_eq!(seen, facts_at(&dir, "segment").unwrap());
            assert_eq!(
                (seen.access.permission_mismatch(seen.access.owner(), None), seen.len, seen.links),
                (None, 8192, 1)
            );
            unlink_at(&dir, "segment").unwrap();
        }
        assert!(names(&path).is_empty());
    }

    #[test]
    fn linking_to_an_existing_name_fails_and_leaves_nothing_behind() {
        let (path, dir) = directory();
        let first = facts(&open_or_create_at(&dir, "segment", None).unwrap()).unwrap();
        for unnamed in both_ways(&dir) {
            let error = unnamed.link(&dir, "segment").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(names(&path), ["segment"]);
        assert_eq!(facts_at(&dir, "segment").unwrap(), first);
    }

    #[test]
    fn replacement_removes_the_file_left_by_a_killed_replacement() {
        let (path, dir) = directory();
        // Once without a file to replace, once with one.
        for _ in 0..2 {
            open_or_create_at(&dir, &beside("segment"), None).unwrap();
            unnamed_file(&dir, None, 8192).unwrap().replace(&dir, "segment").unwrap();
            assert_eq!(names(&path), ["segment"]);
        }
    }

    #[test]
    fn unnamed_file_that_is_dropped_leaves_nothing_behind() {
        let (path, dir) = directory();
        let both = both_ways(&dir);
        assert_eq!(names(&path).len(), 1, "the temporary name, and only that");
        drop(both);
        assert!(names(&path).is_empty());
    }

    #[test]
    fn full_disk_is_an_error_at_creation() {
        use nix::mount::{MsFlags, mount};
        use nix::sched::{CloneFlags, unshare};
        let path = tempfile::tempdir().unwrap();
        // In a separate thread, because the mount namespace ends with the thread.
        let tried = std::thread::scope(|scope| {
            let full = || -> Result<io::Result<UnnamedFile>, Errno> {
                unshare(CloneFlags::CLONE_NEWNS)?;
                mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
                mount(Some("none"), path.path(), Some("tmpfs"), MsFlags::empty(), Some("size=64k"))?;
                let dir = open_directory(path.path()).unwrap();
                drop(unnamed_file(&dir, None, 4096).unwrap());
                Ok(unnamed_file(&dir, None, 1 << 20))
            };
            scope.spawn(full).join().unwrap()
        });
        match tried {
            Ok(answer) => assert_eq!(answer.unwrap_err().raw_os_error(), Some(nix::libc::ENOSPC)),
            Err(error) => eprintln!("not tested: mounting a small tmpfs is not permitted here ({error})"),
        }
    }
}
