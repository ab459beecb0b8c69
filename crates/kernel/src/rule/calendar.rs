//! Calendar windows (R28): a minute begins at second 0, and a day at midnight UTC.
//!
//! A rule stores the expected end of its window on the limiter's clock, one period after the window began. The
//! window ends at the first boundary of the wall clock that is not before that time minus a
//! [tolerance](tolerance). Therefore no movement of the wall clock ends a window early. Between the beginnings
//! of two windows of a rule at least a period, minus the tolerance, has really passed (R134).
//!
//! The wall clock must have shown that boundary. If the clock was corrected since, the window continues until
//! the next boundary. A clock that is set again and again, or that has lost the time, shows no boundary. In
//! that case the window is closed one period after its expected end, and ends one more period later. By then
//! all its grants are at least a period old.

use super::algorithm::{CalendarWords, RuleContext};
use crate::state::{Memory, RuleState, View};
use crate::time::{Nanos, Time};

/// How much earlier than expected a window may end because the wall clock was corrected: 1/64 of the window,
/// and at most a minute. Without a tolerance, each small correction would cost a whole window.
#[inline]
const fn tolerance(period: u64) -> u64 {
    const A_MINUTE: u64 = 60_000_000_000;
    if period / 64 < A_MINUTE { period / 64 } else { A_MINUTE }
}

/// The window that a time belongs to, relative to the window that was counted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The same window.
    Same,
    /// The same window, but it grants nothing more.
    Closed,
    /// The next window.
    Next,
    /// A later window, or the first.
    Later,
}

/// A time in the calendar of a rule.
#[derive(Clone, Copy)]
pub(super) struct Calendar {
    /// The expected end of the window. It also identifies the window.
    pub(super) until: Time,
    /// The position of the window relative to the stored one.
    pub(super) step: Step,
    /// The time that has really passed since the window began.
    pub(super) elapsed: u64,
    period: u64,
    now: Time,
}

impl Calendar {
    /// The window at `at.now`. `stored` is the end of the window that was counted last, or zero if there was
    /// none.
    #[inline(always)]
    pub(super) fn of<V: View>(v: &V, at: &RuleContext, stored: Time) -> Calendar {
        let (period, now) = (at.terms.period().0, at.now);
        if now.0.saturating_add(tolerance(period)) < stored.0 {
            return Calendar::within(stored, period, now);
        }
        Calendar::at_its_end(v, stored, period, now, Nanos::ZERO)
    }

    /// The window that begins at the latest boundary.
    pub(super) fn fresh<V: View>(v: &V, at: &RuleContext) -> Calendar {
        Calendar::of(v, at, Time::ZERO)
    }

    #[inline(always)]
    fn within(until: Time, period: u64, now: Time) -> Calendar {
        let elapsed = period - until.since(now).0.min(period);
        Calendar { until, step: Step::Same, elapsed, period, now }
    }

    /// Slow path of [`Calendar::of`] for a stored window that may be over. `off` is time that has passed but
    /// that the limiter's clock has not counted.
    #[cold]
    fn at_its_end<V: View>(v: &V, stored: Time, period: u64, now: Time, off: Nanos) -> Calendar {
        let wide = i128::from;
        let (length, tolerance) = (wide(period), wide(tolerance(period)));
        // Both times may be before the zero of the limiter's clock.
        let boundary = wide(now.0) - wide(v.wall(now) % period);
        let end = wide(stored.0) - wide(off.0);
        let set_at = v.wall_set_at();
        let shown = set_at == Time::ZERO || boundary >= wide(set_at.0);
        let first = stored == Time::ZERO;
        let begin = match shown && (first || boundary >= end - tolerance) {
            true => boundary,
            false if first || wide(now.0) >= end + 2 * length => wide(now.0),
            false => {
                let step = if wide(now.0) >= end + length { Step::Closed } else { Step::Same };
                return Calendar { step, ..Calendar::within(stored, period, now) };
            }
        };
        let until = Time(u64::try_from(begin + length).unwrap_or(u64::MAX));
        let step = if first || begin - end >= length { Step::Later } else { Step::Next };
        Calendar { step, ..Calendar::within(until, period, now) }
    }

