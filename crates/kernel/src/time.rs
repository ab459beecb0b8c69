//! Points in time and durations as different types, so that they cannot be confused.

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

    /// The duration since `earlier`, or zero if `earlier` is not earlier (R3).
    #[inline]
    pub const fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `by` later. Saturates.
    #[inline]
    pub const fn plus(self, by: Nanos) -> Time {
        Time(self.0.saturating_add(by.0))
    }

    /// The point `by` earlier. Saturates at zero.
    #[inline]
    pub const fn minus(self, by: Nanos) -> Time {
        Time(self.0.saturating_sub(by.0))
    }
}

impl Nanos {
    /// The duration zero.
    pub const ZERO: Nanos = Nanos(0);

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis.saturating_mul(1_000_000))
    }

    /// Converts a duration. Saturates at the longest duration.
    pub fn of(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The duration for callers outside the kernel.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The sum. Saturates.
    #[inline]
    pub const fn plus(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}
