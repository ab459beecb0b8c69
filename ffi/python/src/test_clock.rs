//! A virtual clock for tests of programs that use a limiter.

use crate::arguments::{moment, passing};
use pyo3::prelude::*;
use std::time::UNIX_EPOCH;

/// A virtual clock: a limiter opened with it takes its time from the clock, and its calls never sleep for a known
/// time.
///
/// start: the clock's first time: an aware datetime, or seconds since the epoch. Default: 2030-01-01 00:00:00 UTC,
/// so that every run of a test sees the same times.
///
/// The clock stands still until something moves it. advance() moves it, and so does a call that has to wait for a
/// known time (a rate, a Retry-After, a breaker, a deadline): the clock jumps to that time, and the call continues at
/// once. A call that waits for a permit, or for the end of a pause, really waits until another thread or task returns
/// the permit or ends the pause. If the call has a timeout or a deadline, it waits for 100 ms of real time; then the
/// clock jumps to the deadline, and Refused is raised.
///
/// Any number of limiters and threads of one process may share a clock.
#[pyclass(frozen, module = "shmlimit.testing")]
pub struct TestClock {
    pub clock: shmlimit::TestClock,
}

#[pymethods]
impl TestClock {
    /// pytest must not collect this class as a test class because of its name.
    #[classattr]
    #[pyo3(name = "__test__")]
    const TEST: bool = false;

    #[new]
    #[pyo3(signature = (start = None))]
    fn new(start: Option<&Bound<'_, PyAny>>) -> PyResult<TestClock> {
        let clock = match start {
            None => shmlimit::TestClock::new(),
            Some(start) => shmlimit::TestClock::starting_at(moment("start", start)?),
        };
        Ok(TestClock { clock })
    }

    /// Moves the clock forward at once, by seconds or a timedelta. The clock never goes back.
    fn advance(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        self.clock.advance(passing("seconds", seconds)?);
        Ok(())
    }

    /// Seconds that have passed since the clock was created: by advance(), and by waiting calls.
    fn elapsed(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    /// The clock's time, an aware datetime. Deadlines are points on this clock.
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let since_1970 = self.clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let datetime = py.import("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        let epoch = datetime.getattr("datetime")?.call_method1("fromtimestamp", (0, utc))?;
        let (seconds, micros) = (since_1970.as_secs(), since_1970.subsec_micros());
        epoch.add(datetime.getattr("timedelta")?.call1((0, seconds, micros))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<shmlimit.testing.TestClock at {}>", self.now(py)?.call_method0("isoformat")?))
    }
}
