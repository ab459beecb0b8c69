//! A file that gets its name only when it is complete.

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

/// How many names are tried. A collision requires a leftover file of the same process id and time.
const TEMPORARY_NAME_TRIES: u32 = 16;

/// How many zero bytes one write contains.
const PIECE: usize = 64 << 10;

/// A new file under a name that no process looks for; see the contract. If a process is killed meanwhile, its file
/// is deleted when the next file is created.
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

/// A mapping cannot report that the disk is full, so the space must be allocated before. Written bytes are
/// allocated, except in a compressed file, where zeros need no space.
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

/// Removes the compression that a file inherits from its directory.
fn decompress(file: &File) -> io::Result<()> {
    let (none, mut length) = (COMPRESSION_FORMAT_NONE, 0);
    // SAFETY: the handle is open and not overlapped; all memory that the call reads and writes is alive for the
    // whole call.
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

    /// Always true, because a lock's handle is kept open here and cannot be lost. `LivenessLock::hold` checks
    /// anyway.
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
    /// Replaces in two steps, because a rename cannot replace a mapped file. A process that finds neither file
    /// waits for the creation lock.
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
