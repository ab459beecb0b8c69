//! Observers: read a segment without a slot and without the lock, and change nothing in it.

use super::Segment;
use super::options::{AttachOptions, Role};
use super::process_state;
use crate::directory::self_test;
use crate::error::Error;
use crate::file::Verified;
use crate::journal::{self, Found};
use crate::layout;
use crate::memory::Reader;
use crate::sanity;
use crate::sys::{self, Clock, FileSystem};
use crate::words::Words;
use shmlimit_kernel::time::Time;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;

impl Segment {
    /// Prepares an observer, which has no slot. `file` is any open file description of the segment's file.
    pub(crate) fn observe(&self, file: &File) -> Result<(), Error> {
        let file_system = sys::file_system(file).map_err(Error::io("examine", self.path()))?;
        if let FileSystem::Lossy(_) = file_system {
            return Err(self_test::locks_are_lost(self.path(), file));
        }
        if self.is_retired() {
            return Err(self.gone());
        }
        self.clock().map(drop)
    }

    /// Whether this process is an observer: it reads the segment and has no slot in it.
    pub fn is_observed(&self) -> bool {
        self.bounds.role == Role::Observer && self.present().is_none()
    }

    /// How this process reads the limiter's clock. Attaches a participant first; an observer does not attach.
    pub fn clock(&self) -> Result<Clock, Error> {
        if !self.is_observed() {
            return Ok(self.attachment()?.clock);
        }
        let word = |i: usize| self.process_state.word(process_state::CLOCK + i);
        let observes = self.process_state.word(process_state::OBSERVES);
        if observes.load(Ordering::Acquire) != 0 {
            return Ok(Clock::from_words([word(0).load(Ordering::Relaxed), word(1).load(Ordering::Relaxed)]));
        }
        let clock = discover(self.path())?;
        for (i, value) in clock.to_words().into_iter().enumerate() {
            word(i).store(value, Ordering::Relaxed);
        }
        observes.store(1, Ordering::Release);
        Ok(clock)
    }

    /// The time on the limiter's clock, read with [`clock`](Self::clock).
    #[inline]
    pub fn now_by(&self, clock: &Clock) -> Time {
        Time(self.clock.now(clock).wrapping_add(self.words.load(layout::CLOCK_OFFSET)))
    }
}

impl Verified {
    /// Whether a participant must repair this segment before its state can be read: it was last used in another
    /// boot, its state is invalid, or a change is half done. Attaching does the repair.
    pub fn needs_repair(&self) -> Result<bool, Error> {
        let now = self.clock.now(&discover(self.backing.path())?);
        let boot =
            self.clock.boot_id().map_err(Error::io("find the boot identity for", self.backing.path()))?;
        let other_boot = self.words.load_array(layout::BOOT) != boot;
        Ok(other_boot || !journal::read(&self.words, |words| is_readable(words, now)).unwrap_or(false))
    }
}

fn is_readable(words: &Words, raw: u64) -> bool {
    let now = Time(raw.wrapping_add(words.load(layout::CLOCK_OFFSET)));
    // The caller that reads the policy reports its damage.
    sanity::policy(words)
        .map_or(true, |policy| sanity::is_sound(&Reader(words.cells()), &policy, Found::Whole, now))
}

fn discover(path: &Path) -> Result<Clock, Error> {
    Clock::discover().map_err(Error::io("read the clock for", path))
}

impl AttachOptions {
    /// The same options for an observer that acts as an operator for a moment.
    pub fn as_operator(self) -> AttachOptions {
        AttachOptions { role: Role::Operator, ..self }
    }
}
