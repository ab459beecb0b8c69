//! Child processes for the tests of this folder: forked ones, which only do async-signal-safe work, and new runs of
//! this test program.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

const ROLE: &str = "SHMLIMIT_TEST_HELPER";
const ANSWER: &str = "ANSWER ";

/// Whether `claim` becomes true within a generous time limit. The limit ends a failing test; a passing test does
/// not wait for it.
pub(super) fn eventually(mut claim: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if claim() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Runs `body` in a child made by `fork` and returns its exit code. `body` must be async-signal-safe.
pub(super) fn in_forked_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only `body`, which the callers keep async-signal-safe, and `_exit`.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => exit_code_of(child),
        // SAFETY: `_exit` ends the child without running any code of its parent's.
        ForkResult::Child => unsafe { libc::_exit(body()) },
    }
}

/// Runs `body` in a child made by a raw system call that libc does not see, as some runtimes do. `body` must be
/// async-signal-safe.
pub(super) fn raw_fork(body: impl FnOnce() -> i32) -> Pid {
    // SAFETY: no new stack and no shared memory, so this is a plain fork; the child runs only `body` and `_exit`.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        // SAFETY: as above.
        0 => unsafe { libc::_exit(body()) },
        child if child > 0 => Pid::from_raw(child as i32),
        _ => panic!("{}", std::io::Error::last_os_error()),
    }
}

pub(super) fn exit_code_of(child: Pid) -> i32 {
    match waitpid(child, None).unwrap() {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        other => panic!("{other:?}"),
    }
}

/// A command that runs this test program as the helper `test`, behind `wrapper` (such as `unshare`) and behind an
/// emulator if one is configured (as in tests/util/respawn.rs, which this folder cannot use).
pub(super) fn helper_command(wrapper: &[&str], test: &str) -> Command {
    let runner = std::env::var("SHMLIMIT_TEST_RUNNER").unwrap_or_default();
    let program = std::env::current_exe().unwrap();
    let mut words =
        wrapper.iter().copied().chain(runner.split_whitespace()).map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command.args(["--exact", test, "--nocapture"]).env(ROLE, "1");
    command
}

/// Runs `body` only in a process that was started as a helper. In an ordinary test run it does nothing.
pub(super) fn as_helper(body: impl FnOnce(HelperSide)) {
    if std::env::var_os(ROLE).is_some() {
        body(HelperSide);
    }
}

pub(super) struct HelperSide;

impl HelperSide {
    pub(super) fn say(&self, text: &str) {
        let mut out = std::io::stdout();
        // The test harness has already begun a line.
        write!(out, "\n{ANSWER}{text}\n").unwrap();
        out.flush().unwrap();
    }

    pub(super) fn wait_for_the_end(&self) {
        let _ = std::io::stdin().read(&mut [0]);
    }
}

/// A running helper; killed when dropped.
pub(super) struct Helper {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Helper {
    pub(super) fn start(mut command: Command) -> Helper {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Helper { child, output }
    }

    pub(super) fn answer(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(answer) = line.strip_prefix(ANSWER) {
                return answer.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("the helper process ended without an answer");
    }

    /// Lets the helper run to its end, so that its test harness can still write its report.
    pub(super) fn finish(mut self) {
        drop(self.child.stdin.take());
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.kill();
    }
}