    /// The time at which this window, or the window `windows` after it, will be `elapsed` old if the wall clock
    /// continues unchanged.
    pub(super) fn time<V: View>(&self, v: &V, windows: u64, elapsed: u64) -> Time {
        let Some(more) = windows.checked_sub(1) else {
            return self.now.plus(Nanos(elapsed.saturating_sub(self.elapsed)));
        };
        let boundary = self.now.plus(Nanos(self.period - v.wall(self.now) % self.period));
        // If the window is not expected to end so soon, it ends at a later boundary.
        let early = self.until.since(boundary.plus(Nanos(tolerance(self.period)))).0;
        let next = match v.wall_set_at() <= boundary {
            true => boundary.plus(Nanos(early.div_ceil(self.period).saturating_mul(self.period))),
            false => self.until.plus(Nanos(self.period)).plus(Nanos(self.period)),
        };
        let wait =
            u128::from(more).saturating_mul(u128::from(self.period)).saturating_add(u128::from(elapsed));
        next.plus(Nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

/// Whether `stored` can be the end of a window. No window is longer than two periods.
pub(super) fn is_near(at: &RuleContext, stored: Time) -> bool {
    stored <= at.now.plus(at.terms.period()).plus(at.terms.period())
}

/// The end of the window that a rule counted last, and its count: two words of the rule's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The end of the window.
    pub until: Time,
    /// The count of the window.
    pub count: u64,
}

/// The window end and count in a rule's state.
pub(super) fn counted(state: RuleState, words: CalendarWords) -> Counted {
    let RuleState(state) = state;
    Counted { until: Time(state[words.until]), count: state[words.until + 1] }
}

/// A time during which the machine was off and that the limiter's clock did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The time when the machine came back, on the limiter's clock.
    pub ended: Time,
    /// How long the machine was off.
    pub length: Nanos,
}

/// Corrects a window after time has passed that the limiter's clock did not count: the machine was off, and its
/// wall clock showed that only later.
///
/// `before` is the count from when the machine came back. Units counted since then belong to the present
/// window, because it is not known in which window they were used. If the present window began before the
/// machine went off, all counted units belong to it: the stored window had lasted too long, so it contains
/// calls of the present one.
pub(super) fn catch_up<M: Memory>(
    m: &mut M,
    at: &RuleContext,
    places: CalendarWords,
    absence: Absence,
    before: Counted,
) {
    let (i, off) = (places.until, absence.length);
    let RuleState(mut words) = m.rule(at.rule);
    let (until, count) = (Time(words[i]), words[i + 1]);
    if until == Time::ZERO {
        return;
    }
    if before.until != until {
        // The window began since then, by a wrong clock. It is replaced by the present window.
        words[i] = Calendar::fresh(m, at).until.0;
        return m.set_rule(at.rule, RuleState(words));
    }
    let period = at.terms.period();
    let calendar = Calendar::at_its_end(m, until, period.0, at.now, off);
    words[i] = until.0.saturating_sub(off.0).max(1);
    if !matches!(calendar.step, Step::Same | Step::Closed) {
        // Both times may be before the zero of the limiter's clock.
        let [began, went_off] = [(calendar.until, period), (absence.ended, off)]
            .map(|(end, length)| i128::from(end.0) - i128::from(length.0));
        let old = if began < went_off { 0 } else { before.count.min(count) };
        (words[i], words[i + 1]) = (calendar.until.0, count - old);
        if let Some(previous) = places.before {
            words[previous] = if calendar.step == Step::Next { old } else { 0 };
        }
    }
    m.set_rule(at.rule, RuleState(words));
}
