//! The lock word: which slot is changing the segment right now.
//!
//! One 32-bit word holds everything: owner, epoch, and whether a process sleeps on it. It is taken in one
//! compare-and-swap, so there is no moment at which the lock is held and its holder unknown.
//!
//! ```text
//! bit 31      waiters: at least one process sleeps on this word
//! bit 20..31  owner: slot + 1, or 0 = free
//! bit 0..20   epoch: raised by every acquisition, so that a stalled owner looks different from a busy one
//!
//! from        to             by
//! free        held(me)       any participant, compare-and-swap
//! held(a)     free           a, swap: if the waiters bit was set meanwhile, a wakes one sleeper
//! held(a)     held(a)+W      a process that is about to sleep
//! held(a)     held(me)+W     a process that has taken a's liveness lock (a is dead): it recovers before anything else
//! ```
//!
//! A woken waiter does not know whether others still sleep, so it always acquires with the waiters bit set.

use super::layout::SLOTS;
use super::words::Words;
use crate::sync::{AtomicU32, Ordering, spin_hint};
use std::cell::Cell;
use std::time::Duration;

/// At least one process sleeps on the lock.
pub const WAITERS: u32 = 1 << 31;
const OWNER_SHIFT: u32 = 20;
const OWNER_MASK: u32 = 0x7ff;
const EPOCH_MASK: u32 = (1 << OWNER_SHIFT) - 1;

/// How many times to try before going to sleep: long enough for a holder on another core to finish.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 16 };
/// How many times to pause between two tries. 48 pauses take about a microsecond. Each try takes the cache line away
/// from the holder. When the lock passes to another core, all the data it protects moves too. Each of these costs
/// more than several decisions. So a process that finds the lock held lets the holder make several decisions in a row.
const PAUSES: u32 = if cfg!(loom) { 1 } else { 48 };
/// How long to sleep before checking whether the owner is alive. This bounds the stall after a crash.
pub const SLEEP: Duration = Duration::from_millis(10);

/// The operations that the lock needs from the operating system.
pub trait Os {
    /// The liveness lock of one slot. Holding it proves that the slot's former owner is dead. Only one process can
    /// hold it at a time.
    type LivenessLock;
    /// Sleeps while `word` is `expected`, for `limit` at most. May return early.
    fn sleep(&self, word: &AtomicU32, expected: u32, limit: Duration);
    /// The same for a caller that must wake at a certain time: it wakes with as little delay as the system allows.
    fn sleep_in_time(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        self.sleep(word, expected, limit);
    }
    /// Wakes one sleeper. Returns whether there was one.
    fn wake(&self, word: &AtomicU32) -> bool;
    /// Takes the liveness lock of a slot if its owner is dead.
    fn take_liveness_lock(&self, slot: usize) -> Option<Self::LivenessLock>;
    /// Nanoseconds of any steady clock.
    fn now(&self) -> u64;
}

/// In which role a process asks for the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A participant. A lock held in its slot's name is held by another thread of its process.
    Participant,
    /// A process that holds the liveness lock of its own slot but has not entered the slot yet. A lock held in the
    /// slot's name belongs to a dead process.
    Attaching,
    /// A participant that also holds the liveness lock of this other slot. A lock held in that slot's name belongs
    /// to a dead process, and only this participant can take it over.
    Reclaimer(usize),
}

impl Claim {
    /// Whether the caller, in `slot`, already holds the liveness lock of slot `by`. If so, the process that held the
    /// lock as `by` is dead.
    fn has_liveness_lock_of(self, by: usize, slot: usize) -> bool {
        match self {
            Claim::Participant => false,
            Claim::Attaching => by == slot,
            Claim::Reclaimer(dead) => by == dead,
        }
    }
}

/// How long one call may wait for the lock, in all its waits together.
///
/// A call creates one deadline when it begins and passes it to everything it does. The time starts with the first
/// wait, so a call that never waits reads no clock for it.
#[derive(Debug)]
pub struct Deadline {
    limit: Duration,
    /// When the first wait began, by [`Os::now`].
    began: Cell<Option<u64>>,
}

impl Deadline {
    /// A deadline of this length, counted from the first wait.
    #[inline]
    pub const fn within(limit: Duration) -> Deadline {
        Deadline { limit, began: Cell::new(None) }
    }

    /// How long the call has waited at `now`. The time starts when this is first called.
    fn waited(&self, now: u64) -> Duration {
        let began = self.began.get().unwrap_or(now);
        self.began.set(Some(began));
        Duration::from_nanos(now.saturating_sub(began))
    }

    /// Whether the time is over. The time starts here if it has not started before.
    pub fn is_over<O: Os>(&self, os: &O) -> bool {
        self.waited(os.now()) >= self.limit
    }
}

/// The lock was not free in time. Its holder is alive: busy, stopped, or starved of processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StillHeld {
    /// The slot that holds the lock.
    pub by: usize,
    /// The acquisition that holds the lock: the lock word without its waiters bit.
    pub acquisition: u32,
    /// How long this call has seen that same acquisition.
    pub unchanged_for: Duration,
    /// How long the call has waited, in all its waits together.
    pub waited: Duration,
}

