//! The wall clock of a limiter: how its time goes on after a reboot, and where calendar windows begin.
//!
//! The limiter's own clock counts the time that the machine runs. It learns from the wall clock how long the
//! machine was off. A wall clock can be wrong. A wrong clock must not make time pass that never passed, because
//! that would refill windows (R134). Three things are stored:
//!
//! - the *anchor*: what the wall clock showed when it was last read;
//! - the *latest reading*: of all that the wall clock has shown, the reading that puts the present latest. The time
//!   that the machine was off is counted from it. A clock that was set back, rightly or wrongly, therefore never
//!   makes an absence look longer. The reading is given up when the clock has run behind it for a day without being
//!   set;
//! - whether the machine was off for a time that is *not known*, because the wall clock is behind the latest
//!   reading, was never set, or is absurdly far ahead. In that case no time has passed until the clock is put
//!   right. At that moment windows catch up with the calendar, once. Calls counted since the boot then count in the
//!   window that is found.

use super::journal::Transaction;
use super::layout::{self, UNSET_BEFORE};
use super::lock::Os;
use shmlimit_kernel::decide;
use shmlimit_kernel::rule::{Absence, Counted};
use shmlimit_kernel::state::View;
use shmlimit_kernel::time::{Nanos, Time};

/// How far the wall clock may be from the time that the anchor predicts before calendar windows follow it.
const DRIFT: u64 = 1_000_000;

/// If the wall clock is set by more than this, it was wrong before or is wrong now: a minute. Smaller steps move
/// the boundaries of windows with the clock.
const CORRECTION: u64 = 60_000_000_000;

/// A clock that has run this long without being set is believed, although it showed a later time before: a day.
const BELIEVED_AFTER: u64 = 86_400_000_000_000;

/// No machine is off for longer than ten years. A clock that says so is wrong.
const LONGEST_OFF: u64 = 10 * 366 * 86_400_000_000_000;

/// Continues the limiter's clock after a reboot: by the wall clock, but never backwards, so that nothing is granted
/// twice (R134). Permits of the former boot come back when their owners are found to have exited.
pub(crate) fn rebase<O: Os>(tx: &mut Transaction<'_, O>, boot: [u64; 2], raw_now: u64, wall_now: u64) {
    let anchored = tx.load(layout::ANCHOR_TIME);
    let off = time_off(tx, Time(anchored), wall_now);
    let now = anchored.saturating_add(off.unwrap_or(0)).max(tx.core().latest.0);
    tx.write(layout::CLOCK_OFFSET, now.wrapping_sub(raw_now));
    tx.write_array(layout::BOOT, boot);
    if off.is_none() && tx.load(layout::OFF_UNKNOWN) == 0 {
        tx.write(layout::OFF_UNKNOWN, now.max(1));
        let epoch = epoch(tx);
        tx.write(layout::COUNTED_EPOCH, epoch);
        for (i, counted) in decide::counted(tx, Time(now)).into_iter().enumerate() {
            tx.write_array(layout::COUNTED + 2 * i, [counted.until.0, counted.count]);
        }
    }
    anchor(tx, Time(now), wall_now);
}

/// The time on the limiter's clock. If the mark of a segment in use is gone, everything near the mark may be gone,
/// including the clock's offset. The clock then continues by the wall clock, as after a reboot. The caller must
/// reset the state.
pub(crate) fn restore_live_mark<O: Os>(tx: &mut Transaction<'_, O>, raw_now: u64, wall_now: u64) -> Time {
    let mark = tx.load(layout::RETIRED);
    if mark != layout::LIVE && !layout::is_retired(mark) {
        let boot = tx.words().load_array(layout::BOOT);
        rebase(tx, boot, raw_now, wall_now);
        tx.write(layout::RETIRED, layout::LIVE);
    }
    Time(raw_now.wrapping_add(tx.load(layout::CLOCK_OFFSET)))
}

/// Follows the wall clock if it was set, because calendar windows begin by it. Returns whether that was needed.
///
/// This alone ends no window (`kernel/rule/calendar.rs`).
pub(crate) fn follow_wall<O: Os>(tx: &mut Transaction<'_, O>, now: Time, wall_now: u64) -> bool {
    let moved = tx.wall(now).abs_diff(wall_now) > DRIFT;
    if moved {
        refresh_anchor(tx, now, wall_now);
    }
    moved
}

