//! Helpers for several files of this folder: handles, paths, errors, and retries while another program uses a file.

use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    ERROR_LOCK_VIOLATION, ERROR_SHARING_VIOLATION, HANDLE, INVALID_HANDLE_VALUE, NTSTATUS,
    RtlNtStatusToDosError, STATUS_DELETE_PENDING,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_INFO_BY_HANDLE_CLASS, FILE_SHARE_DELETE, FILE_SHARE_READ,
    FILE_SHARE_WRITE, GetFileInformationByHandleEx, ReOpenFile,
};

/// The sharing mode of our open files: other handles may do everything, as on Unix.
pub(super) const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// How long to wait for a scanner, an indexer or a backup that has opened a file exclusively.
const IN_USE_LIMIT: Duration = Duration::from_millis(500);
/// From this length on, a path must be passed in verbatim form. The system's limit is 260, including a file name.
const LONG_PATH: usize = 240;

pub(super) fn raw(file: &File) -> HANDLE {
    file.as_raw_handle()
}

/// Takes ownership of a handle that a call has just returned. A null or invalid handle means that the call failed.
///
/// # Safety
/// No other code owns `handle`.
pub(super) unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller guarantees ownership, and the value is a handle.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Converts the answer of a call that returns 0 on failure.
pub(super) fn check(answer: windows_sys::core::BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Converts the answer of a native call. A file that is being deleted counts as missing.
pub(super) fn check_status(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        STATUS_DELETE_PENDING => Err(io::ErrorKind::NotFound.into()),
        // SAFETY: a pure function of its argument.
        status => Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(status) } as i32)),
    }
}

/// Queries one of the fixed-size kinds of information about an open file.
pub(super) fn information<T: Default>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut answer = T::default();
    // SAFETY: `answer` is a live, writable T of that size, which is the type of this class; the system writes plain
    // data.
    check(unsafe {
        GetFileInformationByHandleEx(raw(file), class, (&raw mut answer).cast(), size_of::<T>() as u32)
    })?;
    Ok(answer)
}

/// Opens the same file or directory once more with other access rights.
pub(super) fn reopened(file: &File, access: u32) -> io::Result<File> {
    // SAFETY: the handle is open for the whole call; only this code owns the returned handle.
    let handle = unsafe { owned(ReOpenFile(raw(file), access, SHARE_ALL, FILE_FLAG_BACKUP_SEMANTICS)) }?;
    Ok(handle.into())
}

/// Retries for a limited time while another program has opened the file exclusively.
pub(super) fn patiently<R>(mut attempt: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    let (started, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        match attempt() {
            Err(error) if is_in_use(&error) => {
                if started.elapsed() >= IN_USE_LIMIT {
                    return Err(io::Error::new(
                        io::ErrorKind::ResourceBusy,
                        format!("another program has had it to itself for half a second ({error})"),
                    ));
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            answer => return answer,
        }
    }
}

pub(super) fn is_in_use(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(|code| code as u32),
        Some(ERROR_SHARING_VIOLATION | ERROR_LOCK_VIOLATION)
    )
}

/// Text as UTF-16 with a terminating zero.
pub(super) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// An absolute path as UTF-16 with a terminating zero, of any length.
pub(super) fn wide_path(path: &Path) -> io::Result<Vec<u16>> {
    let path = std::path::absolute(path)?;
    let units: Vec<u16> = path.as_os_str().encode_wide().collect();
    let [verbatim, unc, share] =
        [r"\\?\", r"\\?\UNC\", r"\\"].map(|text| text.encode_utf16().collect::<Vec<_>>());
    let mut whole = match units.len() >= LONG_PATH && !units.starts_with(&verbatim) {
        false => units,
        true if units.starts_with(&share) => [&unc, &units[2..]].concat(),
        true => [verbatim, units].concat(),
    };
    whole.push(0);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_passed_in_verbatim_form() {
        let text = |path: &str| {
            let units = wide_path(Path::new(path)).unwrap();
            String::from_utf16(&units[..units.len() - 1]).unwrap()
        };
        let long = "x".repeat(300);
        assert_eq!(text(r"C:\limits"), r"C:\limits");
        assert_eq!(text(&format!(r"C:\{long}")), format!(r"\\?\C:\{long}"));
        assert_eq!(text(&format!(r"\\server\share\{long}")), format!(r"\\?\UNC\server\share\{long}"));
        assert_eq!(text(&format!(r"\\?\C:\{long}")), format!(r"\\?\C:\{long}"));
    }

    #[test]
    fn only_a_file_in_use_is_retried() {
        let mut calls = 0;
        let answer: io::Result<()> = patiently(|| {
            calls += 1;
            match calls {
                1 | 2 => Err(io::Error::from_raw_os_error(ERROR_SHARING_VIOLATION as i32)),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        });
        assert_eq!((answer.unwrap_err().kind(), calls), (io::ErrorKind::NotFound, 3));
        let busy: io::Result<()> =
            patiently(|| Err(io::Error::from_raw_os_error(ERROR_LOCK_VIOLATION as i32)));
        assert_eq!(busy.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    }
}
