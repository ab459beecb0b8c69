//! Decisions allocate nothing (docs/design/cost.md). The allocator counts the calls of this thread alone.

use crate::shapes::{Call, SHAPES};
use shmlimit::{AcquireError, Algorithm, Grant, Limiter, Policy, PolicyDraft, Reason, Request, RuleDraft};
use shmlimit_segment::AttachOptions;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

const DECISIONS: usize = 1000;
const HOUR: Duration = Duration::from_secs(3600);

struct Counting;

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "it is; the lint does not see it on Windows")]
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending no longer has a counter, and no test that reads it.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every method passes its arguments unchanged to the system's allocator, which keeps the contract. Counting
// touches only a constant-initialised thread-local without destructor, and so never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the pointer came from `System` through this allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the pointer came from `System` through this allocator, with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocator calls by this thread while `work` runs, after a few runs to warm up.
fn allocator_calls(mut work: impl FnMut()) -> u64 {
    for _ in 0..10 {
        work();
    }
    let before = CALLS.get();
    for _ in 0..DECISIONS {
        work();
    }
    CALLS.get() - before
}

/// A limiter that reclaims exited processes and checks the file's place only in its first decisions.
fn open(directory: &tempfile::TempDir, policy: Policy) -> Limiter {
    let bounds = AttachOptions { place: HOUR, reclaim: HOUR, ..AttachOptions::default() };
    Limiter::builder("counted").directory(directory.path()).policy(policy).bounds(bounds).open().unwrap()
}

fn limiter(directory: &tempfile::TempDir, rules: &[RuleDraft<'_>], concurrency: Option<u64>) -> Limiter {
    open(directory, Policy::new(&PolicyDraft { concurrency, rules, ..PolicyDraft::default() }).unwrap())
}

fn plenty() -> RuleDraft<'static> {
    RuleDraft { burst: Some(1 << 32), ..RuleDraft::new(Algorithm::TokenBucket, 35, Duration::from_secs(1)) }
}

fn scarce() -> RuleDraft<'static> {
    RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(3600))
}

fn reason(decided: Result<Grant<'_>, AcquireError>) -> Reason {
    match decided {
        Err(AcquireError::Refused(refusal)) => refusal.reason(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_count_sees_an_allocation() {
    let calls = allocator_calls(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(calls, 2 * DECISIONS as u64);
}

#[test]
fn decisions_of_every_shape_allocate_nothing() {
    for shape in SHAPES.iter().filter(|shape| shape.call != Call::Snapshot) {
        let directory = tempfile::tempdir().unwrap();
        let limiter = open(&directory, shape.policy());
        let request = shape.request();
        let _held = shape.prepare(&limiter);
        assert_eq!(allocator_calls(|| shape.call_once(&limiter, &request)), 0, "{}", shape.key);
    }
}

#[test]
fn a_grant_and_its_release_allocate_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for rules in [&[plenty(); 1][..], &[plenty(); 8][..]] {
        let limiter = limiter(&directory, rules, Some(4));
        let request = Request::new();
        assert_eq!(allocator_calls(|| drop(limiter.try_acquire(&request).unwrap())), 0, "dropped");
        assert_eq!(
            allocator_calls(|| limiter.try_acquire(&request).unwrap().release().unwrap()),
            0,
            "released"
        );
        assert_eq!(
            allocator_calls(|| limiter.try_acquire(&request).unwrap().cancel().unwrap()),
            0,
            "cancelled"
        );
        drop(limiter);
        std::fs::remove_file(directory.path().join("counted.shm")).unwrap();
    }
}

#[test]
fn a_cost_that_never_fits_allocates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = limiter(&directory, &[scarce()], None);
    let request = Request::new().cost("requests", 2);
    let calls =
        allocator_calls(|| assert_eq!(reason(limiter.try_acquire(&request)), Reason::CostExceedsLimit));
    assert_eq!(calls, 0);
}
