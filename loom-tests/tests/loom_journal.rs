//! Transactions against a reader without the lock: the reader sees the state before or after, never a mixture.
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

/// Reads several times. A later read never returns an older state. A state that is not consistent is not returned.
fn look(machine: &Machine, times: usize, committed: &[u64]) {
    let mut last = 0;
    for _ in 0..times {
        if let Some((a, b)) = journal::read(&machine.words, both) {
            assert_eq!(a, b, "a mixture of two states");
            assert!(committed.contains(&a), "{a} was never committed");
            assert!(a >= last, "time went backwards");
            last = a;
        }
    }
}

/// Runs a reader beside `writers`. The reader comes last, when loom can offer it every value of each word,
/// including stale ones.
fn beside(machine: &Arc<Machine>, looks: usize, committed: &'static [u64], writers: impl FnOnce()) {
    let reader = spawn(machine, move |machine| look(machine, looks, committed));
    writers();
    reader.join().unwrap();
}

#[test]
fn reader_sees_the_state_before_or_after_a_transaction() {
    living("journal, one writer", None, || {
        let machine = Machine::new(&[A, B], &[0]);
        beside(&machine, 2, &[0, 1], || change(&machine, 0, 1));
        assert_eq!(journal::read(&machine.words, both), Some((1, 1)));
    });
}

#[test]
fn reader_sees_no_mixture_of_two_writers() {
    living("journal, two writers", Some(2), || {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let second = spawn(&machine, |machine| change(machine, 1, 1));
        beside(&machine, 1, &[0, 1, 2], || change(&machine, 0, 1));
        second.join().unwrap();
        assert_eq!(journal::read(&machine.words, both), Some((2, 2)));
    });
}

#[test]
fn reader_sees_nothing_of_a_dropped_transaction() {
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
fn p1_reader_sees_nothing_of_a_dead_writers_unfinished_transaction() {
    one_dies("journal, writer dies", None, |cut| {
        let machine = Machine::new(&[A, B], &[0]);
        let dying = killed(&machine, cut, 0, |machine| change(machine, 0, 10));
        beside(&machine, 2, &[0, 10], || drop(dying.join()));
    });
}

/// The slot in which the recovering process attaches. It uses the slot of the process that died, because a new
/// participant need not sleep before it takes over. A sleep would let the reader go first, but the reader must come
/// last.
fn recoverer(machine: &Machine, died: bool) -> (usize, Claim) {
    if died {
        std::mem::forget(machine.take_liveness_lock(0).expect("its owner is dead"));
    }
    if died { (0, Claim::Attaching) } else { (1, Claim::Participant) }
}

#[test]
fn p1_reader_sees_nothing_of_recovery() {
    one_dies("journal, writer dies, another recovers", Some(2), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        beside(&machine, 1, &[0, 1, 10, 11], || {
            let died = killed(&machine, cut, 0, |machine| change(machine, 0, 10)).join().unwrap();
            let (slot, claim) = recoverer(&machine, died);
            let mut begun = machine.begin(slot, claim);
            add(&mut begun.tx, 1);
            begun.tx.commit().unwrap();
            drop(begun);
        });
        let (a, b) = journal::read(&machine.words, both).expect("a transaction is still open");
        assert!(a == b && (a == 1 || a == 11));
    });
}

#[test]
fn p1_reader_sees_nothing_of_recovery_that_dies() {
    two_die("journal, writer and recovery die", Some(2), |writer, recovery_cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        beside(&machine, 1, &[0, 10], || {
            let died = killed(&machine, writer, 0, |machine| change(machine, 0, 10)).join().unwrap();
            let (slot, claim) = recoverer(&machine, died);
            let recovery = move |machine: &Arc<Machine>| drop(machine.begin(slot, claim));
            let died_too = killed(&machine, recovery_cut, slot, recovery).join().unwrap();
            let (slot, claim) =
                if died_too && slot == 0 { recoverer(&machine, true) } else { (2, Claim::Participant) };
            drop(machine.begin(slot, claim));
        });
        let (a, b) = journal::read(&machine.words, both).expect("a transaction is still open");
        assert!(a == b && (a == 0 || a == 10));
    });
}
