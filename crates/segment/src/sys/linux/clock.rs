//! One clock for every process: `CLOCK_BOOTTIME` of the *initial* time namespace.
//!
//! Inside a time namespace both monotonic clocks are shifted, so two containers that share a segment would disagree
//! about the current time. The kernel reports the shift in `/proc/self/timens_offsets`, relative to the initial
//! namespace even when namespaces are nested. This module subtracts it.

use std::io;
use std::path::Path;

use nix::libc;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// How this process must correct its clocks; see the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Added to `CLOCK_BOOTTIME`, in nanoseconds.
    precise_shift: i64,
    /// Added to `CLOCK_MONOTONIC_COARSE`, in nanoseconds: the time spent suspended until `discover`, and both
    /// namespace shifts.
    coarse_shift: i64,
}

impl Clock {
    pub fn discover() -> io::Result<Clock> {
        let precise_shift = namespace_shift()?.wrapping_neg();
        let suspended = suspended_at_most_now()?;
        Ok(Clock { precise_shift, coarse_shift: suspended.saturating_add(precise_shift) })
    }

    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.correct(Clock::read())
    }

    #[inline(always)]
    pub fn read() -> u64 {
        // The status is not checked: `discover` has read this same clock, and a clock does not disappear.
        read_raw(libc::CLOCK_BOOTTIME).1
    }

    #[inline(always)]
    pub fn correct(&self, read: u64) -> u64 {
        read.wrapping_add(self.precise_shift as u64)
    }

    #[inline]
    pub fn now_coarse(&self) -> u64 {
        read_raw(libc::CLOCK_MONOTONIC_COARSE).1.wrapping_add(self.coarse_shift as u64)
    }

    pub fn to_words(self) -> [u64; 2] {
        [self.precise_shift as u64, self.coarse_shift as u64]
    }

    #[inline(always)]
    pub fn from_words(words: [u64; 2]) -> Clock {
        Clock { precise_shift: words[0] as i64, coarse_shift: words[1] as i64 }
    }
}

pub fn wall_now() -> u64 {
    read_ns(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// `None` for a clock that this kernel lacks, or for a time before the clock's zero.
fn read_ns(clock: libc::clockid_t) -> Option<u64> {
    let (status, nanos) = read_raw(clock);
    (status == 0 && nanos <= i64::MAX as u64).then_some(nanos)
}

/// The status of the call, and the time in nanoseconds if the status is 0.
#[inline(always)]
fn read_raw(clock: libc::clockid_t) -> (i32, u64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable timespec, and the call keeps no pointer to it.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    (status, (time.tv_sec as u64).wrapping_mul(NANOS_PER_SECOND as u64).wrapping_add(time.tv_nsec as u64))
}

/// A lower bound of BOOTTIME − MONOTONIC, in nanoseconds, so that the coarse clock can never overtake the precise
/// one.
///
/// BOOTTIME is read first, so time that passes between the two readings makes the difference smaller. The largest
/// of several differences is therefore the closest. A later suspend only makes the true difference grow.
fn suspended_at_most_now() -> io::Result<i64> {
    let mut closest = i64::MIN;
    for _ in 0..8 {
        let boottime = read_ns(libc::CLOCK_BOOTTIME);
        let monotonic = read_ns(libc::CLOCK_MONOTONIC);
        let (Some(boottime), Some(monotonic)) = (boottime, monotonic) else {
            return Err(io::Error::last_os_error());
        };
        closest = closest.max(boottime.wrapping_sub(monotonic) as i64);
    }
    if read_ns(libc::CLOCK_MONOTONIC_COARSE).is_none() {
        return Err(io::Error::last_os_error());
    }
    Ok(closest)
}

/// How far CLOCK_BOOTTIME of this process is ahead of the clock of the initial namespace, in nanoseconds.
fn namespace_shift() -> io::Result<i64> {
    let current = match std::fs::read_link("/proc/self/ns/time") {
        Ok(link) => link,
        // Only a mounted /proc can prove that this kernel has no time namespaces.
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/ns").is_dir() => {
            return Ok(0);
        }
        Err(error) => return Err(explain("/proc/self/ns/time", error)),
    };
    let children = std::fs::read_link("/proc/self/ns/time_for_children")
        .map_err(|error| explain("/proc/self/ns/time_for_children", error))?;
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets")
        .map_err(|error| explain("/proc/self/timens_offsets", error))?;
    shift_from(current == children, &offsets)
}

fn shift_from(offsets_are_ours: bool, offsets: &str) -> io::Result<i64> {
    if !offsets_are_ours {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this process has unshared its time namespace, which only its children will enter, so the offset of its \
             own clock is unknown: fork first, then open the limiter",
        ));
    }
    boottime_offset(offsets).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "/proc/self/timens_offsets has no readable boottime line")
    })
}

