//! Calls that several files here make: handles, paths, errors, and patience with programs that look at files.

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

/// What others may do with a file that we have open: everything, as on Unix.
pub(super) const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// How long to put up with a scanner, an indexer or a backup that has a file to itself.
const IN_USE_LIMIT: Duration = Duration::from_millis(500);
/// From here on a longer path must say that it is to be taken literally; the system's limit is 260 with a file name.
const LONG_PATH: usize = 240;

pub(super) fn raw(file: &File) -> HANDLE {
    file.as_raw_handle()
}

/// Takes over a handle that a call has just made; `None` and the invalid one mean that it failed.
///
/// # Safety
/// Nobody else owns `handle`.
pub(super) unsafe fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller says that it is ours, and it is a handle.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A call that answers 0 for failure.
pub(super) fn check(answer: windows_sys::core::BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A native call's answer. A file that is being deleted counts as one that is not there.
pub(super) fn check_status(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        STATUS_DELETE_PENDING => Err(io::ErrorKind::NotFound.into()),
        // SAFETY: a pure function of its argument.
        status => Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(status) } as i32)),
    }
}

/// One of the fixed-size answers about an open file.
pub(super) fn information<T: Default>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut answer = T::default();
    // SAFETY: `answer` is a live, writable T of that size, which the class is about; the system writes plain data.
    check(unsafe {
        GetFileInformationByHandleEx(raw(file), class, (&raw mut answer).cast(), size_of::<T>() as u32)
    })?;
    Ok(answer)
}

/// The same file or directory, opened once more for other purposes.
pub(super) fn reopened(file: &File, access: u32) -> io::Result<File> {
    // SAFETY: the handle is open for the whole call; what comes back is ours alone.
    let handle = unsafe { owned(ReOpenFile(raw(file), access, SHARE_ALL, FILE_FLAG_BACKUP_SEMANTICS)) }?;
    Ok(handle.into())
}

/// Tries again for a while if another program has the file to itself.
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

/// Text as the system wants it, with the zero at its end.
pub(super) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// An absolute path as the system wants it, however long.
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
    fn long_paths_are_taken_literally() {
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
    fn only_a_file_in_use_is_tried_again() {
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