/// [`follow_wall`], and a fresh anchor in any case. Windows catch up if the clock now tells how long the machine
/// was off.
pub(crate) fn refresh_anchor<O: Os>(tx: &mut Transaction<'_, O>, now: Time, wall_now: u64) {
    let ended = Time(tx.load(layout::OFF_UNKNOWN));
    let unknown = ended != Time::ZERO;
    let off = match tx.load(layout::LATEST_TIME) {
        _ if !unknown => None,
        // All calls so far were counted before the clock was set for the first time.
        0 => (wall_now >= UNSET_BEFORE).then_some(u64::MAX),
        _ => time_off(tx, now, wall_now),
    };
    anchor(tx, now, wall_now);
    let Some(off) = off else { return };
    let known = tx.load(layout::COUNTED_EPOCH) == epoch(tx);
    let before = std::array::from_fn(|i| {
        let [until, count] = tx.cells().load_array(layout::COUNTED + 2 * i);
        if known { Counted { until: Time(until), count } } else { Counted::default() }
    });
    // The clock is believed from here on, including its latest boundary.
    tx.write(layout::WALL_SET_AT, 0);
    decide::catch_up(tx, Absence { ended, length: Nanos(off) }, &before, now);
    tx.write(layout::OFF_UNKNOWN, 0);
}

/// How long the machine was off since the latest reading, as far as the limiter's clock has not counted that time.
/// `None` if the wall clock cannot tell.
fn time_off<O: Os>(tx: &Transaction<'_, O>, now: Time, wall_now: u64) -> Option<u64> {
    let (time, wall) = (tx.load(layout::LATEST_TIME), tx.load(layout::LATEST_WALL));
    let expected = wall.saturating_add(now.since(Time(time)).0);
    let plausible = time != 0 && wall >= UNSET_BEFORE && wall_now.saturating_add(DRIFT) >= expected;
    Some(wall_now.saturating_sub(expected)).filter(|off| plausible && *off <= LONGEST_OFF)
}

/// Notes which limiter time belongs to which wall time. Every process that attaches or detaches refreshes it.
fn anchor<O: Os>(tx: &mut Transaction<'_, O>, now: Time, wall_now: u64) {
    let (then, offset) = (tx.load(layout::WALL_OFFSET), wall_now.wrapping_sub(now.0));
    // Noted when it is first known, so that many small corrections add up to a large one.
    let before = if then == 0 { tx.wall(now).wrapping_sub(now.0) } else { then };
    let set = offset.wrapping_sub(before).cast_signed().unsigned_abs() > CORRECTION;
    if set || then == 0 {
        tx.write(layout::WALL_OFFSET, offset);
    }
    // A clock that is later than ever may have been stopped together with the machine. The earlier time was right.
    if set && time_off(tx, now, wall_now).is_none_or(|ahead| ahead < DRIFT) {
        tx.write(layout::WALL_SET_AT, now.0.max(1));
    }
    tx.write(layout::ANCHOR_TIME, now.0);
    tx.write(layout::ANCHOR_WALL, wall_now);
    keep_latest(tx, now, wall_now);
}

/// Keeps the reading that puts the present latest, and gives it up if the clock has run behind it for a day.
fn keep_latest<O: Os>(tx: &mut Transaction<'_, O>, now: Time, wall_now: u64) {
    let never_set = tx.load(layout::LATEST_TIME) == 0;
    let later = if never_set { wall_now >= UNSET_BEFORE } else { time_off(tx, now, wall_now).is_some() };
    let runs_for = now.since(Time(tx.load(layout::WALL_SET_AT))).0;
    let believed = !never_set && wall_now >= UNSET_BEFORE && runs_for >= BELIEVED_AFTER;
    if later || believed {
        tx.write(layout::LATEST_TIME, now.0.max(1));
        tx.write(layout::LATEST_WALL, wall_now);
    }
    if believed && !later && tx.load(layout::OFF_UNKNOWN) != 0 {
        // The time that the machine was off will never be known. So no time has passed.
        tx.write(layout::OFF_UNKNOWN, 0);
    }
}

/// Changes when rules are changed or reset.
fn epoch<O: Os>(tx: &Transaction<'_, O>) -> u64 {
    tx.load(layout::POLICY_EPOCH).wrapping_add(tx.load(layout::RESETS))
}

#[cfg(test)]
mod tests;
