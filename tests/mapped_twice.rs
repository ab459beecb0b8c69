//! One segment, mapped twice in one process and used by several threads: what the race detectors run on
//! (`scripts/tsan`, `scripts/asan`). They see one process only, so the two mappings stand for two processes.

mod common;

use common::{builder, counted, permits};
use shmlimit::Request;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[test]
fn two_mappings_and_six_threads_count_as_one_limiter() {
    const ALLOWED: usize = 400;
    let directory = common::directory();
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
fn a_permit_orders_what_its_holders_write() {
    let directory = common::directory();
    let handles = [(); 2].map(|()| builder(directory.path()).policy(permits(1)).open().unwrap());
    // Not atomic read-modify-writes: only the permit keeps two threads from losing a count.
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
