//! P3: a lock word is overwritten while two handles are at work. There is no panic, no overflow (this is a debug
//! build), and every call ends in bounded time. For single words before single calls see `corrupt_every_byte.rs`.

use crate::util::raw::{Raw, lock_word_of};
use crate::util::{NAME, Random, Watchdog, counted, directory, segment_path};
use shmlimit::{Limiter, Request};
use shmlimit_segment::{AttachOptions, layout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const WAIT_TIMEOUT: Duration = Duration::from_millis(2);
/// Far more time than a call with such a timeout needs on a busy machine, and far less than a call that waits for
/// each of 512 slots again.
const BOUNDED: Duration = Duration::from_secs(5);

/// The calls of each handle, and twice the number of newcomers. With 2000 under Wine, opening the file failed with
/// "Too many open files". `limiter/tests.rs` documents the measurements; the cause is inferred.
const ROUNDS: usize = if cfg!(windows) { 100 } else { 2000 };

fn open(directory: &Path) -> Result<Limiter, shmlimit::Error> {
    let bounds = AttachOptions {
        lock: WAIT_TIMEOUT,
        stall: WAIT_TIMEOUT,
        reclaim: Duration::ZERO,
        place: Duration::from_millis(1),
        ..AttachOptions::default()
    };
    Limiter::builder(NAME).directory(directory).bounds(bounds).open_existing()
}

/// A random word of one of the kinds that exist.
fn odd_word(random: &mut Random, living: &[usize]) -> u64 {
    const WAITERS: u64 = 1 << 31;
    let epoch = random.next() & 0xf_ffff;
    let held = |slot: usize| u64::from(lock_word_of(slot));
    match random.index(8) {
        0 => 1 << random.index(64),
        1 => held(living[random.index(living.len())]) | epoch,
        2 => held(living[random.index(living.len())]) | epoch | WAITERS,
        3 => held(random.index(layout::SLOTS)) | epoch,
        4 => held(layout::SLOTS + random.index(0x7ff - layout::SLOTS)) | epoch | random.next() & WAITERS,
        5 => WAITERS | epoch,
        6 => random.next(),
        _ => 0,
    }
}

#[test]
fn p3_calls_of_two_handles_end_in_time_while_the_lock_word_is_overwritten() {
    let _watchdog = Watchdog::new("the scribbled lock word", Duration::from_secs(600));
    let home = directory();
    drop(
        Limiter::builder(NAME).directory(home.path()).policy(counted(1_000_000, Some(64))).create().unwrap(),
    );
    let handles = [open(home.path()).unwrap(), open(home.path()).unwrap()];
    let raw = Raw::map(&segment_path(home.path()));
    let owned = |slot: &usize| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 == 1;
    let living: Vec<usize> = (0..layout::SLOTS).filter(owned).collect();
    let done = AtomicBool::new(false);
    let timed = |what: &str, call: &dyn Fn()| {
        let began = Instant::now();
        call();
        assert!(began.elapsed() < BOUNDED, "{what} took {:?}", began.elapsed());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::seeded("odd lock words");
            while !done.load(Ordering::Relaxed) {
                raw.word(layout::LOCK).store(odd_word(&mut random, &living), Ordering::Relaxed);
                (0..random.index(3000)).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut workers = Vec::new();
        for handle in &handles {
            workers.push(scope.spawn(|| {
                let request = Request::new().timeout(WAIT_TIMEOUT);
                for round in 0..ROUNDS {
                    timed("try_acquire", &|| drop(handle.try_acquire(&request).map(|grant| grant.cancel())));
                    timed("acquire", &|| drop(handle.acquire(&request).map(|grant| grant.release())));
                    timed("snapshot", &|| drop(handle.snapshot()));
                    if round % 8 == 0 {
                        timed("reclaiming", &|| drop(handle.reclaim_dead()));
                    }
                }
            }));
            // Newcomers, whose slots others may mistake for those of exited processes.
            workers.push(scope.spawn(|| {
                (0..ROUNDS / 2).for_each(|_| timed("open and close", &|| drop(open(home.path()))));
            }));
        }
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    raw.word(layout::LOCK).store(0, Ordering::Relaxed);
    open(home.path()).unwrap().snapshot().unwrap();
}
