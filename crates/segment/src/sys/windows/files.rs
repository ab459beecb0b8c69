//! Opens and describes files, relative to an open directory and never through a link.
//!
//! A reparse point (a symbolic link, a junction, a placeholder of a program that stores files elsewhere) is opened
//! itself. It then counts as neither a regular file nor a directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_OPEN_REPARSE_POINT, FILE_SYNCHRONOUS_IO_NONALERT,
    NTCREATEFILE_CREATE_DISPOSITION, NTCREATEFILE_CREATE_OPTIONS, NtCreateFile,
};
use windows_sys::Win32::Foundation::{ERROR_FILE_READ_ONLY, OBJ_CASE_INSENSITIVE, UNICODE_STRING};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TAG_INFO, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_ID_INFO, FILE_READ_ATTRIBUTES,
    FILE_STANDARD_INFO, FileAttributeTagInfo, FileIdInfo, FileStandardInfo, GetFileInformationByHandle,
    READ_CONTROL, SYNCHRONIZE,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::access::Access;
use super::native::{SHARE_ALL, check, check_status, information, owned, patiently, raw};
use super::sid::Account;
use crate::sys::FileFacts;

/// How often opening and creating may miss each other. Each miss requires another process to create *and* delete
/// the file.
const OPEN_OR_CREATE_TRIES: u32 = 16;
/// The access that this library needs to files: read, write, map, lock.
pub(super) const USE: u32 = FILE_GENERIC_READ | FILE_GENERIC_WRITE;

pub fn facts(file: &File) -> io::Result<FileFacts> {
    let standard: FILE_STANDARD_INFO = information(file, FileStandardInfo)?;
    let (dev, ino) = identity(file)?;
    let link = attributes(file)? & FILE_ATTRIBUTE_REPARSE_POINT != 0;
    Ok(FileFacts {
        regular: !standard.Directory && !link,
        directory: standard.Directory && !link,
        access: Access::of(file)?,
        links: if standard.DeletePending { 0 } else { u64::from(standard.NumberOfLinks) },
        len: u64::try_from(standard.EndOfFile).unwrap_or(0),
        dev,
        ino,
    })
}

/// The volume and the number of the file on it.
pub(super) fn identity(file: &File) -> io::Result<(u64, u64)> {
    match information::<FILE_ID_INFO>(file, FileIdInfo) {
        Ok(id) => {
            let number = u128::from_le_bytes(id.FileId.Identifier);
            // Numbers of NTFS fit into one word. Numbers of ReFS are folded into one word, and a collision is
            // extremely unlikely.
            Ok((id.VolumeSerialNumber, number as u64 ^ ((number >> 64) as u64).rotate_left(32)))
        }
        // FAT has only the old kind of number.
        Err(_) => {
            let mut old = BY_HANDLE_FILE_INFORMATION::default();
            // SAFETY: the handle is open, and `old` is a live place for the answer.
            check(unsafe { GetFileInformationByHandle(raw(file), &mut old) })?;
            let number = u64::from(old.nFileIndexHigh) << 32 | u64::from(old.nFileIndexLow);
            Ok((old.dwVolumeSerialNumber.into(), number))
        }
    }
}

pub fn facts_at(dir: &File, name: &str) -> io::Result<FileFacts> {
    let access = FILE_READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE;
    facts(&patiently(|| relative(dir, name, access, SHARE_ALL, FILE_OPEN, 0))?)
}

pub(super) fn attributes(file: &File) -> io::Result<u32> {
    Ok(information::<FILE_ATTRIBUTE_TAG_INFO>(file, FileAttributeTagInfo)?.FileAttributes)
}

pub fn open_directory(path: &Path) -> io::Result<File> {
    let dir = OpenOptions::new()
        .access_mode(FILE_GENERIC_READ)
        .share_mode(SHARE_ALL)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)?;
    match attributes(&dir)? & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) {
        FILE_ATTRIBUTE_DIRECTORY => Ok(dir),
        _ => Err(io::ErrorKind::NotADirectory.into()),
    }
}

