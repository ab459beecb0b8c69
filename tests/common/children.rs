//! Children: forked ones, and this test program again in a role.
//!
//! A role is an ordinary test that does nothing unless it was started as a child; its words travel on stdout.

#[path = "again.rs"]
mod again;

use again::{again, program};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "SHMLIMIT_TEST_ROLE";
const SAYS: &str = "CHILD SAYS ";
/// Seconds after which a forked child is ended by the system.
const LONGEST_LIFE: u32 = 90;
/// Nobody, on every Unix.
pub const UNPRIVILEGED: u32 = 65534;

/// Whether this process may do everything.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Forks; the child runs `body`, its answer is the exit code, 101 for a panic. Nothing of the parent's is run there:
/// no destructors, no harness.
pub fn forked(body: impl FnOnce() -> i32) -> Pid {
    // SAFETY: the child runs `body` and `_exit`. The harness's other threads are not in it, so `body` keeps off
    // locks of theirs (stdout); glibc keeps malloc usable after fork.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => end_with(body),
    }
}

/// As [`forked`], behind libc's back (no atfork handlers), as some runtimes do.
pub fn cloned(body: impl FnOnce() -> i32) -> Pid {
    // SAFETY: no new stack and no shared memory: a plain fork; the child runs `body` and `_exit`.
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

/// Waits for a child: its exit code, or 128 and the signal that ended it.
pub fn exit_code(child: Pid) -> i32 {
    match waitpid(child, None).unwrap() {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        other => panic!("{other:?}"),
    }
}

/// SIGKILL, and waits until it is gone.
pub fn kill_now(child: Pid) {
    kill(child, Signal::SIGKILL).unwrap();
    assert_eq!(exit_code(child), 128 + Signal::SIGKILL as i32);
}

/// Two processes' channel: bytes through a pipe that outlives a fork.
pub struct Pipe {
    read: std::os::fd::OwnedFd,
    write: std::os::fd::OwnedFd,
}

impl Pipe {
    /// A new one.
    pub fn new() -> Pipe {
        let (read, write) = nix::unistd::pipe().unwrap();
        Pipe { read, write }
    }

    /// Sends one byte.
    pub fn say(&self, byte: u8) {
        nix::unistd::write(&self.write, &[byte]).unwrap();
    }

    /// Waits for one byte.
    pub fn hear(&self) -> u8 {
        let mut byte = [0];
        assert_eq!(nix::unistd::read(&self.read, &mut byte).unwrap(), 1);
        byte[0]
    }
}

/// In a process started as this role: its directory. In an ordinary test run: nothing.
pub fn role(name: &str) -> Option<PathBuf> {
    let wanted = std::env::var(ROLE).ok()?;
    let (role, directory) = wanted.split_once(':')?;
    (role == name).then(|| directory.into())
}

/// A child's word to its parent.
pub fn say(text: &str) {
    let mut out = std::io::stdout();
    // The test harness has begun a line of its own.
    write!(out, "\n{SAYS}{text}\n").unwrap();
    out.flush().unwrap();
}

/// Waits until the parent says something or goes; whether it said something.
pub fn told_to_go_on() -> bool {
    matches!(std::io::stdin().read(&mut [0]), Ok(1))
}

/// This test program, as the role `test` working in `directory`, behind `wrapper` (such as `unshare`).
pub fn command(wrapper: &[&str], test: &str, directory: &Path) -> Command {
    let mut command = again(wrapper);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(ROLE, format!("{test}:{}", directory.display()));
    command
}

/// The same as an unprivileged user. Only root may; the program itself must be in reach of that user.
pub fn unprivileged(test: &str, directory: &Path, reachable: &Path) -> Command {
    let copy = reachable.join("test-program");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = program(&[], &copy);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(ROLE, format!("{test}:{}", directory.display())).current_dir("/");
    command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    command
}

/// A running role; killed when dropped.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it.
    pub fn start(mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output }
    }

    /// Waits for its next word.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(said) = line.strip_prefix(SAYS) {
                return said.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("the child ended without a word");
    }

    /// Lets it go on.
    pub fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
    }

    /// Waits for a good end.
    pub fn finish(mut self) {
        drop(self.child.stdin.take());
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// SIGKILL to the started process.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