/// Parses the line `boottime SECONDS NANOSECONDS`. Older kernels write the number of that clock, 7, instead of its
/// name.
fn boottime_offset(offsets: &str) -> Option<i64> {
    offsets.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        if !matches!(fields.next()?, "boottime" | "7") {
            return None;
        }
        let seconds: i64 = fields.next()?.parse().ok()?;
        let nanos: i64 = fields.next()?.parse().ok()?;
        seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
    })
}

fn explain(path: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot find out which clock all processes share: {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::testing::{Helper, helper_command};

    #[test]
    fn coarse_clock_is_never_above_the_precise_clock() {
        let clock = Clock::discover().unwrap();
        for _ in 0..100_000 {
            let coarse = clock.now_coarse();
            let precise = clock.now();
            assert!(coarse <= precise, "{coarse} > {precise}");
        }
    }

    #[test]
    fn measured_suspend_time_is_a_lower_bound() {
        for _ in 0..10_000 {
            let suspended = suspended_at_most_now().unwrap();
            let monotonic = read_ns(libc::CLOCK_MONOTONIC).unwrap();
            let boottime = read_ns(libc::CLOCK_BOOTTIME).unwrap();
            assert!(monotonic.saturating_add_signed(suspended) <= boottime);
        }
    }

    #[test]
    fn precise_clock_never_goes_back() {
        let clock = Clock::discover().unwrap();
        let mut last = clock.now();
        assert!(last > 0);
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn clock_is_restored_from_its_words() {
        let clock = Clock { precise_shift: -5, coarse_shift: i64::MAX };
        assert_eq!(Clock::from_words(clock.to_words()), clock);
    }

    #[test]
    fn offsets_are_read_with_their_sign() {
        let text = "monotonic           1         2\nboottime          -10 500000000\n";
        assert_eq!(boottime_offset(text), Some(-9_500_000_000));
        assert_eq!(boottime_offset("monotonic 1 2\n"), None);
        assert_eq!(boottime_offset("boottime 1\n"), None);
        assert_eq!(boottime_offset("boottime 99999999999 0\n"), None);
    }

    #[test]
    fn unshared_time_namespace_that_was_not_entered_is_refused() {
        assert_eq!(shift_from(false, "boottime 0 0\n").unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(shift_from(true, "boottime 3 4\n").unwrap(), 3_000_000_004);
    }

    #[test]
    fn r2_a_process_in_another_time_namespace_reads_the_same_clock() {
        let allowed = std::process::Command::new("unshare").args(["--time", "--fork", "true"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            eprintln!("not tested: `unshare --time` is missing or not permitted here");
            return;
        }
        let wrapper = ["unshare", "--time", "--fork", "--boottime", "86400", "--monotonic", "1000"];
        let clock = Clock::discover().unwrap();
        let before = clock.now();
        let mut helper =
            Helper::start(helper_command(&wrapper, "sys::linux::clock::tests::helper_reads_the_clock"));
        let said = helper.answer();
        let after = clock.now();
        helper.finish();
        let mut numbers = said.split(' ').map(|number| number.parse::<u64>().unwrap());
        let (coarse, precise, raw) =
            (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
        assert!(raw > after + 80_000 * NANOS_PER_SECOND as u64, "the helper was not in another namespace");
        assert!(before <= precise && precise <= after, "{before} {precise} {after}");
        assert!(coarse <= precise && coarse + NANOS_PER_SECOND as u64 > before, "{coarse} {precise}");
    }

    #[test]
    fn helper_reads_the_clock() {
        crate::sys::linux::testing::as_helper(|helper| {
            let clock = Clock::discover().unwrap();
            let coarse = clock.now_coarse();
            let precise = clock.now();
            let raw = read_ns(libc::CLOCK_BOOTTIME).unwrap();
            helper.say(&format!("{coarse} {precise} {raw}"));
        });
    }
}
