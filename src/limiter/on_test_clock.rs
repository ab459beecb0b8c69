//! Opens a limiter on a test clock.

use super::builder::Builder;
use crate::test_clock::TestClock;
use shmlimit_segment::Error;

impl Builder {
    /// Takes the time from a [`TestClock`], for tests of programs that use a limiter. No call sleeps for a known
    /// time. The [`directory`](Self::directory) is required too, best a temporary one, so that virtual time never
    /// reaches a limiter that other programs share. A limiter that runs on another clock cannot be opened
    /// ([`Error::Foreign`]).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, TestClock};
    ///
    /// let clock = TestClock::new();
    /// let limiter = Limiter::builder("tmdb").directory(directory.path()).test_clock(&clock).open()?;
    /// assert!(Limiter::builder("tmdb").test_clock(&clock).open().is_err()); // no directory
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn test_clock(mut self, clock: &TestClock) -> Builder {
        self.clock = clock.source();
        self
    }

    /// Fails if virtual time could reach the directory that programs share.
    pub(super) fn check_test_directory(&self) -> Result<(), Error> {
        if self.clock.is_test() && self.directory.is_none() {
            return Err(Error::BadValue {
                what: "open a limiter on a test clock",
                problem: "no directory is named; name a directory that only the test uses, such as a temporary one, \
                          so that virtual time never reaches a shared limiter"
                    .into(),
            });
        }
        Ok(())
    }
}
