//! P3 for the queue: with any bytes in its words, every call ends in bounded steps, no call waits for ever, and
//! repairable damage is repaired.
//!
//! Exhaustive: every byte of the count of waiters, of the queue's progress, of the places, and of the turns and
//! entries in use, × all 255 other values × try_acquire, release, cancel, a look, leaving, and acquire with a
//! timeout; snapshot and set_policy with nine values. Each on a queue with three waiters that are expected to look
//! soon, and on one where they are late. Sampled with a printed seed: all other turns and entries, and queues full of
//! noise.

use crate::util;
use crate::util::raw::Raw;
use crate::util::{NAME, Random, Watchdog, poll, queued, segment_path};
use shmlimit::{AcquireError, Algorithm, Limiter, Policy, PolicyDraft, Priority, Request, RuleDraft};
use shmlimit_segment::{AttachOptions, layout};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WAITERS: usize = 1024;
const WAKE_AT: usize = 3;
const ENTRY_WORDS: usize = 12;
const TIMEOUT: Duration = Duration::from_micros(20);
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an entry that only looks like a waiter may delay a call: the longest sleep, and ample time to run.
const ENDS: Duration = Duration::from_secs(60);

fn bounds(reclaim: Duration) -> AttachOptions {
    AttachOptions {
        lock: Duration::from_millis(1),
        reclaim,
        place: Duration::from_secs(3600),
        ..AttachOptions::default()
    }
}

/// Two permits, both algorithms, a share for the background: everything that the queue reads.
fn policy() -> Policy {
    let rules = [
        RuleDraft {
            reserve: 3,
            ..RuleDraft::new(Algorithm::TokenBucket, 1_000_000_007, Duration::from_secs(1))
        },
        RuleDraft {
            unit: Some("tokens"),
            ..RuleDraft::new(Algorithm::Gcra, 1_000_000, Duration::from_secs(1))
        },
    ];
    let draft =
        PolicyDraft { concurrency: Some(2), background_share: 10, rules: &rules, ..Default::default() };
    Policy::new(&draft).unwrap()
}

#[cfg(unix)]
fn now() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(windows)]
fn now() -> u64 {
    use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: both are live, writable words.
    unsafe { (QueryPerformanceCounter(&mut count), QueryPerformanceFrequency(&mut frequency)) };
    (count as u128 * 1_000_000_000 / frequency as u128) as u64
}

#[derive(Clone, Copy, Debug)]
enum Call {
    TryAcquire,
    Acquire,
    Release,
    Cancel,
    Look,
    Leave,
    Snapshot,
    SetPolicy,
}

const OFTEN: [Call; 6] =
    [Call::TryAcquire, Call::Acquire, Call::Release, Call::Cancel, Call::Look, Call::Leave];

/// A limiter with three calls that wait for ever, and its words.
struct Fixture {
    _directory: TempDir,
    limiter: &'static Limiter,
    raw: Raw,
    image: Vec<u64>,
    trying: (Call, usize, u8),
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (call, byte, flip) = self.trying;
            eprintln!("while trying {call:?} with byte {byte:#x} changed by ^{flip:#04x}");
        }
    }
}

fn open(reclaim: Duration) -> (TempDir, &'static Limiter, Raw) {
    let directory = util::directory();
    let builder = Limiter::builder(NAME).directory(directory.path()).bounds(bounds(reclaim));
    let limiter = builder.policy(policy()).create().unwrap();
    let raw = Raw::map(&segment_path(directory.path()));
    // Leak the limiter, so that calls can be forgotten in its queue.
    (directory, Box::leak(Box::new(limiter)), raw)
}

fn taken(raw: &Raw) -> Vec<usize> {
    let word = |index: usize| raw.word(index).load(Ordering::Relaxed);
    (0..WAITERS).filter(|place| word(layout::PLACES + place / 64) >> (place % 64) & 1 == 1).collect()
}

