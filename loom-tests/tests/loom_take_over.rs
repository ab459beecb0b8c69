//! Taking over from a dead owner: the owner dies at any point, and exactly one survivor undoes its unfinished
//! transaction.
#![cfg(loom)]

use shmlimit_loom_tests::explore::{Cut, living, one_dies, spawn, two_die};
use shmlimit_loom_tests::machine::{Machine, taken_over_slot};
use shmlimit_loom_tests::{A, B, add, both};
use shmlimit_segment::journal::Found;
use shmlimit_segment::layout::VERSION;
use shmlimit_segment::lock::Claim;
use shmlimit_segment::sync::killable::is_dead;
use std::sync::Arc;

/// The findings of one visit to the segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Visit {
    taken_over: Option<usize>,
    undone: bool,
}

fn visit(machine: &Machine, slot: usize, n: u64) -> Visit {
    let mut begun = machine.begin(slot, Claim::Participant);
    let found = begun.found;
    let visit = Visit { taken_over: taken_over_slot(&begun), undone: found == Found::Undone };
    assert!(found != Found::Damaged || is_dead());
    assert!(
        is_dead() || visit.taken_over.is_some() || !visit.undone,
        "only a dead holder leaves something to undo"
    );
    add(&mut begun.tx, n);
    begun.tx.commit().unwrap();
    drop(begun);
    visit
}

/// The victim adds 10, and each survivor adds 1. Afterwards each addition is complete or missing. The last survivor
/// comes when all other threads have ended, so every death is found by some survivor.
fn check(machine: &Machine, survivors: &[Visit]) {
    let survivors = [survivors, &[visit(machine, 0, 1)]].concat();
    let (a, b) = both(&machine.words);
    let undone = survivors.iter().filter(|visit| visit.undone).count();
    assert_eq!(a, b, "half a transaction");
    assert_eq!(machine.words.load(VERSION) % 2, 0, "no process closed the transaction");
    let all = survivors.len() as u64;
    assert!(a == all && undone <= 1 || a == all + 10 && undone == 0, "{a} {survivors:?}");
    assert!(survivors.iter().filter(|visit| visit.taken_over.is_some()).count() <= 1, "taken over twice");
}

fn victim(machine: &Arc<Machine>, cut: &Cut, slot: usize) -> loom::thread::JoinHandle<bool> {
    let cut = cut.clone();
    spawn(machine, move |machine| {
        cut.kills(machine, slot, || {
            visit(machine, slot, 10);
        })
    })
}

#[test]
fn p1_one_survivor_undoes_the_unfinished_transaction_of_a_dead_process() {
    one_dies("take over, one survivor", Some(4), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let victim = victim(&machine, cut, 1);
        let survivor = visit(&machine, 0, 1);
        let died = victim.join().unwrap();
        assert!(died || survivor == Visit::default(), "nothing is taken over from a living process");
        check(&machine, &[survivor]);
    });
}

#[test]
fn p1_only_one_of_two_survivors_takes_over() {
    one_dies("take over, two survivors", Some(1), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        let victim = victim(&machine, cut, 1);
        let other = spawn(&machine, |machine| visit(machine, 2, 1));
        let survivors = [visit(&machine, 0, 1), other.join().unwrap()];
        let died = victim.join().unwrap();
        assert!(died || survivors == [Visit::default(); 2], "nothing is taken over from a living process");
        check(&machine, &survivors);
    });
}

#[test]
fn p1_recovery_that_dies_is_recovered_by_another_process() {
    two_die("take over, a recoverer dies", Some(1), |owner, recoverer| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        let (owner, recoverer) = (owner.clone(), recoverer.clone());
        let recoverer = spawn(&machine, move |machine| {
            // The owner is dead when the recoverer comes, so the recoverer dies during recovery.
            let owner_died = victim(machine, &owner, 1).join().unwrap();
            [owner_died, recoverer.kills(machine, 2, || drop(machine.begin(2, Claim::Participant)))]
        });
        let first = visit(&machine, 0, 1);
        let [owner_died, recoverer_died] = recoverer.join().unwrap();
        let taken_over = [first, visit(&machine, 0, 1)].map(|visit| visit.taken_over);
        assert!(owner_died || !taken_over.contains(&Some(1)), "nothing is taken over from a living process");
        assert!(
            recoverer_died || !taken_over.contains(&Some(2)),
            "nothing is taken over from a living process"
        );
        let (a, b) = both(&machine.words);
        assert!(a == b && (a == 2 || a == 12), "{a} {b}");
    });
}

#[test]
fn dropped_transaction_is_undone_before_another_process_gets_the_lock() {
    living("take over, dropped transaction", None, || {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let other = spawn(&machine, |machine| {
            let mut begun = machine.begin(1, Claim::Participant);
            add(&mut begun.tx, 10);
        });
        assert_eq!(visit(&machine, 0, 1), Visit::default());
        other.join().unwrap();
        assert_eq!(both(&machine.words), (1, 1));
    });
}
