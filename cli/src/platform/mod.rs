//! What the tool needs of the operating system: one contract, one directory per platform. What needs `unsafe` is in the
//! library (`shmlimit_segment::sys::tool`).
//!
//! **Events** ([`Event`]): [`hear`] tells of some of them instead of what they would do by themselves, until `tell` says
//! that nobody listens any more; call it before other threads begin. [`Endings`] collects those that want this process to
//! end, for one who asks now and then ([`Endings::heard`]); [`Endings::spawn`] starts a program that does not share its
//! deafness, and ends with this process. [`die_of`] ends as an event wants it, so that whoever waits for this process
//! sees why. [`stop_here`] lets the shell have the terminal until it lets us go on.
//!
//! **A command** ([`start`]): it hears what is typed at the terminal as if it had been started directly, and dies with
//! this process however that is killed. `attend` stays with it and hears meanwhile what it says; `let_go`
//! ends that. [`End`] is how it ended: [`End::into_exit_code`] is for whoever started us.
//! [`command`] finds it as a shell would.
//!
//! **Pipes**: [`Inlet`] is the end that we read, which never waits. [`wait`] waits for several [`Source`]s at once and
//! says which have news, or room. [`write_to`] writes some, as bytes, to one of our own streams. [`address`] names the
//! other end of a pipe for other programs of this user, and [`reach`] finds it by that name, or nothing if it is gone.
//! [`give_descriptor`] lets a command find it under a number, where programs have such numbers.
//!
//! **Helpers**: [`lead`] starts a caretaker, which outlives us and is deaf to what ends the others; [`join`] puts
//! programs under its care, [`end_programs`] ends them. [`Care`] is the caretaker's own side of it.
//!
//! **Places and files**: [`session`], [`user_name`], [`private_directory`], [`can_be_run`], [`open_to_append`] with [`try_lock`],
//! [`unlock`], [`is_at`], [`is_link`] and [`largest_file`] for logs, [`create_public`], [`is_device`]; [`room`], [`open_parent`], [`close`],
//! [`is_stopped`], [`has_lost`] and [`is_left_by_us`] for the doctor; [`machine`] for figures. [`understands_escapes`]: whether the
//! terminal moves its cursor and has colours if told so; [`shows_more_than_ascii`] what it can show.
//!
//! **Words** ([`words`]): what differs in advice and help.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as here;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as here;

pub use here::{
    Care, End, Endings, Inlet, LINK, News, address, can_be_run, close, command, create_public, die_of,
    end_programs, give_descriptor, has_lost, hear, is_at, is_device, is_left_by_us, is_link, is_stopped,
    join, largest_file, lead, machine, open_parent, open_to_append, private_directory, reach, room, session,
    shows_more_than_ascii, start, stop_here, try_lock, understands_escapes, unlock, user_name, wait, words,
    write_to,
};

use std::path::PathBuf;

/// What may happen to a process from outside. Not every platform has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Ctrl-C, or Ctrl-Break.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// The terminal is gone, or its window closes.
    HangUp,
    /// Somebody wants it to end, or the machine goes down.
    Terminate,
    /// Ctrl-Z.
    Stop,
    /// It goes on.
    Continue,
    /// The window has another size.
    Resize,
}

impl Event {
    /// Those that ask to end.
    pub const ENDING: [Event; 4] = [Event::Interrupt, Event::Quit, Event::HangUp, Event::Terminate];
}

/// One of our own streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Out,
    Err,
}

/// What can be waited for.
#[derive(Clone, Copy)]
pub enum Source<'s> {
    /// Something to read, or the end.
    Inlet(&'s Inlet),
    /// Room to write.
    Room(#[cfg_attr(windows, expect(dead_code, reason = "nobody can tell there"))] Which),
    /// News of the command.
    Command(&'s News),
}

/// Room on a file system.
pub struct Room {
    /// Bytes that are free for this user.
    pub free: u64,
    /// Whether there may be another file.
    pub another_file: bool,
}

/// What a machine is, as far as figures depend on it. Empty is what cannot be known.
pub struct Machine {
    pub processor: String,
    /// The kind of system, and its version.
    pub system: &'static str,
    pub kernel: String,
    pub clock_source: String,
    pub load: String,
}

/// A directory above, and why it is not safe.
pub type OpenParent = (PathBuf, String);
