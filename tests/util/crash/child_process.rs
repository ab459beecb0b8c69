//! Other processes: this very test binary, started again to play a role.

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

/// The role this process was started for, if it is an actor. Each module that starts actors has a test that
/// asks, and names it when it starts them.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(DIRECTORY)?.into()))
}

/// On the actor's side: tells the test something.
pub fn send(line: &str) {
    // One write for the line: the test harness of this process also prints.
    let _ = std::io::stdout().lock().write_all(format!("@{line}\n").as_bytes());
    let _ = std::io::stdout().flush();
}

/// On the actor's side: what the test says next. Without a test there is no reason to live.
pub fn receive() -> String {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(n) if n > 0 => line.trim_end().to_owned(),
        _ => std::process::exit(0),
    }
}

/// On the actor's side: set up, waiting for the word to go on.
pub fn ready() {
    send(&format!("ready {}", gettid()));
    receive();
}

/// On the actor's side: a place that the tracer notices. Deadly without a tracer.
pub fn mark() {
    let _ = raise(Signal::SIGUSR1);
}

/// Stops a process whose threads wait, none of them in the middle of a change.
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

/// A process that plays a role. It is killed when this is dropped.
pub struct ChildProcess {
    child: Child,
    to: ChildStdin,
    from: Receiver<String>,
    /// The process.
    pub pid: Pid,
    /// The thread that plays.
    pub tid: Pid,
}

impl ChildProcess {
    /// Starts an actor, which is the test with this path, and waits until it is set up.
    pub fn start(test: &str, role: &str, directory: &Path) -> ChildProcess {
        // Process ids choose slots; a newcomer of the test must not want the slot of a dead actor.
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

    /// Starts an actor that never gets [`ready`].
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

    /// Tells it something.
    pub fn send(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// What it says next.
    pub fn receive(&mut self) -> String {
        self.from.recv_timeout(WATCHDOG).expect("an actor stays silent")
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(self.pid, signal);
    }

    /// Whether it has come to an end by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it and waits until it is gone, its memory and locks with it.
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
