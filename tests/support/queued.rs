//! Waiting calls that stand still: futures polled by hand, and processes stopped in their sleep.

#[path = "../common/queued.rs"]
mod futures;

use super::actor::Actor;
use super::eventually;
use super::image::Image;
pub use futures::{poll, queued};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use std::path::Path;

/// Stops a process whose threads wait, none of them in the middle of a change.
pub fn stop_in_its_sleep(actor: &Actor, directory: &Path) {
    eventually("it stands still outside the lock", || {
        actor.signal(Signal::SIGSTOP);
        let status = waitpid(actor.pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
        let now = Image::of(directory);
        let quiet = now.is_whole() && now.lock_owner().is_none();
        if !quiet {
            actor.signal(Signal::SIGCONT);
        }
        quiet
    });
}
