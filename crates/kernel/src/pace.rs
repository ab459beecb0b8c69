//! The pace: the smallest gap between calls that follows from response headers (R82 to R93).
//!
//! A fixed window with nothing remaining has a stronger effect than a gap: no call is made before its reset
//! (R90).
//!
//! A header can be absurd, and must not stop all calls for years (R142). If a reset is further away than the
//! length of the window, the limiter does not believe it. It treats the header as if it had no reset, and uses
//! the window boundary computed from the clock (R84). Until then the remaining count of the header still
//! applies. Therefore no reading has an effect for longer than the length of its window.

use super::health_state::{HealthStateMemory, HealthStateView, MAX_ADMISSIONS, ObservedWindow, Pace};
use super::policy::{Adaptive, MAX_WINDOWS, MILLION, PaceWindow, WindowKind};
use super::state::{Memory, View};
use super::time::{Nanos, Time};

/// Marks a stored limit that came from headers, not from the configuration.
const FROM_HEADERS: u64 = 1 << 63;
/// Marks the limit of a window whose reset was not believed.
const DOUBTED: u64 = 1 << 62;
/// The bits of a stored limit that hold the limit itself.
const LIMIT: u64 = DOUBTED - 1;

/// The readings of response headers about one window of the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The limit of the window, if the headers named it.
    pub limit: Option<u64>,
    /// The number of calls left.
    pub remaining: Option<u64>,
    /// The number of calls used.
    pub used: Option<u64>,
    /// The time until the window resets.
    pub reset_after: Option<Nanos>,
}

/// The state of one window at the present time (R93).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStatus {
    /// The limit of the window.
    pub limit: u64,
    /// The number of calls left.
    pub remaining: u64,
    /// The time at which the window resets. `None` for a sliding window, or if nothing is known.
    pub reset_at: Option<Time>,
}

/// Stores the readings of response headers about window `index`. Readings with neither a used nor a remaining
/// count are ignored.
pub(super) fn observe<M: Memory>(
    m: &mut M,
    index: usize,
    window: &PaceWindow,
    observation: &Observation,
    now: Time,
) {
    // A limit from headers stays known when later headers do not repeat it, or repeat it in a malformed way
    // (R92, R94). A limit from the configuration does not stay, because the policy may have been patched since
    // (R110).
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
        // Responses may arrive out of order. A late response does not give back calls that its window no longer
        // has (R92, R127).
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
    // Readings with a credible reset replace readings with an absurd one, together with the gap that followed
    // from them. The ratchet exists for late responses, not for absurd ones.
    let pace = m.pace();
    if !absurd && pace.doubted == index as u64 + 1 {
        m.set_pace(&Pace { admitted: pace.admitted, ..Pace::default() });
    }
}

/// The reset time of a fixed window with nothing left, if a header gave it credibly.
fn exhausted_until<V: View>(v: &V, index: usize, window: &PaceWindow, now: Time) -> Option<Time> {
    let WindowStatus { remaining, reset_at, .. } = status(v, index, window, now);
    reset_at.filter(|_| remaining == 0 && v.observed_window(index).limit & DOUBTED == 0)
}

/// Forgets all readings of headers (R142). The times of admissions are the limiter's own measurement, and stay.
pub(super) fn clear<M: Memory>(m: &mut M) {
    let pace = m.pace();
    m.set_pace(&Pace { admitted: pace.admitted, ..Pace::default() });
    for index in 0..MAX_WINDOWS {
        m.set_observed_window(index, &ObservedWindow::default());
    }
}

