//! Starting another program for the command-line tool, which keeps its own signals blocked.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, Signal, raise, signal};
use nix::unistd::{dup2_raw, getpid, getppid};

/// Whether this process was told to ignore its children's ends. Kept, because the first start changes it.
static CHILDREN_IGNORED: OnceLock<bool> = OnceLock::new();

/// Starts `command` with the signal mask `mask` instead of this thread's, and with the dispositions this process was
/// given. A SIGKILL of this process, which nobody can pass on, reaches the command too. Call it on the main thread:
/// the system takes the end of the calling thread for the end of the parent.
pub fn spawn_with_mask(mut command: Command, mask: SigSet) -> io::Result<Child> {
    // SAFETY: the default action runs no code of ours. An ignored SIGCHLD would make the system drop exit codes.
    let child_signal = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    let ignored = *CHILDREN_IGNORED.get_or_init(|| matches!(child_signal, SigHandler::SigIgn));
    let parent = getpid();
    let prepare = move || {
        if ignored {
            // SAFETY: ignoring a signal runs no code of ours.
            unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }?;
        }
        set_pdeathsig(Signal::SIGKILL)?;
        if getppid() != parent {
            // It was killed just before that, and nobody is there to hear of an error: the standard library would abort.
            raise(Signal::SIGKILL)?;
        }
        Ok(mask.thread_set_mask()?)
    };
    // SAFETY: between fork and exec `prepare` makes only async-signal-safe calls (signal, prctl, getppid, raise,
    // pthread_sigmask) on values it owns, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Lets the command find `ours` as its descriptor `number`, whatever this process has there.
pub fn pass_descriptor(command: &mut Command, ours: impl AsFd, number: RawFd) -> io::Result<()> {
    // From here on the number is taken in this process, by this copy or by what was there: the pipe through which the
    // standard library hears of a failed exec cannot get it, and so is not overwritten.
    let copy = fcntl(ours, FcntlArg::F_DUPFD_CLOEXEC(number))?;
    // SAFETY: the call has just made it, and nobody else knows it.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    let put = move || {
        if copy.as_raw_fd() == number {
            fcntl(&copy, FcntlArg::F_SETFD(FdFlag::empty()))?;
            return Ok(());
        }
        // SAFETY: the new descriptor is for the program to come; it is not closed here.
        let at = unsafe { dup2_raw(&copy, number) }?;
        std::mem::forget(at);
        Ok(())
    };
    // SAFETY: between fork and exec `put` makes only async-signal-safe calls (fcntl, dup2) on a descriptor it owns, and
    // allocates nothing.
    unsafe { command.pre_exec(put) };
    Ok(())
}
