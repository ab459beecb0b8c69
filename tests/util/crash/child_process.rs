//! Child processes of the crash tests: this test binary, started again in a role.

use super::WATCHDOG;
use super::image::Image;
use crate::util::respawn::again;
use crate::util::wait_until;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};
use shmlimit_segment::layout::COMMON_SLOTS;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

const ROLE: &str = "SHMLIMIT_TEST_ROLE";
const DIRECTORY: &str = "SHMLIMIT_TEST_DIRECTORY";

/// The role and directory of this process, if it is such a child. Each module that starts children has a test that
/// calls this function, and names that test when it starts them.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(DIRECTORY)?.into()))
}

/// On the child's side: sends a message to the test.
pub fn send(line: &str) {
    // A single write for the line, because the test harness of this process also prints.
    let _ = std::io::stdout().lock().write_all(format!("@{line}\n").as_bytes());
    let _ = std::io::stdout().flush();
}

/// On the child's side: the next message of the test. Exits if the test has ended.
pub fn receive() -> String {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(n) if n > 0 => line.trim_end().to_owned(),
        _ => std::process::exit(0),
    }
}

/// On the child's side: reports that the setup is done, and waits for permission to go on.
pub fn ready() {
    send(&format!("ready {}", gettid()));
    receive();
}

/// On the child's side: a mark that the tracer notices. It kills the process if there is no tracer.
pub fn mark() {
    let _ = raise(Signal::SIGUSR1);
}

/// Stops a process whose threads wait. None of them is in the middle of a transaction then.
pub fn stop_in_its_sleep(child_process: &ChildProcess, directory: &Path) {
    wait_until("it stands still outside the lock", || {
        child_process.signal(Signal::SIGSTOP);
        let status = waitpid(child_process.pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
        let now = Image::of(directory);
        let quiet = now.is_whole() && now.lock_owner().is_none();
        if !quiet {
            child_process.signal(Signal::SIGCONT);
        }
        quiet
    });
}

/// A child process in a role. It is killed when this is dropped.
pub struct ChildProcess {
    child: Child,
    to: ChildStdin,
    from: Receiver<String>,
    /// The process.
    pub pid: Pid,
    /// The thread that runs the role.
    pub tid: Pid,
}

impl ChildProcess {
    /// Starts a child that runs the test with this path, and waits until its setup is done.
    pub fn start(test: &str, role: &str, directory: &Path) -> ChildProcess {
        // The process id selects the slot. A newcomer in the test must not want the slot of a killed child.
        let mine = std::process::id() as usize % COMMON_SLOTS;
        loop {
            let mut child_process = ChildProcess::launch(test, role, directory);
            let said = child_process.receive();
            let tid = said.strip_prefix("ready ").and_then(|tid| tid.parse().ok());
            child_process.tid = Pid::from_raw(tid.unwrap_or_else(|| panic!("an actor said {said:?}")));
            if child_process.pid.as_raw() as usize % COMMON_SLOTS != mine {
                return child_process;
            }
        }
    }

    /// Starts a child that never becomes [`ready`].
    pub fn launch(test: &str, role: &str, directory: &Path) -> ChildProcess {
        let mut child = again(&[], test)
            .env(ROLE, role)
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The harness may have begun the line.
                if let Some((_, said)) = line.split_once('@') {
                    let _ = tell.send(said.to_owned());
                }
            }
        });
        let pid = Pid::from_raw(child.id() as i32);
        ChildProcess { child, to, from, pid, tid: pid }
    }

    /// Sends a message to the child.
    pub fn send(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next message of the child.
    pub fn receive(&mut self) -> String {
        self.from.recv_timeout(WATCHDOG).expect("an actor stays silent")
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(self.pid, signal);
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it and waits until its memory and its locks are released.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
