//! Runs a command as a child process. Whatever is typed reaches the command by itself, because it is in the same window;
//! this process only stays until the command has answered, and says with which code.

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

/// What tells of a command: its process, which is signalled when it has ended.
pub type ChildEvents = OwnedHandle;

/// A command under way.
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

/// A program by the name that is typed in a shell: `npm` is `npm.cmd`. The standard library would look for `npm.exe`
/// alone; it knows how to quote the arguments of either.
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
    // Otherwise it may be in one of the system's own directories.
    found.map_or_else(|| Command::new(program), Command::new)
}

/// Starts a command. From here on this process does not end by what the console says.
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
    /// Waits until the command ends. `wait` waits for the events, at most so long, and says whether there are any; it reads
    /// the output of the command meanwhile.
    pub fn wait_for_exit(
        &mut self,
        mut wait: impl FnMut(&ChildEvents, Option<Duration>) -> io::Result<bool>,
    ) -> io::Result<ChildExit> {
        while !wait(&self.process, None)? {}
        let status = self.child.wait()?;
        // Processes that the command left behind live on, as they would without us.
        keep_children_alive()?;
        let code = status.code().map_or(1, i32::cast_unsigned);
        Ok(ChildExit { code, called_off: self.called_off.load(Ordering::SeqCst) })
    }

    /// The command has ended: what the console says is for this process again.
    pub fn restore_signals(self) -> io::Result<()> {
        stop_listening();
        Ok(())
    }
}

impl ChildExit {
    /// The command's own code; nothing if it is the system's, about a program that was ended.
    pub fn code(&self) -> Option<u8> {
        u8::try_from(self.code).ok()
    }

    /// Whether a user or a program asked it to end.
    pub fn was_called_off(&self) -> bool {
        self.called_off || self.code == INTERRUPTED
    }

    /// The command's own code, all of it.
    pub fn into_exit_code(self) -> ExitCode {
        exit_code(self.code)
    }
}
