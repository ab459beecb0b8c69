//! P6 for waiting calls: a place in the queue belongs to the process that took it.

use crate::util;
use crate::util::forks::{Pipe, exit_code, forked, kill_now};
use crate::util::respawn::in_own_process;
use crate::util::{Watchdog, builder, eventually, permits, poll, queued};
use shmlimit::{AcquireError, Limiter, Reason, Request};
use std::cell::Cell;
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;

fn fresh() -> (TempDir, Limiter, Watchdog) {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(1)).create().unwrap();
    (directory, limiter, Watchdog::new("waiting beside a fork", Duration::from_secs(100)))
}

/// The processes of the waiting calls, in order.
fn waiting(limiter: &Limiter) -> Vec<u32> {
    limiter.snapshot().unwrap().queue.iter().map(|waiter| waiter.pid).collect()
}

fn me() -> u32 {
    std::process::id()
}

#[test]
fn p6_r131_a_child_does_not_disturb_a_thread_of_its_parent_that_waits() {
    in_own_process!();
    let (_directory, limiter, _watchdog) = fresh();
    let request = Request::new();
    let held = limiter.try_acquire(&request).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.acquire(&request).unwrap().release());
        assert!(eventually(|| waiting(&limiter) == [me()]));
        let parent = me();
        let child = forked(|| {
            assert_eq!(waiting(&limiter), [parent], "the place is the parent's");
            let hasty = Request::new().timeout(Duration::from_millis(30));
            match limiter.acquire(&hasty) {
                Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
                other => panic!("{other:?}"),
            }
            assert_eq!(waiting(&limiter), [parent], "the child has left its own place");
            0
        });
        assert_eq!(exit_code(child), 0);
        assert_eq!(waiting(&limiter), [parent]);
        drop(held);
        waiter.join().unwrap().unwrap();
    });
    assert!(waiting(&limiter).is_empty());
}

#[test]
fn p6_r131_a_childs_copy_of_a_waiting_call_does_not_own_the_parents_place() {
    in_own_process!();
    let (_directory, limiter, _watchdog) = fresh();
    let (request, awake) = (Request::new(), Cell::new(false));
    let held = limiter.try_acquire(&request).unwrap();
    let mut call = Some(queued(&limiter, &request, &awake));
    assert!(poll(call.as_mut().unwrap()).is_pending());
    let parent = me();
    // The copy is dropped at once, dropped after the child attached itself, or polled, which makes it the child's
    // own call.
    for way in 0..3 {
        let child = forked(|| {
            let mut copy = call.take().unwrap();
            if way > 0 {
                assert_eq!(limiter.snapshot().unwrap().participants.len(), 2);
            }
            if way == 2 {
                awake.set(true);
                assert!(poll(&mut copy).is_pending());
                assert_eq!(waiting(&limiter), [parent, me()]);
            }
            drop(copy);
            assert_eq!(waiting(&limiter), [parent]);
            0
        });
        assert_eq!(exit_code(child), 0, "way {way}");
        assert_eq!(waiting(&limiter), [parent], "way {way}");
    }
    drop(held);
    awake.set(true);
    assert!(matches!(poll(call.as_mut().unwrap()), Poll::Ready(Ok(_))), "it was first all the time");
    assert!(waiting(&limiter).is_empty());
}

#[test]
fn p6_r131_a_child_may_wait_behind_its_parent_and_be_killed_there() {
    in_own_process!();
    let (_directory, limiter, _watchdog) = fresh();
    let (request, awake) = (Request::new(), Cell::new(false));
    let held = limiter.try_acquire(&request).unwrap();
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    let ready = Pipe::new();
    let child = forked(|| {
        let mut own = queued(&limiter, &request, &awake);
        assert!(poll(&mut own).is_pending());
        ready.send(1);
        std::mem::forget(own);
        loop {
            std::thread::park();
        }
    });
    assert_eq!(ready.receive(), 1);
    assert_eq!(waiting(&limiter), [me(), child.as_raw() as u32]);
    kill_now(child);
    assert_eq!(waiting(&limiter), [me()], "the dead are not listed");
    drop(held);
    awake.set(true);
    match poll(&mut call) {
        Poll::Ready(Ok(grant)) => grant.release().unwrap(),
        other => panic!("{other:?}"),
    }
    // The place of the killed child is reclaimed when its wake time has passed.
    assert!(eventually(|| {
        let _ = limiter.try_acquire(&request);
        limiter.try_acquire(&request).is_ok()
    }));
}

#[test]
fn p6_r131_the_place_of_a_killed_parent_is_reclaimed_although_its_child_has_a_copy_of_its_call() {
    in_own_process!();
    let (directory, limiter, _watchdog) = fresh();
    let (request, awake) = (Request::new(), Cell::new(false));
    let held = limiter.try_acquire(&request).unwrap();
    let (ready, go) = (Pipe::new(), Pipe::new());
    let parent = forked(|| {
        let own = builder(directory.path()).open_existing().unwrap();
        let mut call = queued(&own, &request, &awake);
        assert!(poll(&mut call).is_pending());
        forked(|| {
            ready.send(1);
            go.receive().into()
        });
        std::mem::forget(call);
        loop {
            std::thread::park();
        }
    });
    assert_eq!(ready.receive(), 1);
    assert_eq!(waiting(&limiter), [parent.as_raw() as u32]);
    kill_now(parent);
    drop(held);
    drop(limiter.acquire(&request).unwrap());
    assert!(waiting(&limiter).is_empty());
    go.send(0);
}
