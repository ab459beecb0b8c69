//! Taking a file's name away while others have the file mapped.
//!
//! A mapped file can be neither deleted nor replaced, but it can be renamed. So it gets a name that nobody looks for, and
//! is deleted if that is possible by now; else by whoever takes a name away in this directory after its last user left.

use std::fs::File;
use std::io;

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_DISPOSITION_DELETE, FILE_DISPOSITION_POSIX_SEMANTICS, FILE_NON_DIRECTORY_FILE, FILE_OPEN,
    FILE_RENAME_INFORMATION, FileRenameInformation, NtSetInformationFile,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX, FILE_NAME_NORMALIZED, FILE_READ_ATTRIBUTES,
    FileDispositionInfo, FileDispositionInfoEx, GetFinalPathNameByHandleW, SetFileInformationByHandle,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::files::relative;
use super::native::{check, check_status, patiently, raw};

/// `.shmlimit-PID-TIME.gone`.
const PREFIX: &str = ".shmlimit-";
const SUFFIX: &str = ".gone";
/// The longest path there is, in UTF-16 units.
const LONGEST_PATH: usize = 32_768;

pub(crate) fn unlink_at(dir: &File, name: &str) -> io::Result<()> {
    let file = open_to_delete(dir, name)?;
    let gone = format!("{PREFIX}{}-{:x}{SUFFIX}", std::process::id(), super::wall_now());
    match patiently(|| rename(&file, dir, &gone)) {
        Ok(()) => {
            let _ = delete(&file);
            drop(file);
            sweep(dir);
            Ok(())
        }
        // A directory without room for another name, say: perhaps it can go at once.
        Err(error) => delete(&file).map_err(|_| error),
    }
}

fn open_to_delete(dir: &File, name: &str) -> io::Result<File> {
    let access = DELETE | FILE_READ_ATTRIBUTES;
    patiently(|| relative(dir, name, access, FILE_OPEN, FILE_NON_DIRECTORY_FILE))
}

/// Gives an open file another name in its directory, unless that is taken.
pub(super) fn rename(file: &File, dir: &File, name: &str) -> io::Result<()> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let head = std::mem::offset_of!(FILE_RENAME_INFORMATION, FileName);
    let bytes = head + units.len() * 2;
    // Words, because the structure is aligned to them.
    let mut buffer = vec![0_u64; bytes.max(size_of::<FILE_RENAME_INFORMATION>()).div_ceil(8)];
    let info: *mut FILE_RENAME_INFORMATION = buffer.as_mut_ptr().cast();
    // SAFETY: the buffer is aligned, zeroed, and large enough for the structure with the whole name behind it; all
    // zero is a value of it (in particular: do not replace).
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

/// Deletes an open file: at once where the system can, else when its last handle is closed.
pub(super) fn delete(file: &File) -> io::Result<()> {
    let at_once =
        FILE_DISPOSITION_INFO_EX { Flags: FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX_SEMANTICS };
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

/// Deletes what was renamed before and is used by nobody any more. What is still used stays.
fn sweep(dir: &File) {
    let Ok(path) = path_of(dir) else { return };
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str().filter(|name| is_gone(name))
            && let Ok(file) =
                relative(dir, name, DELETE | FILE_READ_ATTRIBUTES, FILE_OPEN, FILE_NON_DIRECTORY_FILE)
        {
            let _ = delete(&file);
        }
    }
}

/// Whether a file's name was taken away.
pub(super) fn has_no_name(file: &File) -> bool {
    path_of(file).is_ok_and(|path| path.rsplit('\\').next().is_some_and(is_gone))
}

fn is_gone(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.ends_with(SUFFIX))
}

/// Where an open file is, as a path to be taken literally.
pub(super) fn path_of(file: &File) -> io::Result<String> {
    let mut units = vec![0; 512];
    loop {
        // SAFETY: the buffer is alive, writable and as long as said.
        let length = unsafe {
            GetFinalPathNameByHandleW(raw(file), units.as_mut_ptr(), units.len() as u32, FILE_NAME_NORMALIZED)
        } as usize;
        match length {
            0 => return Err(io::Error::last_os_error()),
            length if length < units.len() => return Ok(String::from_utf16_lossy(&units[..length])),
            length => units.resize(length.clamp(units.len() + 1, LONGEST_PATH + 1), 0),
        }
        if units.len() > LONGEST_PATH {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
    }
}
