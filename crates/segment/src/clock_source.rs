//! Where the time of a limiter comes from: the machine, or a test's clock.

use crate::error::Error;
use crate::layout;
use crate::sys::{self, Clock};
use crate::test_clock::{Alarm, TestClock};
use crate::words::Words;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// First word of the boot identity in files of limiters on a test clock; the second is the clock's number.
const TEST_BOOT: u64 = u64::from_le_bytes(*b"TESTCLOC");

/// The clock of a limiter: the machine's, unless a test has one of its own.
#[derive(Debug, Clone, Default)]
pub struct ClockSource {
    test: Option<TestClock>,
}

impl ClockSource {
    /// The clock of a test.
    pub fn test(clock: &TestClock) -> ClockSource {
        ClockSource { test: Some(clock.clone()) }
    }

    /// Whether it is the clock of a test.
    pub fn is_test(&self) -> bool {
        self.test.is_some()
    }

    /// What a call waits with for times of a test's clock; `None` on the machine's, where it sleeps.
    pub fn alarm(&self) -> Option<Alarm> {
        self.test.as_ref().map(TestClock::alarm)
    }

    /// The time, as a process that corrects the machine's clock by `clock` reads it.
    #[inline(always)]
    pub(crate) fn now(&self, clock: &Clock) -> u64 {
        match &self.test {
            None => clock.now(),
            Some(test) => test.raw(),
        }
    }

    /// [`now`](Self::now), where the machine's clock was read before.
    #[inline(always)]
    pub(crate) fn correct(&self, clock: &Clock, read: u64) -> u64 {
        match &self.test {
            None => clock.correct(read),
            Some(test) => test.raw(),
        }
    }

    /// The time, for a caller that knows nothing about the clocks of this process yet.
    pub fn first_now(&self) -> io::Result<u64> {
        Ok(self.now(&Clock::discover()?))
    }

    /// What the wall clock shows, in nanoseconds since 1970. `raw` is the time that was just read: a test's clock may have
    /// moved since, and the two must belong together.
    pub fn wall_at(&self, raw: u64) -> u64 {
        match &self.test {
            None => sys::wall_now(),
            Some(test) => test.wall_at(raw),
        }
    }

    /// What the wall clock shows now, in nanoseconds since 1970.
    pub fn wall_now(&self) -> u64 {
        match &self.test {
            None => sys::wall_now(),
            Some(test) => test.wall_at(test.raw()),
        }
    }

    /// What the wall clock shows now.
    pub fn system_time(&self) -> SystemTime {
        match &self.test {
            None => SystemTime::now(),
            Some(_) => UNIX_EPOCH + Duration::from_nanos(self.wall_now()),
        }
    }

    /// What the times of this clock belong to: a boot of the machine, or one test clock.
    pub fn boot_id(&self) -> io::Result<[u64; 2]> {
        match &self.test {
            None => sys::boot_id(),
            Some(test) => Ok([TEST_BOOT, test.id()]),
        }
    }

    /// An error if the segment runs on another clock. Virtual time never reaches a limiter that others share, and a program
    /// never shares one that only a test moves on.
    pub(crate) fn check(&self, words: &Words, path: &Path) -> Result<(), Error> {
        let [kind, id] = words.load_array(layout::BOOT);
        let is_test = kind == TEST_BOOT;
        let (problem, remedy, segment) = match &self.test {
            None if is_test => ("its time is that of a test clock", OF_A_TEST, true),
            Some(test) if is_test && id != test.id() => ("it belongs to another test clock", OF_A_TEST, true),
            Some(_) if !is_test => ("it runs on the clock of the machine", OF_THE_MACHINE, false),
            _ => return Ok(()),
        };
        Err(Error::Foreign { path: path.to_owned(), problem: problem.into(), remedy, segment })
    }
}

const OF_A_TEST: &str = "give each test a directory of its own, or remove it with: REMOVE";
const OF_THE_MACHINE: &str = "give the test a directory of its own, such as a temporary one";
