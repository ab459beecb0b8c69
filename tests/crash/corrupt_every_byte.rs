//! P3: with any bytes in a file of full length, every call ends in bounded steps with a value or a typed error.
//!
//! These cases are exhaustive:
//! - Every byte before the journal (header, control, core, origin, rules, effective limits, policy, health state) ×
//!   all 255 other values × try_acquire, acquire (with a timeout), release, cancel, drop of a grant, record (429 with
//!   headers; success), force, snapshot, policy and set_policy. Each call uses the handle of an attached process, is
//!   the first call after the change, and is followed by a restoration of the file. Exception: snapshot, with nine
//!   values from the effective limits on.
//! - The same for a limiter with a breaker whose rate rises, with a pace and with a log: all values × try_acquire,
//!   record, force and policy; nine values for the other calls.
//! - Two values of every byte of the journal, which is read only after a death.
//! - The attached process's own slot, like the bytes before the journal.
//! - Every byte of header, control, core and origin (the first 256) × all 255 other values × open. Except for the
//!   header, which an attached process never reads again, also × drop of a handle.
//! - The bytes of the rules and the policy × open, with each bit changed and with all bits changed. The other bytes
//!   before the slots: two values, for open and for drop of a handle.
//! - Every byte of control and journal × all 255 other values × try_acquire (snapshot: three values), on an image
//!   that a killed lock holder left in the middle of its longest transaction (version odd, journal full of entries).
//!
//! The queue is in `corrupt_queue.rs`. These cases are sampled with a printed seed: rings, logs, the slots of other
//! processes, several bytes at a time, files full of noise, and a process that writes garbage while threads work. A
//! hang ends the program through the watchdog; a panic names the byte and the value.

use crate::corruption::*;
use crate::util;
use crate::util::children::{self, Running};
use crate::util::raw::{Raw, lock_word_of};
use crate::util::{Random, Watchdog, segment_path};
use shmlimit::{BreakerCommand, Outcome, Request};
use shmlimit_segment::layout;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The distance between the bytes that are tried. Windows tries a sample: under Wine each look at the file takes
/// twenty times as long, and the tested code is the same there.
const STRIDE: usize = if cfg!(windows) { 61 } else { 1 };

/// Runs `work` on all cores. Each core has its own limiter and a share of the bytes.
fn on_all_cores(bytes: Range<usize>, work: impl Fn(&mut Fixture, usize) + Sync) {
    on_all_cores_with(false, bytes, work);
}

fn on_all_cores_with(watched: bool, bytes: Range<usize>, work: impl Fn(&mut Fixture, usize) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for core in 0..cores {
            let (work, bytes) = (&work, bytes.clone());
            scope.spawn(move || {
                let mut fixture = Fixture::with(watched);
                for byte in bytes.skip(core).step_by(cores * STRIDE) {
                    work(&mut fixture, byte);
                    fixture.restore_all();
                    if cfg!(windows) {
                        // While the limiter's locks are held, Wine keeps files that were opened and closed again.
                        fixture.still_works();
                        fixture = Fixture::with(watched);
                    }
                }
                fixture.still_works();
            });
        }
    });
}

#[test]
fn p3_every_call_of_an_attached_process_ends_with_any_byte_of_the_first_pages_changed() {
    let _watchdog = Watchdog::new("the exhaustive scribble", Duration::from_secs(600));
    let every_call = |fixture: &mut Fixture, byte: usize| {
        for call in ATTACHED {
            match (call, byte / 8) {
                // The journal is read only after a death;
                // `p3_recovery_ends_with_any_byte_of_a_dead_holders_journal_changed` covers that.
                (Snapshot, layout::JOURNAL..) => {}
                (_, layout::JOURNAL..) => {
                    [1, 255].into_iter().for_each(|flip| fixture.try_one(call, byte, flip))
                }
                (Snapshot, layout::EFFECTIVE..) => {
                    BITS.iter().for_each(|flip| fixture.try_one(call, byte, *flip))
                }
                // The watched limiter gets every value only for try_acquire, which leads to all other calls, and for
                // the calls that differ most from those of a plain limiter.
                (Acquire | Release | Cancel | DropGrant | SetPolicy, _) if fixture.watched => {
                    BITS.iter().for_each(|flip| fixture.try_one(call, byte, *flip))
                }
                _ => (1..=255).for_each(|flip| fixture.try_one(call, byte, flip)),
            }
        }
    };
    on_all_cores(0..FIRST, every_call);
    on_all_cores_with(true, layout::LOCK * 8..STATE, every_call);
    let mut fixture = Fixture::new();
    for byte in fixture.own_slot().step_by(STRIDE) {
        for call in ATTACHED {
            (1..=255).for_each(|flip| fixture.try_one(call, byte, flip));
        }
    }
    fixture.still_works();
}

