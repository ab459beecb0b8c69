//! Transactions against a reader without the lock: it sees before or after, never a mixture.
#![cfg(loom)]

use shmlimit_loom_tests::explore::{killed, living, one_dies, spawn, two_die};
use shmlimit_loom_tests::machine::Machine;
use shmlimit_loom_tests::{A, B, add, both};
use shmlimit_segment::journal;
use shmlimit_segment::lock::{Claim, Os};
use std::sync::Arc;

fn change(machine: &Machine, slot: usize, n: u64) {
    let mut begun = machine.begin(slot, Claim::Participant);
    add(&mut begun.tx, n);
    begun.tx.commit().unwrap();
    drop(begun);
}

/// A later look shows no older state. What cannot be seen whole is not seen.
fn look(machine: &Machine, times: usize, committed: &[u64]) {
    let mut last = 0;
    for _ in 0..times {
        if let Some((a, b)) = journal::read(&machine.words, both) {
            assert_eq!(a, b, "a mixture");
            assert!(committed.contains(&a), "{a} was never committed");
            assert!(a >= last, "time went backwards");
            last = a;
        }
    }
}

/// A reader beside `writers`. It comes last, when every word has all its values to offer, also the stale ones.
fn beside(machine: &Arc<Machine>, looks: usize, committed: &'static [u64], writers: impl FnOnce()) {
    let reader = spawn(machine, move |machine| look(machine, looks, committed));
    writers();
    reader.join().unwrap();
}

#[test]
fn a_reader_sees_before_or_after() {
    living("journal, one writer", None, || {
        let machine = Machine::new(&[A, B], &[0]);
        beside(&machine, 2, &[0, 1], || change(&machine, 0, 1));
        assert_eq!(journal::read(&machine.words, both), Some((1, 1)));
    });
}

#[test]
fn a_reader_sees_no_mixture_of_two_writers() {
    living("journal, two writers", Some(2), || {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let second = spawn(&machine, |machine| change(machine, 1, 1));
        beside(&machine, 1, &[0, 1, 2], || change(&machine, 0, 1));
        second.join().unwrap();
        assert_eq!(journal::read(&machine.words, both), Some((2, 2)));
    });
}

#[test]
fn a_reader_sees_nothing_of_a_transaction_that_is_dropped() {
    living("journal, dropped transaction", None, || {
        let machine = Machine::new(&[A, B], &[0]);
        beside(&machine, 1, &[0], || {
            let mut begun = machine.begin(0, Claim::Participant);
            add(&mut begun.tx, 10);
        });
        assert_eq!(journal::read(&machine.words, both), Some((0, 0)));
    });
}

#[test]
fn p1_a_reader_sees_nothing_of_what_a_dead_writer_left_half_done() {
    one_dies("journal, writer dies", None, |cut| {
        let machine = Machine::new(&[A, B], &[0]);
        let dying = killed(&machine, cut, 0, |machine| change(machine, 0, 10));
        beside(&machine, 2, &[0, 10], || drop(dying.join()));
    });
}

/// Where the one comes in who recovers: in the dead one's place, because a newcomer need not sleep before it takes over. A
/// sleep would let the reader go first, and it must come last.
fn place(machine: &Machine, died: bool) -> (usize, Claim) {
    if died {
        std::mem::forget(machine.take_liveness_lock(0).expect("its owner is dead"));
    }
    if died { (0, Claim::Attaching) } else { (1, Claim::Participant) }
}

#[test]
fn p1_a_reader_sees_nothing_of_recovery() {
    one_dies("journal, writer dies, another recovers", Some(2), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        beside(&machine, 1, &[0, 1, 10, 11], || {
            let died = killed(&machine, cut, 0, |machine| change(machine, 0, 10)).join().unwrap();
            let (slot, claim) = place(&machine, died);
            let mut begun = machine.begin(slot, claim);
            add(&mut begun.tx, 1);
            begun.tx.commit().unwrap();
            drop(begun);
        });
        let (a, b) = journal::read(&machine.words, both).expect("nobody is in the way");
        assert!(a == b && (a == 1 || a == 11));
    });
}

#[test]
fn p1_a_reader_sees_nothing_of_recovery_that_dies() {
    two_die("journal, writer and recovery die", Some(2), |writer, recoverer| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        beside(&machine, 1, &[0, 10], || {
            let died = killed(&machine, writer, 0, |machine| change(machine, 0, 10)).join().unwrap();
            let (slot, claim) = place(&machine, died);
            let recovery = move |machine: &Arc<Machine>| drop(machine.begin(slot, claim));
            let died_too = killed(&machine, recoverer, slot, recovery).join().unwrap();
            let (slot, claim) =
                if died_too && slot == 0 { place(&machine, true) } else { (2, Claim::Participant) };
            drop(machine.begin(slot, claim));
        });
        let (a, b) = journal::read(&machine.words, both).expect("nobody is in the way");
        assert!(a == b && (a == 0 || a == 10));
    });
}
