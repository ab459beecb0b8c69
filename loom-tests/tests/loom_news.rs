//! News: what is given back while somebody falls asleep is not missed.
#![cfg(loom)]

use shmlimit::segment::lock::Claim;
use shmlimit::segment::news;
use shmlimit_loom_tests::explore::{killed, living, one_dies, spawn};
use shmlimit_loom_tests::machine::{FOR_EVER, Machine};
use shmlimit_loom_tests::pair::A;

/// Whether there is anything to be had: one look under the lock. Takes it if there is.
fn take(machine: &Machine, slot: usize) -> bool {
    let mut begun = machine.begin(slot, Claim::Participant);
    let there = begun.tx.load(A);
    begun.tx.write(A, there.saturating_sub(1));
    begun.tx.commit().unwrap();
    drop(begun);
    there > 0
}

/// As a waiter for a permit does: listen, look again, sleep. A sleep may end for nothing, a few times.
fn wait(machine: &Machine, slot: usize) {
    wait_having_heard(machine, slot, None);
}

/// As [`wait`], by one who has looked before anything could be there.
fn wait_listening(machine: &Machine, slot: usize) {
    wait_having_heard(machine, slot, Some(news::listen(&machine.words)));
}

fn wait_having_heard(machine: &Machine, slot: usize, mut heard: Option<u32>) {
    while !take(machine, slot) {
        match heard.take() {
            Some(heard) => news::sleep(&machine.words, machine, heard, FOR_EVER),
            None => heard = Some(news::listen(&machine.words)),
        }
    }
}

fn give(machine: &Machine, slot: usize, n: u64) {
    let mut begun = machine.begin(slot, Claim::Participant);
    let there = begun.tx.load(A);
    begun.tx.write(A, there + n);
    begun.tx.commit().unwrap();
    drop(begun);
    news::announce(&machine.words, machine);
}

#[test]
fn one_who_listens_hears_what_is_given_back() {
    living("news, one listener", Some(3), || {
        let machine = Machine::new(&[A], &[0, 1]);
        let giver = spawn(&machine, |machine| give(machine, 1, 1));
        wait(&machine, 0);
        giver.join().unwrap();
    });
}

#[test]
fn two_givers_and_a_listener_who_wants_both() {
    living("news, two givers", Some(1), || {
        let machine = Machine::new(&[A], &[0, 1, 2]);
        let givers = [1, 2].map(|slot| spawn(&machine, move |machine| give(machine, slot, 1)));
        wait_listening(&machine, 0);
        wait_listening(&machine, 0);
        givers.into_iter().for_each(|giver| giver.join().unwrap());
    });
}

#[test]
fn two_listeners_are_both_woken() {
    living("news, two listeners", Some(1), || {
        let machine = Machine::new(&[A], &[0, 1, 2]);
        let listener = spawn(&machine, |machine| wait_listening(machine, 1));
        let giver = spawn(&machine, |machine| give(machine, 2, 2));
        wait_listening(&machine, 0);
        listener.join().unwrap();
        giver.join().unwrap();
    });
}

#[test]
fn a_dead_giver_costs_the_listener_its_bound_and_no_more() {
    one_dies("news, the giver dies", Some(2), |cut| {
        let machine = Machine::with_giver(&[A], &[0, 1], 1);
        let giver = killed(&machine, cut, 1, |machine| give(machine, 1, 1));
        // A bound must end the wait if nothing was given, so this one looks twice at most.
        let mut taken = take(&machine, 0);
        if !taken {
            let heard = news::listen(&machine.words);
            taken = take(&machine, 0);
            if !taken {
                news::sleep(&machine.words, &*machine, heard, FOR_EVER);
                taken = take(&machine, 0);
            }
        }
        let died = giver.join().unwrap();
        assert!(died || taken, "what a living one gave is had");
    });
}

#[test]
fn a_dead_listener_costs_one_wake_up() {
    one_dies("news, a listener dies", Some(1), |cut| {
        let machine = Machine::new(&[A], &[0, 1, 2]);
        // It only looks, so that what is given stays for the other.
        let dying = killed(&machine, cut, 1, |machine| {
            news::listen(&machine.words);
            machine.words.load(A);
        });
        let giver = spawn(&machine, |machine| give(machine, 2, 1));
        wait_listening(&machine, 0);
        dying.join().unwrap();
        giver.join().unwrap();
    });
}
