//! The programs end with us, because they are in our job; the caretaker was started before, so it is not.

use shmlimit_segment::sys::tool::end_children_with_us;
use std::io::{self, IsTerminal};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command};

/// `CREATE_NEW_PROCESS_GROUP`: it does not hear Ctrl-C.
const DEAF: u32 = 0x200;

/// Starts the caretaker.
pub fn lead(mut command: Command) -> io::Result<Child> {
    let caretaker = command.creation_flags(DEAF).spawn()?;
    end_children_with_us()?;
    Ok(caretaker)
}

/// They are under its care as soon as they are there.
pub fn join(_command: &mut Command, _caretaker: &Child) {}

/// Ends all programs. What they have started ends when its pipes and connections do, at the latest with us.
pub fn end_programs(_caretaker: &Child, programs: &mut [Child]) {
    for program in programs {
        let _ = program.kill();
    }
}

/// The caretaker's own side: the system has ended the others by the time its pipe ends.
pub struct Care;

impl Care {
    /// Nothing if it was started by hand.
    pub fn begin() -> io::Result<Option<Care>> {
        Ok((!io::stdin().is_terminal()).then_some(Care))
    }

    pub fn ask_to_end(&self) {}

    pub fn end(self) {}
}