/// The state of a window at the present time. After its end it counts as unused until headers say otherwise
/// (R91).
pub fn status<V: View>(v: &V, index: usize, window: &PaceWindow, now: Time) -> WindowStatus {
    let observed_window = v.observed_window(index);
    let seen_at = Time(observed_window.seen.saturating_sub(1));
    // A later time can only come from a damaged word.
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

/// Evaluates all windows, and changes the gap if the ratchet allows it (R88, R89).
pub(super) fn evaluate<M: Memory>(m: &mut M, adaptive: &Adaptive, now: Time) {
    let (longest, bottleneck) = longest_gap(m, adaptive, now);
    let is_doubted = |window: u64| m.observed_window(window as usize).limit & DOUBTED != 0;
    let doubted = if bottleneck.checked_sub(1).is_some_and(is_doubted) { bottleneck } else { 0 };
    let longest_window = adaptive.windows().map(|window| window.interval).max().unwrap_or(Nanos::ZERO);
    let pace = m.pace();
    let larger = longest > pace.interval;
    // No window can ask for such a gap, so it comes from a damaged word.
    let damaged = pace.interval > longest_window || pace.tightened_at > now;
    let smaller = longest < pace.interval && (now.since(pace.tightened_at) >= pace.interval || damaged);
    if larger || smaller {
        let tightened_at = if larger || damaged { now } else { pace.tightened_at };
        m.set_pace(&Pace { interval: longest, tightened_at, bottleneck, doubted, ..pace });
    }
}

/// The longest gap that a window asks for, and one more than that window's index. The first of equals.
fn longest_gap<V: View>(v: &V, adaptive: &Adaptive, now: Time) -> (Nanos, u64) {
    let gaps = adaptive.windows().enumerate().map(|(i, window)| (wanted(v, adaptive, i, window, now), i));
    gaps.fold(
        (Nanos::ZERO, 0),
        |longest, (gap, i)| if gap > longest.0 { (gap, i as u64 + 1) } else { longest },
    )
}

/// The gap that one window asks for.
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
        // left / (time / gaps) <= remaining: the expected number of calls is at most the number left (R87).
        u128::from(left.0) * u128::from(gaps) <= u128::from(remaining) * u128::from(time.0)
    });
    match remaining {
        _ if slow_enough => Nanos::ZERO,
        0 => left,
        _ => Nanos(left.0.div_ceil(remaining)),
    }
}

/// The number of known gaps between admissions, and their sum. `None` if there are too few.
fn gaps<V: View>(v: &V, adaptive: &Adaptive) -> Option<(u64, Nanos)> {
    let admitted = v.pace().admitted;
    let gaps = admitted.saturating_sub(1).min(u64::from(adaptive.history)).min(MAX_ADMISSIONS as u64 - 1);
    if gaps == 0 || gaps < u64::from(adaptive.min_samples) {
        return None;
    }
    // The sum of consecutive gaps is the time from the first call to the last.
    Some((gaps, v.admission(admitted - 1).since(v.admission(admitted - 1 - gaps))))
}

/// The time at which the pace allows the next call (R90), and the window that it follows from. It is the latest
/// of two times: the end of the gap after the last admission, and the last reset of the fixed windows with
/// nothing remaining (R85, R86).
pub(super) fn earliest<V: View>(v: &V, adaptive: &Adaptive, now: Time) -> (Time, Option<u8>) {
    let Pace { interval, admitted, tightened_at, bottleneck, .. } = v.pace();
    let mut gap = now;
    if admitted > 0 && interval > Nanos::ZERO {
        let last = v.admission(admitted - 1).min(now);
        gap = last.plus(interval).max(now);
        // From this time on the ratchet allows a shorter gap (R89).
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

/// The time at which the pace allows a call with `calls` others ahead of it, the first of which may go at
/// `open`. The result may be too early. The gap may become shorter when the ratchet allows it (R89), for
/// example after the reset of the window that it followed from.
pub(super) fn behind<V: View>(v: &V, calls: u32, open: Time) -> Time {
    let Pace { interval, tightened_at, .. } = v.pace();
    let spaced = open.plus(Nanos(interval.0.saturating_mul(u64::from(calls))));
    spaced.min(open.max(tightened_at.plus(interval)))
}

/// Stores the time of an admission.
pub(super) fn admitted<M: Memory>(m: &mut M, now: Time) {
    let pace = m.pace();
    m.set_admission(pace.admitted, now);
    m.set_pace(&Pace { admitted: pace.admitted.saturating_add(1), ..pace });
}
