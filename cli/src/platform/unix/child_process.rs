//! Runs a command as a child process: passes signals on to it, and stops and ends as it does.
//!
//! No handler is installed. The signals are blocked and read one by one, so that none is lost and each says who sent
//! it. What the terminal sends (`SI_KERNEL`) reaches the whole process group, the command included, and is not passed
//! on; what somebody sent to this process alone is.

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

/// Signals that are the command's business.
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

/// What tells of a command: the signals that come to us.
pub type ChildEvents = SignalFd;

/// A command under way.
pub struct ChildProcess {
    child: Child,
    signals: ChildEvents,
    /// What was blocked before.
    before: SigSet,
}

/// How a command ended.
pub struct ChildExit {
    status: ExitStatus,
    interrupted_by_terminal: bool,
    called_off: bool,
}

/// The system finds it as a shell would.
pub fn command(program: &OsStr) -> Command {
    Command::new(program)
}

/// Starts a command. From here on the signals of this process are its.
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
    /// Waits until the command ends. `wait` waits for the events, at most so long, and says whether there are any; it reads
    /// the output of the command meanwhile.
    pub fn wait_for_exit(
        &mut self,
        mut wait: impl FnMut(&ChildEvents, Option<Duration>) -> io::Result<bool>,
    ) -> io::Result<ChildExit> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let (mut interrupted_by_terminal, mut called_off) = (false, false);
        // What came while the command was being started may have come before it was there, also from the terminal. To
        // hear it twice does less harm than never.
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
                // It may have ended meanwhile; the news of that is next.
                Ok(signal) => drop(kill(pid, signal)),
                Err(_) => {}
            }
        }
    }

    /// The command has ended: signals are this process's own again. One that came in between ends it now.
    pub fn restore_signals(self) -> io::Result<()> {
        Ok(self.before.thread_set_mask()?)
    }
}

/// If the command was stopped from the terminal, stops as well, so that the shell gets the terminal back. Not so for
/// SIGSTOP: the sender also continues the command, and would not know to continue us.
fn follow_stop(pid: Pid) -> io::Result<()> {
    let stopped = waitid(Id::Pid(pid), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
    if let Ok(WaitStatus::Stopped(_, Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)) = stopped {
        raise(Signal::SIGSTOP)?;
    }
    Ok(())
}

/// Whether we were started with the signal ignored, as by nohup: then it is no request to end. No safe call tells.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (signal as u32 - 1)) & 1 == 1
}

impl ChildExit {
    /// The command's own code; nothing if a signal ended it.
    pub fn code(&self) -> Option<u8> {
        self.status.code().and_then(|code| u8::try_from(code).ok())
    }

    /// Whether a user or a program asked it to end.
    pub fn was_called_off(&self) -> bool {
        self.called_off || self.status.signal().is_some()
    }

    /// The command's own code, or 128 and the signal that ended it, as a shell has it.
    pub fn into_exit_code(self) -> ExitCode {
        if self.interrupted_by_terminal && self.status.signal() == Some(Signal::SIGINT as i32) {
            return exit_by(Event::Interrupt);
        }
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| BY_SIGNAL + signal));
        ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