impl Fixture {
    fn new() -> Fixture {
        let (directory, limiter, raw) = open(Duration::ZERO);
        let other = Limiter::builder(NAME).directory(directory.path()).open_existing().unwrap();
        let one = Request::new();
        let permits: Vec<_> = (0..2).map(|_| other.try_acquire(&one).unwrap()).collect();
        let awake = Cell::new(false);
        for priority in Priority::ALL {
            let request = Request::new().priority(priority).cost("tokens", 2);
            let mut call = queued(&other, &request, &awake);
            assert!(poll(&mut call).is_pending());
            std::mem::forget(call);
        }
        permits.into_iter().next().unwrap().release().unwrap();
        std::mem::forget(other);
        let image = raw.image();
        assert_eq!(taken(&raw).len(), 3);
        Fixture { _directory: directory, limiter, raw, image, trying: (Call::TryAcquire, 0, 0) }
    }

    /// Sets the wake time of all waiters.
    fn set_wake_time(&mut self, at: u64) {
        for place in taken(&self.raw) {
            self.image[layout::entry_base(place) + WAKE_AT] = at;
        }
        self.restore();
    }

    fn restore(&self) {
        self.raw.restore(&self.image, layout::LOCK..layout::JOURNAL);
        self.raw.restore(&self.image, layout::SLOT_TABLE..layout::WORDS);
    }

    /// The bytes of the words in use.
    fn bytes(&self) -> Vec<usize> {
        let turns = (layout::TURN_TABLE..layout::ENTRY_TABLE).filter(|word| self.image[*word] != 0);
        let entries = taken(&self.raw).into_iter().flat_map(|place| {
            let base = layout::entry_base(place);
            (base..base + ENTRY_WORDS).chain([base + layout::WAKE_WORD])
        });
        let counts = [layout::WAITING].into_iter().chain(layout::PROGRESS..layout::PROGRESS + 5);
        let words = counts.chain(layout::PLACES..layout::PLACES + WAITERS / 64).chain(turns).chain(entries);
        words.flat_map(|word| word * 8..word * 8 + 8).collect()
    }

    /// Makes one call after `scribble` has changed words. Any answer is accepted; the call must return.
    fn run(&self, call: Call, scribble: impl Fn(&Raw)) {
        let request = Request::new().timeout(TIMEOUT);
        let webhook = Request::new().priority(Priority::Webhook);
        let awake = Cell::new(true);
        match call {
            Call::Release | Call::Cancel => {
                let Ok(grant) = self.limiter.try_acquire(&webhook) else { return };
                scribble(&self.raw);
                drop(if matches!(call, Call::Release) { grant.release() } else { grant.cancel() });
            }
            Call::Look | Call::Leave => {
                awake.set(false);
                let mut waiting = queued(self.limiter, &request, &awake);
                if poll(&mut waiting).map(|answer| answer.map(std::mem::forget)).is_ready() {
                    return;
                }
                scribble(&self.raw);
                if matches!(call, Call::Look) {
                    awake.set(true);
                    let _ = poll(&mut waiting).map(|answer| answer.map(std::mem::forget));
                }
            }
            _ => scribble(&self.raw),
        }
        match call {
            Call::TryAcquire => self.limiter.try_acquire(&request).map_or((), std::mem::forget),
            Call::Acquire => self.limiter.acquire(&request).map_or((), std::mem::forget),
            Call::Snapshot => drop(self.limiter.snapshot()),
            Call::SetPolicy => drop(self.limiter.set_policy(&policy())),
            _ => {}
        }
    }

    fn try_one(&mut self, call: Call, byte: usize, flip: u8) {
        self.trying = (call, byte, flip);
        self.run(call, |raw| {
            raw.byte(byte).fetch_xor(flip, Ordering::Relaxed);
        });
        self.restore();
    }
}

/// The distance between the bytes that are tried; see `corrupt_every_byte.rs`.
const STRIDE: usize = if cfg!(windows) { 61 } else { 1 };

