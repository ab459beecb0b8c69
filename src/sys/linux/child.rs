//! Starting another program for the command-line tool, which keeps its own signals blocked.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::{getpid, getppid};

/// Starts `command` with the signal mask `mask` instead of this thread's, and with the dispositions this process was
/// given. A SIGKILL of this process, which nobody can pass on, reaches the command too. Call it on the main thread:
/// the system takes the end of the calling thread for the end of the parent.
pub fn spawn_with_mask(mut command: Command, mask: SigSet) -> io::Result<Child> {
    // SAFETY: the default action runs no code of ours. An ignored SIGCHLD would make the system drop exit codes.
    let child_signal = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    let parent = getpid();
    let prepare = move || {
        if matches!(child_signal, SigHandler::SigIgn) {
            // SAFETY: ignoring a signal runs no code of ours.
            unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }?;
        }
        set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != parent {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(mask.thread_set_mask()?)
    };
    // SAFETY: between fork and exec `prepare` makes only async-signal-safe calls (signal, prctl, getppid,
    // pthread_sigmask) on values it owns, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}
