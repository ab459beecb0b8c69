//! Children: this test program again in a role.
//!
//! A role is an ordinary test that does nothing unless it was started as a child; its words travel on stdout.

use super::respawn::again;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

pub(super) const ROLE: &str = "SHMLIMIT_TEST_ROLE";
const SAYS: &str = "CHILD SAYS ";

/// In a process started as this role, a test of any module: its directory. In an ordinary test run: nothing.
pub fn role(name: &str) -> Option<PathBuf> {
    let wanted = std::env::var(ROLE).ok()?;
    let (role, directory) = wanted.split_once('=')?;
    role.rsplit("::").next().is_some_and(|role| role == name).then(|| directory.into())
}

/// A child's word to its parent.
pub fn send(text: &str) {
    let mut out = std::io::stdout();
    // The test harness has begun a line of its own.
    write!(out, "\n{SAYS}{text}\n").unwrap();
    out.flush().unwrap();
}

/// Waits until the parent says something or goes; whether it said something.
pub fn wait_for_go_on() -> bool {
    matches!(std::io::stdin().read(&mut [0]), Ok(1))
}

/// This test program, as the role `test` (its path, which begins with [`module_path!`]) working in `directory`, behind
/// `wrapper` (such as `unshare`).
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

    /// Waits for its next word.
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

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL to the started process, or what Windows has in its place.
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
