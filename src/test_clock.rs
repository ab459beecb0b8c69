//! The clock that users' tests control.

use shmlimit_segment::ClockSource;
use std::time::{Duration, SystemTime};

/// A virtual clock for tests. Limiters that are opened with it
/// ([`Builder::test_clock`](crate::Builder::test_clock)) take their time from it, and their calls never sleep for a
/// known time.
///
/// - It starts at 2030-01-01 00:00:00 UTC, or at the time given to [`starting_at`](Self::starting_at). Every run of
///   a test sees the same times.
/// - It stands still until [`advance`](Self::advance) moves it, or until a call has to wait for a known time (a
///   rate, a `Retry-After`, a breaker, a deadline). Then the clock moves to that time, and the call proceeds at
///   once. If several threads wait, the one with the earliest time goes first. The clock does not wait for threads
///   that are doing something else.
/// - A call that waits for something without a known end (a permit, or the end of a pause) really waits until
///   another thread or task provides it. If the call has a timeout or a deadline, it waits for 100 ms of real time.
///   Then the clock moves to the deadline, and the call is refused.
/// - Clones are the same clock. Any number of limiters and threads of one process may share it. A forked child gets
///   an independent copy.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use shmlimit::{Limiter, Request, TestClock};
/// use std::time::Duration;
///
/// let (directory, clock) = (tempfile::tempdir()?, TestClock::new());
/// let api = Limiter::builder("api").directory(directory.path()).rate("10/min").test_clock(&clock).open()?;
///
/// for _ in 0..10 {
///     api.try_acquire(&Request::new())?.release()?;
/// }
/// assert!(api.try_acquire(&Request::new()).is_err()); // the minute is used up
/// api.acquire(&Request::new())?.release()?; // waits, but takes no time
/// assert_eq!(clock.elapsed(), Duration::from_secs(60));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    clock: shmlimit_segment::TestClock,
}

impl TestClock {
    /// A clock that shows 2030-01-01 00:00:00 UTC and stands still.
    ///
    /// ```
    /// assert!(shmlimit::TestClock::new().elapsed().is_zero());
    /// ```
    pub fn new() -> TestClock {
        TestClock::default()
    }

    /// A clock that shows this moment and stands still. It is for calendar windows, dates in headers, and programs
    /// that compute deadlines from the real `SystemTime::now()`. A moment before 1970 counts as 1970.
    ///
    /// ```
    /// use shmlimit::TestClock;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let start = SystemTime::now();
    /// let clock = TestClock::starting_at(start);
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(clock.now(), start + Duration::from_secs(5));
    /// ```
    pub fn starting_at(start: SystemTime) -> TestClock {
        TestClock { clock: shmlimit_segment::TestClock::starting_at(start) }
    }

    /// Moves the clock forward by this duration. The clock never goes back, and stops after 280 years.
    ///
    /// ```
    /// use shmlimit::TestClock;
    /// use std::time::Duration;
    ///
    /// let clock = TestClock::new();
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(30));
    /// ```
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The time that has passed since the clock was created, by [`advance`](Self::advance) and by waiting calls.
    ///
    /// ```
    /// use shmlimit::TestClock;
    /// use std::time::Duration;
    ///
    /// let clock = TestClock::new();
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(clock.elapsed(), Duration::from_secs(5));
    /// ```
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The current time of the clock. Deadlines are points on this clock.
    ///
    /// ```
    /// use shmlimit::TestClock;
    /// use std::time::SystemTime;
    ///
    /// assert_eq!(TestClock::starting_at(SystemTime::UNIX_EPOCH).now(), SystemTime::UNIX_EPOCH);
    /// ```
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// This clock as the time source of a limiter.
    pub(crate) fn source(&self) -> ClockSource {
        ClockSource::test(&self.clock)
    }
}