/// Tries every byte and value, with the bytes divided among the cores. `appointment` gives the wake time of the
/// waiters.
fn every_byte(appointment: fn() -> u64, often: &[Call]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for core in 0..cores {
            scope.spawn(move || {
                let mut fixture = Fixture::new();
                for byte in fixture.bytes().into_iter().skip(core).step_by(cores * STRIDE) {
                    // Set it again for each byte, because time goes on.
                    fixture.set_wake_time(appointment());
                    for call in often {
                        (1..=255).for_each(|flip| fixture.try_one(*call, byte, flip));
                    }
                    for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                        fixture.try_one(Call::Snapshot, byte, flip);
                        fixture.try_one(Call::SetPolicy, byte, flip);
                    }
                }
            });
        }
    });
}

#[test]
fn p3_every_call_ends_with_any_byte_of_a_queue_in_use_changed() {
    let _watchdog = Watchdog::new("the scribbled queue", Duration::from_secs(600));
    every_byte(|| now() + 900_000_000, &OFTEN);
}

#[test]
fn p3_every_call_ends_with_any_byte_of_a_queue_of_late_waiters_changed() {
    let _watchdog = Watchdog::new("the scribbled queue of the late", Duration::from_secs(600));
    every_byte(|| now() - 900_000_000, &[Call::TryAcquire, Call::Look, Call::Leave]);
}

/// A value that a word of the queue might have, or nonsense.
fn garbage(random: &mut Random) -> u64 {
    match random.index(4) {
        0 => random.next() >> random.index(64),
        1 => now().wrapping_add(random.next() % 2_000_000_000).wrapping_sub(500_000_000),
        2 => [0, 1, 2, 3, u64::MAX, 1 << 63][random.index(6)],
        _ => random.next() % 1100,
    }
}

fn fill(raw: &Raw, words: Range<usize>, random: &mut Random) {
    words.for_each(|word| raw.word(word).store(garbage(random), Ordering::Relaxed));
}

#[test]
fn p3_every_call_ends_with_sampled_damage_in_the_queue() {
    let _watchdog = Watchdog::new("the sampled queue", Duration::from_secs(600));
    let mut random = Random::seeded("the sampled queue");
    let mut fixture = Fixture::new();
    for round in 0..4000 / STRIDE {
        if round % 100 == 0 {
            fixture.set_wake_time(now() + 900_000_000);
        }
        let call = OFTEN[round % OFTEN.len()];
        let spots: Vec<(usize, u64)> = (0..1 + random.index(40))
            .map(|spot| match spot % 3 {
                0 => {
                    (layout::PROGRESS + random.index(layout::WORDS - layout::PROGRESS), garbage(&mut random))
                }
                1 => (layout::PLACES + random.index(WAITERS / 64), random.next() & random.next()),
                _ => (layout::ENTRY_TABLE + random.index(64 * 16), garbage(&mut random)),
            })
            .collect();
        fixture.trying = (call, spots[0].0 * 8, 0);
        fixture.run(call, |raw| {
            spots.iter().for_each(|(word, value)| raw.word(*word).store(*value, Ordering::Relaxed));
        });
        fixture.restore();
    }
}

/// Gets a permit by waiting in a queue without living waiters; afterwards the queue is empty.
fn gets_through(limiter: &Limiter, raw: &Raw, what: &str) -> Duration {
    let started = Instant::now();
    let grant = loop {
        match limiter.acquire(&Request::new().timeout(WAIT_TIMEOUT)) {
            Ok(grant) => break grant,
            Err(AcquireError::Refused(_)) if started.elapsed() < ENDS => {}
            Err(error) => panic!("{what}: {error}"),
        }
    };
    let took = started.elapsed();
    grant.release().unwrap();
    assert!(
        util::eventually(|| {
            // Acquire one more than the permits, so that exited processes are reclaimed.
            let _all: Vec<_> = (0..3).map(|_| limiter.try_acquire(&Request::new())).collect();
            taken(raw).is_empty() && raw.word(layout::WAITING).load(Ordering::Relaxed) == 0
        }),
        "{what}: phantoms stay in the queue"
    );
    took
}

