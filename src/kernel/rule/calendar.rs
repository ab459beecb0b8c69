//! Windows by the calendar (R28): number `wall / period` since the Unix epoch, so that a minute begins at second 0 and
//! a day at midnight UTC.

use super::At;
use crate::kernel::state::View;
use crate::kernel::time::{Nanos, Time};

/// A time seen by the calendar of a rule.
#[derive(Clone, Copy)]
pub(super) struct Calendar {
    /// Number of the window.
    pub(super) id: u64,
    /// How much of it is over.
    pub(super) elapsed: u64,
    period: u64,
    wall: u64,
    now: Time,
}

impl Calendar {
    /// The window at `at.now`, but never one before `stored`. A wall clock that is set back stands still at the
    /// beginning of the latest window until it is there again: no window is handed out twice (R134).
    #[inline]
    pub(super) fn of<V: View>(v: &V, at: &At, stored: u64) -> Calendar {
        let (period, wall) = (at.terms.period().0, v.wall(at.now));
        let id = wall / period;
        let (id, elapsed) = if stored > id { (stored, 0) } else { (id, wall % period) };
        Calendar { id, elapsed, period, wall, now: at.now }
    }

    /// The window by the wall clock alone.
    pub(super) fn fresh<V: View>(v: &V, at: &At) -> Calendar {
        Calendar::of(v, at, 0)
    }

    /// When the wall clock, running on as it does, is `elapsed` into the window `windows` after this one.
    pub(super) fn time(&self, windows: u64, elapsed: u64) -> Time {
        let id = u128::from(self.id) + u128::from(windows);
        let wall = id * u128::from(self.period) + u128::from(elapsed);
        let wait = wall.saturating_sub(u128::from(self.wall));
        self.now.plus(Nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

/// Whether a stored window can be: at most a day and a window ahead of the wall clock, which may have been set back.
/// A clock that was wrong by more is no reason to refuse everybody for longer; such a state starts over, empty.
pub(super) fn is_near<V: View>(v: &V, at: &At, stored: u64) -> bool {
    const A_DAY: u64 = 86_400_000_000_000;
    let period = at.terms.period().0;
    let begin = u128::from(stored) * u128::from(period);
    begin <= u128::from(v.wall(at.now)) + u128::from(period) + u128::from(A_DAY)
}
