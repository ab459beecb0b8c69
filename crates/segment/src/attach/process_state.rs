//! The state of this process in a segment: its attachment, and words that every forked child finds zero.
//!
//! A forked child starts with [`ABSENT`] and attaches itself at its first call.

use crate::sys::Clock;
use std::sync::atomic::AtomicU32;

/// The place of this process in a segment.
#[derive(Debug, Clone, Copy)]
pub struct Attachment {
    /// Its slot.
    pub slot: usize,
    /// Identifies this attachment, also across a fork.
    pub id: u64,
    /// How this process reads the common clock.
    pub clock: Clock,
}

/// [`ABSENT`], [`ATTACHING`], or the attachment id of this process.
pub(crate) const STATE: usize = 0;
pub(crate) const CLOCK: usize = 1;
/// When this process last checked that the file is in its place.
pub(crate) const CHECKED: usize = 3;
/// When this process last looked for dead processes.
pub(crate) const RECLAIMED_AT: usize = 4;
/// Until when the last refusal lasts.
pub(crate) const REFUSED_UNTIL: usize = 5;
/// Whether a thread is busy in [`Segment::run_on_one_thread`](super::Segment::run_on_one_thread).
pub(crate) const AT_WORK: usize = 6;
/// The acquisition of the lock on which the last call of this process gave up waiting.
pub(crate) const HOLDER: usize = 7;
/// When this process first saw that acquisition.
pub(crate) const HOLDER_SINCE: usize = 8;
/// Whether an observer has found out how to read the clock.
pub(crate) const OBSERVES: usize = 9;
/// The generation of the limiter's name when this process attached: see `directory/users.rs`.
pub(crate) const GENERATION: usize = 10;

/// How many permits of this segment are still held after it was handed over: see `successor/permits.rs`.
pub(crate) const PERMITS_OUT: usize = 11;

pub(crate) const ABSENT: u64 = 0;
pub(crate) const ATTACHING: u64 = 1;

/// Whether a placeholder has replaced a segment in memory.
#[derive(Debug, Default)]
pub(crate) struct FileRelease(pub(crate) AtomicU32);

impl FileRelease {
    pub(crate) const IN_USE: u32 = 0;
    /// A thread is about to map the placeholder.
    pub(crate) const RELEASING: u32 = 1;
    pub(crate) const CLOSED: u32 = 2;
}
