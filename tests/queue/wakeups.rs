//! How often waiting calls check whether it is their turn, in virtual time. The threads call again and again, wake
//! a little late as real threads do, and are woken when the kernel says so.
//!
//! These counts do not depend on the machine; `benches/waiting` measures the same with real processes.

use shmlimit::{Algorithm, Policy, PolicyDraft, RuleDraft};
use shmlimit_kernel::queue::{NewWaiter, QueueOutcome, QueueTicket, Wake, enter, look};
use shmlimit_kernel::{AcquireRequest, LocalMemory, Priority, Time, decide};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const MICROSECOND: u64 = 1000;
const SECOND: u64 = 1_000_000_000;

/// The delays outside of the queue.
#[derive(Clone, Copy)]
struct World {
    /// Nanoseconds from the wake time of a sleeper to its real wake-up, at most.
    late: u64,
    /// Nanoseconds from a grant to the same thread's next call, at most.
    pause: u64,
    /// Nanoseconds from a wake-up to the check of the woken thread.
    wake: u64,
}

/// A usual machine: timers up to 0.1 ms late, calls without duration.
const USUAL: World = World { late: 100 * MICROSECOND, pause: 10 * MICROSECOND, wake: 10 * MICROSECOND };

struct Thread {
    group: u64,
    wait: Option<QueueTicket>,
    /// Only the newest alarm counts.
    alarm: u64,
}

#[derive(Default, Debug)]
struct Tally {
    grants: Vec<u64>,
    looks: u64,
    wakes: u64,
}

impl Tally {
    fn total(&self) -> u64 {
        self.grants.iter().sum()
    }

    fn looks_per_grant(&self) -> f64 {
        self.looks as f64 / self.total() as f64
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Runs groups of this many threads each for `seconds` at `rate` per second. The first second is not counted.
fn run(rate: u64, burst: u64, threads: &[usize], world: World, seconds: u64) -> Tally {
    let rule =
        RuleDraft { burst: Some(burst), ..RuleDraft::new(Algorithm::Gcra, rate, Duration::from_secs(1)) };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap();
    let mut memory = LocalMemory::new(&policy);
    let mut waiters: Vec<Thread> = Vec::new();
    for (group, threads) in threads.iter().enumerate() {
        waiters.extend((0..*threads).map(|_| Thread { group: group as u64 + 1, wait: None, alarm: 0 }));
    }
    let (start, mut dice) = (1000 * SECOND, Dice(7));
    let (from, end) = (start + SECOND, start + SECOND + seconds * SECOND);
    let mut alarms: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
    let mut number = 0;
    let mut set = |alarms: &mut BinaryHeap<_>, waiters: &mut [Thread], who: usize, at: u64| {
        number += 1;
        waiters[who].alarm = number;
        alarms.push(Reverse((at, who, number)));
    };
    for who in 0..waiters.len() {
        set(&mut alarms, &mut waiters, who, start + dice.below(1000 * MICROSECOND));
    }
    let mut tally = Tally { grants: vec![0; threads.len()], ..Tally::default() };
    while let Some(Reverse((now, who, alarm))) = alarms.pop() {
        if now > end {
            break;
        }
        if waiters[who].alarm != alarm {
            continue;
        }
        let counted = u64::from(now >= from);
        let owner = who as u64 + 2;
        let (outcome, wake) = match waiters[who].wait {
            Some(wait) => {
                tally.looks += counted;
                look(&mut memory, owner, &wait, Time(now))
            }
            None => {
                let newcomer = NewWaiter {
                    owner,
                    group: waiters[who].group,
                    request: AcquireRequest::one(Priority::Background),
                    deadline: Time(u64::MAX),
                    can_be_woken: true,
                };
                enter(&mut memory, &newcomer, Time(now))
            }
        };
        match outcome {
            QueueOutcome::Granted(ticket) => {
                decide::release(&mut memory, who, &ticket);
                waiters[who].wait = None;
                tally.grants[waiters[who].group as usize - 1] += counted;
                let at = now + 1 + dice.below(world.pause);
                set(&mut alarms, &mut waiters, who, at);
            }
            QueueOutcome::Waiting(wait) => {
                waiters[who].wait = Some(wait);
                let at = wait.until.0.max(now) + dice.below(world.late);
                set(&mut alarms, &mut waiters, who, at);
            }
            outcome => panic!("{outcome:?}"),
        }
        if let Wake::One(place) = wake {
            tally.wakes += counted;
            let woken = waiters.iter().position(|thread| thread.wait.is_some_and(|wait| wait.place == place));
            let woken = woken.expect("somebody waits where it is woken");
            set(&mut alarms, &mut waiters, woken, now + world.wake);
        }
    }
    tally
}

const EIGHT_UNEQUAL: [usize; 8] = [1, 1, 1, 1, 16, 16, 16, 16];

/// DESIGN's bound: in the steady state, one grant costs one timer, and threads are hardly ever woken.
fn assert_one_look_a_grant(rate: u64, threads: &[usize], world: World) {
    let tally = run(rate, rate / 10, threads, world, 4);
    let (looks, wakes) = (tally.looks_per_grant(), tally.wakes as f64 / tally.total() as f64);
    assert!(looks <= 1.1 && wakes <= 0.1, "{threads:?}: {looks} looks and {wakes} rings a grant");
    assert!(tally.total().abs_diff(4 * rate) <= 1, "{threads:?}: {} of {} grants", tally.total(), 4 * rate);
}

#[test]
fn r131_processes_of_1_and_of_16_threads_have_equal_shares_and_wake_once_per_grant() {
    assert_one_look_a_grant(1000, &EIGHT_UNEQUAL, USUAL);
    let tally = run(1000, 100, &EIGHT_UNEQUAL, USUAL, 4);
    assert!(tally.grants.iter().all(|grants| grants.abs_diff(500) <= 1), "{:?}", tally.grants);
}

#[test]
fn r131_equal_processes_wake_once_per_grant() {
    assert_one_look_a_grant(1000, &[1; 8], USUAL);
    assert_one_look_a_grant(1000, &[16], USUAL);
    assert_one_look_a_grant(1000, &[1; 200], USUAL);
}

#[test]
fn r131_one_thread_competing_with_a_hundred_gets_half_and_wakes_once_per_grant() {
    assert_one_look_a_grant(1000, &[100, 1], USUAL);
    let tally = run(1000, 100, &[100, 1], USUAL, 4);
    assert!(tally.grants.iter().all(|grants| grants.abs_diff(2000) <= 1), "{:?}", tally.grants);
}

#[test]
fn r131_calls_that_take_time_hardly_cost_more_checks() {
    let busy = World { pause: 1000 * MICROSECOND, ..USUAL };
    assert_one_look_a_grant(1000, &EIGHT_UNEQUAL, busy);
    assert_one_look_a_grant(1000, &[1; 8], busy);
}

#[test]
fn a_call_that_waits_longer_than_the_longest_sleep_checks_once_more_per_sleep() {
    // A call of the large groups waits 1.28 s: one sleep of a second, and one for the rest.
    let tally = run(100, 10, &EIGHT_UNEQUAL, USUAL, 10);
    assert!(tally.looks_per_grant() <= 1.6, "{} looks a grant", tally.looks_per_grant());
    assert!(tally.wakes * 10 <= tally.total(), "{} rings", tally.wakes);
}
