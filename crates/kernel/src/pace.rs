//! The pace: the smallest gap between calls that response headers taught us (R82 to R93).
//!
//! A fixed window in which nothing remains is more than a gap: no call is made before its reset (R90).
//!
//! Headers may be absurd, and one must not stop everybody for years (R142). A reset that is further away than the window is
//! long is not believed: it counts as if the header had not said when the window starts anew, so the boundary that is
//! computed from the clock holds (R84). What the header says remains still counts until then. So nothing that was learned
//! holds longer than a window's length.

use super::health_state::{HealthStateMemory, HealthStateView, MAX_ADMISSIONS, ObservedWindow, Pace};
use super::policy::{Adaptive, MAX_WINDOWS, MILLION, PaceWindow, WindowKind};
use super::state::{Memory, View};
use super::time::{Nanos, Time};

/// Marks a stored limit that headers taught, not the configuration.
const FROM_HEADERS: u64 = 1 << 63;
/// Marks the limit of a window whose reset was not believed.
const DOUBTED: u64 = 1 << 62;
/// The bits of a stored limit that are the limit.
const LIMIT: u64 = DOUBTED - 1;

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
    observation: &Observation,
    now: Time,
) {
    // A limit that headers taught stays known when later ones do not repeat it, or say it malformed (R92, R94). One that
    // is the configuration's does not: it may have been patched since (R110).
    let header_limit =
        observation.limit.filter(|limit| *limit > 0).map(|limit| limit.min(LIMIT) | FROM_HEADERS);
    let before = Some(m.observed_window(index).limit & !DOUBTED).filter(|limit| limit & FROM_HEADERS != 0);
    let known = header_limit.or(before).unwrap_or(window.limit.min(LIMIT));
    let used_up = |used| (known & LIMIT).saturating_sub(used);
    let Some(remaining) = observation.remaining.or(observation.used.map(used_up)) else { return };
    let believed = observation.reset_after.filter(|after| *after <= window.interval);
    let named = believed.map(|after| now.plus(after));
    let absurd = believed != observation.reset_after;
    let seen = now.0.saturating_add(1);
    let observed_window = match exhausted_until(m, index, window, now).filter(|_| remaining > 0) {
        // Answers may come out of order, and a late one does not give back what its window no longer has (R92, R127).
        Some(reset) => ObservedWindow {
            limit: known,
            remaining: 0,
            reset_at: named.map_or(reset, |named| named.min(reset)),
            seen,
        },
        None => {
            let boundary = || now.plus(Nanos(window.interval.0 - m.wall(now) % window.interval.0.max(1)));
            let limit = if absurd { known | DOUBTED } else { known };
            ObservedWindow { limit, remaining, reset_at: named.unwrap_or_else(boundary), seen }
        }
    };
    m.set_observed_window(index, &observed_window);
    // A header without an absurd reset replaces one that had it, and the gap that followed from it: the ratchet is there
    // for answers that come late, not for absurd ones.
    let pace = m.pace();
    if !absurd && pace.doubted == index as u64 + 1 {
        m.set_pace(&Pace { admitted: pace.admitted, ..Pace::default() });
    }
}

/// When a fixed window in which nothing is left starts anew, if headers said so credibly.
fn exhausted_until<V: View>(v: &V, index: usize, window: &PaceWindow, now: Time) -> Option<Time> {
    let WindowStatus { remaining, reset_at, .. } = status(v, index, window, now);
    reset_at.filter(|_| remaining == 0 && v.observed_window(index).limit & DOUBTED == 0)
}

/// Forgets all that headers taught (R142). When calls were admitted is our own knowledge, and stays.
pub(super) fn clear<M: Memory>(m: &mut M) {
    let pace = m.pace();
    m.set_pace(&Pace { admitted: pace.admitted, ..Pace::default() });
    for index in 0..MAX_WINDOWS {
        m.set_observed_window(index, &ObservedWindow::default());
    }
}

