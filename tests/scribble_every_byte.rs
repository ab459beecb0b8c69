//! P3: whatever bytes are in a file of full length, every call ends in bounded steps with a value or a typed error.
//!
//! What is exhaustive, exactly:
//! - every byte of the first 8 KiB × all 255 other values × try_acquire, acquire (with a timeout), release, cancel, drop
//!   of a grant, snapshot, policy and set_policy, each on the handle of an attached process, each as the first call
//!   after the byte was changed, the file being restored between calls (snapshot: nine values for the policy, none for
//!   the journal, see below);
//! - the same for the attached process's own slot;
//! - every byte of header, control, core and origin (the first 256) × all 255 other values × open; without the header
//!   (which an attached process never reads again) also × drop of a handle. The rules' and the policy's bytes: open
//!   with each bit changed, and all; the other bytes up to 8 KiB: two values, for open and drop of a handle;
//! - every byte of control and journal × all 255 other values × try_acquire (snapshot: three values), on an image that
//!   a dead holder left in the middle of its longest transaction (version odd, journal full of entries).
//!
//! The queue is in `scribble_queue.rs`. Sampled with a printed seed: the slots of others, several bytes at a time, files of nothing but noise, and a process
//! that scribbles while threads work. A hang ends the program through the watchdog; a panic names byte and value.

mod common;

use common::raw::{Raw, lock_word_of};
use common::{NAME, Random, Watchdog, children, segment_path};
use shmlimit::internals::{Bounds, layout};
use shmlimit::{Algorithm, Limiter, Nanos, Policy, PolicyDraft, Request, RuleDraft};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;

const FIRST: usize = 8192;
/// Each bit changed, and all.
const BITS: [u8; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 255];
const TIMEOUT: Duration = Duration::from_micros(200);

/// The lock is given up soon; the place is looked at only when a call must.
const BOUNDS: Bounds = Bounds {
    lock: Duration::from_micros(200),
    reap: Duration::from_secs(3600),
    place: Duration::from_secs(3600),
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    TryAcquire,
    Acquire,
    Release,
    Cancel,
    DropGrant,
    Snapshot,
    Policy,
    SetPolicy,
    Open,
    DropHandle,
}

use Call::{Acquire, Cancel, DropGrant, DropHandle, Open, Release, SetPolicy, Snapshot, TryAcquire};

const ATTACHED: [Call; 8] =
    [TryAcquire, Acquire, Release, Cancel, DropGrant, Snapshot, Call::Policy, SetPolicy];

