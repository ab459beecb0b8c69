//! A virtual clock for tests of programs that use a limiter.

use crate::boundary::{Failure, call};
use crate::code::{SHMLIMIT_CLOSED, SHMLIMIT_TOO_MANY};
use crate::handle_table::{InUse, Table};
use crate::input::OutValue;
use shmlimit::TestClock;
use std::time::{Duration, UNIX_EPOCH};

/// A virtual clock for tests, see shmlimit_test_clock_new(). It is a checked number, not a pointer that can be read.
pub struct shmlimit_test_clock {
    _private: [u8; 0],
}

static CLOCKS: Table<TestClock> = Table::new(4);

/// The clock behind a handle.
pub(crate) fn test_clock(handle: *const shmlimit_test_clock) -> Result<InUse<'static, TestClock>, Failure> {
    let freed = || Failure::new(SHMLIMIT_CLOSED, "the test clock is freed, or never existed");
    CLOCKS.get(handle.addr() as u64).ok_or_else(freed)
}

/// Creates a clock that stands still at `start_ns`, in nanoseconds since 1970; 0 = 2030-01-01 00:00:00 UTC. Free it with
/// shmlimit_test_clock_free(). `*clock` is NULL after a failure.
///
/// A limiter that is opened with the clock in `test_clock` of shmlimit_options takes its time from it. The clock stands
/// still. shmlimit_test_clock_advance() moves it, and so does a call that has to wait for a known time (a rate, a
/// Retry-After, a breaker, a deadline): the clock goes to that time, and the call continues at once. A call that waits for a
/// permit, or for the end of a pause, really waits until another thread provides it. If it has a timeout or a deadline, it
/// waits for 100 ms of real time; then the clock goes to the deadline, and the call is refused. Any number of limiters and
/// threads of one process may share a clock.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_test_clock_new(
    start_ns: u64,
    clock: *mut *mut shmlimit_test_clock,
) -> i32 {
    call(|| {
        let out = OutValue::new("clock", clock, std::ptr::null_mut())?;
        let made = match start_ns {
            0 => TestClock::new(),
            start => TestClock::starting_at(UNIX_EPOCH + Duration::from_nanos(start)),
        };
        let too_many = |_| Failure::new(SHMLIMIT_TOO_MANY, "too many test clocks are in use in this process");
        let number = CLOCKS.insert(made).map_err(too_many)?;
        out.write(std::ptr::without_provenance_mut(number as usize));
        Ok(())
    })
}

/// Moves the clock forward by `by_ns` nanoseconds. It never goes back, and stops after 280 years.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_test_clock_advance(
    clock: *const shmlimit_test_clock,
    by_ns: u64,
) -> i32 {
    call(|| {
        test_clock(clock)?.advance(Duration::from_nanos(by_ns));
        Ok(())
    })
}

/// Writes how many nanoseconds have passed since the clock was created.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_test_clock_elapsed(
    clock: *const shmlimit_test_clock,
    elapsed_ns: *mut u64,
) -> i32 {
    call(|| {
        let out = OutValue::new("elapsed_ns", elapsed_ns, 0)?;
        out.write(nanos(test_clock(clock)?.elapsed()));
        Ok(())
    })
}

/// Writes the time that the clock shows, in nanoseconds since 1970. The `deadline_ns` of a request is a time on this clock.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_test_clock_now(
    clock: *const shmlimit_test_clock,
    now_ns: *mut u64,
) -> i32 {
    call(|| {
        let out = OutValue::new("now_ns", now_ns, 0)?;
        out.write(nanos(test_clock(clock)?.now().duration_since(UNIX_EPOCH).unwrap_or_default()));
        Ok(())
    })
}

/// Frees a clock. Limiters that use it keep it. NULL is allowed and does nothing. Freeing a clock twice returns
/// SHMLIMIT_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn shmlimit_test_clock_free(clock: *mut shmlimit_test_clock) -> i32 {
    call(|| match clock.is_null() || CLOCKS.close(clock.addr() as u64) {
        true => Ok(()),
        false => Err(Failure::new(SHMLIMIT_CLOSED, "the test clock is already freed, or never existed")),
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
