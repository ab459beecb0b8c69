//! Windows by the calendar (R28): a minute begins at second 0 and a day at midnight UTC.
//!
//! A rule stores when its window is expected to end, on the limiter's clock: a period after it began. The window ends at
//! the first boundary of the wall clock that is not before that time, less a [tolerance](tolerance). So no movement of
//! the wall clock ends a window early, and two windows of a rule begin at least a period, less the tolerance, apart in
//! time that has really passed (R134). The clock must have shown that boundary: if it was put right since, the window goes
//! on until the next boundary. A clock that is set again and again, or has lost the time, shows none. Then the window is
//! closed a period after its expected end, and ends one more period later: by then all that it granted is a period old.

use super::algorithm::{CalendarWords, RuleContext};
use crate::state::{Memory, RuleState, View};
use crate::time::{Nanos, Time};

/// How much earlier than expected a window may end because the wall clock was corrected: a 64th of the window, and at
/// most a minute. Without it each small correction would cost a whole window.
#[inline]
const fn tolerance(period: u64) -> u64 {
    const A_MINUTE: u64 = 60_000_000_000;
    if period / 64 < A_MINUTE { period / 64 } else { A_MINUTE }
}

/// The window that a time belongs to, seen from the window that was counted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The same one.
    Same,
    /// The same one, but it grants nothing more.
    Closed,
    /// The one after it.
    Next,
    /// A later one, or the first.
    Later,
}

/// A time seen by the calendar of a rule.
#[derive(Clone, Copy)]
pub(super) struct Calendar {
    /// When the window is expected to end; its identity, too.
    pub(super) until: Time,
    /// Where the window lies relative to the stored one.
    pub(super) step: Step,
    /// How much of the window is over, by time that has really passed.
    pub(super) elapsed: u64,
    period: u64,
    now: Time,
}

impl Calendar {
    /// The window at `at.now`; `stored` is the end of the window that was counted last, zero if there was none.
    #[inline]
    pub(super) fn of<V: View>(v: &V, at: &RuleContext, stored: Time) -> Calendar {
        let (period, now) = (at.terms.period().0, at.now);
        if now.0.saturating_add(tolerance(period)) < stored.0 {
            return Calendar::within(stored, period, now);
        }
        Calendar::at_its_end(v, stored, period, now, Nanos::ZERO)
    }

    /// The window that begins with the latest boundary.
    pub(super) fn fresh<V: View>(v: &V, at: &RuleContext) -> Calendar {
        Calendar::of(v, at, Time::ZERO)
    }

    #[inline]
    fn within(until: Time, period: u64, now: Time) -> Calendar {
        let elapsed = period - until.since(now).0.min(period);
        Calendar { until, step: Step::Same, elapsed, period, now }
    }

    /// The same where the stored window may be over. `off` has passed besides what the limiter's clock has counted.
    #[cold]
    fn at_its_end<V: View>(v: &V, stored: Time, period: u64, now: Time, off: Nanos) -> Calendar {
        let wide = i128::from;
        let (length, tolerance) = (wide(period), wide(tolerance(period)));
        // Either may lie before the limiter's clock began.
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

    /// When this window, or the window `windows` after it, will be `elapsed` old if the wall clock runs on as it does.
    pub(super) fn time<V: View>(&self, v: &V, windows: u64, elapsed: u64) -> Time {
        let Some(more) = windows.checked_sub(1) else {
            return self.now.plus(Nanos(elapsed.saturating_sub(self.elapsed)));
        };
        let boundary = self.now.plus(Nanos(self.period - v.wall(self.now) % self.period));
        // The window ends at a later one if it is not expected to end so soon.
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

/// Whether a stored end can be one: no window is longer than two periods.
pub(super) fn is_near(at: &RuleContext, stored: Time) -> bool {
    stored <= at.now.plus(at.terms.period()).plus(at.terms.period())
}

/// The end of the window that a rule counted in last, and what it had counted there: two words of its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// When the window ends.
    pub until: Time,
    /// What was counted in it.
    pub count: u64,
}

/// What a rule's state has counted in its window.
pub(super) fn counted(state: RuleState, words: CalendarWords) -> Counted {
    let RuleState(state) = state;
    Counted { until: Time(state[words.until]), count: state[words.until + 1] }
}

/// A time that the machine was off and that the limiter's clock did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// When the machine came back, on the limiter's clock.
    pub ended: Time,
    /// How long the machine was off.
    pub length: Nanos,
}

/// Time has passed that the limiter's clock does not know of: the machine was off, and its wall clock said so only later.
/// `before` is what was counted when the machine came back. What was counted since then belongs to the window that is found
/// now, because it is not known in which it was used. So does all that was counted, if that window began before the machine
/// went off: a window that had lasted too long contains calls of the next one.
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
        // It began since then, by a clock that was wrong: the window is the one that is found now.
        words[i] = Calendar::fresh(m, at).until.0;
        return m.set_rule(at.rule, RuleState(words));
    }
    let period = at.terms.period();
    let calendar = Calendar::at_its_end(m, until, period.0, at.now, off);
    words[i] = until.0.saturating_sub(off.0).max(1);
    if !matches!(calendar.step, Step::Same | Step::Closed) {
        // Either may lie before the limiter's clock began.
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