/// Permission to free the lock: the value that is written to the lock word to free it.
#[derive(Debug, Clone, Copy)]
pub struct Key(u32);

/// The lock, acquired after a wait.
#[derive(Debug)]
pub struct Waited<P> {
    /// Frees the lock.
    pub key: Key,
    /// The dead former holder and its liveness lock, if this call took that liveness lock. Keep it until recovery is
    /// done. `None` if the lock was free, if the caller already held the liveness lock, or if the word was damaged.
    pub taken_over: Option<(usize, P)>,
}

/// The slot in whose name the lock is held.
#[inline(always)]
pub fn owner(word: u32) -> Option<usize> {
    ((word >> OWNER_SHIFT & OWNER_MASK) as usize).checked_sub(1)
}

#[inline(always)]
fn held_by(slot: usize, after: u32) -> u32 {
    ((slot as u32 + 1) << OWNER_SHIFT) | (after.wrapping_add(1) & EPOCH_MASK)
}

/// Takes the lock for `slot` if it is free.
#[inline(always)]
pub fn try_acquire(words: &Words, slot: usize) -> Option<Key> {
    let word = words.lock().load(Ordering::Relaxed);
    if owner(word).is_some() {
        return None;
    }
    let mine = held_by(slot, word);
    let taken = words.lock().compare_exchange(word, mine, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok().then_some(Key(mine & EPOCH_MASK))
}

/// Repeats [`try_acquire`] for about as long as a holder on another core needs.
#[cold]
#[inline(never)]
pub fn spin(words: &Words, slot: usize) -> Option<Key> {
    (0..LOOKS).find_map(|_| {
        pause();
        try_acquire(words, slot)
    })
}

fn pause() {
    for _ in 0..PAUSES {
        spin_hint();
    }
}

/// Takes the lock for `slot`, waiting until `deadline` at most.
#[cold]
pub fn acquire<O: Os>(
    words: &Words,
    os: &O,
    slot: usize,
    claim: Claim,
    deadline: &Deadline,
) -> Result<Waited<O::LivenessLock>, StillHeld> {
    let lock = words.lock();
    let mut looks = 0;
    let mut slept_on = None;
    // The acquisition that holds the lock, and since when this call has seen it.
    let mut seen = (0, 0);
    loop {
        let word = lock.load(Ordering::Relaxed);
        // Once this caller has slept, it cannot know whether other processes sleep.
        let waiters = if slept_on.is_some() { WAITERS } else { 0 };
        let mine = held_by(slot, word) | waiters;
        let key = Key(mine & EPOCH_MASK);
        let Some(by) = owner(word) else {
            if lock.compare_exchange_weak(word, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(Waited { key, taken_over: None });
            }
            continue;
        };
        // A slot number out of range means that the word is damaged. In the other case the holder is known to be dead.
        // Both are taken over at once.
        if by >= SLOTS || claim.has_liveness_lock_of(by, slot) {
            if lock.compare_exchange(word, mine | WAITERS, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(Waited { key, taken_over: None });
            }
            continue;
        }
        if looks < LOOKS {
            looks += 1;
            pause();
            continue;
        }
        let now = os.now();
        let waited = deadline.waited(now);
        let timed_out = waited >= deadline.limit;
        let acquisition = word & !WAITERS;
        if seen.0 != acquisition {
            seen = (acquisition, now);
        }
        // If the lock word is the same as before the sleep, check whether its owner is still alive. A caller that
        // has no time to sleep checks immediately: otherwise callers that never have time would never get past a
        // dead owner.
        if (slept_on == Some(word) || timed_out)
            && let Some(liveness_lock) = os.take_liveness_lock(by)
        {
            // While this call holds the liveness lock, no other process can take over or enter this slot. So an
            // unchanged word still belongs to the process that died, and only this compare-and-swap can give it
            // another owner.
            if lock.compare_exchange(word, mine | WAITERS, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(Waited { key, taken_over: Some((by, liveness_lock)) });
            }
            continue;
        }
        if timed_out {
            let unchanged_for = Duration::from_nanos(now.saturating_sub(seen.1));
            return Err(StillHeld { by, acquisition, unchanged_for, waited });
        }
        let sleeping = word | WAITERS;
        if word == sleeping
            || lock.compare_exchange(word, sleeping, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            os.sleep(lock, sleeping, SLEEP.min(deadline.limit.saturating_sub(waited)));
            slept_on = Some(sleeping);
        }
    }
}

/// Frees the lock, and wakes one sleeper if there is one.
#[inline(always)]
pub fn release<O: Os>(words: &Words, os: &O, key: Key) {
    // Use a swap rather than a store: a waiters bit set since the last load must not be lost.
    let word = words.lock().swap(key.0, Ordering::Release);
    if word & WAITERS != 0 {
        wake_one(words, os);
    }
}

#[cold]
fn wake_one<O: Os>(words: &Words, os: &O) {
    os.wake(words.lock());
}
