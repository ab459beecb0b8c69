//! Runs a command as a child process. Keyboard input reaches the command directly, because it is in the same window.
//! This process only stays until the command has ended, and returns its code.

use super::events::{INTERRUPTED, exit_code};
use super::files;
use shmlimit_segment::sys::tool::{
    end_children_with_us, keep_children_alive, listen_to_console, stop_listening,
};
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::windows::io::{AsHandle, OwnedHandle};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The source of events about a command: its process handle, which is signalled when the process ends.
pub type ChildEvents = OwnedHandle;

/// A running command.
pub struct ChildProcess {
    child: Child,
    process: ChildEvents,
    called_off: Arc<AtomicBool>,
}

/// How a command ended.
pub struct ChildExit {
    code: u32,
    called_off: bool,
}

/// Returns the command for a name that a user types in a shell: `npm` is `npm.cmd`. The standard library would only
/// look for `npm.exe`, but it quotes the arguments correctly for both.
pub fn command(program: &OsStr) -> Command {
    let path = Path::new(program);
    if path.extension().is_some() {
        return Command::new(program);
    }
    let found = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => files::program(parent, path.file_name()),
        _ => env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .find_map(|directory| files::program(&directory, Some(program))),
    };
    // Otherwise the program may be in one of the system's own directories.
    found.map_or_else(|| Command::new(program), Command::new)
}

/// Starts a command. From now on, console events do not end this process.
pub fn start(mut command: Command) -> io::Result<ChildProcess> {
    end_children_with_us()?;
    let called_off = Arc::new(AtomicBool::new(false));
    let interrupted = Arc::clone(&called_off);
    listen_to_console(move |_| {
        interrupted.store(true, Ordering::SeqCst);
        true
    })?;
    let started = command.spawn().and_then(|child| {
        let process = child.as_handle().try_clone_to_owned()?;
        Ok(ChildProcess { child, process, called_off })
    });
    started.inspect_err(|_| stop_listening())
}

impl ChildProcess {
    /// Waits until the command ends. `wait` waits for events, at most for the given time, and returns whether there
    /// are any. Meanwhile it reads the command's output.
    pub fn wait_for_exit(
        &mut self,
        mut wait: impl FnMut(&ChildEvents, Option<Duration>) -> io::Result<bool>,
    ) -> io::Result<ChildExit> {
        while !wait(&self.process, None)? {}
        let status = self.child.wait()?;
        // Processes that the command left behind continue, as they would without this tool.
        keep_children_alive()?;
        let code = status.code().map_or(1, i32::cast_unsigned);
        Ok(ChildExit { code, called_off: self.called_off.load(Ordering::SeqCst) })
    }

    /// Gives console events back to this process after the command has ended.
    pub fn restore_signals(self) -> io::Result<()> {
        stop_listening();
        Ok(())
    }
}

impl ChildExit {
    /// Returns the command's exit code, or `None` if the system ended the program and chose the code.
    pub fn code(&self) -> Option<u8> {
        u8::try_from(self.code).ok()
    }

    /// Returns whether a user or a program asked the command to end.
    pub fn was_called_off(&self) -> bool {
        self.called_off || self.code == INTERRUPTED
    }

    /// Returns all 32 bits of the command's exit code.
    pub fn into_exit_code(self) -> ExitCode {
        exit_code(self.code)
    }
}