pub fn open_file_at(dir: &File, name: &str) -> io::Result<File> {
    match patiently(|| relative(dir, name, USE, SHARE_ALL, FILE_OPEN, FILE_NON_DIRECTORY_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let there =
                relative(dir, name, FILE_READ_ATTRIBUTES, SHARE_ALL, FILE_OPEN, FILE_NON_DIRECTORY_FILE);
            Err(denied(error, there.and_then(|file| attributes(&file)).unwrap_or(0)))
        }
        opened => opened,
    }
}

/// Replaces "access denied" by a more precise error if the file is marked read-only, which forbids writing to every
/// user.
fn denied(error: io::Error, attributes: u32) -> io::Error {
    match attributes & FILE_ATTRIBUTE_READONLY {
        0 => error,
        _ => io::Error::from_raw_os_error(ERROR_FILE_READ_ONLY as i32),
    }
}

/// Ignores `_shared_with`: a new file inherits the access of its directory, which is private or shared.
pub fn open_or_create_at(dir: &File, name: &str, _shared_with: Option<Account>) -> io::Result<File> {
    for _ in 0..OPEN_OR_CREATE_TRIES {
        match open_file_at(dir, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match create_at(dir, name, USE) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program keeps creating and deleting the file"))
}

/// Creates a file that must not exist.
pub(super) fn create_at(dir: &File, name: &str, access: u32) -> io::Result<File> {
    patiently(|| relative(dir, name, access, SHARE_ALL, FILE_CREATE, FILE_NON_DIRECTORY_FILE))
}

/// Opens a name in a directory, even if another directory has been put at the directory's path meanwhile. The
/// handle is not inherited.
pub(super) fn relative(
    dir: &File,
    name: &str,
    access: u32,
    share: u32,
    disposition: NTCREATEFILE_CREATE_DISPOSITION,
    options: NTCREATEFILE_CREATE_OPTIONS,
) -> io::Result<File> {
    let units: Vec<u16> = name.encode_utf16().collect();
    let bytes =
        u16::try_from(units.len() * 2).map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let text = UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: units.as_ptr().cast_mut() };
    let which = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: raw(dir),
        ObjectName: &raw const text,
        Attributes: OBJ_CASE_INSENSITIVE,
        ..Default::default()
    };
    let (mut handle, mut status) = (std::ptr::null_mut(), IO_STATUS_BLOCK::default());
    // SAFETY: all memory that the pointers refer to (the name, the attributes, the places for the answers) is alive
    // for the whole call, and the call keeps no pointer to it; it only reads the name.
    check_status(unsafe {
        NtCreateFile(
            &mut handle,
            access | SYNCHRONIZE,
            &which,
            &mut status,
            std::ptr::null(),
            FILE_ATTRIBUTE_NORMAL,
            share,
            disposition,
            options | FILE_OPEN_REPARSE_POINT | FILE_SYNCHRONOUS_IO_NONALERT,
            std::ptr::null(),
            0,
        )
    })?;
    // SAFETY: the call has just created the handle, and no other code knows it.
    Ok(unsafe { owned(handle) }?.into())
}

/// Makes a directory writable by every user, which a directory of limiters must never be.
#[cfg(test)]
pub fn open_to_anybody(path: &Path) {
    use super::acl::Descriptor;
    use super::native::reopened;
    use windows_sys::Win32::Storage::FileSystem::{READ_CONTROL, WRITE_DAC};

    let list = Descriptor::parse("D:P(A;OICI;FA;;;WD)").unwrap();
    let dir = open_directory(path).unwrap();
    list.apply(&reopened(&dir, READ_CONTROL | WRITE_DAC).unwrap()).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests only `denied`, because Wine leaves the check to the underlying system, where the superuser may always
    /// write.
    #[test]
    fn read_only_file_is_distinguished_from_denied_access() {
        let no = || io::Error::from(io::ErrorKind::PermissionDenied);
        let marked = denied(no(), FILE_ATTRIBUTE_READONLY | FILE_ATTRIBUTE_NORMAL);
        assert_eq!(marked.raw_os_error(), Some(ERROR_FILE_READ_ONLY as i32));
        assert_eq!(denied(no(), FILE_ATTRIBUTE_NORMAL).kind(), io::ErrorKind::PermissionDenied);
    }
}
