//! A file that gets its name only when it is whole.

use std::fs::File;
use std::io;

use windows_sys::Win32::Storage::FileSystem::DELETE;

use super::files::{USE, create_at};
use super::gone::{delete, rename};
use super::native::patiently;
use super::sid::Account;

/// Names tried before giving up; a collision needs a leftover of the same process id and moment.
const TEMPORARY_NAME_TRIES: u32 = 16;

/// A new file under a name that nobody looks for; see the contract. A process killed meanwhile leaves it behind.
#[derive(Debug)]
pub(crate) struct UnnamedFile {
    file: File,
    named: bool,
}

pub(crate) fn unnamed_file(dir: &File, _shared_with: Option<Account>, len: u64) -> io::Result<UnnamedFile> {
    for _ in 0..TEMPORARY_NAME_TRIES {
        let name = format!(".shmlimit-{}-{:x}.tmp", std::process::id(), super::wall_now());
        match create_at(dir, &name, USE | DELETE) {
            Ok(file) => {
                let unnamed = UnnamedFile { file, named: false };
                // NTFS and ReFS take the room now; only a compressed or sparse file would not.
                unnamed.file.set_len(len)?;
                return Ok(unnamed);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no temporary name was free"))
}

impl UnnamedFile {
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn link(mut self, dir: &File, name: &str) -> io::Result<()> {
        patiently(|| rename(&self.file, dir, name))?;
        self.named = true;
        Ok(())
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        if !self.named {
            let _ = delete(&self.file);
        }
    }
}
