//! The job of the programs that end with this process. The supervisor starts before the job exists, so it is not in
//! the job.

use shmlimit_segment::sys::tool::end_children_with_us;
use std::io::{self, IsTerminal};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command};

/// Starts the process in a new group, which Ctrl-C does not reach.
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

/// Starts the supervisor.
pub fn spawn_group_leader(mut command: Command) -> io::Result<Child> {
    let supervisor = command.creation_flags(CREATE_NEW_PROCESS_GROUP).spawn()?;
    end_children_with_us()?;
    Ok(supervisor)
}

/// Does nothing: a program is in the job as soon as it is started.
pub fn join_group(_command: &mut Command, _supervisor: &Child) {}

/// Ends all programs. The processes that they started end when their pipes and connections close, at the latest with
/// this process.
pub fn terminate_group(_supervisor: &Child, programs: &mut [Child]) {
    for program in programs {
        let _ = program.kill();
    }
}

/// The group as the supervisor sees it. The system has ended the others by the time the supervisor's pipe ends.
pub struct SupervisedGroup;

impl SupervisedGroup {
    /// Returns `None` if a user started this process by hand.
    pub fn lead() -> io::Result<Option<SupervisedGroup>> {
        Ok((!io::stdin().is_terminal()).then_some(SupervisedGroup))
    }

    pub fn terminate(&self) {}

    pub fn kill(self) {}
}
