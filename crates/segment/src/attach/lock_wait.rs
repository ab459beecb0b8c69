//! Waiting for the segment's lock: how long a call waits, and which error it returns when it gives up.

use super::process_state;
use super::{Segment, program_name};
use crate::error::Error;
use crate::file::backing::Probe;
use crate::layout;
use crate::lock::{Deadline, Os, StillHeld};
use crate::slots;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Segment {
    /// The default deadline of a call. Each call creates one deadline and passes it to every step.
    #[inline]
    pub fn deadline(&self) -> Deadline {
        Deadline::within(self.bounds.lock)
    }

    /// The error of a call that gave up waiting for the lock.
    #[cold]
    pub(crate) fn busy(&self, held: StillHeld) -> Error {
        let stopped = self.unchanged_for(&held) >= self.bounds.stall;
        // The holder may have died without this process being able to find out.
        if let Err(error @ Error::Liveness { .. }) = self.probe() {
            return error;
        }
        let holder = slots::participant(&self.words, held.by).filter(|_| stopped);
        Error::Busy {
            path: self.path().to_owned(),
            pid: holder.map_or(0, |p| p.pid),
            program: holder.map_or_else(|| "unknown".into(), |p| program_name(&p.program)),
            waited: held.waited,
            stopped,
        }
    }

    /// A file description through which the liveness locks of other processes can be tested.
    pub(crate) fn probe(&self) -> Result<Probe, Error> {
        self.backing.probe().map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.gone(),
            ErrorKind::PermissionDenied => Error::Liveness {
                path: self.path().to_owned(),
                problem: "this process has given up the right to open it".into(),
                remedy: "open the limiter after giving up privileges, as the new user, or leave its descriptors open"
                    .into(),
            },
            _ => Error::io("open", self.path())(error),
        })
    }

    /// The error if another thread of this process is attaching to the segment and did not finish in time.
    #[cold]
    pub(crate) fn busy_attaching(&self) -> Error {
        let (path, waited) = (self.path().to_owned(), self.bounds.lock);
        Error::Busy { path, pid: 0, program: "unknown".into(), waited, stopped: false }
    }

    /// How long the acquisition that a call gave up on has held the lock. A call with a short deadline sees only a
    /// part of that time, so the process remembers the acquisition and when it was first seen.
    fn unchanged_for(&self, held: &StillHeld) -> Duration {
        let now = self.backing.now();
        // The acquisition's number alone is not unique: it repeats after a million acquisitions.
        let which = u64::from(held.acquisition) ^ self.words.load(layout::VERSION).rotate_left(32);
        let [known, since] =
            [process_state::HOLDER, process_state::HOLDER_SINCE].map(|word| self.process_state.word(word));
        if known.load(Ordering::Relaxed) != which {
            let seen = u64::try_from(held.unchanged_for.as_nanos()).unwrap_or(u64::MAX);
            since.store(now.saturating_sub(seen), Ordering::Relaxed);
            known.store(which, Ordering::Relaxed);
        }
        Duration::from_nanos(now.saturating_sub(since.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests;
