//! Operating-system functions of the tool: one contract, with one folder per platform. Functions that need `unsafe`
//! are in the segment crate (`shmlimit_segment::sys::tool`).
//!
//! **Events** ([`Event`]): [`on_events`] calls a handler instead of the default action, until the handler returns
//! false. Call it before other threads start. [`ExitRequests`] collects the events that ask this process to end, for
//! a caller that polls ([`ExitRequests::next`]). [`ExitRequests::spawn`] starts a program that does not inherit the
//! blocked signals and ends with this process. [`exit_by`] ends this process as the event would, so that its parent
//! sees the reason. [`suspend`] gives the terminal to the shell until the shell continues this process. [`Stop`]
//! waits for an interval or an exit request.
//!
//! **A command** ([`start`]): it receives keyboard input as if it had been started directly, and it is killed with
//! this process, however this process ends. `wait_for_exit` waits for its end while the caller reads its output;
//! `restore_signals` follows. [`ChildExit`] describes how it ended. [`ChildExit::into_exit_code`] converts that for
//! our own parent. [`command`] finds the program as a shell would.
//!
//! **Pipes**: [`PipeSource`] is the reading end, which never blocks. [`wait`] waits for several [`WaitSource`]s at
//! once and returns which are ready. [`write_to`] writes bytes to one of our own streams. [`pipe_address`] names the
//! writing end of a pipe for other programs of this user, and [`open_pipe`] opens it by that name if it still exists.
//! [`pass_descriptor`] gives a command a pipe under a descriptor number, on platforms that have such numbers.
//!
//! **Supervisor**: [`spawn_group_leader`] starts the supervisor, which outlives this process and ignores the signals
//! that end the others. [`join_group`] puts programs into its group, and [`terminate_group`] ends them.
//! [`SupervisedGroup`] is the group as the supervisor sees it.
//!
//! **Places and files**: [`session`], [`user_name`], [`private_directory`], [`is_executable`]; [`open_to_append`]
//! with [`try_lock`], [`unlock`], [`is_same_file`], [`is_link`] and [`largest_file`] for logs; [`create_public`],
//! [`is_device`]; [`free_space`], [`unsafe_parent`], [`restrict_directory`], [`is_stopped`], [`user_without_access`]
//! and [`is_own_leftover`] for the doctor; [`machine`] for benchmark reports. [`supports_escapes`] tells whether the
//! terminal can move its cursor and has colours, and [`supports_unicode`] whether it shows more than ASCII.
//!
//! **Texts** ([`texts`]): help and advice that differ between platforms.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as here;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as here;

pub use here::{
    ChildEvents, ChildExit, ExitRequests, LINK_REFUSED, PipeSource, SupervisedGroup, command, create_public,
    exit_by, free_space, is_device, is_executable, is_link, is_own_leftover, is_same_file, is_stopped,
    join_group, largest_file, machine, on_events, open_pipe, open_to_append, pass_descriptor, pipe_address,
    private_directory, restrict_directory, session, spawn_group_leader, start, supports_escapes,
    supports_unicode, suspend, terminate_group, texts, try_lock, unlock, unsafe_parent, user_name,
    user_without_access, wait, write_to,
};

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// An external event for this process. Not every platform has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Ctrl-C, or Ctrl-Break.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// The terminal disconnected, or its window closes.
    HangUp,
    /// A request to end, or a shutdown of the machine.
    Terminate,
    /// Ctrl-Z.
    Stop,
    /// The process was continued.
    Continue,
    /// The window size changed.
    Resize,
}

impl Event {
    /// The events that ask the process to end.
    pub const ENDING: [Event; 4] = [Event::Interrupt, Event::Quit, Event::HangUp, Event::Terminate];
}

/// One of this process's own streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// A source that [`wait`] can wait for.
#[derive(Clone, Copy)]
pub enum WaitSource<'s> {
    /// Data to read, or the end of the pipe.
    Pipe(&'s PipeSource),
    /// Room to write to a stream.
    Room(#[cfg_attr(windows, expect(dead_code, reason = "Windows cannot tell"))] Stream),
    /// Events of the command.
    Command(&'s ChildEvents),
}

/// Space on a file system.
pub struct FreeSpace {
    /// Bytes that are free for this user.
    pub free: u64,
    /// Whether another file can be created.
    pub another_file: bool,
}

/// The facts about a machine that affect benchmark figures. A field is empty if it is unknown.
pub struct Machine {
    pub processor: String,
    /// The name of the system.
    pub system: &'static str,
    pub kernel: String,
    pub clock_source: String,
    pub load: String,
}

/// A parent directory, and why it is not safe.
pub type UnsafeParent = (PathBuf, String);

/// Waits for an interval, but ends early when this process is asked to end.
pub struct Stop(Receiver<()>);

impl Stop {
    /// From now on, the signals that ask to end have no effect by themselves, except a quit, which makes a core dump.
    /// Call it before other threads start.
    pub fn on_signals() -> io::Result<Stop> {
        let (send, receive) = channel();
        on_events(&[Event::Interrupt, Event::Terminate, Event::HangUp], move |_| send.send(()).is_ok())?;
        Ok(Stop(receive))
    }

    /// Waits for the given time. Returns whether the process must end.
    pub fn within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits until the process must end.
    pub fn wait(&self) {
        let _ = self.0.recv();
    }
}
