//! Each call has one time limit, no matter how many waits it consists of.

use super::*;
use crate::attach::tests::{attach_again, segment};
use crate::layout::{SLOTS, slot, slot_base};
use crate::lock::{self, Claim, SLEEP, WAITERS};
use crate::sync::AtomicU32;
use crate::words::Words;
use shmlimit_kernel::state::Held;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;

/// A system whose time passes only while a caller sleeps. Every `frees`th sleep leaves the lock free. Every other
/// sleep leaves it with another acquisition of the same living process.
struct Virtual {
    now: Cell<u64>,
    sleeps: Cell<u32>,
    frees: u32,
    moves: bool,
}

const HOLDER: usize = 7;

fn held(epoch: u32) -> u32 {
    (HOLDER as u32 + 1) << 20 | epoch & 0xf_ffff
}

impl Os for Virtual {
    type LivenessLock = ();

    fn sleep(&self, word: &AtomicU32, _: u32, limit: Duration) {
        self.now.set(self.now.get() + limit.as_nanos() as u64);
        self.sleeps.set(self.sleeps.get() + 1);
        if self.sleeps.get().is_multiple_of(self.frees) {
            word.store(0, Ordering::Relaxed);
        } else if self.moves {
            word.store(held(self.sleeps.get()), Ordering::Relaxed);
        }
    }

    fn wake(&self, _: &AtomicU32) -> bool {
        true
    }

    fn take_liveness_lock(&self, _: usize) -> Option<()> {
        None
    }

    fn now(&self) -> u64 {
        self.now.get()
    }
}

fn acquire(words: &Words, os: &Virtual, deadline: &Deadline) -> Result<(), StillHeld> {
    words.lock().store(held(0), Ordering::Relaxed);
    let waited = lock::acquire(words, os, 0, Claim::Participant, deadline)?;
    lock::release(words, os, waited.key);
    Ok(())
}

#[test]
fn all_waits_of_one_call_together_end_at_its_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let timeout = Duration::from_millis(200);
    let os = Virtual { now: Cell::new(1), sleeps: Cell::new(0), frees: 5, moves: true };
    let deadline = Deadline::within(timeout);
    // As many waits as there are slots. Each wait gets the lock after 50 ms.
    let got = (0..SLOTS).filter(|_| acquire(&segment.words, &os, &deadline).is_ok()).count();
    assert_eq!(got, 4, "what fits into 200 ms");
    assert_eq!(Duration::from_nanos(os.now.get() - 1), timeout, "and not a nanosecond more is slept");
    assert_eq!(os.sleeps.get() as u128, timeout.as_nanos() / SLEEP.as_nanos());
    segment.words.lock().store(0, Ordering::Relaxed);
}

#[test]
fn stalled_acquisition_is_distinguished_from_a_lock_that_changes_hands() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let timeout = Duration::from_secs(1);
    for moves in [false, true] {
        let os = Virtual { now: Cell::new(1), sleeps: Cell::new(0), frees: u32::MAX, moves };
        let failed = acquire(&segment.words, &os, &Deadline::within(timeout)).unwrap_err();
        assert_eq!((failed.by, failed.waited), (HOLDER, timeout));
        assert_eq!(failed.unchanged_for, if moves { Duration::ZERO } else { timeout });
        assert_eq!(failed.acquisition & WAITERS, 0);
    }
    segment.words.lock().store(0, Ordering::Relaxed);
}

/// A living process holds the lock again and again: each time until another process sleeps on it, and 10 ms longer.
/// With a separate time limit for each of the 510 dead participants, a call would wait 510 times.
#[test]
fn reclaiming_many_dead_participants_takes_one_time_limit_on_a_contended_lock() {
    let directory = tempfile::tempdir().unwrap();
    let (segment, other) = (segment(&directory), attach_again(&directory));
    let (attachment, holder) = (segment.attachment().unwrap(), other.attachment().unwrap());
    let one = Held { total: 1, background: 1 }.to_word();
    let dead = || (0..SLOTS).filter(|slot| ![attachment.slot, holder.slot].contains(slot));
    for slot in dead() {
        segment.words.store(slot_base(slot) + slot::STATE, 1);
        segment.words.store(slot_base(slot) + slot::HELD, one);
    }
    segment.words.store(layout::CORE + 1, dead().count() as u64 * one);
    let done = AtomicBool::new(false);
    let waits = std::thread::scope(|scope| {
        let pieces = scope.spawn(|| {
            let mut waits = 0;
            while !done.load(Ordering::Relaxed) {
                let Some(key) = lock::try_acquire(&other.words, holder.slot) else { continue };
                let slept_for = || other.words.lock().load(Ordering::Relaxed) & WAITERS != 0;
                while !slept_for() && !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                waits += u32::from(slept_for());
                std::thread::sleep(SLEEP);
                lock::release(&other.words, &other.backing, key);
            }
            waits
        });
        // Wait until the holder has started.
        while lock::owner(segment.words.lock().load(Ordering::Relaxed)).is_none() {
            std::thread::yield_now();
        }
        let _ = segment.reclaim(&attachment, &Deadline::within(Duration::from_millis(60)));
        done.store(true, Ordering::Relaxed);
        pieces.join().unwrap()
    });
    assert!(waits <= 12, "one call waited {waits} times for a lock that it may wait 60 ms for");
}

/// A damaged lock word can let another process restore a slot's old words while a newcomer enters the slot.
#[test]
fn slot_that_damage_has_marked_as_owned_can_still_be_entered() {
    let directory = tempfile::tempdir().unwrap();
    let segment = segment(&directory);
    let attachment = segment.attachment().unwrap();
    let free = (attachment.slot + 1) % SLOTS;
    segment.words.store(slot_base(free) + slot::STATE, 5 << 32 | 1);
    let entered = segment.transact(&attachment, &segment.deadline(), |tx, now| {
        let generation = slots::enter(tx, free, slots::Identity { pid: 1, program: [0; 16] }, now);
        segment.commit(tx).map(|()| generation)
    });
    assert_eq!(entered.unwrap().unwrap(), 6);
}

#[test]
fn short_calls_together_detect_a_stalled_lock_holder() {
    let directory = tempfile::tempdir().unwrap();
    let mut segment = segment(&directory);
    segment.bounds = crate::AttachOptions::default();
    let segment = segment;
    let held = |acquisition, unchanged_for| StillHeld {
        by: segment.attachment().unwrap().slot,
        acquisition,
        unchanged_for,
        waited: Duration::from_millis(1),
    };
    let stopped = |held| match segment.busy(held) {
        Error::Busy { stopped, pid, .. } => (stopped, pid),
        other => panic!("{other:?}"),
    };
    let (moment, second) = (Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(stopped(held(1, moment)), (false, 0), "nobody is named");
    // Pretend that this process first saw the acquisition a second ago.
    let since = segment.process_state.word(process_state::HOLDER_SINCE);
    since.store(since.load(Ordering::Relaxed) - second.as_nanos() as u64, Ordering::Relaxed);
    assert_eq!(stopped(held(1, moment)), (true, std::process::id()));
    assert_eq!(stopped(held(2, moment)), (false, 0), "another acquisition: it goes on");
    assert_eq!(stopped(held(3, second)), (true, std::process::id()), "seen by one call alone");
}
