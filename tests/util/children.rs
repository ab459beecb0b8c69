//! Child processes: this test program, started again in a role.
//!
//! A role is an ordinary test that does nothing unless it was started as a child. It sends its messages through
//! stdout.

use super::respawn::again;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

pub(super) const ROLE: &str = "SHMLIMIT_TEST_ROLE";
const SAYS: &str = "CHILD SAYS ";

/// The directory of the role, if this process was started as this role, a test of any module. `None` in an ordinary
/// test run.
pub fn role(name: &str) -> Option<PathBuf> {
    let wanted = std::env::var(ROLE).ok()?;
    let (role, directory) = wanted.split_once('=')?;
    role.rsplit("::").next().is_some_and(|role| role == name).then(|| directory.into())
}

/// Sends a message from a child to its parent.
pub fn send(text: &str) {
    let mut out = std::io::stdout();
    // The test harness may have begun a line.
    write!(out, "\n{SAYS}{text}\n").unwrap();
    out.flush().unwrap();
}

/// Waits until the parent sends a message or exits; true if it sent one.
pub fn wait_for_go_on() -> bool {
    matches!(std::io::stdin().read(&mut [0]), Ok(1))
}

/// A command that runs this test program as the role `test` in `directory`. `test` is a path that begins with
/// [`module_path!`]. `wrapper` is a command such as `unshare` that runs it.
pub fn command(wrapper: &[&str], test: &str, directory: &Path) -> Command {
    let mut command = again(wrapper, test);
    command.env(ROLE, format!("{test}={}", directory.display()));
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

    /// Waits for its next message.
    pub fn receive(&mut self) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(said) = line.strip_prefix(SAYS) {
                return said.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("the child ended without a word");
    }

    /// Lets it continue.
    pub fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
    }

    /// Closes its input and asserts that it ends successfully.
    pub fn finish(mut self) {
        drop(self.child.stdin.take());
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the started process: SIGKILL, or the equivalent on Windows.
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
