//! Remedies for errors of the operating system.

use std::io;
use std::path::Path;

/// Error numbers that only Windows has: for a read-only file, and for a mapped file that cannot be overwritten.
pub(super) const FILE_READ_ONLY: i32 = 6009;
pub(super) const USER_MAPPED_FILE: i32 = 1224;

/// The remedy for an error of the operating system, or an empty text.
pub(super) fn hint(source: &io::Error, path: &Path) -> String {
    let (location, path) = (path, path.display());
    match source.raw_os_error() {
        Some(FILE_READ_ONLY) => {
            return format!("; it is marked read-only; remove that mark with: attrib -r \"{path}\"");
        }
        Some(USER_MAPPED_FILE) => {
            return "; programs have it mapped; end them first (shmlimit status shows them)".to_owned();
        }
        _ => {}
    }
    let hint = match source.kind() {
        io::ErrorKind::NotFound => return parent_hint(location),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another directory with --dir"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on the size of files that this process may write (ulimit -f, LimitFSIZE= of systemd)"
        }
        io::ErrorKind::ReadOnlyFilesystem => "choose a writable directory with --dir",
        // Windows does not say who has access, nor whether the error concerns the file or the directory.
        io::ErrorKind::PermissionDenied if cfg!(windows) => {
            return format!(
                "; to see who may use it, run: icacls \"{path}\", or choose a directory of your own with --dir"
            );
        }
        io::ErrorKind::PermissionDenied => "choose a directory of your own with --dir",
        io::ErrorKind::WouldBlock => "another process is creating or removing a limiter there; try again",
        io::ErrorKind::ResourceBusy if cfg!(windows) => {
            "in the Resource Monitor (resmon), find the program that uses this file, and end that program or keep \
             it away from the file"
        }
        _ => return String::new(),
    };
    format!("; {hint}")
}

/// The remedy if the parent directory of a path does not exist.
fn parent_hint(path: &Path) -> String {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
        Some(parent) => {
            format!("; create {} first, or choose another directory with --dir", parent.display())
        }
        None => String::new(),
    }
}
