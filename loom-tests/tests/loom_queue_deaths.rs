//! The queue with a death at every access: the state is always consistent, and every living waiter gets its turn
//! (P1, P2, R131).
#![cfg(loom)]

use shmlimit_kernel::Ticket;
use shmlimit_kernel::queue::QueueOutcome;
use shmlimit_loom_tests::explore::{killed, living, one_dies, spawn};
use shmlimit_loom_tests::machine::Machine;
use shmlimit_loom_tests::queue::{
    Place, at, check, enter_queue, give_back, leave, look_once, look_until_granted, machine_with_killable,
    reclaim_dead, sleep_until_granted, take, trace_of, words,
};
use std::sync::{Arc, Mutex};

#[test]
fn r131_dead_waker_delays_the_sleeper_by_its_time_limit_at_most() {
    one_dies("queue, the ringer dies", Some(2), |cut| {
        let machine = machine_with_killable(1, 1);
        let ticket = take(&machine, 1, at(0));
        let holder = killed(&machine, cut, 1, move |machine| give_back(machine, 1, &ticket, at(0)));
        look_until_granted(&machine, 0, None, at(0)).expect("a waiter was never granted");
        holder.join().unwrap();
        reclaim_dead(&machine, 0, at(0));
        check(&machine, [1, 0, 0]);
    });
}

/// Two calls wait for one permit. The first dies while it runs `ends`. The second is granted the permit in the end.
fn the_first_dies(name: &str, ends: fn(&Machine, Place)) {
    one_dies(name, Some(1), move |cut| {
        let machine = machine_with_killable(1, 1);
        let ticket = take(&machine, 0, at(0));
        let (first, second) = (enter_queue(&machine, 1, None, at(0)), enter_queue(&machine, 2, None, at(0)));
        let dying = killed(&machine, cut, 1, move |machine| ends(machine, first));
        let next = spawn(&machine, move |machine| sleep_until_granted(machine, 2, second, at(0)).is_some());
        give_back(&machine, 0, &ticket, at(0));
        dying.join().unwrap();
        assert!(next.join().unwrap(), "a waiter was never granted");
        reclaim_dead(&machine, 0, at(0));
        check(&machine, [0, 0, 1]);
    });
}

#[test]
fn r131_waiter_that_dies_after_its_wake_up_does_not_keep_the_permit() {
    the_first_dies("queue, the woken one dies", |machine, place| {
        if let Some(ticket) = sleep_until_granted(machine, 1, place, at(0)) {
            give_back(machine, 1, &ticket, at(0));
        }
    });
}

#[test]
fn r131_waiter_that_dies_while_leaving_does_not_keep_the_permit() {
    the_first_dies("queue, the leaver dies", |machine, place| leave(machine, 1, place, at(0)));
}

/// The place and the permit of the participant in slot 1.
#[derive(Clone, Copy, Default)]
struct Own {
    place: Option<Place>,
    ticket: Option<Ticket>,
}

/// One transaction of the participant in slot 1.
type Step = fn(&Machine, &mut Own);

/// Slot 1 dies during one of its steps. A thread that loads the state during the step, or after it, finds a state
/// between two steps.
fn p1_before_or_after(name: &str, prepare: fn() -> (Arc<Machine>, Own), steps: &'static [Step]) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let record = recorded.clone();
    living(name, None, move || {
        let (machine, mut own) = prepare();
        let mut states = vec![words(&machine, 0)];
        for step in steps {
            step(&machine, &mut own);
            trace_of(&machine, 1);
            states.push(words(&machine, 0));
        }
        *record.lock().unwrap() = states;
    });
    let states: &'static [Vec<u64>] = recorded.lock().unwrap().clone().leak();
    assert!(states.windows(2).all(|pair| pair[0] != pair[1]), "a step that changes nothing proves nothing");
    one_dies(name, Some(2), move |cut| {
        let (machine, mut own) = prepare();
        let victim = killed(&machine, cut, 1, move |machine| {
            steps.iter().for_each(|step| step(machine, &mut own));
        });
        let found = || {
            let found = words(&machine, 0);
            states.iter().position(|state| *state == found).expect("a state neither before nor after a step")
        };
        let during = found();
        let died = victim.join().unwrap();
        let after = found();
        assert!(during <= after, "a step was undone that was done");
        assert!(died || after == steps.len(), "a step was not done");
        if died {
            reclaim_dead(&machine, 0, at(20));
            assert_eq!(trace_of(&machine, 1), 0, "a dead process still has permits or places");
        }
    });
}

#[test]
fn p1_r131_death_while_entering_checking_or_leaving_is_all_or_nothing() {
    let prepare = || {
        let machine = machine_with_killable(1, 1);
        take(&machine, 2, at(0));
        (machine, Own::default())
    };
    p1_before_or_after(
        "queue, enter, look, leave",
        prepare,
        &[
            |machine, own| own.place = Some(enter_queue(machine, 1, None, at(0))),
            |machine, own| _ = own.place.map(|place| look_once(machine, 1, place, at(20))),
            |machine, own| _ = own.place.map(|place| leave(machine, 1, place, at(20))),
        ],
    );
}

/// Two permits are free and two calls wait: the first is granted, wakes the second, and then releases its permit.
#[test]
fn p1_r131_death_while_taking_or_releasing_a_permit_is_all_or_nothing() {
    let prepare = || {
        let machine = machine_with_killable(2, 1);
        let tickets = [take(&machine, 2, at(0)), take(&machine, 2, at(0))];
        let place = Some(enter_queue(&machine, 1, None, at(0)));
        enter_queue(&machine, 0, None, at(0));
        tickets.iter().for_each(|ticket| give_back(&machine, 2, ticket, at(0)));
        (machine, Own { place, ticket: None })
    };
    p1_before_or_after(
        "queue, grant, give back",
        prepare,
        &[
            |machine, own| {
                let outcome = own.place.map(|place| look_once(machine, 1, place, at(0)));
                own.ticket = outcome.and_then(|outcome| match outcome {
                    QueueOutcome::Granted(ticket) => Some(ticket),
                    _ => None,
                });
            },
            |machine, own| _ = own.ticket.map(|ticket| give_back(machine, 1, &ticket, at(0))),
        ],
    );
}
