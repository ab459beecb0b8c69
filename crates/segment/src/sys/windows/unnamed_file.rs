//! A file that gets its name only when it is whole.

use std::fs::File;
use std::io;
use std::os::windows::fs::FileExt;

use windows_sys::Win32::Storage::FileSystem::{COMPRESSION_FORMAT_NONE, DELETE, FILE_ATTRIBUTE_COMPRESSED};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::FSCTL_SET_COMPRESSION;

use super::deferred_unlink::{delete, new_name, rename, sweep};
use super::files::{USE, attributes, create_at};
use super::native::{check, patiently, raw};
use super::sid::Account;

/// Names tried before giving up; a collision needs a leftover of the same process id and moment.
const TEMPORARY_NAME_TRIES: u32 = 16;

/// Zeros written at once.
const PIECE: usize = 64 << 10;

/// A new file under a name that nobody looks for; see the contract. What a process killed meanwhile leaves behind goes
/// when the next file is made.
#[derive(Debug)]
pub struct UnnamedFile {
    file: File,
    named: bool,
}

pub fn unnamed_file(dir: &File, _shared_with: Option<Account>, len: u64) -> io::Result<UnnamedFile> {
    sweep(dir);
    for _ in 0..TEMPORARY_NAME_TRIES {
        match create_at(dir, &new_name(), USE | DELETE) {
            Ok(file) => {
                let unnamed = UnnamedFile { file, named: false };
                take_room(&unnamed.file, len)?;
                return Ok(unnamed);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no temporary name was free"))
}

/// A mapping cannot say that the disk is full, so the room must be there before. What is written takes room, except in a
/// compressed file, where zeros take none.
fn take_room(file: &File, len: u64) -> io::Result<()> {
    if attributes(file)? & FILE_ATTRIBUTE_COMPRESSED != 0 {
        decompress(file)?;
    }
    file.set_len(len)?;
    let zeros = [0; PIECE];
    let mut at = 0;
    while at < len {
        let piece = usize::try_from(len - at).map_or(PIECE, |left| left.min(PIECE));
        match file.seek_write(&zeros[..piece], at)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => at += written as u64,
        }
    }
    Ok(())
}

/// A file inherits compression from its directory.
fn decompress(file: &File) -> io::Result<()> {
    let (none, mut length) = (COMPRESSION_FORMAT_NONE, 0);
    // SAFETY: the handle is open and not overlapped; what is read and written is alive for the whole call.
    check(unsafe {
        DeviceIoControl(
            raw(file),
            FSCTL_SET_COMPRESSION,
            (&raw const none).cast(),
            size_of_val(&none) as u32,
            std::ptr::null_mut(),
            0,
            &mut length,
            std::ptr::null_mut(),
        )
    })
}

impl UnnamedFile {
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The handle of a lock is kept here, so there is nothing to lose; `LivenessLock::hold` looks all the same.
    pub fn keeps_locks(&self) -> io::Result<bool> {
        Ok(true)
    }

    pub fn link(mut self, dir: &File, name: &str) -> io::Result<()> {
        patiently(|| rename(&self.file, dir, name))?;
        self.named = true;
        Ok(())
    }
}

impl UnnamedFile {
    /// Two steps: a mapped file cannot be renamed over. Openers that find neither wait for the creation lock.
    pub fn replace(self, dir: &File, name: &str) -> io::Result<()> {
        match super::deferred_unlink::unlink_at(dir, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.link(dir, name)
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        if !self.named {
            let _ = delete(&self.file);
        }
    }
}
