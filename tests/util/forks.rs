//! Forked children, and children of another user (Unix only).

use super::children::ROLE;
use super::respawn::program;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Seconds after which the system ends a forked child.
const LONGEST_LIFE: u32 = 90;
/// The user id `nobody`, the same on every Unix.
pub const UNPRIVILEGED: u32 = 65534;

/// Whether this process is root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Forks. The child runs `body` and exits with its result, or with 101 after a panic. It runs nothing of the
/// parent's: no destructors, no harness.
pub fn forked(body: impl FnOnce() -> i32) -> Pid {
    // SAFETY: the child runs `body` and `_exit`. The harness's other threads do not exist in the child, so `body`
    // must not use their locks (stdout); glibc keeps malloc usable after fork.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => end_with(body),
    }
}

/// Like [`forked`], but bypasses libc (no atfork handlers), as some runtimes do.
pub fn cloned(body: impl FnOnce() -> i32) -> Pid {
    // SAFETY: no new stack and no shared memory, so this is a plain fork; the child runs `body` and `_exit`.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => end_with(body),
        child if child > 0 => Pid::from_raw(child as i32),
        _ => panic!("{}", std::io::Error::last_os_error()),
    }
}

fn end_with(body: impl FnOnce() -> i32) -> ! {
    // A child that hangs must not outlive its test.
    nix::unistd::alarm::set(LONGEST_LIFE);
    let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
    // SAFETY: ends the child without running anything of its parent's.
    unsafe { libc::_exit(code) }
}

/// Waits for a child: its exit code, or 128 plus the signal that ended it.
pub fn exit_code(child: Pid) -> i32 {
    match waitpid(child, None).unwrap() {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        other => panic!("{other:?}"),
    }
}

/// Sends SIGKILL, and waits until the process has ended.
pub fn kill_now(child: Pid) {
    kill(child, Signal::SIGKILL).unwrap();
    assert_eq!(exit_code(child), 128 + Signal::SIGKILL as i32);
}

/// A channel between two processes: bytes through a pipe that survives a fork.
pub struct Pipe {
    read: std::os::fd::OwnedFd,
    write: std::os::fd::OwnedFd,
}

impl Pipe {
    /// A new pipe.
    pub fn new() -> Pipe {
        let (read, write) = nix::unistd::pipe().unwrap();
        Pipe { read, write }
    }

    /// Sends one byte.
    pub fn send(&self, byte: u8) {
        nix::unistd::write(&self.write, &[byte]).unwrap();
    }

    /// Waits for one byte.
    pub fn receive(&self) -> u8 {
        let mut byte = [0];
        assert_eq!(nix::unistd::read(&self.read, &mut byte).unwrap(), 1);
        byte[0]
    }
}

/// A command that runs this test program as the role `test` (its path) in `directory`, as an unprivileged user.
/// Only root may do this, and `reachable` must be accessible to that user. Use it in a test that runs in its own
/// process: a child that another test starts during the copy keeps the copy open for writing, and then the copy
/// cannot be executed.
pub fn unprivileged(test: &str, directory: &Path, reachable: &Path) -> Command {
    let copy = reachable.join("test-program");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = program(&[], &copy, test);
    command.env(ROLE, format!("{test}={}", directory.display())).current_dir("/");
    command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    command
}
