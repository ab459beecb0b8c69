//! Waiting calls in the order of `limiter/waiter.rs` and `limiter/segment_chain.rs`: one transaction, in which the
//! wake word is read, then the wake-up. The policy is the smallest one that makes a call wait: some permits, no
//! rule, first come first served.

use crate::machine::{FOR_EVER, Machine, taken_over_slot};
use shmlimit_kernel::Nanos;
use shmlimit_kernel::queue::{
    self, ENTRY_WORDS, NewWaiter, PROGRESS_WORDS, QueueOutcome, QueueTicket, TURN_WORDS, Wake,
};
use shmlimit_kernel::{AcquireRequest, Fairness, General, Priority, Queueing, Ticket, Time, View, decide};
use shmlimit_segment::journal::Begun;
use shmlimit_segment::layout::{
    CORE, EFFECTIVE, PLACES, PROGRESS, SLOTS, TURN_TABLE, WAITING, entry_base, health_state_word, slot,
    slot_base,
};
use shmlimit_segment::lock::{Claim, Os};
use shmlimit_segment::slots;
use shmlimit_segment::sync::killable::is_dead;
use shmlimit_segment::wake_word;
use std::sync::Arc;

/// The request of every call.
pub const REQUEST: AcquireRequest = AcquireRequest::one(Priority::User);

/// The time that many milliseconds after the start of a model.
pub fn at(milliseconds: u64) -> Time {
    Time(1_000_000_000).plus(Nanos::from_millis(milliseconds))
}

/// A place in the queue, and the value of its wake word.
#[derive(Clone, Copy)]
pub struct Place {
    /// The place and its number.
    pub wait: QueueTicket,
    wake_value: u32,
}

/// The words that transactions on the queue may change, in models of at most two entries.
fn state() -> impl Iterator<Item = usize> {
    let of_slot = |index| [slot::STATE, slot::HELD, slot::HELD_SINCE].map(|word| slot_base(index) + word);
    let of_entry = |place| entry_base(place)..entry_base(place) + ENTRY_WORDS;
    (CORE..CORE + 2)
        .chain([WAITING, PLACES])
        .chain(PROGRESS..PROGRESS + PROGRESS_WORDS)
        .chain(TURN_TABLE..TURN_TABLE + TURN_WORDS)
        .chain((0..SLOTS).flat_map(of_slot))
        .chain((0..2).flat_map(of_entry))
}

/// The word of the health state that counts written-off permits. It is read whenever a permit is released.
pub const WRITTEN_OFF: usize = 13;

/// A segment with that many permits and three participants, of which the one in `killable` can die.
pub fn machine_with_killable(permits: u32, killable: usize) -> Arc<Machine> {
    // The effective limits, and the number of written-off permits, which is read whenever a permit is released.
    let words: Vec<usize> =
        state().chain(EFFECTIVE..EFFECTIVE + 4).chain([health_state_word(WRITTEN_OFF)]).collect();
    let machine = Machine::with_killable(&words, &[0, 1, 2], killable);
    let general =
        General { rules: 0, units: 1, concurrency: Some(permits), concurrency_background: None }.to_words();
    let queueing = Queueing { fairness: Fairness::Fifo, background_share: 0, priorities: true };
    // The next check time is never: the models have no breaker, gate or pace.
    for (word, value) in general.into_iter().chain([queueing.to_word(), u64::MAX]).enumerate() {
        machine.words.store(EFFECTIVE + word, value);
    }
    machine
}

/// A segment with that many permits and three participants that never die.
pub fn machine(permits: u32) -> Arc<Machine> {
    machine_with_killable(permits, usize::MAX)
}

fn attachment_id(slot: usize) -> u64 {
    1 << 32 | (slot as u64 + 2)
}

/// Begins a transaction. If the lock was taken over from a dead owner, first returns that owner's permits and
/// wakes every waiter.
fn begin(machine: &Machine, slot: usize, claim: Claim) -> Begun<'_, Machine> {
    loop {
        let mut begun = machine.begin(slot, claim);
        let Some(dead) = taken_over_slot(&begun) else { return begun };
        let sleepers = begun.tx.places(0);
        slots::leave(&mut begun.tx, dead);
        begun.tx.commit().unwrap();
        drop(begun);
        sleepers.for_each(|place| _ = wake_word::wake(&machine.words, machine, place));
    }
}

fn wake(machine: &Machine, wake: Wake) {
    if let Wake::One(place) = wake {
        wake_word::wake(&machine.words, machine, place);
    }
}

/// Requests a permit and enters the queue, or checks whether it is the turn of `at`.
fn look(machine: &Machine, slot: usize, at: Option<Place>, deadline: Time, now: Time) -> (QueueOutcome, u32) {
    let mut begun = begin(machine, slot, Claim::Participant);
    let (outcome, to_wake) = match at {
        Some(at) => queue::look(&mut begun.tx, attachment_id(slot), &at.wait, now),
        None => {
            let owner = attachment_id(slot);
            let who = NewWaiter { owner, group: owner, request: REQUEST, deadline, can_be_woken: true };
            queue::enter(&mut begun.tx, &who, now)
        }
    };
    let wake_value = match outcome {
        QueueOutcome::Waiting(wait) => wake_word::read(&machine.words, wait.place),
        _ => 0,
    };
    begun.tx.commit().unwrap();
    drop(begun);
    wake(machine, to_wake);
    (outcome, wake_value)
}

