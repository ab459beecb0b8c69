//! The queue: no waiter sleeps through its turn, and no permit is granted twice or lost (R131).
#![cfg(loom)]

use shmlimit_kernel::queue::{self, QueueOutcome};
use shmlimit_kernel::{View, decide};
use shmlimit_loom_tests::explore::{living, spawn};
use shmlimit_loom_tests::machine::Machine;
use shmlimit_loom_tests::queue::{
    Place, REQUEST, at, check, enter_queue, give_back, give_back_having, leave, look_once,
    look_until_granted, machine, sleep_until_granted, take,
};
use shmlimit_segment::journal;
use shmlimit_segment::memory::Reader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts the threads that hold a permit at the same time. Loom does not see this counter.
#[derive(Clone, Default)]
struct Inside(Arc<AtomicU32>);

impl Inside {
    /// Waits, checking the queue before any wake-up if `by_its_timer`, and releases the permit at once.
    fn pass(&self, machine: &Machine, slot: usize, place: Place, by_its_timer: bool, milliseconds: u64) {
        let now = at(milliseconds);
        let ticket = if by_its_timer {
            look_until_granted(machine, slot, Some(place), now)
        } else {
            sleep_until_granted(machine, slot, place, now)
        };
        let ticket = ticket.expect("a waiter was never granted");
        assert_eq!(self.0.fetch_add(1, Relaxed), 0, "one permit, granted twice");
        give_back_having(machine, slot, &ticket, now, || _ = self.0.fetch_sub(1, Relaxed));
    }
}

#[test]
fn r131_new_waiter_is_woken_when_a_permit_is_released() {
    living("queue, one enters", None, || {
        let machine = machine(1);
        let ticket = take(&machine, 1, at(0));
        let holder = spawn(&machine, move |machine| give_back(machine, 1, &ticket, at(0)));
        look_until_granted(&machine, 0, None, at(0)).expect("a waiter was never granted");
        holder.join().unwrap();
        check(&machine, [1, 0, 0]);
    });
}

#[test]
fn r131_waiter_that_checked_too_early_is_still_woken() {
    living("queue, one looks", Some(4), || {
        let machine = machine(1);
        let ticket = take(&machine, 1, at(0));
        let place = enter_queue(&machine, 0, None, at(0));
        let holder = spawn(&machine, move |machine| give_back(machine, 1, &ticket, at(20)));
        look_until_granted(&machine, 0, Some(place), at(20)).expect("a waiter was never granted");
        holder.join().unwrap();
        check(&machine, [1, 0, 0]);
    });
}

/// One permit is released. Two calls wait for it, and each releases it after it was granted.
fn two_wait_for_one(name: &str, preemptions: usize, first_by_timer: bool, milliseconds: u64) {
    living(name, Some(preemptions), move || {
        let machine = machine(1);
        let ticket = take(&machine, 0, at(0));
        let (first, second) = (enter_queue(&machine, 1, None, at(0)), enter_queue(&machine, 2, None, at(0)));
        look_once(&machine, 1, first, at(20));
        let inside = Inside::default();
        let (one, two) = (inside.clone(), inside);
        let waiters = [
            spawn(&machine, move |machine| one.pass(machine, 1, first, first_by_timer, milliseconds)),
            spawn(&machine, move |machine| two.pass(machine, 2, second, true, milliseconds)),
        ];
        give_back(&machine, 0, &ticket, at(milliseconds));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        check(&machine, [0, 0, 0]);
    });
}

#[test]
fn r131_only_one_of_two_waiters_gets_the_permit_with_the_first_woken() {
    two_wait_for_one("queue, two look, one is woken", 2, false, 39);
}

#[test]
fn r131_only_one_of_two_waiters_gets_the_permit_with_both_late() {
    two_wait_for_one("queue, two look, both late", 1, true, 51);
}

#[test]
fn r131_two_released_permits_wake_two_waiters() {
    living("queue, two permits", Some(2), || {
        let machine = machine(2);
        let tickets = [take(&machine, 0, at(0)), take(&machine, 0, at(0))];
        let waiters =
            [1, 2].map(|slot| (slot, enter_queue(&machine, slot, None, at(0)))).map(|(slot, place)| {
                spawn(&machine, move |machine| sleep_until_granted(machine, slot, place, at(0)).is_some())
            });
        tickets.iter().for_each(|ticket| give_back(&machine, 0, ticket, at(0)));
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()), "a waiter was never granted");
        check(&machine, [0, 1, 1]);
    });
}

#[test]
fn r131_waiter_that_leaves_while_woken_passes_the_permit_on() {
    living("queue, the first leaves", Some(3), || {
        let machine = machine(1);
        let ticket = take(&machine, 0, at(0));
        let (first, second) = (enter_queue(&machine, 1, None, at(0)), enter_queue(&machine, 2, None, at(0)));
        let leaver = spawn(&machine, move |machine| leave(machine, 1, first, at(0)));
        let next = spawn(&machine, move |machine| sleep_until_granted(machine, 2, second, at(0)).is_some());
        give_back(&machine, 0, &ticket, at(0));
        leaver.join().unwrap();
        assert!(next.join().unwrap(), "a waiter was never granted");
        check(&machine, [0, 0, 1]);
    });
}

#[test]
fn r132_permit_goes_to_the_waiter_at_its_deadline_or_to_the_next() {
    living("queue, the first gives up", Some(3), || {
        let machine = machine(1);
        let ticket = take(&machine, 0, at(0));
        let first = enter_queue(&machine, 1, Some(at(10)), at(0));
        let second = enter_queue(&machine, 2, None, at(0));
        let leaver = spawn(&machine, move |machine| match look_once(machine, 1, first, at(10)) {
            QueueOutcome::Granted(ticket) => give_back(machine, 1, &ticket, at(10)),
            QueueOutcome::Refused(_) => {}
            other => panic!("the first call was neither granted nor refused: {other:?}"),
        });
        let next = spawn(&machine, move |machine| sleep_until_granted(machine, 2, second, at(10)).is_some());
        give_back(&machine, 0, &ticket, at(10));
        leaver.join().unwrap();
        assert!(next.join().unwrap(), "a waiter was never granted");
        check(&machine, [0, 0, 1]);
    });
}

/// From the release of the permit to the waiter's grant, the permit is always held or awaited by some call. A
/// caller that does not wait is refused at every moment, also when it checks without the lock.
#[test]
fn r131_check_without_the_lock_finds_no_free_permit_between_two_owners() {
    living("queue, denial without the lock", Some(2), || {
        let machine = machine(1);
        let ticket = take(&machine, 1, at(0));
        let place = enter_queue(&machine, 2, None, at(0));
        let reader = spawn(&machine, |machine| {
            let refused = journal::read_once(machine.words.cells(), |cells| {
                let view = Reader(cells);
                let alone = decide::check(&view, &REQUEST, at(0));
                alone.is_some()
                    || !view.waiting().is_empty() && queue::no_overtaking(&view, &REQUEST, at(0)).is_some()
            });
            assert_ne!(refused, Some(false), "a call that does not wait would have overtaken the waiter");
        });
        give_back(&machine, 1, &ticket, at(0));
        assert!(matches!(look_once(&machine, 2, place, at(0)), QueueOutcome::Granted(_)));
        reader.join().unwrap();
        check(&machine, [0, 0, 1]);
    });
}
