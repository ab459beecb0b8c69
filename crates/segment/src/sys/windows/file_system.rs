//! The kind of file system a file lives in, from its path, its drive type, and whether a network protocol reaches
//! it.

use std::fs::File;
use std::io;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_REMOTE_PROTOCOL_INFO, FileRemoteProtocolInfo, GetDriveTypeW,
};
use windows_sys::Win32::System::WindowsProgramming::{DRIVE_RAMDISK, DRIVE_REMOTE};

use super::deferred_unlink::path_of;
use super::native::{information, wide};
use crate::sys::FileSystem;

pub fn file_system(file: &File) -> io::Result<FileSystem> {
    // Only a file that is reached through a network has this information.
    if information::<FILE_REMOTE_PROTOCOL_INFO>(file, FileRemoteProtocolInfo).is_ok() {
        return Ok(FileSystem::Network("network drive"));
    }
    // A file without a path is not on the drive letter of a network drive.
    let path = path_of(file).unwrap_or_default();
    let path = path.to_string_lossy();
    Ok(classify(&path, path.get(4..7).map_or(0, drive_type)))
}

fn classify(path: &str, drive: u32) -> FileSystem {
    match drive {
        _ if path.starts_with(r"\\?\UNC\") => FileSystem::Network("network share"),
        DRIVE_REMOTE => FileSystem::Network("network drive"),
        DRIVE_RAMDISK => FileSystem::Volatile,
        _ => FileSystem::Local,
    }
}

/// The drive type of a root such as `C:\`.
fn drive_type(root: &str) -> u32 {
    // SAFETY: the text ends with a zero and is alive for the whole call.
    unsafe { GetDriveTypeW(wide(root).as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_shares_and_drives_are_distinguished_from_disks() {
        assert_eq!(classify(r"\\?\UNC\server\share\x", 0), FileSystem::Network("network share"));
        assert_eq!(classify(r"\\?\Z:\x", DRIVE_REMOTE), FileSystem::Network("network drive"));
        assert_eq!(classify(r"\\?\R:\x", DRIVE_RAMDISK), FileSystem::Volatile);
        assert_eq!(classify(r"\\?\C:\x", 3), FileSystem::Local);
        assert_eq!(classify(r"\\?\Volume{1}\x", 0), FileSystem::Local);
    }

    #[test]
    fn an_open_file_has_a_file_system() {
        assert_eq!(file_system(&tempfile::tempfile().unwrap()).unwrap(), FileSystem::Local);
    }
}
