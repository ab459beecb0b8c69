//! One segment, mapped twice in one process and used by several threads, for race detectors (`scripts/proofs/tsan`,
//! `scripts/proofs/asan`). They see one process only, so the two mappings stand for two processes.

use crate::util;
use crate::util::{counted, permits};
use shmlimit::{Builder, Request};
use shmlimit_segment::AttachOptions;
use std::cell::UnsafeCell;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A builder with the default bounds. With the bounds of the other tests, no call would take the fast path.
fn builder(directory: &Path) -> Builder {
    util::builder(directory).bounds(AttachOptions::default())
}

#[test]
fn two_mappings_and_six_threads_count_as_one_limiter() {
    const ALLOWED: usize = 400;
    let directory = util::directory();
    let first = builder(directory.path()).policy(counted(ALLOWED as u64, None)).create().unwrap();
    let second = builder(directory.path()).open_existing().unwrap();
    let granted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let handle = [&first, &second][thread % 2];
            let granted = &granted;
            scope.spawn(move || {
                while let Ok(grant) = handle.try_acquire(&Request::new()) {
                    granted.fetch_add(1, Ordering::Relaxed);
                    grant.release().unwrap();
                    if thread == 0 {
                        handle.snapshot().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), ALLOWED);
}

#[test]
fn a_permit_keeps_holders_in_two_mappings_apart() {
    let directory = util::directory();
    let handles = [(); 2].map(|()| builder(directory.path()).policy(permits(1)).open().unwrap());
    // The count uses no atomic read-modify-writes: only the permit keeps two threads from losing a count.
    let count = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (handle, count) = (&handles[thread % 2], &count);
            scope.spawn(move || {
                for _ in 0..100 {
                    let grant = handle.acquire(&Request::new()).unwrap();
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    grant.release().unwrap();
                }
            });
        }
    });
    assert_eq!(count.into_inner(), 400);
}

/// A count that only a permit protects. A race detector reports it if the permit does not order the accesses.
struct Guarded(UnsafeCell<u32>);

// SAFETY: a thread accesses it only while it holds the only permit.
unsafe impl Sync for Guarded {}

/// Four threads raise the count, through one mapping: a race detector compares addresses, and does not see that two
/// mappings are the same memory. `wait` may delay a thread until its turn, but must not order any memory access.
fn raise_by_four(wait: impl Fn(usize) + Sync, done: impl Fn() + Sync) -> u32 {
    let directory = util::directory();
    let handle = builder(directory.path()).policy(permits(1)).open().unwrap();
    let mut count = Guarded(UnsafeCell::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (handle, count, wait, done) = (&handle, &count, &wait, &done);
            scope.spawn(move || {
                for _ in 0..100 {
                    wait(thread);
                    let grant = handle.acquire(&Request::new()).unwrap();
                    // SAFETY: this thread holds the permit.
                    unsafe { *count.0.get() += 1 };
                    grant.release().unwrap();
                    done();
                }
            });
        }
    });
    *count.0.get_mut()
}

#[test]
fn a_permit_after_waiting_orders_the_writes_of_its_holders() {
    assert_eq!(raise_by_four(|_| (), || ()), 400);
}

#[test]
fn a_permit_granted_at_once_orders_the_writes_of_its_holders() {
    // Relaxed: taking turns keeps permit and lock free for the next thread, and orders nothing for a race detector.
    let turn = AtomicUsize::new(0);
    let wait = |thread| {
        while turn.load(Ordering::Relaxed) % 4 != thread {
            std::thread::yield_now();
        }
    };
    let done = || {
        turn.fetch_add(1, Ordering::Relaxed);
    };
    assert_eq!(raise_by_four(wait, done), 400);
}
