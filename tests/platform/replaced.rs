//! Segments that are replaced again and again while handles are open: there is always a limiter to find, no resource of
//! the replaced segments is kept, and later calls cost what the first ones did.

use crate::util::respawn::in_own_process;
use crate::util::{NAME, builder, counted, directory, drain, segment_path, take};
use shmlimit::{AcquireError, Error, Limiter, Request};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LIMIT: usize = 10;

/// For tests that keep all processors busy. Another such test could starve their calls.
static ALONE: Mutex<()> = Mutex::new(());

fn delete(directory: &Path) {
    std::fs::remove_file(segment_path(directory)).unwrap();
}

#[test]
fn a_limiter_that_is_replaced_repeatedly_always_exists() {
    let _alone = ALONE.lock();
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    drop(builder(home.path()).policy(policy).create().unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    match builder(home.path()).open_existing() {
                        Ok(_) | Err(Error::Busy { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    assert_eq!(Limiter::list(Some(home.path())).unwrap().names, [NAME]);
                }
            });
        }
        for _ in 0..200 {
            match builder(home.path()).policy(policy).replace() {
                Ok(_) | Err(Error::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Kilobytes of memory that this process uses for segments, including replaced ones.
fn resident() -> u64 {
    let mut ours = false;
    let mut sum = 0;
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(range), Some(_)) if range.contains('-') => {
                ours = line.contains("/.tmp") || line.contains(".shm")
            }
            (Some("Rss:"), Some(size)) if ours => sum += size.parse::<u64>().unwrap(),
            _ => {}
        }
    }
    sum
}

#[test]
fn a_handle_frees_the_memory_of_replaced_segments() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let limiter = builder(home.path()).policy(policy).create().unwrap();
    let replace = |times: usize| {
        for _ in 0..times {
            drop(builder(home.path()).policy(policy).replace().unwrap());
            assert!(take(&limiter), "each is full");
        }
        resident()
    };
    let few = replace(10);
    let many = replace(290);
    assert!(many < few + 4096, "{few} kB after 10, {many} kB after 300");
}

/// How many mappings and descriptors of this process keep a deleted file of that directory from being freed.
fn kept_files(directory: &Path) -> usize {
    let ours = |text: &str| text.contains(directory.to_str().unwrap()) && text.ends_with(" (deleted)");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let links = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    maps.lines().filter(|line| ours(line)).count()
        + links.filter(|link| link.to_str().is_some_and(ours)).count()
}

/// Whether a call may fail with this error while its limiter is replaced all the time.
fn is_expected(error: &AcquireError) -> bool {
    match error {
        AcquireError::Failed(error) => matches!(**error, Error::Replaced { .. }),
        AcquireError::Refused(_) => true,
    }
}

#[test]
fn replaced_and_deleted_segments_are_freed_while_threads_use_the_handle() {
    let _alone = ALONE.lock();
    in_own_process!();
    const TIMES: usize = 300;
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let limiter = builder(home.path()).policy(policy).create().unwrap();
    let first = limiter.try_acquire(&Request::new()).unwrap();
    let (done, granted) = (AtomicBool::new(false), AtomicUsize::new(1));
    let fresh = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (limiter, done, granted) = (limiter.clone(), &done, &granted);
            scope.spawn(move || {
                let mut held = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    match limiter.try_acquire(&Request::new()) {
                        Ok(grant) => {
                            granted.fetch_add(1, Ordering::Relaxed);
                            held.push(grant.into_owned());
                        }
                        Err(error) => assert!(is_expected(&error), "{error}"),
                    }
                    // Some grants are released long after their segment was replaced.
                    if held.len() > 40 {
                        held.drain(..20 + number).for_each(|grant| grant.release().unwrap());
                    }
                    // Between a deletion and the creation of the successor, a snapshot may fail.
                    if let Ok(seen) = limiter.snapshot() {
                        assert_eq!(seen.policy, policy);
                    }
                }
            });
        }
        for time in 0..TIMES {
            if time % 10 == 9 {
                delete(home.path());
            } else if let Err(error) = builder(home.path()).policy(policy).replace() {
                assert!(matches!(error, Error::Busy { .. } | Error::UnknownLimiter { .. }), "{error}");
            } else {
                fresh.fetch_add(1, Ordering::Relaxed);
            }
            // The handle moves to the successor before the next replacement.
            match limiter.try_acquire(&Request::new()) {
                Ok(_) => drop(granted.fetch_add(1, Ordering::Relaxed)),
                Err(error) => assert!(is_expected(&error), "{error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let (granted, fresh) = (granted.into_inner(), fresh.into_inner());
    assert!(granted <= LIMIT * fresh, "{granted} grants of {fresh} limiters");
    assert!(fresh > TIMES / 2 && granted > fresh, "{granted} grants of {fresh} limiters");
    first.release().unwrap();
    drop(builder(home.path()).policy(policy).replace().unwrap());
    assert_eq!(drain(&limiter), LIMIT);
    let kept = kept_files(home.path());
    assert!(kept <= 12, "{kept} mappings and descriptors of deleted segments after {TIMES} of them");
}

/// The shortest time of a thousand calls. There are enough tries that most of them are undisturbed.
fn cost_of_calls(limiter: &Limiter) -> Duration {
    let thousand = || {
        let began = Instant::now();
        (0..1000).for_each(|_| drop(std::hint::black_box(limiter.acquire_at_once(&Request::new()))));
        began.elapsed()
    };
    (0..200).map(|_| thousand()).min().unwrap()
}

/// On Linux, where a handle closes the files of former segments. On Windows it keeps them: under Wine, one of the 500
/// replacements failed with "Too many open files".
///
/// A search through all former segments would take about twenty times as long after 500 replacements, and a hundred
/// times as long after 2000. The bound is far from both ends.
#[test]
fn calls_after_hundreds_of_replacements_cost_the_same_as_the_first() {
    let _alone = ALONE.lock();
    let home = directory();
    let policy = counted(1_000_000, None);
    let limiter = builder(home.path()).policy(policy).create().unwrap();
    let replace = |times: usize| {
        for _ in 0..times {
            drop(builder(home.path()).policy(policy).replace().unwrap());
            assert!(take(&limiter), "the handle has gone over");
        }
        cost_of_calls(&limiter)
    };
    let few = replace(1);
    let many = replace(500);
    assert!(many < 4 * few, "a thousand calls: {few:?} after 1 replacement, {many:?} after 501");
}
