//! Runs a command as a child process, passes signals on to it, and stops and ends as it does.
//!
//! No handler is installed. The signals are blocked and read one by one, so that none is lost and each one tells its
//! sender. Signals from the terminal (`SI_KERNEL`) reach the whole process group, including the command, so they are
//! not passed on. Signals that a process sent to this process alone are passed on.

use super::events::{BY_SIGNAL, exit_by, is_ending};
use crate::platform::Event;
use nix::libc::SI_KERNEL;
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use shmlimit_segment::sys::tool::spawn_with_mask;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

/// The signals that are passed on to the command.
const PASSED_ON: [Signal; 11] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGCONT,
];

/// The source of events about a command: the signals that this process receives.
pub type ChildEvents = SignalFd;

/// A running command.
pub struct ChildProcess {
    child: Child,
    signals: ChildEvents,
    /// The signals that were blocked before.
    before: SigSet,
}

/// How a command ended.
pub struct ChildExit {
    status: ExitStatus,
    interrupted_by_terminal: bool,
    called_off: bool,
}

/// Returns the command for a program. The system finds the program as a shell would.
pub fn command(program: &OsStr) -> Command {
    Command::new(program)
}

/// Starts a command. From now on, the signals of this process are passed on to it.
pub fn start(command: Command) -> io::Result<ChildProcess> {
    let mut ours: SigSet = PASSED_ON.into_iter().collect();
    ours.add(Signal::SIGCHLD);
    let signals = SignalFd::with_flags(&ours, SfdFlags::SFD_CLOEXEC)?;
    let before = SigSet::thread_get_mask()?;
    ours.thread_block()?;
    match spawn_with_mask(command, before) {
        Ok(child) => Ok(ChildProcess { child, signals, before }),
        Err(error) => {
            before.thread_set_mask()?;
            Err(error)
        }
    }
}

impl ChildProcess {
    /// Waits until the command ends. `wait` waits for events, at most for the given time, and returns whether there
    /// are any. Meanwhile it reads the command's output.
    pub fn wait_for_exit(
        &mut self,
        mut wait: impl FnMut(&ChildEvents, Option<Duration>) -> io::Result<bool>,
    ) -> io::Result<ChildExit> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let (mut interrupted_by_terminal, mut called_off) = (false, false);
        // A signal that arrived during the start may have arrived before the command existed, even one from the
        // terminal. It is passed on, because receiving it twice does less harm than never.
        let mut early = true;
        loop {
            if !wait(&self.signals, early.then_some(Duration::ZERO))? {
                early = false;
                continue;
            }
            let info = match self.signals.read_signal() {
                Ok(Some(info)) => info,
                Ok(None) | Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let signal = Signal::try_from(info.ssi_signo.cast_signed());
            called_off |= signal.is_ok_and(|signal| is_ending(signal) && !is_ignored(signal));
            match signal {
                Ok(Signal::SIGCHLD) => {
                    if let Some(status) = self.child.try_wait()? {
                        return Ok(ChildExit { status, interrupted_by_terminal, called_off });
                    }
                    follow_stop(pid)?;
                }
                Ok(signal) if info.ssi_code == SI_KERNEL => {
                    interrupted_by_terminal |= signal == Signal::SIGINT;
                    if early {
                        let _ = kill(pid, signal);
                    }
                }
                // The command may have ended meanwhile. The next signal says so.
                Ok(signal) => drop(kill(pid, signal)),
                Err(_) => {}
            }
        }
    }

    /// Gives signals back to this process after the command has ended. A signal that arrived in between ends the
    /// process now.
    pub fn restore_signals(self) -> io::Result<()> {
        Ok(self.before.thread_set_mask()?)
    }
}

/// If the command was stopped from the terminal, stops this process as well, so that the shell gets the terminal
/// back. SIGSTOP is an exception: its sender also continues the command, and would not know that it must continue
/// this process.
fn follow_stop(pid: Pid) -> io::Result<()> {
    let stopped = waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
    if let Ok(WaitStatus::Stopped(_, Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) = stopped {
        raise(Signal::SIGSTOP)?;
    }
    Ok(())
}

/// Returns whether this process was started with the signal ignored, as by nohup. Then the signal is not a request to
/// end. No safe call returns this.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (signal as u32 - 1)) & 1 == 1
}

impl ChildExit {
    /// Returns the command's exit code, or `None` if a signal ended it.
    pub fn code(&self) -> Option<u8> {
        self.status.code().and_then(|code| u8::try_from(code).ok())
    }

    /// Returns whether a user or a program asked the command to end.
    pub fn was_called_off(&self) -> bool {
        self.called_off || self.status.signal().is_some()
    }

    /// Returns the command's exit code, or 128 plus the number of the signal that ended it, as in a shell.
    pub fn into_exit_code(self) -> ExitCode {
        if self.interrupted_by_terminal && self.status.signal() == Some(Signal::SIGINT as i32) {
            return exit_by(Event::Interrupt);
        }
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| BY_SIGNAL + signal));
        ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
