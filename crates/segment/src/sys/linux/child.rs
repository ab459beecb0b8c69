//! Starts other programs for the command-line tool, which keeps its own signals blocked.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, Signal, raise, signal};
use nix::unistd::{dup2_raw, getpid, getppid};

/// Whether this process was started with SIGCHLD ignored. The value is stored, because the first `spawn_with_mask`
/// changes the disposition.
static CHILDREN_IGNORED: OnceLock<bool> = OnceLock::new();

/// Starts `command` with the signal mask `mask` instead of this thread's mask, and with the dispositions that this
/// process was started with. A SIGKILL of this process also ends the command, although this process cannot forward
/// it. Call this on the main thread: the kernel treats the end of the calling thread as the end of the parent.
pub fn spawn_with_mask(mut command: Command, mask: SigSet) -> io::Result<Child> {
    // SAFETY: the default action runs no code of ours. The default is needed because the kernel drops exit codes
    // while SIGCHLD is ignored.
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
            // The parent was killed just before `set_pdeathsig`. Returning an error is not possible: no process
            // would receive it, and the standard library would abort.
            raise(Signal::SIGKILL)?;
        }
        Ok(mask.thread_set_mask()?)
    };
    // SAFETY: between fork and exec `prepare` makes only async-signal-safe calls (signal, prctl, getppid, raise,
    // pthread_sigmask) on values it owns, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Passes `ours` to the command as its descriptor `number`, whatever that number refers to in this process.
pub fn pass_descriptor(command: &mut Command, ours: impl AsFd, number: RawFd) -> io::Result<()> {
    // The number is now in use in this process, by this copy or by an earlier descriptor. So the pipe through which
    // the standard library reports a failed exec cannot get this number, and is not overwritten.
    let copy = fcntl(ours, FcntlArg::F_DUPFD_CLOEXEC(number))?;
    // SAFETY: the call has just created the descriptor, and no other code knows it.
    let copy = unsafe { OwnedFd::from_raw_fd(copy) };
    let put = move || {
        if copy.as_raw_fd() == number {
            fcntl(&copy, FcntlArg::F_SETFD(FdFlag::empty()))?;
            return Ok(());
        }
        // SAFETY: the new descriptor is for the program to be executed; it is not closed here.
        let at = unsafe { dup2_raw(&copy, number) }?;
        std::mem::forget(at);
        Ok(())
    };
    // SAFETY: between fork and exec `put` makes only async-signal-safe calls (fcntl, dup2) on a descriptor it owns,
    // and allocates nothing.
    unsafe { command.pre_exec(put) };
    Ok(())
}
