//! Handles of one limiter in this process and in forked children. The children follow orders, and can be killed
//! between any two steps.

use crate::util::builder;
use crate::util::forks::{self, Pipe};
use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use shmlimit::{AcquireError, Error, Limiter, Policy, Removal, Request};
use std::path::{Path, PathBuf};

/// The units of the limiter.
pub const LIMIT: usize = 10;

/// An order to a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Asks for this many units with its handle. Answers how many were granted.
    Take(u8),
    /// Opens the limiter, or creates it.
    Open,
    /// Creates the limiter if it does not exist.
    Init,
    /// Creates the limiter afresh.
    Replace,
    /// Removes the limiter, by force if not zero. Answers whether it was removed.
    Remove(u8),
    /// Closes its handle.
    Close,
}

/// The answer to an action that failed in a way that is not allowed.
const FAILED: u8 = u8::MAX;

impl Action {
    fn to_bytes(self) -> [u8; 2] {
        match self {
            Action::Take(count) => [0, count],
            Action::Open => [1, 0],
            Action::Init => [2, 0],
            Action::Replace => [3, 0],
            Action::Remove(force) => [4, force],
            Action::Close => [5, 0],
        }
    }

    fn from_bytes(bytes: [u8; 2]) -> Action {
        match bytes {
            [0, count] => Action::Take(count),
            [1, _] => Action::Open,
            [2, _] => Action::Init,
            [3, _] => Action::Replace,
            [4, force] => Action::Remove(force),
            _ => Action::Close,
        }
    }

    /// Performs the action in this process, parent or child.
    fn apply(self, handle: &mut Option<Limiter>, directory: &Path, policy: Policy) -> Result<u8, String> {
        let limiter = || builder(directory).policy(policy);
        let opened = match self {
            Action::Take(count) => return handle.as_ref().map_or(Ok(0), |handle| take(handle, count)),
            Action::Remove(force) => {
                return match builder(directory).remove(force != 0) {
                    Ok(removal) => Ok(u8::from(removal == Removal::Removed)),
                    Err(error) => Err(error.to_string()),
                };
            }
            Action::Close => {
                *handle = None;
                return Ok(0);
            }
            Action::Open => limiter().open(),
            Action::Init => limiter().create(),
            Action::Replace => limiter().replace(),
        };
        match opened {
            Ok(opened) => {
                *handle = Some(opened);
                Ok(1)
            }
            Err(Error::AlreadyExists { .. }) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn take(handle: &Limiter, count: u8) -> Result<u8, String> {
    let mut granted = 0;
    for _ in 0..count {
        match handle.try_acquire(&Request::new()) {
            Ok(grant) => {
                std::mem::forget(grant);
                granted += 1;
            }
            Err(AcquireError::Refused(_)) => {}
            Err(AcquireError::Failed(error)) if matches!(*error, Error::UnknownLimiter { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(granted)
}

/// A handle, or a process that has one.
pub struct Participant {
    directory: PathBuf,
    policy: Policy,
    handle: Option<Limiter>,
    child: Option<Child>,
}

struct Child {
    process: Pid,
    orders: Pipe,
    answers: Pipe,
}

impl Participant {
    /// A participant in this process.
    pub fn here(directory: &Path, policy: Policy) -> Participant {
        Participant { directory: directory.to_owned(), policy, handle: None, child: None }
    }

    /// A participant in a child that is forked now. The child inherits the handle of `parent`, if that has one in
    /// this process.
    pub fn forked(directory: &Path, policy: Policy, parent: Option<&Participant>) -> Participant {
        let mut handle = parent.and_then(|parent| parent.handle.clone());
        let (orders, answers) = (Pipe::new(), Pipe::new());
        let process = forks::forked(|| {
            loop {
                let action = Action::from_bytes([orders.receive(), orders.receive()]);
                // The answer is one byte, so the reason of a failure goes to stderr.
                let done = action.apply(&mut handle, directory, policy);
                answers.send(done.unwrap_or_else(|problem| {
                    eprintln!("{action:?} in process {}: {problem}", std::process::id());
                    FAILED
                }));
            }
        });
        let child = Some(Child { process, orders, answers });
        Participant { directory: directory.to_owned(), policy, handle: None, child }
    }

    /// Performs an action.
    pub fn perform(&mut self, action: Action) -> usize {
        let Some(child) = &self.child else {
            return action.apply(&mut self.handle, &self.directory, self.policy).unwrap().into();
        };
        child.tell(action);
        let answer = child.answers.receive();
        assert_ne!(answer, FAILED, "{action:?}");
        answer.into()
    }

    /// Sends SIGKILL to a child before step number `step` of `action`. A step is a system call that changes files
    /// or locks. A child that needs fewer steps is killed after the action.
    pub fn kill_in(&mut self, action: Action, step: usize) {
        let Some(child) = self.child.take() else { panic!("a child can be killed") };
        ptrace::seize(child.process, ptrace::Options::PTRACE_O_TRACESYSGOOD).unwrap();
        ptrace::interrupt(child.process).unwrap();
        child.tell(action);
        let (mut steps, mut answered) = (0, false);
        while steps <= step && !answered {
            match waitpid(child.process, Some(WaitPidFlag::__WALL)).unwrap() {
                WaitStatus::PtraceSyscall(_) => match entered(child.process) {
                    Some(call) if STEPS.contains(&call) => steps += 1,
                    // The child uses this system call only for the answer.
                    Some(libc::SYS_write) => answered = true,
                    _ => {}
                },
                WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(..) => {}
                other => panic!("{other:?}"),
            }
            if steps <= step && !answered {
                ptrace::syscall(child.process, None).unwrap();
            }
        }
        forks::kill_now(child.process);
    }
}

/// The system calls that create, replace and remove a limiter.
const STEPS: [libc::c_long; 5] =
    [libc::SYS_flock, libc::SYS_pwrite64, libc::SYS_linkat, libc::SYS_renameat2, libc::SYS_unlinkat];

/// The number of the system call that a stopped process is about to begin.
fn entered(process: Pid) -> Option<libc::c_long> {
    let info = ptrace::syscall_info(process).unwrap();
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: the kernel says in `op` that it has filled in this member of the union.
    Some(unsafe { info.u.entry.nr } as libc::c_long)
}

impl Child {
    fn tell(&self, action: Action) {
        for byte in action.to_bytes() {
            self.orders.send(byte);
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            forks::kill_now(child.process);
        }
    }
}
