//! Transactions against a reader without the lock: it sees before or after, never a mixture.
#![cfg(loom)]

use shmlimit::segment::journal;
use shmlimit::segment::lock::Claim;
use shmlimit_loom_tests::explore::{living, one_dies, spawn, two_die};
use shmlimit_loom_tests::machine::Machine;
use shmlimit_loom_tests::pair::{A, B, add, both};

fn change(machine: &Machine, slot: usize, n: u64) {
    let (mut tx, _) = machine.begin(slot, Claim::Participant);
    add(&mut tx, n);
    tx.commit().unwrap();
}

/// Two looks; the second is not older than the first. What cannot be seen whole is not seen.
fn look_twice(machine: &Machine, committed: &[u64]) {
    let mut last = 0;
    for _ in 0..2 {
        if let Some((a, b)) = journal::read(&machine.words, both) {
            assert_eq!(a, b, "a mixture");
            assert!(committed.contains(&a), "{a} was never committed");
            assert!(a >= last, "time went backwards");
            last = a;
        }
    }
}

fn look(machine: &Machine, committed: &[u64]) {
    if let Some((a, b)) = journal::read(&machine.words, both) {
        assert_eq!(a, b, "a mixture");
        assert!(committed.contains(&a), "{a} was never committed");
    }
}

#[test]
fn a_reader_sees_before_or_after() {
    living("journal, one writer", None, || {
        let machine = Machine::new(&[A, B], &[0]);
        let writer = spawn(&machine, |machine| change(machine, 0, 1));
        look_twice(&machine, &[0, 1]);
        writer.join().unwrap();
        assert_eq!(journal::read(&machine.words, both), Some((1, 1)));
    });
}

#[test]
fn a_reader_sees_no_mixture_of_two_writers() {
    living("journal, two writers", Some(2), || {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let first = spawn(&machine, |machine| change(machine, 0, 1));
        let second = spawn(&machine, |machine| change(machine, 1, 1));
        look(&machine, &[0, 1, 2]);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(journal::read(&machine.words, both), Some((2, 2)));
    });
}

#[test]
fn a_reader_sees_nothing_of_a_transaction_that_is_dropped() {
    living("journal, dropped transaction", None, || {
        let machine = Machine::new(&[A, B], &[0]);
        let writer = spawn(&machine, |machine| {
            let (mut tx, _) = machine.begin(0, Claim::Participant);
            add(&mut tx, 10);
        });
        look_twice(&machine, &[0]);
        writer.join().unwrap();
        assert_eq!(journal::read(&machine.words, both), Some((0, 0)));
    });
}

#[test]
fn p1_a_reader_sees_nothing_of_what_the_dead_left_half_done() {
    one_dies("journal, writer dies", None, |cut| {
        let machine = Machine::new(&[A, B], &[0]);
        let cut = cut.clone();
        let writer = spawn(&machine, move |machine| cut.kills(machine, 0, || change(machine, 0, 1)));
        look_twice(&machine, &[0, 1]);
        writer.join().unwrap();
    });
}

#[test]
fn p1_a_reader_sees_nothing_of_recovery() {
    one_dies("journal, writer dies, thief recovers", Some(3), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let cut = cut.clone();
        let writers = spawn(&machine, move |machine| {
            let machine = machine.clone();
            let dying = spawn(&machine, move |machine| cut.kills(machine, 0, || change(machine, 0, 10)));
            dying.join().unwrap();
            change(&machine, 1, 1);
        });
        look(&machine, &[0, 1, 10, 11]);
        writers.join().unwrap();
        let (a, b) = journal::read(&machine.words, both).expect("nobody is in the way");
        assert!(a == b && (a == 1 || a == 11));
    });
}

#[test]
fn p1_a_reader_sees_nothing_of_recovery_that_dies() {
    two_die("journal, writer and thief die", Some(2), |writer, thief| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        let (writer, thief) = (writer.clone(), thief.clone());
        let writers = spawn(&machine, move |machine| {
            let dying = spawn(machine, move |machine| writer.kills(machine, 0, || change(machine, 0, 10)));
            dying.join().unwrap();
            let dying = spawn(machine, move |machine| thief.kills(machine, 1, || drop(machine.begin(1, Claim::Participant))));
            dying.join().unwrap();
            drop(machine.begin(2, Claim::Participant));
        });
        look(&machine, &[0, 10]);
        writers.join().unwrap();
        let (a, b) = journal::read(&machine.words, both).expect("nobody is in the way");
        assert!(a == b && (a == 0 || a == 10));
    });
}
