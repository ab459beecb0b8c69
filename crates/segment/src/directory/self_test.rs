//! The self-test of a directory: does shared memory work there, and can living processes be told from exited ones?

use crate::directory::Directory;
use crate::error::Error;
use crate::layout;
use crate::sys::{self, FileSystem, Hold, LivenessLock, SharedMap, TakenLivenessLock};
use crate::words::Words;
use std::fs::File;
use std::io;
use std::path::Path;

impl Directory {
    /// Creates a file as large as a segment, maps it twice, and checks that what is written through one mapping
    /// is visible through the other. Then takes a liveness lock as a participant does, and checks that other file
    /// descriptions see it. Leaves nothing behind, unless the process is killed. In that case a temporary file
    /// remains, as after a process that was killed while it created a limiter.
    pub fn self_test(&self) -> Result<(), Error> {
        let handle = self.handle()?;
        let name = format!(".shmlimit-{}-{:x}.tmp", std::process::id(), sys::wall_now());
        let failed = |action| Error::io(action, self.path());
        let file = sys::unnamed_file(&handle, self.shared_with(), layout::SIZE as u64)
            .map_err(failed("create a file in"))?;
        file.link(&handle, &name).map_err(failed("name a file in"))?;
        let tried = maps_are_shared(&handle, &name)
            .map_err(failed("share memory in"))
            .and_then(|()| locks_are_seen(&handle, &name).map_err(failed("lock a file in")));
        sys::unlink_at(&handle, &name).map_err(failed("remove a file from"))?;
        if tried? { Ok(()) } else { Err(locks_are_lost(self.path(), &handle)) }
    }
}

/// The error for a path whose file system loses liveness locks. `file` is any file there.
pub(crate) fn locks_are_lost(path: &Path, file: &File) -> Error {
    let kind = match sys::file_system(file) {
        Ok(FileSystem::Lossy(kind) | FileSystem::Network(kind)) => kind,
        _ => "its file system",
    };
    let other = sys::default_directories().pop().map(|directory| directory.path);
    let other = other.filter(|other| path.parent() != Some(other) && path != other);
    let such_as = other.map_or_else(String::new, |other| format!(", for example --dir {}", other.display()));
    Error::Liveness {
        path: path.to_owned(),
        problem: format!("{kind} drops a lock when its descriptor is closed"),
        remedy: format!(
            "choose a directory on another file system with --dir or SHMLIMIT_DIR{such_as}; in a container, a volume \
             works too"
        ),
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
            return Err(io::Error::other("one process does not see what another one writes"));
        }
    }
    Ok(())
}

/// Whether a liveness lock is kept as a participant keeps it. Returns an error if the lock exists but does not work
/// as promised.
fn locks_are_seen(handle: &File, name: &str) -> io::Result<bool> {
    let open = || sys::open_file_at(handle, name);
    let probe = open()?;
    let Hold::Held(held) = LivenessLock::hold(open()?, 0, &probe)? else { return Ok(false) };
    let seen = sys::liveness_lock_is_held(&probe, 0)? && TakenLivenessLock::take(open()?, 0)?.is_none();
    drop(held);
    match seen && !sys::liveness_lock_is_held(&probe, 0)? && TakenLivenessLock::take(open()?, 0)?.is_some() {
        true => Ok(true),
        false => Err(io::Error::other(
            "one process does not see a lock that another one holds, or the lock is not \
                                       released",
        )),
    }
}
