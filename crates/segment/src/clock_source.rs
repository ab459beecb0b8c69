//! The source of a limiter's time: the clock of the machine, or the clock of a test.

use crate::error::Error;
use crate::layout;
use crate::sys::{self, Clock};
use crate::test_clock::{Alarm, TestClock};
use crate::words::Words;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// First word of the boot identity in the file of a limiter on a test clock. The second word is the clock's number.
const TEST_BOOT: u64 = u64::from_le_bytes(*b"TESTCLOC");

/// The clock of a limiter: the machine's clock, or a test clock.
#[derive(Debug, Clone, Default)]
pub struct ClockSource {
    test: Option<TestClock>,
}

impl ClockSource {
    /// Uses the clock of a test.
    pub fn test(clock: &TestClock) -> ClockSource {
        ClockSource { test: Some(clock.clone()) }
    }

    /// Whether this is the clock of a test.
    pub fn is_test(&self) -> bool {
        self.test.is_some()
    }

    /// The alarm with which a call waits for times of a test clock. `None` on the machine's clock, where a call
    /// sleeps.
    pub fn alarm(&self) -> Option<Alarm> {
        self.test.as_ref().map(TestClock::alarm)
    }

    /// The time for a process that corrects the machine's clock by `clock`.
    #[inline(always)]
    pub(crate) fn now(&self, clock: &Clock) -> u64 {
        match &self.test {
            None => clock.now(),
            Some(test) => test.raw(),
        }
    }

    /// [`now`](Self::now) for a caller that has already read the machine's clock as `read`.
    #[inline(always)]
    pub(crate) fn correct(&self, clock: &Clock, read: u64) -> u64 {
        match &self.test {
            None => clock.correct(read),
            Some(test) => test.raw(),
        }
    }

    /// The time for a caller that does not know yet how its process must correct the machine's clock.
    pub fn first_now(&self) -> io::Result<u64> {
        Ok(self.now(&Clock::discover()?))
    }

    /// The time of the wall clock, in nanoseconds since 1970. `raw` is the time that was just read. A test clock
    /// may have moved since, and the two times must belong together.
    pub fn wall_at(&self, raw: u64) -> u64 {
        match &self.test {
            None => sys::wall_now(),
            Some(test) => test.wall_at(raw),
        }
    }

    /// The current time of the wall clock, in nanoseconds since 1970.
    pub fn wall_now(&self) -> u64 {
        match &self.test {
            None => sys::wall_now(),
            Some(test) => test.wall_at(test.raw()),
        }
    }

    /// The current time of the wall clock.
    pub fn system_time(&self) -> SystemTime {
        match &self.test {
            None => SystemTime::now(),
            Some(_) => UNIX_EPOCH + Duration::from_nanos(self.wall_now()),
        }
    }

    /// Identifies the period in which times of this clock can be compared: a boot of the machine, or one test
    /// clock.
    pub fn boot_id(&self) -> io::Result<[u64; 2]> {
        match &self.test {
            None => sys::boot_id(),
            Some(test) => Ok([TEST_BOOT, test.id()]),
        }
    }

    /// Returns an error if the segment runs on another clock. Virtual time must never reach a limiter that other
    /// programs share, and a program must never share a limiter whose clock only a test moves.
    pub(crate) fn check(&self, words: &Words, path: &Path) -> Result<(), Error> {
        let [kind, id] = words.load_array(layout::BOOT);
        let is_test = kind == TEST_BOOT;
        let (problem, remedy, segment) = match &self.test {
            None if is_test => ("it runs on a test clock", OF_A_TEST, true),
            Some(test) if is_test && id != test.id() => ("it runs on another test clock", OF_A_TEST, true),
            Some(_) if !is_test => ("it runs on the machine's clock", OF_THE_MACHINE, false),
            _ => return Ok(()),
        };
        Err(Error::Foreign { path: path.to_owned(), problem: problem.into(), remedy, segment })
    }
}

const OF_A_TEST: &str = "give each test a directory of its own, or remove it with: REMOVE";
const OF_THE_MACHINE: &str = "give the test a directory of its own, such as a temporary one";
