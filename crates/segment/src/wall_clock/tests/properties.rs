//! No behaviour of the wall clock refills calendar windows: random sequences of events.

use super::*;
use proptest::prelude::*;

/// An event of the machine.
#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(u64),
    Take(u64),
    Attach,
    Look,
    /// The clock is set to this time.
    Wrong(u64),
    /// The clock is put right.
    Right,
    /// The machine is off for the first time. Then the clock shows the second time, or the true time.
    Reboot(u64, Option<u64>),
}

/// A wall time before any limiter existed, or further ahead than any machine is off.
fn absurd() -> impl Strategy<Value = u64> {
    prop_oneof![0..2 * DAY, 0..UNSET_BEFORE, NOON + LONGEST_OFF + 400 * DAY..NOON + 100 * 366 * DAY]
}

fn any_wall() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => absurd(),
        3 => NOON - 3 * DAY..NOON + 6 * DAY,
        // Around a boundary.
        2 => (0..6_u64, -2_000_000_000..2_000_000_000_i64).prop_map(|(day, by)| (NOON + 12 * HOUR + day * DAY).saturating_add_signed(by)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let pass = prop_oneof![0..2_000_000_000_u64, 0..HOUR, 0..8 * HOUR];
    prop_oneof![
        3 => pass.prop_map(Event::Pass),
        4 => (1..8_u64).prop_map(Event::Take),
        1 => Just(Event::Attach),
        1 => Just(Event::Look),
        2 => any_wall().prop_map(Event::Wrong),
        2 => Just(Event::Right),
        1 => (0..2 * DAY, proptest::option::of(absurd())).prop_map(|(off, wall)| Event::Reboot(off, wall)),
    ]
}

impl Machine {
    fn meet(&mut self, event: Event) {
        match event {
            Event::Pass(time) => self.truth += time,
            Event::Take(calls) => drop(self.take(calls)),
            Event::Attach => self.attach(),
            Event::Look => self.look(),
            Event::Wrong(wall) => self.set(wall),
            Event::Right => self.set(self.truth),
            Event::Reboot(off, wall) => {
                let wall = wall.unwrap_or(self.truth + off + 1_000_000_000);
                self.reboot(off, wall);
            }
        }
    }

    /// Applies an event. The clock is right whenever a day begins while the machine is on.
    fn meet_with_a_clock_right_at_midnight(&mut self, event: Event) {
        if let Event::Pass(time) = event {
            let midnight = self.truth.next_multiple_of(DAY);
            if self.truth + time >= midnight {
                self.set(self.truth);
                self.truth = midnight;
                self.look();
                return;
            }
        }
        // A window is aligned by the clock that its first call sees.
        if matches!(event, Event::Take(_))
            && self.transact(|tx, now| decide::counted(tx, now)[0].until.0 <= now.0 + CORRECTION)
        {
            self.set(self.truth);
        }
        // If the clock has lost the time at boot, the first time that it then shows is believed, too.
        let unknown = self.verified.words.load(layout::OFF_UNKNOWN) != 0;
        match event {
            // Within the tolerance of a boundary, the clock may be set across the boundary.
            Event::Wrong(_) if DAY - self.truth % DAY <= 60_000_000_000 => {}
            Event::Wrong(wall) if unknown && wall >= UNSET_BEFORE => self.set(self.truth),
            event => self.meet(event),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// If the clock is right when windows begin, no day sees more than the limit, no matter where within a day the
    /// clock is wrong or whether it is lost at boot.
    #[test]
    fn r134_no_day_exceeds_the_limit_if_the_clock_is_right_when_windows_begin(
        algorithm in prop::sample::select(CALENDARS.to_vec()),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut machine = Machine::new(algorithm, NOON, 0);
        for event in events {
            machine.meet_with_a_clock_right_at_midnight(event);
        }
        prop_assert!(machine.busiest_day() <= LIMIT as usize + paced(algorithm), "{:?}", machine.granted);
    }

    /// No matter how wrong the clock is at any time, windows of a rule begin nearly a day apart. So a day sees at
    /// most two of them, which is the known flaw (R30). Each boot after which the clock was set adds one more.
    #[test]
    fn r30_r134_wrong_clocks_never_shorten_windows(
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut machine = Machine::new(Algorithm::FixedWindow, NOON, 0);
        let mut boots = 0;
        for event in events {
            boots += usize::from(matches!(event, Event::Reboot(..)));
            machine.meet(event);
        }
        let days = machine.granted.last().map_or(0, |last| (last - NOON).div_ceil(DAY - 60_000_000_000));
        prop_assert!(machine.granted.len() <= LIMIT as usize * (days as usize + 1 + boots), "{:?}", machine.granted);
    }

    /// No call is refused for longer than two windows in which the machine is on, or three if its clock has lost
    /// the time. A sliding counter weighs the window before for one more.
    #[test]
    fn r134_a_call_is_granted_again_after_two_windows(
        algorithm in prop::sample::select(CALENDARS.to_vec()),
        events in prop::collection::vec(event(), 1..40),
        wall in any_wall(),
    ) {
        let mut machine = Machine::new(algorithm, NOON, 0);
        events.into_iter().for_each(|event| machine.meet(event));
        machine.set(wall);
        let days = 2 + u64::from(wall < UNSET_BEFORE) + u64::from(algorithm == Algorithm::SlidingCounter);
        machine.truth += days * DAY;
        prop_assert!(machine.take(1) > 0);
    }
}