/// Frees the slot of the killable participant, if it is dead. Returns whether that participant had anything.
fn reclaim_slot(machine: &Machine, slot: usize, now: Time) -> bool {
    let Some(dead) = machine.killable() else { return false };
    let Some(liveness_lock) = machine.take_liveness_lock(dead) else { return false };
    let mut begun = begin(machine, slot, Claim::Reclaimer(dead));
    let reclaimed = slots::leave(&mut begun.tx, dead);
    let to_wake = queue::changed(&mut begun.tx, now);
    begun.tx.commit().unwrap();
    drop(begun);
    drop(liveness_lock);
    wake(machine, to_wake);
    !reclaimed.is_nothing()
}

/// Makes a call that need not wait.
pub fn take(machine: &Machine, slot: usize, now: Time) -> Ticket {
    match look(machine, slot, None, Time(u64::MAX), now) {
        (QueueOutcome::Granted(ticket), _) => ticket,
        other => panic!("not granted: {other:?}"),
    }
}

/// Enters the queue behind all others.
pub fn enter_queue(machine: &Machine, slot: usize, deadline: Option<Time>, now: Time) -> Place {
    match look(machine, slot, None, deadline.unwrap_or(Time(u64::MAX)), now) {
        (QueueOutcome::Waiting(wait), wake_value) => Place { wait, wake_value },
        // A dead thread reads nothing.
        _ if is_dead() => Place {
            wait: QueueTicket { place: 0, number: 0, until: now, timed: false, suspects_dead: false },
            wake_value: 0,
        },
        other => panic!("need not wait: {other:?}"),
    }
}

/// Checks the queue without a wake-up first, and then after each wake-up, until it is granted. Returns `None` if it
/// has to give up. A call without a place enters the queue.
pub fn look_until_granted(machine: &Machine, slot: usize, at: Option<Place>, now: Time) -> Option<Ticket> {
    let mut at = at;
    loop {
        let (outcome, wake_value) = look(machine, slot, at, Time(u64::MAX), now);
        match outcome {
            QueueOutcome::Granted(ticket) => return Some(ticket),
            QueueOutcome::Waiting(wait) => {
                at = Some(Place { wait, wake_value });
                if wait.suspects_dead && reclaim_slot(machine, slot, now) {
                    continue;
                }
                wake_word::sleep(&machine.words, machine, wait.place, wake_value, FOR_EVER);
            }
            QueueOutcome::Refused(_) => return None,
            QueueOutcome::Gone => at = None,
        }
        if is_dead() {
            return None;
        }
    }
}

/// Sleeps until it is woken, then continues as [`look_until_granted`].
pub fn sleep_until_granted(machine: &Machine, slot: usize, at: Place, now: Time) -> Option<Ticket> {
    wake_word::sleep(&machine.words, machine, at.wait.place, at.wake_value, FOR_EVER);
    look_until_granted(machine, slot, Some(at), now)
}

/// Checks the queue once and returns the outcome.
pub fn look_once(machine: &Machine, slot: usize, at: Place, now: Time) -> QueueOutcome {
    look(machine, slot, Some(at), Time(u64::MAX), now).0
}

/// Releases a permit.
pub fn give_back(machine: &Machine, slot: usize, ticket: &Ticket, now: Time) {
    give_back_having(machine, slot, ticket, now, || {});
}

/// Releases a permit. `last` runs before any other thread can see the release.
pub fn give_back_having(machine: &Machine, slot: usize, ticket: &Ticket, now: Time, last: impl FnOnce()) {
    let mut begun = begin(machine, slot, Claim::Participant);
    last();
    decide::release(&mut begun.tx, slot, ticket);
    let to_wake = queue::changed(&mut begun.tx, now);
    begun.tx.commit().unwrap();
    drop(begun);
    wake(machine, to_wake);
}

/// Leaves the queue.
pub fn leave(machine: &Machine, slot: usize, at: Place, now: Time) {
    let mut begun = begin(machine, slot, Claim::Participant);
    let to_wake = queue::leave(&mut begun.tx, attachment_id(slot), &at.wait, now);
    begun.tx.commit().unwrap();
    drop(begun);
    wake(machine, to_wake);
}

/// All words that transactions may change, loaded in one transaction under the lock.
pub fn words(machine: &Machine, slot: usize) -> Vec<u64> {
    let begun = machine.begin(slot, Claim::Participant);
    state().map(|word| begun.tx.load(word)).collect()
}

/// Checks the final state: that many permits in each slot, an empty queue, and consistent counts.
pub fn check(machine: &Machine, held: [u32; 3]) {
    let begun = begin(machine, 0, Claim::Participant);
    let slots = [0, 1, 2].map(|slot| begun.tx.held(slot).total);
    assert_eq!(slots, held, "permits held");
    assert_eq!(begun.tx.core().in_flight, held.iter().sum::<u32>(), "permits in flight");
    assert_eq!(begun.tx.places(0).0, 0, "places taken");
    assert!(begun.tx.waiting().is_empty(), "{:?}", begun.tx.waiting());
}

/// Reclaims the permits and the place of the killable participant, if it is dead.
pub fn reclaim_dead(machine: &Machine, slot: usize, now: Time) {
    reclaim_slot(machine, slot, now);
}

/// How many permits and places a participant has.
pub fn trace_of(machine: &Machine, slot: usize) -> usize {
    let begun = begin(machine, 0, Claim::Participant);
    let places = begun.tx.places(0).filter(|place| begun.tx.entry_head(*place).slot() == slot).count();
    assert!(begun.tx.waiting().total() == begun.tx.places(0).count(), "{:?}", begun.tx.waiting());
    begun.tx.held(slot).total as usize + places
}