/// A window as it is now: after its end it is unused until headers say otherwise (R91).
pub fn status<V: View>(v: &V, index: usize, window: &PaceWindow, now: Time) -> WindowStatus {
    let observed_window = v.observed_window(index);
    let seen_at = Time(observed_window.seen.saturating_sub(1));
    // Later than this only a damaged word says.
    let reset_at = observed_window.reset_at.min(seen_at.plus(window.interval));
    let over = match window.kind {
        WindowKind::Fixed => now >= reset_at,
        WindowKind::Sliding => now.since(seen_at) > window.interval,
    };
    if observed_window.seen == 0 || over {
        let limit = if observed_window.seen == 0 { window.limit } else { observed_window.limit & LIMIT };
        return WindowStatus { limit, remaining: limit, reset_at: None };
    }
    let fixed = window.kind == WindowKind::Fixed;
    WindowStatus {
        limit: observed_window.limit & LIMIT,
        remaining: observed_window.remaining,
        reset_at: fixed.then_some(reset_at),
    }
}

/// Evaluates all windows, and moves the gap if the ratchet lets it (R88, R89).
pub(super) fn evaluate<M: Memory>(m: &mut M, adaptive: &Adaptive, now: Time) {
    let (longest, bottleneck) = longest_gap(m, adaptive, now);
    let is_doubted = |window: u64| m.observed_window(window as usize).limit & DOUBTED != 0;
    let doubted = if bottleneck.checked_sub(1).is_some_and(is_doubted) { bottleneck } else { 0 };
    let longest_window = adaptive.windows().map(|window| window.interval).max().unwrap_or(Nanos::ZERO);
    let pace = m.pace();
    let larger = longest > pace.interval;
    // A gap that no window can ask for is from a damaged word.
    let damaged = pace.interval > longest_window || pace.tightened_at > now;
    let smaller = longest < pace.interval && (now.since(pace.tightened_at) >= pace.interval || damaged);
    if larger || smaller {
        let tightened_at = if larger || damaged { now } else { pace.tightened_at };
        m.set_pace(&Pace { interval: longest, tightened_at, bottleneck, doubted, ..pace });
    }
}

/// The longest gap that a window wants, and the window's number plus one; the first of equals.
fn longest_gap<V: View>(v: &V, adaptive: &Adaptive, now: Time) -> (Nanos, u64) {
    let gaps = adaptive.windows().enumerate().map(|(i, window)| (wanted(v, adaptive, i, window, now), i));
    gaps.fold(
        (Nanos::ZERO, 0),
        |longest, (gap, i)| if gap > longest.0 { (gap, i as u64 + 1) } else { longest },
    )
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

/// When the pace lets the next call go (R90), and which window is in the way: the latest of the gap after the last
/// admission and the resets of all fixed windows in which nothing remains (R85, R86).
pub(super) fn earliest<V: View>(v: &V, adaptive: &Adaptive, now: Time) -> (Time, Option<u8>) {
    let Pace { interval, admitted, tightened_at, bottleneck, .. } = v.pace();
    let mut gap = now;
    if admitted > 0 && interval > Nanos::ZERO {
        let last = v.admission(admitted - 1).min(now);
        gap = last.plus(interval).max(now);
        // From then on the ratchet lets a shorter gap in (R89).
        let relaxed = tightened_at.plus(interval).max(now);
        if relaxed < gap {
            let (shorter, _) = longest_gap(v, adaptive, relaxed);
            gap = gap.min(relaxed.max(last.plus(shorter)));
        }
    }
    let exhausted = |(i, window): (usize, &PaceWindow)| {
        let WindowStatus { remaining, reset_at, .. } = status(v, i, window, now);
        reset_at.filter(|_| remaining == 0).map(|reset| (reset, Some(i as u8)))
    };
    let resets = adaptive.windows().enumerate().filter_map(exhausted);
    // The first of equals.
    let reset = resets.reduce(|first, next| if next.0 > first.0 { next } else { first });
    let gap = (gap, bottleneck.checked_sub(1).map(|window| window as u8));
    reset.filter(|reset| reset.0 >= gap.0).unwrap_or(gap)
}

/// When the pace lets a call go behind `calls` others, of which the first may go at `open`; it may be too early. The gap
/// may be shorter once the ratchet lets it (R89), for example after the reset of the window it was for.
pub(super) fn behind<V: View>(v: &V, calls: u32, open: Time) -> Time {
    let Pace { interval, tightened_at, .. } = v.pace();
    let spaced = open.plus(Nanos(interval.0.saturating_mul(u64::from(calls))));
    spaced.min(open.max(tightened_at.plus(interval)))
}

/// Remembers an admission.
pub(super) fn admitted<M: Memory>(m: &mut M, now: Time) {
    let pace = m.pace();
    m.set_admission(pace.admitted, now);
    m.set_pace(&Pace { admitted: pace.admitted.saturating_add(1), ..pace });
}
