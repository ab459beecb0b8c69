//! The operating system of a model: liveness locks and a futex.
//!
//! Real sleeps have a time limit, which would hide a lost wake-up. In a model, a sleep ends only by a wake-up, or
//! after the process that should have sent it died: only then does the protocol need the limit. So a lost wake-up is
//! a deadlock, which loom reports.

use loom::sync::atomic::{AtomicU32 as Cell, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use shmlimit_segment::journal::{Begun, Found, Transaction};
use shmlimit_segment::layout::SLOTS;
use shmlimit_segment::lock::{self, Claim, Deadline, Os};
use shmlimit_segment::sync::killable::{AtomicU32, is_dead, reaches};
use shmlimit_segment::words::Words;
use std::sync::Arc;
use std::time::Duration;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Longer than any model runs.
pub const FOR_EVER: Duration = Duration::MAX;

/// One segment and the system that its participants run on.
pub struct Machine {
    /// The segment.
    pub words: Words,
    liveness_locks: Arc<[Cell]>,
    sleepers: Mutex<Sleepers>,
    woken: Condvar,
    /// How many of the next sleeps end at once. This models a time limit that ends although every process is alive.
    short_sleeps: std::sync::atomic::AtomicU32,
    clock: std::sync::atomic::AtomicU64,
    /// The slot of the participant that can die.
    killable: usize,
}

#[derive(Default)]
struct Sleepers {
    /// Whether a participant died that may have owed a wake-up.
    in_vain: bool,
    next: u32,
    /// The address of each word slept on, with the sleeper's ticket. The first sleeper is woken first.
    queue: Vec<(usize, u32)>,
}

/// The byte lock of a slot, taken by a process that believes the slot's owner to be dead, or by a new participant.
pub struct LivenessLock {
    liveness_locks: Arc<[Cell]>,
    slot: usize,
}

impl Drop for LivenessLock {
    fn drop(&mut self) {
        self.liveness_locks[self.slot].store(FREE, Ordering::Release);
    }
}

impl Machine {
    /// A segment with these words (all zero) and a living participant in each of `slots`.
    pub fn new(words: &[usize], slots: &[usize]) -> Arc<Machine> {
        Machine::with_killable(words, slots, usize::MAX)
    }

    /// Same as [`new`](Self::new), but the participant in `killable` can die. After its death a sleeper may wait
    /// for a wake-up that never comes, so its time limit ends.
    pub fn with_killable(words: &[usize], slots: &[usize], killable: usize) -> Arc<Machine> {
        let liveness_lock = |slot| Cell::new(if slots.contains(&slot) { HELD } else { FREE });
        Arc::new(Machine {
            words: Words::model(words),
            liveness_locks: (0..SLOTS).map(liveness_lock).collect(),
            sleepers: Mutex::new(Sleepers::default()),
            woken: Condvar::new(),
            short_sleeps: 0.into(),
            clock: 0.into(),
            killable,
        })
    }

    /// The slot whose owner can die, if one was named.
    pub fn killable(&self) -> Option<usize> {
        (self.killable < SLOTS).then_some(self.killable)
    }

    /// Makes the next `count` sleeps end at once, as if their time limit had ended.
    pub fn shorten_sleeps(&self, count: u32) {
        self.short_sleeps.store(count, std::sync::atomic::Ordering::Relaxed);
    }

    /// Begins a transaction, however long it takes.
    ///
    /// Works like `Segment::transact`: a participant first tries the fast path, which gives up unless the segment
    /// is whole.
    pub fn begin(&self, slot: usize, claim: Claim) -> Begun<'_, Machine> {
        if claim == Claim::Participant
            && let Some(key) = lock::try_acquire(&self.words, slot)
        {
            let tx = Transaction::under(&self.words, self, key);
            if tx.is_whole() {
                return Begun { tx, found: Found::Whole, taken_over: None };
            }
        }
        Transaction::begin(&self.words, self, slot, claim, &Deadline::within(FOR_EVER))
            .expect("the lock was never released")
    }

    /// If the calling thread has died, releases its liveness lock as the system would, and ends the time limit of
    /// every sleep. Returns whether the thread has died.
    pub fn collect(&self, slot: usize) -> bool {
        if is_dead() {
            self.liveness_locks[slot].store(FREE, Ordering::Release);
            let mut sleepers = self.sleepers.lock().unwrap();
            sleepers.in_vain |= slot == self.killable;
            sleepers.queue.clear();
            drop(sleepers);
            self.woken.notify_all();
        }
        is_dead()
    }
}

/// The slot whose dead owner the lock was taken over from.
pub fn taken_over_slot(begun: &Begun<'_, Machine>) -> Option<usize> {
    begun.taken_over.as_ref().map(|(slot, _)| *slot)
}

impl Os for Machine {
    type LivenessLock = LivenessLock;

    fn sleep(&self, word: &AtomicU32, expected: u32, _limit: Duration) {
        use std::sync::atomic::Ordering::Relaxed;
        if !reaches() {
            return;
        }
        if self.short_sleeps.load(Relaxed) > 0 {
            self.short_sleeps.fetch_sub(1, Relaxed);
            return thread::yield_now();
        }
        let mut sleepers = self.sleepers.lock().unwrap();
        if word.peek() != expected {
            return;
        }
        let address = std::ptr::from_ref(word).addr();
        let in_vain = if std::ptr::eq(word, self.words.lock()) {
            let owner = lock::owner(expected).expect("a thread sleeps although the lock is free");
            self.liveness_locks[owner].load(Ordering::Relaxed) == FREE
        } else {
            sleepers.in_vain
        };
        if in_vain {
            drop(sleepers);
            return thread::yield_now();
        }
        let ticket = sleepers.next;
        sleepers.next += 1;
        sleepers.queue.push((address, ticket));
        while sleepers.queue.iter().any(|&(_, other)| other == ticket) {
            sleepers = self.woken.wait(sleepers).unwrap();
        }
    }

    fn wake(&self, word: &AtomicU32) -> bool {
        if !reaches() {
            return false;
        }
        let address = std::ptr::from_ref(word).addr();
        let mut sleepers = self.sleepers.lock().unwrap();
        let first = sleepers.queue.iter().position(|&(on, _)| on == address);
        if let Some(first) = first {
            sleepers.queue.remove(first);
            self.woken.notify_all();
        }
        first.is_some()
    }

    fn take_liveness_lock(&self, slot: usize) -> Option<LivenessLock> {
        let free = |liveness_lock: &Cell| {
            liveness_lock.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        (reaches() && free(&self.liveness_locks[slot]))
            .then(|| LivenessLock { liveness_locks: self.liveness_locks.clone(), slot })
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}
