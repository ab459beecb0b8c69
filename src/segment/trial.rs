//! Trying out a directory: does shared memory work there, and do locks?

use super::directory::Directory;
use super::layout;
use super::words::Words;
use crate::error::Error;
use crate::sys::{self, SharedMap, TakenPulse};
use std::fs::File;
use std::io;

impl Directory {
    /// Makes a file as large as a segment, maps it twice, and looks whether what is written through one mapping is seen
    /// through the other, and whether one descriptor's lock is seen by another. Leaves nothing behind, unless it is
    /// killed: then a temporary file, as killed makers of limiters do.
    pub fn try_out(&self) -> Result<(), Error> {
        let handle = self.handle()?;
        let name = format!(".shmlimit-{}-{:x}.tmp", sys::process_id(), sys::wall_now());
        let failed = |action| Error::io(action, self.path());
        let file = sys::unnamed_file(&handle, self.shared_with(), layout::SIZE as u64)
            .map_err(failed("make a file in"))?;
        file.link(&handle, &name).map_err(failed("name a file in"))?;
        let tried = maps_are_shared(&handle, &name)
            .map_err(failed("share memory in"))
            .and_then(|()| locks_are_seen(&handle, &name).map_err(failed("lock a file in")));
        sys::unlink_at(&handle, &name).map_err(failed("remove a file from"))?;
        tried
    }
}

fn maps_are_shared(handle: &File, name: &str) -> io::Result<()> {
    let map = || {
        let map = SharedMap::new(&sys::open_file_at(handle, name)?, layout::SIZE)?;
        Words::new(map).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    let (one, other) = (map()?, map()?);
    for word in [0, layout::WORDS - 1] {
        one.store(word, layout::MAGIC);
        if other.load(word) != layout::MAGIC {
            return Err(io::Error::other("what one writes the other does not see"));
        }
    }
    Ok(())
}

fn locks_are_seen(handle: &File, name: &str) -> io::Result<()> {
    let probe = sys::open_file_at(handle, name)?;
    let held = TakenPulse::take(sys::open_file_at(handle, name)?, 0)?;
    let seen = (held.is_some(), sys::pulse_is_held(&probe, 0)?);
    drop(held);
    match (seen, sys::pulse_is_held(&probe, 0)?) {
        ((true, true), false) => Ok(()),
        _ => Err(io::Error::other("a lock that one holds is not seen by another, or does not go back")),
    }
}
