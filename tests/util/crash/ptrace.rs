//! A traced child process, executed one instruction at a time.

use super::child_process::ChildProcess;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Still in the operation.
    Inside,
    /// At the mark after it.
    Done,
}

/// A traced child, stopped at a mark or between two instructions.
pub struct Tracee {
    /// The child.
    pub child_process: ChildProcess,
    traced: bool,
}

/// A shared processor for tracer and tracee makes a step three times as fast. Each test uses another one if
/// possible.
fn pin(thread: Pid) {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = TURN.fetch_add(1, Ordering::Relaxed));
    let all = sched_getaffinity(Pid::from_raw(std::process::id() as i32)).unwrap();
    let usable: Vec<usize> = (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap_or(false)).collect();
    let mut one = CpuSet::new();
    one.set(usable[MINE.with(|mine| *mine) % usable.len()]).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
    sched_setaffinity(thread, &one).unwrap();
}

impl Tracee {
    /// Starts a child and lets it run to its first mark.
    pub fn start(test: &str, role: &str, directory: &std::path::Path) -> Tracee {
        let child_process = ChildProcess::start(test, role, directory);
        pin(child_process.tid);
        ptrace::attach(child_process.tid).expect("these tests need ptrace of their own children");
        let mut tracee = Tracee { child_process, traced: true };
        assert_eq!(tracee.wait(), Signal::SIGSTOP, "attaching stops the thread");
        tracee.child_process.send("go");
        tracee.run_to_mark();
        tracee
    }

    /// Lets it run freely until the next mark.
    pub fn run_to_mark(&mut self) {
        loop {
            ptrace::cont(self.child_process.tid, None).unwrap();
            if self.wait() == Signal::SIGUSR1 {
                return;
            }
        }
    }

    /// Lets it run freely, without the tracer. It must not reach a mark again.
    pub fn let_go(&mut self) {
        ptrace::detach(self.child_process.tid, None).unwrap();
        self.traced = false;
    }

    /// Executes one instruction; a system call counts as one.
    pub fn step(&mut self) -> Step {
        ptrace::step(self.child_process.tid, None).unwrap();
        match self.wait() {
            Signal::SIGTRAP => Step::Inside,
            Signal::SIGUSR1 => Step::Done,
            other => panic!("the tracee got {other}"),
        }
    }

    /// Runs to the next entry or exit of a system call.
    pub fn run_to_system_call(&mut self) -> Step {
        ptrace::syscall(self.child_process.tid, None).unwrap();
        match self.wait() {
            Signal::SIGTRAP => Step::Inside,
            Signal::SIGUSR1 => Step::Done,
            other => panic!("the tracee got {other}"),
        }
    }

    fn wait(&self) -> Signal {
        match waitpid(self.child_process.tid, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::Stopped(_, signal) => signal,
            other => panic!("the tracee is gone: {other:?}"),
        }
    }

    /// Kills the whole process at its current instruction, and waits until it has ended.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.child_process.signal(Signal::SIGKILL);
        // A traced thread stays until its tracer has collected its end.
        while self.traced
            && let Ok(status) = waitpid(self.child_process.tid, Some(WaitPidFlag::__WALL))
        {
            if matches!(status, WaitStatus::Signaled(..) | WaitStatus::Exited(..)) {
                break;
            }
        }
        self.child_process.kill();
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        self.end();
    }
}
