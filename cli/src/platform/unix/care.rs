//! The caretaker leads the process group in which the programs run. No number of a process that could meanwhile be
//! somebody else's is ever used: the group is the caretaker's as long as it lives.

use crate::platform::Event;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getpid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts the caretaker.
pub fn lead(mut command: Command) -> io::Result<Child> {
    command.process_group(0).spawn()
}

/// Puts a program under its care.
pub fn join(command: &mut Command, caretaker: &Child) {
    command.process_group(group(caretaker).as_raw());
}

/// Ends all programs and whatever they have started.
pub fn end_programs(caretaker: &Child, _programs: &mut [Child]) {
    // The caretaker is in the group too, and deaf to it.
    let _ = killpg(group(caretaker), Signal::SIGTERM);
}

fn group(caretaker: &Child) -> Pid {
    Pid::from_raw(caretaker.id().cast_signed())
}

/// The caretaker's own side.
pub struct Care(Pid);

impl Care {
    /// Nothing if this process was not started as one.
    pub fn begin() -> io::Result<Option<Care>> {
        let group = getpgrp();
        if group != getpid() {
            return Ok(None);
        }
        let ending = Event::ENDING.map(super::events::signal);
        ending.into_iter().collect::<SigSet>().thread_block()?;
        Ok(Some(Care(group)))
    }

    /// Asks those under its care to end.
    pub fn ask_to_end(&self) {
        let _ = killpg(self.0, Signal::SIGTERM);
    }

    /// Ends them, and itself.
    pub fn end(self) {
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}
