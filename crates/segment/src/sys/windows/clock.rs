//! One clock for every process: the performance counter. It counts from boot, even while the machine sleeps or
//! hibernates, is the same on every processor, and is read without a system call on all but very old machines.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Nanoseconds per count, times 2^32; 0 until the first read. The frequency is fixed at boot, so every process
/// computes the same value.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// A clock that needs no correction; see the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock;

impl Clock {
    pub fn discover() -> io::Result<Clock> {
        match frequency() {
            0 => Err(io::Error::new(io::ErrorKind::Unsupported, "this machine has no performance counter")),
            _ => Ok(Clock),
        }
    }

    #[inline(always)]
    pub fn now(&self) -> u64 {
        Clock::read()
    }

    #[inline(always)]
    pub fn read() -> u64 {
        let mut count = 0;
        // SAFETY: `count` is a live, writable word, and the call keeps no pointer to it. The call cannot fail.
        unsafe { QueryPerformanceCounter(&mut count) };
        let scale = match SCALE.load(Ordering::Relaxed) {
            0 => remember_scale(),
            scale => scale,
        };
        nanos(count as u64, scale)
    }

    #[inline(always)]
    pub fn correct(&self, read: u64) -> u64 {
        read
    }

    /// Reads the counter, which is as cheap as any other clock here. Other clocks may drift away from it.
    #[inline]
    pub fn now_coarse(&self) -> u64 {
        Clock::read()
    }

    pub fn to_words(self) -> [u64; 2] {
        [0; 2]
    }

    #[inline(always)]
    pub fn from_words(_words: [u64; 2]) -> Clock {
        Clock
    }
}

pub fn wall_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[inline(always)]
fn nanos(count: u64, scale: u64) -> u64 {
    ((u128::from(count) * u128::from(scale)) >> 32) as u64
}

#[cold]
fn remember_scale() -> u64 {
    let scale = scale_of(frequency().max(1));
    SCALE.store(scale, Ordering::Relaxed);
    scale
}

/// Exact for the usual 10 MHz. Otherwise the error is less than one in 2^32, and the same in every process.
fn scale_of(frequency: u64) -> u64 {
    u64::try_from((NANOS_PER_SECOND << 32) / u128::from(frequency)).unwrap_or(u64::MAX).max(1)
}

fn frequency() -> u64 {
    let mut frequency = 0;
    // SAFETY: `frequency` is a live, writable word, and the call keeps no pointer to it.
    unsafe { QueryPerformanceFrequency(&mut frequency) };
    frequency.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_back_and_runs_as_fast_as_the_wall_clock() {
        let clock = Clock::discover().unwrap();
        let (wall, first) = (std::time::Instant::now(), clock.now());
        let mut last = first;
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let (passed, by_wall) = (clock.now() - first, wall.elapsed().as_nanos() as u64);
        assert!(passed <= by_wall && by_wall - passed < 1_000_000_000, "{passed} {by_wall}");
    }

    #[test]
    fn counts_of_any_frequency_become_nanoseconds() {
        assert_eq!(nanos(12_345, scale_of(10_000_000)), 1_234_500);
        for frequency in [3_579_545, 24_000_000, 2_400_000_000] {
            let day = nanos(frequency * 86_400, scale_of(frequency));
            assert!(day.abs_diff(86_400_000_000_000) < 100_000, "{frequency}: {day}");
        }
        let century = 10_000_000 * 86_400 * 36_525;
        assert_eq!(nanos(century, scale_of(10_000_000)), century * 100);
    }
}