#[test]
fn p3_a_queue_of_phantoms_delays_no_call_for_ever_and_is_cleared() {
    let _watchdog = Watchdog::new("phantoms", Duration::from_secs(600));
    let mut random = Random::seeded("phantoms");
    let mut worst = Duration::ZERO;
    for round in 0..16 {
        let (_directory, limiter, raw) = open(Duration::from_millis(10));
        let first = [layout::PROGRESS, layout::PLACES, layout::ENTRY_TABLE][round % 3];
        fill(&raw, first..layout::ENTRY_TABLE + WAITERS * layout::ENTRY_STRIDE, &mut random);
        let places = [u64::MAX, 1, 0xff00][round % 3];
        (0..WAITERS / 64).for_each(|i| raw.word(layout::PLACES + i).store(places, Ordering::Relaxed));
        for word in (0..WAITERS).map(layout::entry_base) {
            // The entry of an owner that may be alive stays until its process is found to have exited.
            raw.word(word).store(random.next() | 1 << 63, Ordering::Relaxed);
        }
        let waiting = [garbage(&mut random), 0, u64::MAX][round / 3 % 3];
        raw.word(layout::WAITING).store(waiting, Ordering::Relaxed);
        worst = worst.max(gets_through(limiter, &raw, &format!("round {round}")));
    }
    println!("a queue of phantoms held a call up for {worst:.2?} at most");
}

#[test]
fn p3_a_queue_full_of_phantoms_soon_has_room() {
    let _watchdog = Watchdog::new("a full queue", Duration::from_secs(600));
    let mut random = Random::seeded("a full queue");
    for waiting in [0, 1, u64::MAX] {
        let (_directory, limiter, raw) = open(Duration::from_millis(10));
        let _held: Vec<_> = (0..2).map(|_| limiter.try_acquire(&Request::new()).unwrap()).collect();
        fill(&raw, layout::PROGRESS..layout::ENTRY_TABLE + WAITERS * layout::ENTRY_STRIDE, &mut random);
        (0..WAITERS / 64).for_each(|i| raw.word(layout::PLACES + i).store(u64::MAX, Ordering::Relaxed));
        // A waiter that has looked recently does not lose its place to a newcomer.
        for base in (0..WAITERS).map(layout::entry_base) {
            raw.word(base + WAKE_AT).store(now(), Ordering::Relaxed);
        }
        raw.word(layout::WAITING).store(waiting, Ordering::Relaxed);
        let request = Request::new().timeout(WAIT_TIMEOUT);
        let awake = Cell::new(false);
        assert!(
            util::eventually(|| poll(&mut queued(limiter, &request, &awake)).is_pending()),
            "count {waiting:#x}: no call can ever wait again"
        );
    }
}

#[test]
fn p3_a_wrong_count_of_waiters_in_an_empty_queue_is_corrected() {
    for count in [1, 1 << 16, 1 << 32, u64::MAX, 0xffff] {
        let (_directory, limiter, raw) = open(Duration::ZERO);
        raw.word(layout::WAITING).store(count, Ordering::Relaxed);
        for _ in 0..2 {
            limiter.try_acquire(&Request::new()).expect("no waiter is ahead").release().unwrap();
        }
        assert_eq!(raw.word(layout::WAITING).load(Ordering::Relaxed), 0, "{count:#x}");
    }
}

#[test]
fn p3_uncounted_waiters_are_counted_again_when_they_look() {
    let (_directory, limiter, raw) = open(Duration::ZERO);
    let request = Request::new();
    let _held: Vec<_> = (0..2).map(|_| limiter.try_acquire(&request).unwrap()).collect();
    let awake = Cell::new(false);
    let mut call = queued(limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    for wrong in [0, u64::MAX, 7 << 32] {
        let right = raw.word(layout::WAITING).swap(wrong, Ordering::Relaxed);
        awake.set(true);
        assert!(poll(&mut call).is_pending());
        assert_eq!(
            raw.word(layout::WAITING).load(Ordering::Relaxed),
            right,
            "a wrong count would let all others pass it"
        );
    }
}
