//! Removes a file's name while other processes have the file mapped.
//!
//! A mapped file can be neither deleted nor replaced, but it can be renamed. So it gets a name that no process
//! looks for. If it can already be deleted, it is deleted at once. Otherwise, after its last user has closed it,
//! the next process that creates a file or removes a name in this directory deletes it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_DISPOSITION_DELETE, FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE, FILE_DISPOSITION_POSIX_SEMANTICS,
    FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_RENAME_INFORMATION, FileRenameInformation, NtSetInformationFile,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_NAME_NORMALIZED, FILE_READ_ATTRIBUTES, FileDispositionInfo, FileDispositionInfoEx,
    GetFinalPathNameByHandleW, SetFileInformationByHandle, VOLUME_NAME_GUID,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::files::{identity, relative};
use super::native::{SHARE_ALL, check, check_status, patiently, raw};

/// Hidden names have the form `.shmlimit-PID-TIME.gone`, or `.tmp` for a file that has no name yet.
const PREFIX: &str = ".shmlimit-";
const GONE: &str = ".gone";
const NEW: &str = ".tmp";
/// Sharing mode of a file that must be open only here: no sharing.
const ALONE: u32 = 0;
/// The longest possible path, in UTF-16 units.
const LONGEST_PATH: usize = 32_768;

pub fn unlink_at(dir: &File, name: &str) -> io::Result<()> {
    let file = open_to_delete(dir, name)?;
    let gone = hidden_name(GONE);
    match patiently(|| rename(&file, dir, &gone)) {
        Ok(()) => {
            let _ = delete(&file);
            drop(file);
            sweep(dir);
            Ok(())
        }
        // For example, the directory has no room for another name. Perhaps the file can be deleted at once.
        Err(error) => delete(&file).map_err(|_| error),
    }
}

pub fn remove_at(dir: &File, name: &str) -> io::Result<()> {
    unlink_at(dir, name)
}

/// Always false: the system does not delete a file that is in use.
pub fn is_deleted_in_use(_path: &Path) -> bool {
    false
}

fn open_to_delete(dir: &File, name: &str) -> io::Result<File> {
    let access = DELETE | FILE_READ_ATTRIBUTES;
    patiently(|| relative(dir, name, access, SHARE_ALL, FILE_OPEN, FILE_NON_DIRECTORY_FILE))
}

/// A hidden name for a file that has no name yet.
pub(super) fn new_name() -> String {
    hidden_name(NEW)
}

fn hidden_name(suffix: &str) -> String {
    format!("{PREFIX}{}-{:x}{suffix}", std::process::id(), super::wall_now())
}

/// Renames an open file within its directory, unless the new name is taken.
pub(super) fn rename(file: &File, dir: &File, name: &str) -> io::Result<()> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let head = std::mem::offset_of!(FILE_RENAME_INFORMATION, FileName);
    let bytes = head + units.len() * 2;
    // Allocated in words, because the structure requires their alignment.
    let mut buffer = vec![0_u64; bytes.max(size_of::<FILE_RENAME_INFORMATION>()).div_ceil(8)];
    let info: *mut FILE_RENAME_INFORMATION = buffer.as_mut_ptr().cast();
    // SAFETY: the buffer is aligned, zeroed, and large enough for the structure followed by the whole name; all
    // zero is a valid value of the structure (in particular: do not replace).
    unsafe {
        (*info).RootDirectory = raw(dir);
        (*info).FileNameLength = (units.len() * 2) as u32;
        std::ptr::copy_nonoverlapping(units.as_ptr(), (&raw mut (*info).FileName).cast(), units.len());
    }
    let mut status = IO_STATUS_BLOCK::default();
    // SAFETY: buffer and status are alive for the whole call, which reads `bytes` bytes and keeps no pointer.
    check_status(unsafe {
        NtSetInformationFile(raw(file), &mut status, info.cast(), bytes as u32, FileRenameInformation)
    })
}

/// Deletes an open file: at once where the system can, otherwise when its last handle is closed.
pub(super) fn delete(file: &File) -> io::Result<()> {
    let at_once = FILE_DISPOSITION_INFO_EX {
        Flags: FILE_DISPOSITION_DELETE
            | FILE_DISPOSITION_POSIX_SEMANTICS
            | FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE,
    };
    // SAFETY: the structure is alive for the whole call, which only reads it.
    let done = check(unsafe {
        SetFileInformationByHandle(
            raw(file),
            FileDispositionInfoEx,
            (&raw const at_once).cast(),
            size_of_val(&at_once) as u32,
        )
    });
    done.or_else(|_| {
        let later = FILE_DISPOSITION_INFO { DeleteFile: true };
        // SAFETY: as above.
        check(unsafe {
            SetFileInformationByHandle(
                raw(file),
                FileDispositionInfo,
                (&raw const later).cast(),
                size_of_val(&later) as u32,
            )
        })
    })
}

