//! Private mounts for a test.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;

pub const NONE: Option<&str> = None;

/// Runs `work` in a thread with private mounts, which end with it. `work` gets an empty directory in memory.
pub fn with_own_mounts(work: impl FnOnce(&Path) -> nix::Result<()> + Send) {
    let directory = tempfile::tempdir().unwrap();
    let tried = std::thread::scope(|scope| {
        let work = || {
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
            tmpfs(directory.path())?;
            work(directory.path())
        };
        scope.spawn(work).join()
    });
    match tried {
        Ok(Ok(())) => {}
        Ok(Err(error)) => println!("not tested: mounting is not permitted here ({error})"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

pub fn tmpfs(at: &Path) -> nix::Result<()> {
    mount(Some("none"), at, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
}

pub fn bind(from: &Path, to: &Path) -> nix::Result<()> {
    mount(Some(from), to, NONE, MsFlags::MS_BIND, NONE)
}
