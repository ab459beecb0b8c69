//! Robbing the dead: the owner dies at any point, and what it had half done is undone by exactly one survivor.
#![cfg(loom)]

use shmlimit::segment::journal::Found;
use shmlimit::segment::layout::VERSION;
use shmlimit::segment::lock::Claim;
use shmlimit_loom_tests::explore::{Cut, living, one_dies, spawn, two_die};
use shmlimit_loom_tests::machine::Machine;
use shmlimit_loom_tests::pair::{A, B, add, both};
use std::sync::Arc;

/// What one visit to the segment found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Visit {
    robbed: Option<usize>,
    undone: bool,
}

fn visit(machine: &Machine, slot: usize, n: u64) -> Visit {
    let (mut tx, found) = machine.begin(slot, Claim::Participant);
    let visit = Visit { robbed: tx.robbed(), undone: found == Found::Undone };
    assert_ne!(found, Found::Damaged);
    assert!(visit.robbed.is_some() || !visit.undone, "only a dead holder leaves something to undo");
    add(&mut tx, n);
    tx.commit().unwrap();
    visit
}

/// The victim adds 10, each survivor 1: afterwards it is all there or nothing.
fn check(machine: &Machine, survivors: &[Visit], dead: &[usize]) {
    let (a, b) = both(&machine.words);
    let undone = survivors.iter().filter(|visit| visit.undone).count();
    assert_eq!(a, b, "half a transaction");
    assert_eq!(machine.words.load(VERSION) % 2, 0, "nobody closed the transaction");
    assert!(a == survivors.len() as u64 || (a == survivors.len() as u64 + 10 && undone == 0), "{a} {survivors:?}");
    for slot in dead {
        assert!(survivors.iter().filter(|visit| visit.robbed == Some(*slot)).count() <= 1, "robbed twice");
    }
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
fn p1_one_survivor_undoes_what_the_dead_left_half_done() {
    one_dies("steal, one survivor", None, |cut| {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let victim = victim(&machine, cut, 1);
        let survivor = visit(&machine, 0, 1);
        let died = victim.join().unwrap();
        assert!(died || survivor == Visit::default(), "the living are not robbed");
        check(&machine, &[survivor], &[1]);
    });
}

#[test]
fn p1_of_two_thieves_one_robs() {
    one_dies("steal, two thieves", Some(2), |cut| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        let victim = victim(&machine, cut, 1);
        let other = spawn(&machine, |machine| visit(machine, 2, 1));
        let survivors = [visit(&machine, 0, 1), other.join().unwrap()];
        let died = victim.join().unwrap();
        assert!(died || survivors == [Visit::default(); 2], "the living are not robbed");
        check(&machine, &survivors, &[1]);
    });
}

#[test]
fn p1_recovery_may_die_too() {
    two_die("steal, a thief dies", Some(2), |owner, thief| {
        let machine = Machine::new(&[A, B], &[0, 1, 2]);
        // One after the other, so that the thief always has something to rob: it dies in recovery.
        let owner = owner.clone();
        let thief = thief.clone();
        let dying = spawn(&machine, move |machine| {
            owner.kills(machine, 1, || {
                let (mut tx, _) = machine.begin(1, Claim::Participant);
                add(&mut tx, 10);
                std::mem::forget(tx);
            })
        });
        dying.join().unwrap();
        let thief = spawn(&machine, move |machine| {
            thief.kills(machine, 2, || {
                let (tx, _) = machine.begin(2, Claim::Participant);
                drop(tx);
            })
        });
        let (mut tx, _) = machine.begin(0, Claim::Participant);
        add(&mut tx, 1);
        tx.commit().unwrap();
        thief.join().unwrap();
        assert_eq!(both(&machine.words), (1, 1));
    });
}

#[test]
fn a_transaction_that_is_dropped_undoes_itself_before_anybody_else_is_in() {
    living("steal, dropped transaction", None, || {
        let machine = Machine::new(&[A, B], &[0, 1]);
        let other = spawn(&machine, |machine| {
            let (mut tx, _) = machine.begin(1, Claim::Participant);
            add(&mut tx, 10);
        });
        assert_eq!(visit(&machine, 0, 1), Visit::default());
        other.join().unwrap();
        assert_eq!(both(&machine.words), (1, 1));
    });
}