/// Deletes files with hidden names that are no longer in use: their last user has left, or the process that created
/// them was killed. A file that is still open elsewhere cannot be opened without sharing, and stays.
pub(super) fn sweep(dir: &File) {
    let Ok(path) = path_of(dir) else { return };
    // Stops at the first error: the system may return the same error forever.
    for entry in std::fs::read_dir(path).into_iter().flatten().map_while(Result::ok) {
        if let Some(name) = entry.file_name().to_str().filter(|name| is_nameless(name))
            && let Ok(file) =
                relative(dir, name, DELETE | FILE_READ_ATTRIBUTES, ALONE, FILE_OPEN, FILE_NON_DIRECTORY_FILE)
        {
            let _ = delete(&file);
        }
    }
}

/// Whether the name of a file was removed.
pub(super) fn has_no_name(file: &File) -> bool {
    let hidden = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_gone);
    path_of(file).is_ok_and(|path| hidden(&path) || !leads_to(&path, file))
}

/// Whether `path` refers to this file. Windows reports where a file is now. Wine reports where it was when it was
/// opened; now there may be no file or another file.
fn leads_to(path: &Path, file: &File) -> bool {
    let open = OpenOptions::new()
        .access_mode(FILE_READ_ATTRIBUTES)
        .share_mode(SHARE_ALL)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path);
    match open.and_then(|there| Ok((identity(&there)?, identity(file)?))) {
        Ok((there, here)) => there == here,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn is_gone(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(GONE)
}

fn is_nameless(name: &str) -> bool {
    is_gone(name) || name.starts_with(PREFIX) && name.ends_with(NEW)
}

/// The path of an open file, in verbatim form. Not every path is valid Unicode.
pub(super) fn path_of(file: &File) -> io::Result<PathBuf> {
    let (mut units, mut kind) = (vec![0; 512], FILE_NAME_NORMALIZED);
    loop {
        // SAFETY: the buffer is alive, writable and as long as said.
        let length =
            unsafe { GetFinalPathNameByHandleW(raw(file), units.as_mut_ptr(), units.len() as u32, kind) }
                as usize;
        match length {
            // A volume without a drive letter still has a name.
            0 if kind == FILE_NAME_NORMALIZED => kind |= VOLUME_NAME_GUID,
            0 => return Err(io::Error::last_os_error()),
            length if length < units.len() => return Ok(OsString::from_wide(&units[..length]).into()),
            length => units.resize(length.clamp(units.len() + 1, LONGEST_PATH + 1), 0),
        }
        if units.len() > LONGEST_PATH {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::{USE, create_at, open_directory};
    use super::super::memory::SharedMap;
    use super::*;

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(dir.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn unlink_removes_the_name_at_once_and_the_file_after_its_last_user() {
        let home = tempfile::tempdir().unwrap();
        let dir = open_directory(home.path()).unwrap();
        let file = create_at(&dir, "x.shm", USE).unwrap();
        file.set_len(4096).unwrap();
        let map = SharedMap::new(&file, 4096).unwrap();
        drop(file);
        assert!(!map.is_of_deleted_file());
        unlink_at(&dir, "x.shm").unwrap();
        assert!(map.is_of_deleted_file());
        assert!(!names(&home).contains(&"x.shm".to_owned()), "{:?}", names(&home));
        drop(create_at(&dir, "x.shm", USE).expect("the name is free"));
        drop(map);
        sweep(&dir);
        assert_eq!(names(&home), ["x.shm"]);
        assert_eq!(unlink_at(&dir, "y.shm").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn sweep_deletes_only_unused_files() {
        let home = tempfile::tempdir().unwrap();
        let dir = open_directory(home.path()).unwrap();
        let in_use = create_at(&dir, &new_name(), USE | DELETE).unwrap();
        std::fs::write(home.path().join(".shmlimit-1-1.tmp"), "of one that was killed").unwrap();
        std::fs::write(home.path().join(".shmlimit-1-1.log"), "not ours to delete").unwrap();
        sweep(&dir);
        assert_eq!(names(&home).len(), 2, "{:?}", names(&home));
        rename(&in_use, &dir, "x.shm").unwrap();
        drop(in_use);
        assert!(home.path().join("x.shm").exists(), "its maker was still at it");
    }
}