/// An attached limiter, a second mapping of it, and the image to go back to.
struct Fixture {
    directory: TempDir,
    limiter: Limiter,
    raw: Raw,
    image: Vec<u64>,
    slot: usize,
    policies: [Policy; 2],
    /// What is being tried, for the message of a panic.
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

/// Rules of both algorithms, with fractions of a nanosecond, a reserve, and room for every call of this test.
fn rules(count: usize) -> Policy {
    let rule = |i: usize| RuleDraft {
        burst: Some(1_000_000 + i as u64),
        reserve: 3,
        ..RuleDraft::new(
            [Algorithm::TokenBucket, Algorithm::Gcra][i % 2],
            7 + i as u64,
            Nanos::from_secs(3600),
        )
    };
    let rules: [RuleDraft<'_>; 8] = std::array::from_fn(rule);
    let permits = 40 + count as u64;
    let draft = PolicyDraft { concurrency: Some(permits), rules: &rules[..count], ..PolicyDraft::default() };
    Policy::new(&draft).unwrap()
}

fn open(directory: &Path) -> Result<Limiter, shmlimit::Error> {
    Limiter::builder(NAME).directory(directory).bounds(BOUNDS).open_existing()
}

impl Fixture {
    fn new() -> Fixture {
        let directory = common::directory();
        let policies = [rules(2), rules(8)];
        let limiter = Limiter::builder(NAME)
            .directory(directory.path())
            .policy(policies[0])
            .bounds(BOUNDS)
            .open()
            .unwrap();
        let raw = Raw::map(&segment_path(directory.path()));
        let owned = |slot: &usize| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 != 0;
        let slot = (0..layout::SLOTS).find(owned).unwrap();
        let image = raw.image();
        Fixture { directory, limiter, raw, image, slot, policies, trying: (TryAcquire, 0, 0) }
    }

    /// The bytes that belong to the attached process.
    fn own_slot(&self) -> Range<usize> {
        let start = layout::slot_base(self.slot) * 8;
        start..start + layout::SLOT_WORDS * 8
    }

    /// Leaves the segment as a holder does that was killed just before it committed a change of the policy.
    fn die_in_the_middle(&mut self) {
        self.limiter.set_policy(&self.policies[1]).unwrap();
        let version = self.raw.word(layout::VERSION);
        version.store(version.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        assert!(self.raw.word(layout::JOURNAL_LEN).load(Ordering::Relaxed) > 60);
        self.image = self.raw.image();
    }

    /// One call on the image with one byte changed.
    fn try_one(&mut self, call: Call, byte: usize, flip: u8) {
        self.trying = (call, byte, flip);
        let scribble = |raw: &Raw| {
            raw.byte(byte).fetch_xor(flip, Ordering::Relaxed);
        };
        self.run(call, scribble);
        self.restore_quickly();
    }

    /// One call after `scribble`. The answer does not matter, only that there is one.
    fn run(&self, call: Call, scribble: impl Fn(&Raw)) {
        let request = Request::new().timeout(TIMEOUT);
        if matches!(call, Release | Cancel | DropGrant) {
            let Ok(grant) = self.limiter.try_acquire(&request) else { return };
            scribble(&self.raw);
            match call {
                Release => drop(grant.release()),
                Cancel => drop(grant.cancel()),
                _ => drop(grant),
            }
            return;
        }
        if call == DropHandle {
            let handle = open(self.directory.path()).unwrap();
            scribble(&self.raw);
            return drop(handle);
        }
        scribble(&self.raw);
        match call {
            TryAcquire => self.limiter.try_acquire(&request).map_or((), std::mem::forget),
            Acquire => self.limiter.acquire(&request).map_or((), std::mem::forget),
            Snapshot => drop(self.limiter.snapshot()),
            Call::Policy => drop(self.limiter.policy()),
            SetPolicy => drop(self.limiter.set_policy(&self.policies[1])),
            _ => drop(open(self.directory.path())),
        }
    }

    /// Restores what calls of this process change. A limiter that followed a retired segment is made anew.
    fn restore_quickly(&mut self) {
        if self.raw.word(layout::RETIRED).load(Ordering::Relaxed) != 0 {
            let dead_in_the_middle = self.image[layout::VERSION] & 1 != 0;
            *self = Fixture::new();
            if dead_in_the_middle {
                self.die_in_the_middle();
            }
            return;
        }
        self.raw.restore(&self.image, 0..FIRST / 8);
        let own = self.own_slot();
        self.raw.restore(&self.image, own.start / 8..own.end / 8);
    }

    fn restore_all(&self) {
        self.raw.restore(&self.image, 0..layout::WORDS);
    }

    fn still_works(&self) {
        self.restore_all();
        self.limiter.try_acquire(&Request::new()).expect("the restored limiter grants").release().unwrap();
        assert_eq!(self.limiter.snapshot().unwrap().in_flight, 0);
        self.restore_all();
    }
}

/// Runs `work` on all cores, each with a limiter and a share of the bytes of its own.
fn on_all_cores(bytes: Range<usize>, work: impl Fn(&mut Fixture, usize) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for core in 0..cores {
            let (work, bytes) = (&work, bytes.clone());
            scope.spawn(move || {
                let mut fixture = Fixture::new();
                for byte in bytes.skip(core).step_by(cores) {
                    work(&mut fixture, byte);
                    fixture.restore_all();
                }
                fixture.still_works();
            });
        }
    });
}

#[test]
fn p3_every_byte_and_value_of_the_first_pages_for_every_call_of_an_attached_process() {
    let _watchdog = Watchdog::new("the exhaustive scribble", Duration::from_secs(600));
    on_all_cores(0..FIRST, |fixture, byte| {
        for call in ATTACHED {
            match (call, byte / 8) {
                // It reads the journal only after a death: that is the next but one test.
                (Snapshot, layout::JOURNAL..) => {}
                (Snapshot, layout::POLICY..) => {
                    BITS.iter().for_each(|flip| fixture.try_one(call, byte, *flip))
                }
                _ => (1..=255).for_each(|flip| fixture.try_one(call, byte, flip)),
            }
        }
    });
    let mut fixture = Fixture::new();
    for byte in fixture.own_slot() {
        for call in ATTACHED {
            (1..=255).for_each(|flip| fixture.try_one(call, byte, flip));
        }
    }
    fixture.still_works();
}

#[test]
fn p3_opening_and_leaving_with_any_byte_changed() {
    let _watchdog = Watchdog::new("opening scribbled files", Duration::from_secs(600));
    const CONTROL: usize = layout::LOCK * 8;
    const RULES: usize = layout::RULES * 8;
    const POLICY_END: usize = (layout::POLICY_CHECKSUM + 1) * 8;
    on_all_cores(0..FIRST, |fixture, byte| {
        let all: Vec<u8> = (1..=255).collect();
        let (open, leave): (&[u8], &[u8]) = match byte {
            0..CONTROL => (&all, &[255]),
            CONTROL..RULES => (&all, &all),
            RULES..POLICY_END => (&BITS, &[1, 255]),
            _ => (&[1, 255], &[1, 255]),
        };
        open.iter().for_each(|flip| fixture.try_one(Open, byte, *flip));
        leave.iter().for_each(|flip| fixture.try_one(DropHandle, byte, *flip));
    });
}

#[test]
fn p3_every_byte_and_value_of_a_dead_holders_journal() {
    let _watchdog = Watchdog::new("the scribbled journal", Duration::from_secs(600));
    let control = layout::LOCK * 8..layout::CORE * 8;
    let journal = layout::JOURNAL * 8..layout::SLOT_TABLE * 8;
    for bytes in [control, journal] {
        on_all_cores(bytes, |fixture, byte| {
            if fixture.image[layout::VERSION] & 1 == 0 {
                fixture.die_in_the_middle();
            }
            (1..=255).for_each(|flip| fixture.try_one(TryAcquire, byte, flip));
            [1, 128, 255].into_iter().for_each(|flip| fixture.try_one(Snapshot, byte, flip));
        });
    }
}

#[test]
fn p3_damage_anywhere_sampled() {
    let _watchdog = Watchdog::new("sampled scribbles", Duration::from_secs(600));
    let mut random = Random::seeded("sampled scribbles");
    let mut fixture = Fixture::new();
    for round in 0..6000 {
        let call = [
            TryAcquire,
            Acquire,
            Release,
            Cancel,
            DropGrant,
            Snapshot,
            Call::Policy,
            SetPolicy,
            Open,
            DropHandle,
        ][random.below(10)];
        let spots: Vec<(usize, u64)> = (0..1 + random.below(6))
            .map(|spot| {
                // Every other spot among the words that decisions read.
                let word = random.below(if spot % 2 == 0 { layout::JOURNAL } else { layout::WORDS });
                (word, random.next() >> random.below(64))
            })
            .collect();
        fixture.trying = (call, spots[0].0 * 8, 0);
        // The header would only be refused; the lock bytes would only cost their time.
        let matters = |word: usize| word > layout::LOCK || round % 64 == 0;
        fixture.run(call, |raw| {
            for (word, value) in spots.iter().filter(|(word, _)| matters(*word)) {
                raw.word(*word).store(*value, Ordering::Relaxed);
            }
        });
        fixture.restore_quickly();
        fixture.restore_all();
    }
    fixture.still_works();
}

#[test]
fn p3_a_file_of_noise_behind_a_good_header() {
    let _watchdog = Watchdog::new("noise", Duration::from_secs(600));
    let mut random = Random::seeded("noise");
    for round in 0..150 {
        let mut fixture = Fixture::new();
        let first = if round % 2 == 0 { layout::LOCK } else { layout::JOURNAL };
        let noise: Vec<u64> = (first..layout::WORDS).map(|_| random.next() >> random.below(64)).collect();
        for call in [TryAcquire, Acquire, Snapshot, SetPolicy, Open, Release, DropHandle] {
            fixture.trying = (call, first * 8, 0);
            fixture.run(call, |raw| raw.restore_from(first, &noise));
            fixture.restore_quickly();
            fixture.restore_all();
        }
    }
}

#[test]
fn p3_a_lock_word_that_names_a_living_process_is_busy_and_one_that_names_nobody_is_taken() {
    let fixture = Fixture::new();
    let lock =
        |slot: usize| fixture.raw.word(layout::LOCK).store(lock_word_of(slot).into(), Ordering::Relaxed);
    lock(fixture.slot);
    let error = fixture.limiter.try_acquire(&Request::new()).unwrap_err().to_string();
    assert!(error.contains("busy") && error.contains(&std::process::id().to_string()), "{error}");
    for nobody in [(fixture.slot + 1) % layout::SLOTS, layout::SLOTS, 2000] {
        fixture.restore_all();
        lock(nobody);
        fixture.limiter.try_acquire(&Request::new()).expect("a dead holder is robbed").release().unwrap();
    }
}

#[test]
fn p3_a_process_that_scribbles_while_threads_work() {
    let _watchdog = Watchdog::new("the scribbler", Duration::from_secs(600));
    let mut random = Random::seeded("the scribbler");
    let fixture = Fixture::new();
    let path = segment_path(fixture.directory.path());
    let scribbler = children::forked(|| {
        loop {
            // Anew now and then: a scribbled mark of retirement gives the limiter another file.
            let sized = std::fs::metadata(&path).is_ok_and(|file| file.len() == layout::SIZE as u64);
            let Some(raw) = sized.then(|| Raw::map(&path)) else { continue };
            let sound = raw.image();
            for write in 0..2000 {
                // Made whole now and then: what is damaged for good is soon refused at the door.
                if write % 8 == 0 {
                    raw.restore(&sound, layout::CORE..layout::JOURNAL);
                }
                // Past the header: a file with a foreign header is merely refused.
                let word = layout::LOCK + random.below(layout::WORDS - layout::LOCK);
                let word = if random.below(2) == 0 { word % layout::JOURNAL } else { word };
                let word = word.max(layout::LOCK);
                raw.byte(word * 8 + random.below(8)).store(random.next() as u8, Ordering::Relaxed);
                (0..random.below(2000)).for_each(|_| std::hint::spin_loop());
            }
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let handle = fixture.limiter.clone();
                let request = Request::new().timeout(TIMEOUT);
                for _ in 0..1000 {
                    let _ = handle.try_acquire(&request).map(|grant| grant.cancel());
                    let _ = handle.acquire(&request).map(|grant| grant.release());
                    let _ = handle.snapshot();
                    let _ = handle.set_policy(&fixture.policies[1]);
                    drop(open(fixture.directory.path()));
                }
            });
        }
    });
    children::kill_now(scribbler);
}
