//! The lock word: one holder at a time, and every sleeper is woken.
#![cfg(loom)]

use shmlimit_loom_tests::explore::{living, one_dies, spawn};
use shmlimit_loom_tests::machine::{FOR_EVER, Machine, taken_over_slot};
use shmlimit_loom_tests::{A, B, add, both};
use shmlimit_segment::lock::{self, Claim, Deadline, StillHeld};
use std::time::Duration;

/// Does not add atomically. Two threads at once, or a thread that does not see the last store, lose a count.
fn raise(machine: &Machine) {
    machine.words.store(A, machine.words.load(A) + 1);
}

fn raise_under_lock(machine: &Machine, slot: usize) {
    // Takes the lock at once if it is free, as every participant does.
    let slowly = || {
        lock::acquire(&machine.words, machine, slot, Claim::Participant, &Deadline::within(FOR_EVER))
            .unwrap()
            .key
    };
    let key = lock::try_acquire(&machine.words, slot).unwrap_or_else(slowly);
    raise(machine);
    lock::release(&machine.words, machine, key);
}

fn threads_exclude_each_other(slots: &'static [usize], short_sleeps: u32) {
    let machine = Machine::new(&[A], slots);
    machine.shorten_sleeps(short_sleeps);
    let other = |slot| spawn(&machine, move |machine| raise_under_lock(machine, slot));
    let others: Vec<_> = slots[1..].iter().copied().map(other).collect();
    raise_under_lock(&machine, slots[0]);
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(machine.words.load(A), slots.len() as u64);
    assert_eq!(lock::owner(machine.words.lock().peek()), None);
}

#[test]
fn two_processes_exclude_each_other_and_wake_each_other() {
    living("lock, two processes", None, || threads_exclude_each_other(&[0, 1], 0));
}

#[test]
fn two_threads_of_one_process_exclude_each_other() {
    living("lock, two threads of one process", None, || threads_exclude_each_other(&[0, 0], 0));
}

#[test]
fn three_threads_exclude_each_other_and_every_sleeper_is_woken() {
    living("lock, three threads", Some(2), || threads_exclude_each_other(&[0, 1, 1], 0));
}

#[test]
fn a_sleep_that_ends_early_does_not_take_over_from_a_living_holder() {
    living("lock, short sleeps", Some(2), || threads_exclude_each_other(&[0, 1, 2], 2));
}

#[test]
fn timeout_names_the_holder_and_never_takes_the_lock() {
    living("lock, timed_out", None, || {
        let machine = Machine::new(&[A], &[0, 1]);
        let other = spawn(&machine, |machine| raise_under_lock(machine, 1));
        match lock::acquire(
            &machine.words,
            &*machine,
            0,
            Claim::Participant,
            &Deadline::within(Duration::ZERO),
        ) {
            Ok(held) => {
                raise(&machine);
                lock::release(&machine.words, &*machine, held.key);
            }
            Err(StillHeld { by, .. }) => assert_eq!(by, 1),
        }
        other.join().unwrap();
    });
}

#[test]
fn waiter_that_dies_asleep_or_awake_blocks_no_other_thread() {
    one_dies("lock, a waiter dies", Some(1), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        let visit = |machine: &Machine, slot| {
            let mut begun = machine.begin(slot, Claim::Participant);
            if let Some(slot) = taken_over_slot(&begun) {
                assert_eq!(slot, 1);
            }
            add(&mut begun.tx, 1);
            begun.tx.commit().unwrap();
            drop(begun);
        };
        let cut = cut.clone();
        let victim = spawn(&machine, move |machine| {
            cut.kills(machine, 1, || {
                let held = lock::acquire(
                    &machine.words,
                    &**machine,
                    1,
                    Claim::Participant,
                    &Deadline::within(FOR_EVER),
                )
                .unwrap();
                lock::release(&machine.words, &**machine, held.key);
            })
        });
        let other = spawn(&machine, move |machine| visit(machine, 2));
        visit(&machine, 0);
        other.join().unwrap();
        victim.join().unwrap();
        assert_eq!(both(&machine.words), (2, 2));
    });
}
