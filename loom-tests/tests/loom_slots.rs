//! Slots change owners: a new participant takes the slot of a dead one, while others take over from it or reclaim
//! its permits.
#![cfg(loom)]

use shmlimit_kernel::state::{Held, Memory, View};
use shmlimit_kernel::time::Time;
use shmlimit_loom_tests::explore::{Cut, killed, one_dies, spawn, two_die};
use shmlimit_loom_tests::machine::{Machine, taken_over_slot};
use shmlimit_loom_tests::queue::WRITTEN_OFF;
use shmlimit_segment::journal::Transaction;
use shmlimit_segment::layout::{CORE, health_state_word, slot, slot_base};
use shmlimit_segment::lock::{Claim, Os};
use shmlimit_segment::slots::{self, Identity};
use shmlimit_segment::sync::killable::is_dead;
use std::sync::Arc;

const WHO: Identity = Identity { pid: 7, program: [0; 16] };

fn machine(slots: &[usize]) -> Arc<Machine> {
    let of_slot = |index| (0..=slot::LOOKED).map(move |word| slot_base(index) + word);
    let written_off = health_state_word(WRITTEN_OFF);
    let words: Vec<usize> = (CORE..CORE + 2).chain((0..3).flat_map(of_slot)).chain([written_off]).collect();
    Machine::new(&words, slots)
}

/// Gives one more permit to the participant in `index`.
fn take_permit(tx: &mut Transaction<'_, Machine>, index: usize) {
    let (mut core, mut held) = (tx.core(), tx.held(index));
    core.in_flight += 1;
    held.total += 1;
    tx.set_core(core);
    tx.set_held(index, held);
}

/// A segment in which the owner of slot 1 already holds a permit.
fn prepare() -> Arc<Machine> {
    let machine = machine(&[0, 1, 2]);
    let mut begun = machine.begin(1, Claim::Participant);
    slots::enter(&mut begun.tx, 1, WHO, Time(1));
    take_permit(&mut begun.tx, 1);
    begun.tx.commit().unwrap();
    drop(begun);
    machine
}

/// The victim takes a second permit.
fn dies_taking_a_permit(machine: &Arc<Machine>, cut: &Cut) -> loom::thread::JoinHandle<bool> {
    killed(machine, cut, 1, |machine| {
        let mut begun = machine.begin(1, Claim::Participant);
        take_permit(&mut begun.tx, 1);
        begun.tx.commit().unwrap();
        drop(begun);
    })
}

/// Begins a transaction as a participant. If the lock was taken over from a dead owner, returns that owner's
/// permits first. Returns how many there were.
fn participate(machine: &Machine, index: usize) -> u32 {
    let mut begun = machine.begin(index, Claim::Participant);
    let given_back = taken_over_slot(&begun).map_or(0, |dead| slots::leave(&mut begun.tx, dead).held.total);
    begun.tx.commit().unwrap();
    drop(begun);
    given_back
}

/// A process attaches while slot 1 may have lost its owner: it takes the liveness lock first, then the slot.
fn come(machine: &Machine) -> Option<u32> {
    let liveness_lock = machine.take_liveness_lock(1)?;
    let mut begun = machine.begin(1, Claim::Attaching);
    let inherited = begun.tx.held(1).total;
    if slots::reclaim_predecessor(&mut begun.tx, 1) {
        begun.tx.commit().unwrap();
    }
    slots::enter(&mut begun.tx, 1, WHO, Time(1));
    take_permit(&mut begun.tx, 1);
    begun.tx.commit().unwrap();
    drop(begun);
    // The new participant lives on.
    std::mem::forget(liveness_lock);
    Some(inherited)
}

/// Frees the slot of a dead participant, like a caller that finds no free permit.
fn reclaim_slot(machine: &Machine, index: usize) -> Option<u32> {
    let _liveness_lock = machine.take_liveness_lock(1)?;
    let mut begun = machine.begin(index, Claim::Reclaimer(1));
    let given_back = slots::leave(&mut begun.tx, 1).held.total;
    begun.tx.commit().unwrap();
    drop(begun);
    Some(given_back)
}

fn check(machine: &Machine, expected: &[u32]) {
    let begun = machine.begin(0, Claim::Participant);
    let held: u32 = (0..3).map(|index| begun.tx.held(index).total).sum();
    assert_eq!(begun.tx.core().in_flight, held, "permits in flight and permits held differ");
    assert!(expected.contains(&held), "{held} permits are held");
    assert_eq!(begun.tx.held(0), Held::default());
}

#[test]
fn r113_a_newcomer_in_a_dead_process_slot_gives_back_its_permits_once() {
    one_dies("slots, newcomer and reclaimer", Some(2), |cut| {
        let machine = prepare();
        let victim = dies_taking_a_permit(&machine, cut);
        let newcomer = spawn(&machine, |machine| come(machine));
        let taken_over = participate(&machine, 0);
        let inherited = newcomer.join().unwrap();
        let died = victim.join().unwrap();
        assert!(died || (inherited.is_none() && taken_over == 0), "a living process lost permits");
        if let Some(inherited) = inherited {
            assert!(matches!(inherited + taken_over, 1 | 2), "given back once: {inherited} and {taken_over}");
            check(&machine, &[1]);
        } else {
            let taken_over = taken_over + participate(&machine, 0);
            check(&machine, if taken_over > 0 { &[0] } else { &[1, 2] });
        }
    });
}

#[test]
fn r113_a_reclaimer_is_not_blocked_by_the_process_it_reclaims() {
    one_dies("slots, reclaimer and new owner", Some(2), |cut| {
        let machine = prepare();
        let victim = dies_taking_a_permit(&machine, cut);
        let reclaimer = spawn(&machine, |machine| reclaim_slot(machine, 2));
        let taken_over = participate(&machine, 0);
        let reclaimed = reclaimer.join().unwrap();
        let died = victim.join().unwrap();
        assert!(died || (reclaimed.is_none() && taken_over == 0), "a living process lost permits");
        if let Some(reclaimed) = reclaimed {
            assert!(matches!(reclaimed + taken_over, 1 | 2), "given back once: {reclaimed} and {taken_over}");
            check(&machine, &[0]);
        }
    });
}

#[test]
fn r113_a_newcomer_may_die_in_the_slot_of_a_dead_process() {
    two_die("slots, the newcomer dies too", Some(1), |owner, newcomer| {
        let machine = prepare();
        dies_taking_a_permit(&machine, owner).join().unwrap();
        let newcomer = newcomer.clone();
        let dying = spawn(&machine, move |machine| {
            // The newcomer takes the liveness lock, or fails to, before it can die, so its death is also the death
            // of slot 1.
            let came = machine.take_liveness_lock(1);
            let Some(liveness_lock) = came else { return false };
            std::mem::forget(liveness_lock);
            newcomer.kills(machine, 1, || {
                let mut begun = machine.begin(1, Claim::Attaching);
                if slots::reclaim_predecessor(&mut begun.tx, 1) {
                    begun.tx.commit().unwrap();
                }
                slots::enter(&mut begun.tx, 1, WHO, Time(1));
                take_permit(&mut begun.tx, 1);
                begun.tx.commit().unwrap();
                drop(begun);
            })
        });
        participate(&machine, 0);
        let died = dying.join().unwrap();
        assert!(!is_dead());
        participate(&machine, 0);
        if died {
            reclaim_slot(&machine, 2);
            check(&machine, &[0]);
        } else {
            check(&machine, &[0, 1, 2]);
        }
    });
}
