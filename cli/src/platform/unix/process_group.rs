//! The process group of the supervisor and the programs that it ends.
//!
//! The supervisor leads the group, so no other group can get the same id while the supervisor lives.

use crate::platform::Event;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getpid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts the supervisor.
pub fn spawn_group_leader(mut command: Command) -> io::Result<Child> {
    command.process_group(0).spawn()
}

/// Puts a program into the supervisor's group.
pub fn join_group(command: &mut Command, supervisor: &Child) {
    command.process_group(group(supervisor).as_raw());
}

/// Ends all programs and the processes that they started.
pub fn terminate_group(supervisor: &Child, _programs: &mut [Child]) {
    // The supervisor is in the group too, and ignores the signal.
    let _ = killpg(group(supervisor), Signal::SIGTERM);
}

fn group(supervisor: &Child) -> Pid {
    Pid::from_raw(supervisor.id().cast_signed())
}

/// The group as the supervisor sees it.
pub struct SupervisedGroup(Pid);

impl SupervisedGroup {
    /// Returns `None` if this process was not started as a group leader.
    pub fn lead() -> io::Result<Option<SupervisedGroup>> {
        let group = getpgrp();
        if group != getpid() {
            return Ok(None);
        }
        let ending = Event::ENDING.map(super::events::signal);
        ending.into_iter().collect::<SigSet>().thread_block()?;
        Ok(Some(SupervisedGroup(group)))
    }

    /// Asks all processes of the group to end.
    pub fn terminate(&self) {
        let _ = killpg(self.0, Signal::SIGTERM);
    }

    /// Kills all processes of the group, including this one.
    pub fn kill(self) {
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}