#[test]
fn p3_opening_and_leaving_end_with_any_byte_changed() {
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
fn p3_recovery_ends_with_any_byte_of_a_dead_holders_journal_changed() {
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
fn p3_every_call_ends_with_sampled_damage_anywhere() {
    let _watchdog = Watchdog::new("sampled scribbles", Duration::from_secs(600));
    let mut random = Random::seeded("sampled scribbles");
    let mut fixtures = [false, true].map(Fixture::with);
    for round in 0..12_000 / STRIDE {
        let fixture = &mut fixtures[round % 2];
        let call = [Open, DropHandle].into_iter().chain(ATTACHED).nth(random.index(13)).unwrap();
        let spots: Vec<(usize, u64)> = (0..1 + random.index(6))
            .map(|spot| {
                // Every other spot is among the words that decisions read.
                let word = random.index(if spot % 2 == 0 { layout::JOURNAL } else { fixture.image.len() });
                (word, random.next() >> random.index(64))
            })
            .collect();
        fixture.trying = (call, spots[0].0 * 8, 0);
        // A damaged header would only be refused, and damaged lock bytes would only cost the time of a bound.
        let matters = |word: usize| word > layout::LOCK || round % 64 == 0;
        fixture.run(call, |raw| {
            for (word, value) in spots.iter().filter(|(word, _)| matters(*word)) {
                raw.word(*word).store(*value, Ordering::Relaxed);
            }
        });
        fixture.restore_quickly();
        fixture.restore_all();
    }
    fixtures.iter().for_each(Fixture::still_works);
}

#[test]
fn p3_every_call_ends_on_a_file_of_noise_behind_a_good_header() {
    let _watchdog = Watchdog::new("noise", Duration::from_secs(600));
    let mut random = Random::seeded("noise");
    for round in 0..if cfg!(windows) { 15 } else { 150 } {
        let mut fixture = Fixture::with(round % 4 < 2);
        let first = if round % 2 == 0 { layout::LOCK } else { layout::JOURNAL };
        let noise: Vec<u64> =
            (first..fixture.image.len()).map(|_| random.next() >> random.index(64)).collect();
        for call in [
            TryAcquire,
            Acquire,
            Snapshot,
            RecordOther,
            Call::Force,
            SetPolicy,
            Open,
            Release,
            Record,
            DropHandle,
        ] {
            fixture.trying = (call, first * 8, 0);
            fixture.run(call, |raw| raw.restore_from(first, &noise));
            fixture.restore_quickly();
            fixture.restore_all();
        }
    }
}

#[test]
fn p3_a_lock_word_with_a_live_owner_is_busy_and_one_without_is_taken_over() {
    let fixture = Fixture::new();
    let lock =
        |slot: usize| fixture.raw.word(layout::LOCK).store(lock_word_of(slot).into(), Ordering::Relaxed);
    lock(fixture.slot);
    let error = fixture.limiter.try_acquire(&Request::new()).unwrap_err().to_string();
    assert!(error.contains("busy") && error.contains("another thread of this process"), "{error}");
    assert!(!error.contains("kill"), "the error does not suggest to kill this process: {error}");
    for nobody in [(fixture.slot + 1) % layout::SLOTS, layout::SLOTS, 2000] {
        fixture.restore_all();
        lock(nobody);
        fixture
            .limiter
            .try_acquire(&Request::new())
            .expect("the lock of an exited holder is taken over")
            .release()
            .unwrap();
    }
}

/// Tries each bit of the whole 64-bit lock word, with and without an attached owner, and noise.
#[test]
fn p3_every_call_ends_with_any_lock_word() {
    let _watchdog = Watchdog::new("odd lock words", Duration::from_secs(600));
    let mut random = Random::seeded("odd lock words");
    let mut fixtures = [false, true].map(Fixture::with);
    let own = u64::from(lock_word_of(fixtures[0].slot));
    let bits = (0..64).map(|bit| 1_u64 << bit);
    let named = bits.clone().map(|bit| own ^ bit);
    let noise: Vec<u64> = (0..128).map(|_| random.next() >> random.index(64)).collect();
    let ones = [u64::MAX, u64::MAX << 32, 0x7ff0_0000, 0xfff0_0000, 0xfffff, u64::from(u32::MAX)];
    for (round, word) in bits.chain(named).chain(noise).chain(ones).enumerate() {
        let fixture = &mut fixtures[round % 2];
        for call in [Open, DropHandle].into_iter().chain(ATTACHED) {
            fixture.trying = (call, layout::LOCK * 8, 0);
            fixture.run(call, |raw| raw.word(layout::LOCK).store(word, Ordering::Relaxed));
            fixture.restore_quickly();
        }
        if round % 8 == 0 {
            fixture.raw.word(layout::LOCK).store(word, Ordering::Relaxed);
            drop(shmlimit::Limiter::builder(util::NAME).directory(fixture.directory.path()).inspect());
            fixture.raw.word(layout::LOCK).store(word, Ordering::Relaxed);
            drop(fixture.limiter.reclaim_dead());
        }
        fixture.restore_all();
    }
    fixtures.iter().for_each(Fixture::still_works);
}

#[test]
fn p3_every_call_ends_while_a_process_writes_garbage() {
    let _watchdog = Watchdog::new("the scribbler", Duration::from_secs(600));
    let fixture = Fixture::new();
    let mut scribbler = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_scribbles"),
        fixture.directory.path(),
    ));
    assert_eq!(scribbler.receive(), "scribbling");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let handle = fixture.limiter.clone();
                let request = Request::new().timeout(TIMEOUT);
                for _ in 0..1000 / STRIDE {
                    let _ = handle.try_acquire(&request).map(|grant| grant.cancel());
                    let _ = handle.acquire(&request).map(|grant| grant.release());
                    let _ = handle.snapshot();
                    let _ = handle.record(&Outcome::http(503, &HEADERS));
                    let _ = handle.force(BreakerCommand::ClearGate);
                    let _ = handle.set_policy(&fixture.policies[1]);
                    drop(open(fixture.directory.path()));
                }
            });
        }
    });
    scribbler.kill();
}

#[test]
fn role_that_scribbles() {
    let Some(directory) = children::role("role_that_scribbles") else { return };
    let mut random = Random::seeded("the scribbler");
    let path = segment_path(&directory);
    children::send("scribbling");
    loop {
        // Map the file again now and then: a damaged retirement mark makes the limiter use another file.
        let sized = std::fs::metadata(&path).is_ok_and(|file| file.len() >= layout::SIZE as u64);
        let Some(raw) = sized.then(|| Raw::map(&path)) else { continue };
        let sound = raw.image();
        for write in 0..2000 {
            // Restore the words now and then: a permanently damaged file would soon only be refused on opening.
            if write % 8 == 0 {
                raw.restore(&sound, layout::CORE..layout::JOURNAL);
            }
            // Skip the header: a file with a foreign header is only refused.
            let word = layout::LOCK + random.index(layout::WORDS - layout::LOCK);
            let word = if random.index(2) == 0 { word % layout::JOURNAL } else { word };
            let word = word.max(layout::LOCK);
            raw.byte(word * 8 + random.index(8)).store(random.next() as u8, Ordering::Relaxed);
            (0..random.index(2000)).for_each(|_| std::hint::spin_loop());
        }
    }
}
