//! The pace: the smallest gap between calls that response headers taught us (R82 to R93).

use super::policy::{Adaptive, MILLION, PaceWindow, WindowKind};
use super::sheet::{MAX_ADMISSIONS, Pace, SheetMemory, SheetView, Sight};
use super::state::{Memory, View};
use super::time::{Nanos, Time};

/// Marks a stored limit that headers taught, not the configuration.
const TAUGHT: u64 = 1 << 63;

/// What headers said about one window of the provider's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Its limit, if they said so.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// What was used of it.
    pub used: Option<u64>,
    /// In how long it starts anew.
    pub reset_after: Option<Nanos>,
}

/// One window as it is now (R93).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStatus {
    /// Its limit.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// When it starts anew; nothing if it slides, or nothing is known.
    pub reset_at: Option<Time>,
}

/// Notes what headers said about window `index`. What says neither how much is used nor how much is left is ignored.
pub(super) fn observe<M: Memory>(
    m: &mut M,
    index: usize,
    window: &PaceWindow,
    said: &Observation,
    now: Time,
) {
    // A limit that headers taught stays known when later ones do not repeat it, or say it malformed (R92, R94). One that
    // is the configuration's does not: it may have been patched since (R110).
    let said_limit = said.limit.filter(|limit| *limit > 0).map(|limit| limit.min(TAUGHT - 1) | TAUGHT);
    let before = Some(m.sight(index).limit).filter(|limit| limit & TAUGHT != 0);
    let known = said_limit.or(before).unwrap_or(window.limit.min(TAUGHT - 1));
    let limit = known & !TAUGHT;
    let Some(remaining) = said.remaining.or(said.used.map(|used| limit.saturating_sub(used))) else { return };
    let reset_at = match said.reset_after {
        Some(after) => now.plus(after),
        None => now.plus(Nanos(window.interval.0 - m.wall(now) % window.interval.0.max(1))),
    };
    m.set_sight(index, &Sight { limit: known, remaining, reset_at, seen: now.0.saturating_add(1) });
}

/// A window as it is now: after its end it is unused until headers say otherwise (R91).
pub fn status<V: View>(v: &V, index: usize, window: &PaceWindow, now: Time) -> WindowStatus {
    let sight = v.sight(index);
    let over = match window.kind {
        WindowKind::Fixed => now >= sight.reset_at,
        WindowKind::Sliding => now.since(Time(sight.seen.saturating_sub(1))) > window.interval,
    };
    if sight.seen == 0 || over {
        let limit = if sight.seen == 0 { window.limit } else { sight.limit & !TAUGHT };
        return WindowStatus { limit, remaining: limit, reset_at: None };
    }
    let fixed = window.kind == WindowKind::Fixed;
    WindowStatus {
        limit: sight.limit & !TAUGHT,
        remaining: sight.remaining,
        reset_at: fixed.then_some(sight.reset_at),
    }
}

/// Evaluates all windows, and moves the gap if the ratchet lets it (R88, R89).
pub(super) fn evaluate<M: Memory>(m: &mut M, adaptive: &Adaptive, now: Time) {
    let (mut longest, mut bottleneck) = (Nanos::ZERO, 0);
    for (i, window) in adaptive.windows().enumerate() {
        let wanted = wanted(m, adaptive, i, window, now);
        if wanted > longest {
            (longest, bottleneck) = (wanted, i as u64 + 1);
        }
    }
    let pace = m.pace();
    let larger = longest > pace.interval;
    let smaller = longest < pace.interval && now.since(pace.tightened_at) >= pace.interval;
    if larger || smaller {
        let tightened_at = if larger { now } else { pace.tightened_at };
        m.set_pace(&Pace { interval: longest, tightened_at, bottleneck, ..pace });
    }
}

/// The gap that one window wants.
fn wanted<V: View>(v: &V, adaptive: &Adaptive, index: usize, window: &PaceWindow, now: Time) -> Nanos {
    let WindowStatus { limit, remaining, reset_at } = status(v, index, window, now);
    let used = u128::from(limit.saturating_sub(remaining));
    if used * u128::from(MILLION) < u128::from(limit) * u128::from(adaptive.threshold) || limit == 0 {
        return Nanos::ZERO;
    }
    let left = reset_at.map_or(window.interval, |reset| reset.since(now));
    if window.interval <= adaptive.short_window {
        return match window.kind {
            WindowKind::Fixed => left,
            WindowKind::Sliding => Nanos(window.interval.0.div_ceil(2)),
        };
    }
    let slow_enough = gaps(v, adaptive).is_some_and(|(gaps, time)| {
        // left / (time / gaps) <= remaining: no more calls to be expected than there are left (R87).
        u128::from(left.0) * u128::from(gaps) <= u128::from(remaining) * u128::from(time.0)
    });
    match remaining {
        _ if slow_enough => Nanos::ZERO,
        0 => left,
        _ => Nanos(left.0.div_ceil(remaining)),
    }
}

/// How many gaps between admissions are known, and how long they were together; nothing if they are too few.
fn gaps<V: View>(v: &V, adaptive: &Adaptive) -> Option<(u64, Nanos)> {
    let admitted = v.pace().admitted;
    let gaps = admitted.saturating_sub(1).min(u64::from(adaptive.history)).min(MAX_ADMISSIONS as u64 - 1);
    if gaps == 0 || gaps < u64::from(adaptive.min_samples) {
        return None;
    }
    // The sum of gaps in a row is the time from the first call to the last.
    Some((gaps, v.admission(admitted - 1).since(v.admission(admitted - 1 - gaps))))
}

/// When the pace lets the next call go (R90).
pub(super) fn earliest<V: View>(v: &V, now: Time) -> Time {
    let Pace { interval, admitted, .. } = v.pace();
    if admitted == 0 || interval == Nanos::ZERO {
        now
    } else {
        v.admission(admitted - 1).plus(interval).max(now)
    }
}

/// Remembers an admission.
pub(super) fn admitted<M: Memory>(m: &mut M, now: Time) {
    let pace = m.pace();
    m.set_admission(pace.admitted, now);
    m.set_pace(&Pace { admitted: pace.admitted.saturating_add(1), ..pace });
}
