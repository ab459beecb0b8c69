//! Calendar windows on a real segment, with a wall clock, a machine's clock and boots that the test controls.

use super::*;
use crate::directory::{Allowances, Directory};
use crate::file::backing::Backing;
use crate::file::{self, Verified, create, initial_state};
use crate::journal::{Begun, Found};
use crate::lock::{Claim, Deadline};
use crate::paths::{Candidate, LimiterName};
use crate::sanity::is_sane;
use shmlimit_kernel::policy::{Algorithm, BurstMode, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::{AcquireRequest, Priority};
use std::time::Duration;

const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;
const LIMIT: u64 = 5;
/// 2026-05-05 12:00 UTC.
const NOON: u64 = 1_777_982_400_000_000_000;

/// A machine with a limiter of five calls a day.
struct Machine {
    _home: tempfile::TempDir,
    verified: Verified,
    /// The true time.
    truth: u64,
    /// The wall clock minus the true time.
    wrong_by: i64,
    /// The machine's clock minus the true time.
    booted: i64,
    boots: u64,
    /// The true times at which calls were granted.
    granted: Vec<u64>,
}

fn daily(algorithm: Algorithm) -> Policy {
    let rule = match algorithm {
        // Five free passes a day, and one more call a day by pacing.
        Algorithm::Gcra => RuleDraft {
            burst: Some(LIMIT),
            burst_mode: BurstMode::FixedWindow,
            ..RuleDraft::new(algorithm, 1, Duration::from_nanos(DAY))
        },
        _ => RuleDraft::new(algorithm, LIMIT, Duration::from_nanos(DAY)),
    };
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

impl Machine {
    /// A limiter created at `truth`, when the wall clock was wrong by `wrong_by` and the machine had run for an
    /// hour.
    fn new(algorithm: Algorithm, truth: u64, wrong_by: i64) -> Machine {
        let home = tempfile::tempdir().unwrap();
        let candidate = Candidate::chosen(home.path());
        let directory = Directory::find(&[candidate], Allowances::default()).unwrap();
        let name = LimiterName::new("tmdb").unwrap();
        assert!(create::create(&directory, &name, daily(algorithm), Duration::ZERO).unwrap());
        let verified = file::open(&directory, &name).unwrap().unwrap();
        let booted = HOUR.cast_signed() - truth.cast_signed();
        let mut machine =
            Machine { _home: home, verified, truth, wrong_by, booted, boots: 1, granted: Vec::new() };
        let (wall, words) = (machine.wall(), &machine.verified.words);
        words.store(layout::LATEST_TIME, 0);
        initial_state::set_clocks(words, HOUR, wall);
        words.store(layout::CLOCK_OFFSET, 0);
        words.store(layout::BOOT, 1);
        machine.attach();
        machine
    }

    fn wall(&self) -> u64 {
        self.truth.saturating_add_signed(self.wrong_by)
    }

    fn raw(&self) -> u64 {
        self.truth.saturating_add_signed(self.booted)
    }

    fn transact<R>(&self, work: impl FnOnce(&mut Transaction<'_, Backing>, Time) -> R) -> R {
        let Verified { words, backing, .. } = &self.verified;
        let Ok(Begun { mut tx, .. }) = Transaction::begin(
            words,
            backing,
            0,
            Claim::Participant,
            &Deadline::within(Duration::from_secs(1)),
        ) else {
            panic!("the lock is held")
        };
        let now = Time(self.raw().wrapping_add(tx.load(layout::CLOCK_OFFSET)));
        let done = work(&mut tx, now);
        assert!(tx.commit().is_ok());
        done
    }

    /// A process attaches, as `Segment::enter` does.
    fn attach(&mut self) {
        let (boot, raw, wall) = ([self.boots, 0], self.raw(), self.wall());
        self.transact(|tx, _| {
            if tx.words().load_array(layout::BOOT) != boot {
                rebase(tx, boot, raw, wall);
            }
            let now = Time(raw.wrapping_add(tx.load(layout::CLOCK_OFFSET)));
            assert!(is_sane(tx, Found::Whole, now) && decide::sane(tx), "the state looks damaged");
            refresh_anchor(tx, now, wall);
        });
    }

    /// A process checks whether the file is in its place.
    fn look(&mut self) {
        let wall = self.wall();
        self.transact(|tx, now| follow_wall(tx, now, wall));
    }

    /// Asks for `calls` calls. Returns how many were granted.
    fn take(&mut self, calls: u64) -> usize {
        let granted = self.transact(|tx, now| {
            let kernel_request = AcquireRequest::one(Priority::User);
            (0..calls).filter(|_| decide::acquire(tx, 0, &kernel_request, now).is_ok()).count()
        });
        self.granted.extend(std::iter::repeat_n(self.truth, granted));
        granted
    }

    /// Sets the wall clock, and lets a process notice it.
    fn set(&mut self, wall: u64) {
        self.wrong_by = wall.wrapping_sub(self.truth).cast_signed();
        self.look();
    }

    fn reboot(&mut self, off: u64, wall: u64) {
        self.truth += off;
        self.boots += 1;
        self.booted = -self.truth.cast_signed();
        self.truth += 1_000_000_000;
        self.wrong_by = wall.wrapping_sub(self.truth).cast_signed();
        self.attach();
    }

    /// The largest number of calls in one true calendar day.
    fn busiest_day(&self) -> usize {
        self.granted.chunk_by(|a, b| a / DAY == b / DAY).map(<[u64]>::len).max().unwrap_or(0)
    }
}

const CALENDARS: [Algorithm; 3] = [Algorithm::FixedWindow, Algorithm::SlidingCounter, Algorithm::Gcra];

/// How many calls more than the limit a day may see: GCRA's pacing continues in addition to its passes.
fn paced(algorithm: Algorithm) -> usize {
    if algorithm == Algorithm::Gcra { 2 } else { 0 }
}

#[test]
fn r134_clock_that_is_behind_at_boot_and_then_set_refills_no_window() {
    for algorithm in CALENDARS {
        let mut machine = Machine::new(algorithm, NOON, 0);
        machine.take(20);
        for _ in 0..4 {
            machine.reboot(60_000_000_000, 5_000_000_000);
            machine.take(20);
            machine.truth += 60_000_000_000;
            machine.set(machine.truth);
            machine.take(20);
            machine.attach();
            machine.take(20);
        }
        assert!(
            machine.busiest_day() <= LIMIT as usize + paced(algorithm),
            "{algorithm:?}: {:?}",
            machine.granted
        );
        // The next day is a new one, even if the machine was off at midnight and its clock was wrong after that.
        machine.granted.clear();
        machine.reboot(DAY, 5_000_000_000);
        machine.set(machine.truth);
        let paced = paced(algorithm);
        // A sliding counter still weighs the day before.
        let least = if algorithm == Algorithm::SlidingCounter { 2 } else { 5 };
        assert!((least..=5 + paced).contains(&machine.take(20)), "{algorithm:?}: {:?}", machine.granted);
    }
}

#[test]
fn r134_calls_before_the_clock_was_first_set_count_in_the_current_day() {
    for algorithm in CALENDARS {
        let unset = 10_000_000_000 - NOON.cast_signed();
        let mut machine = Machine::new(algorithm, NOON, unset);
        assert_eq!(machine.take(3), 3);
        machine.truth += 60_000_000_000;
        machine.set(machine.truth);
        assert!(machine.take(20) <= 2 + paced(algorithm), "{algorithm:?}: {:?}", machine.granted);
        // That day ends at midnight.
        machine.truth += 12 * HOUR;
        machine.look();
        assert!(machine.take(20) > 0, "{algorithm:?}");
    }
}

#[test]
fn r134_calls_after_a_boot_without_a_clock_count_in_the_current_day() {
    let mut machine = Machine::new(Algorithm::FixedWindow, NOON, 0);
    assert_eq!(machine.take(2), 2);
    machine.reboot(DAY, 5_000_000_000);
    assert_eq!(machine.take(2), 2, "of the day before, as far as is known");
    machine.set(machine.truth);
    assert_eq!(machine.take(20), 3, "two of today's were used before the clock was set");
}

/// The clock is put right just after midnight, so the day before goes on. Then the machine boots without a clock.
#[test]
fn r134_calls_in_a_day_that_lasted_too_long_count_in_the_next_day() {
    for algorithm in CALENDARS {
        let mut machine = Machine::new(algorithm, NOON, 0);
        machine.take(1);
        machine.set(0);
        machine.reboot(12 * HOUR, NOON + 12 * HOUR + 1_000_000_000);
        machine.take(1);
        machine.reboot(0, 0);
        machine.set(machine.truth);
        machine.take(20);
        assert!(
            machine.busiest_day() <= LIMIT as usize + paced(algorithm),
            "{algorithm:?}: {:?}",
            machine.granted
        );
    }
}

#[test]
fn r134_setting_the_wall_clock_back_and_forth_refills_no_window() {
    for algorithm in CALENDARS {
        let mut machine = Machine::new(algorithm, NOON, 0);
        machine.take(20);
        let midnight = NOON + 12 * HOUR;
        for wall in
            [NOON + DAY, 0, midnight - 1, midnight, NOON + 100 * 366 * DAY, midnight - 1, NOON, 2 * DAY - 1]
        {
            machine.set(wall);
            machine.attach();
            machine.truth += 1_000_000_000;
            machine.take(20);
        }
        assert!(machine.granted.len() <= 5 + paced(algorithm), "{algorithm:?}: {:?}", machine.granted);
    }
}

#[test]
fn r134_clock_that_was_far_ahead_blocks_calls_for_at_most_two_windows() {
    for ahead in [100 * 366 * DAY, 300 * DAY] {
        for boot in [true, false] {
            let mut machine = Machine::new(Algorithm::FixedWindow, NOON, 0);
            match boot {
                true => machine.reboot(HOUR, NOON + ahead),
                false => machine.set(NOON + ahead),
            }
            machine.take(20);
            machine.set(machine.truth);
            machine.take(20);
            machine.truth += 2 * DAY;
            machine.look();
            assert_eq!(machine.take(20), 5, "{} days ahead, at boot: {boot}", ahead / DAY);
        }
    }
}

#[test]
fn r134_small_corrections_of_the_clock_lose_no_window() {
    for by in [-30_000_000_000, -1_000_000_000, 1_000_000_000, 30_000_000_000] {
        let mut machine = Machine::new(Algorithm::FixedWindow, NOON, -by);
        assert_eq!(machine.take(20), 5);
        machine.set(machine.truth);
        machine.truth += 12 * HOUR;
        assert_eq!(machine.take(20), 5, "set by {by} ns");
        machine.truth += DAY - 1;
        assert_eq!(machine.take(20), 0, "set by {by} ns");
        machine.truth += 1;
        assert_eq!(machine.take(20), 5, "set by {by} ns");
    }
}

/// The clock is wrong when the machine goes off, and right when it comes back.
#[test]
fn r134_clock_that_was_wrong_before_power_off_refills_no_window() {
    for algorithm in CALENDARS {
        for wrong_by in [-300, -3, 3, 300].map(|days| days * DAY.cast_signed()) {
            let mut machine = Machine::new(algorithm, NOON, 0);
            machine.take(3);
            machine.set(machine.truth.saturating_add_signed(wrong_by));
            machine.attach();
            machine.take(20);
            machine.reboot(60_000_000_000, machine.truth + 61_000_000_000);
            machine.take(20);
            assert!(
                machine.granted.len() <= 5 + paced(algorithm),
                "{algorithm:?}, {wrong_by}: {:?}",
                machine.granted
            );
            // Two days later everything is as usual.
            machine.truth += 2 * DAY;
            machine.look();
            assert!(machine.take(1) > 0, "{algorithm:?}, {wrong_by}");
        }
    }
}

/// The clocks of the machine stand still while it is stopped. Then the wall clock is set forward.
#[test]
fn r134_virtual_machine_stopped_every_night_gets_its_quota_at_least_every_second_day() {
    let mut machine = Machine::new(Algorithm::FixedWindow, NOON - 4 * HOUR, 0);
    let mut without = 0;
    for _ in 0..20 {
        without = if machine.take(20) == 0 { without + 1 } else { 0 };
        assert!(without < 2, "{:?}", machine.granted);
        machine.truth += 12 * HOUR;
        machine.take(20);
        // Stopped from 20:00 to 8:00.
        machine.truth += 12 * HOUR;
        machine.booted -= (12 * HOUR).cast_signed();
        machine.wrong_by -= (12 * HOUR).cast_signed();
        machine.set(machine.truth);
    }
    assert_eq!(machine.busiest_day(), LIMIT as usize);
}

#[test]
fn r134_clock_that_is_set_all_the_time_refills_a_window_once_in_three_periods() {
    let mut machine = Machine::new(Algorithm::FixedWindow, NOON, 0);
    let hours = 20 * 24;
    for hour in 0..hours {
        machine.take(1);
        machine.truth += HOUR;
        // Never at a boundary.
        machine.set(machine.truth - [5, 11, 23][hour % 3] * HOUR / 2);
    }
    let most = hours / 24 / 3 + 1;
    assert!(
        (LIMIT as usize..=LIMIT as usize * most).contains(&machine.granted.len()),
        "{:?}",
        machine.granted
    );
    assert!(machine.busiest_day() <= LIMIT as usize, "{:?}", machine.granted);
}

#[test]
fn r134_window_that_lasts_too_long_grants_nothing_shortly_before_it_ends() {
    for algorithm in CALENDARS {
        let mut machine = Machine::new(algorithm, NOON, 0);
        machine.take(1);
        machine.set(5_000_000_000);
        // An hour before the window is closed, a day after its end.
        machine.truth += 35 * HOUR;
        machine.take(20);
        for _ in 0..23 {
            machine.truth += HOUR;
            machine.take(20);
        }
        let recent = machine.granted.iter().filter(|at| **at > NOON).count();
        assert!(recent <= LIMIT as usize + paced(algorithm), "{algorithm:?}: {:?}", machine.granted);
    }
}

#[test]
fn latest_reading_of_a_clock_that_was_once_ahead_is_given_up_after_a_day() {
    let mut machine = Machine::new(Algorithm::FixedWindow, NOON, 0);
    machine.set(NOON + 300 * DAY);
    machine.set(NOON);
    machine.truth += DAY;
    machine.attach();
    machine.take(20);
    machine.reboot(13 * HOUR, machine.truth + 13 * HOUR + 1_000_000_000);
    assert_eq!(machine.take(20), 5, "the machine was off at midnight");
}

mod properties;
