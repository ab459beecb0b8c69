//! Points in time and durations, as different types, so that one is never taken for the other.

use bytemuck::{Pod, Zeroable};
use core::time::Duration;

/// A point on the limiter's clock, in nanoseconds since that clock's zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Time {
    /// The clock's zero.
    pub const ZERO: Time = Time(0);

    /// The duration since `earlier`, nothing if that is not earlier (R3).
    #[inline]
    pub const fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `by` later; the end of time if there is none.
    #[inline]
    pub const fn plus(self, by: Nanos) -> Time {
        Time(self.0.saturating_add(by.0))
    }

    /// The point `by` earlier; zero if there is none.
    #[inline]
    pub const fn minus(self, by: Nanos) -> Time {
        Time(self.0.saturating_sub(by.0))
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// A duration in nanoseconds; the longest that there is for one that is too long.
    pub fn of(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The same for callers outside the kernel.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The sum, or the longest duration if that is too long.
    #[inline]
    pub const fn plus(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}
