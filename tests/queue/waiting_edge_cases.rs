//! Waiting calls in unusual situations: clocks set back, replaced limiters, a busy lock, many processes killed at
//! once.

use crate::util::children::{self, Running};
use crate::util::raw::Raw;
use crate::util::{Queued, builder, directory, eventually, permits, poll, queued, segment_path};
use shmlimit::{AcquireError, Algorithm, Error, Policy, PolicyDraft, Reason, Request, RuleDraft};
use shmlimit_segment::{AttachOptions, layout};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Long enough to enter the queue on every platform.
const MOMENT: Duration = Duration::from_millis(if cfg!(windows) { 50 } else { 1 });

/// The limiter was made a second after a boot. Then the machine booted again, with a wall clock that had gone back.
/// The limiter's time continues where it was, behind the machine's time.
#[test]
fn r132_r134_a_timeout_ends_although_the_limiters_clock_is_behind_the_machines() {
    let directory = directory();
    drop(builder(directory.path()).policy(permits(1)).open().unwrap());
    let raw = Raw::map(&segment_path(directory.path()));
    let second = 1_000_000_000;
    raw.word(layout::BOOT).fetch_xor(1, Ordering::Relaxed);
    for (word, value) in
        [(layout::ANCHOR_TIME, second), (layout::ANCHOR_WALL, u64::MAX / 2), (layout::CORE, second)]
    {
        raw.word(word).store(value, Ordering::Relaxed);
    }
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    assert!(raw.word(layout::CLOCK_OFFSET).load(Ordering::Relaxed).cast_signed() < 0, "the machine is young");
    let _permit = limiter.acquire(&Request::new()).unwrap();

    let timeout = Duration::from_secs(3600);
    let (request, awake) = (Request::new().timeout(timeout), Cell::new(false));
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    let left = limiter.snapshot().unwrap().queue[0].gives_up_in;
    assert!(left.is_some_and(|left| left <= timeout), "{left:?}");
}

#[test]
fn r38_a_call_that_waits_is_charged_by_the_units_of_the_limiter_that_serves_it() {
    let limits = |units: &[(&'static str, u64)]| {
        let hour = Duration::from_secs(3600);
        let rule = |(unit, burst): &(&'static str, u64)| RuleDraft {
            unit: Some(unit),
            burst: Some(*burst),
            ..RuleDraft::new(Algorithm::TokenBucket, 1, hour)
        };
        let rules: Vec<RuleDraft> = units.iter().map(rule).collect();
        Policy::new(&PolicyDraft { rules: &rules, ..PolicyDraft::default() }).unwrap()
    };
    let directory = directory();
    let before = limits(&[("requests", 10), ("tokens", 10), ("images", 10)]);
    let limiter = builder(directory.path()).policy(before).open().unwrap();
    let (request, awake) = (Request::new().cost("tokens", 7), Cell::new(true));
    limiter.acquire(&request).unwrap().release().unwrap();
    let mut call = queued(&limiter, &request, &awake);
    awake.set(false);
    assert!(poll(&mut call).is_pending());

    let after = limits(&[("requests", 10), ("images", 10), ("tokens", 10)]);
    let successor = builder(directory.path()).policy(after).replace().unwrap();
    awake.set(true);
    assert!(matches!(poll(&mut call), Poll::Ready(Ok(_))));
    let left = successor.snapshot().unwrap().rules.into_iter().map(|rule| (rule.unit, rule.remaining));
    let expected =
        [("requests", 9), ("images", 10), ("tokens", 3)].map(|(unit, left)| (unit.to_owned(), left));
    assert_eq!(left.collect::<Vec<_>>(), expected);
}

#[test]
fn a_call_that_waits_for_a_unit_that_was_removed_gets_an_error() {
    let directory = directory();
    let tokens =
        RuleDraft { unit: Some("tokens"), ..RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(3600)) };
    let draft = PolicyDraft { rules: &[tokens], ..PolicyDraft::default() };
    let limiter = builder(directory.path()).policy(Policy::new(&draft).unwrap()).open().unwrap();
    let (request, awake) = (Request::new().cost("tokens", 1), Cell::new(false));
    limiter.acquire(&request).unwrap().release().unwrap();
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());

    let _successor = builder(directory.path()).policy(permits(1)).replace().unwrap();
    awake.set(true);
    let Poll::Ready(Err(AcquireError::Failed(error))) = poll(&mut call) else { panic!("not told") };
    assert!(matches!(*error, Error::UnknownUnit { .. }), "{error}");
}

/// Holds the lock as another thread of this process, until a thread sleeps on it or `enough` is set.
fn hold_the_lock_meanwhile(path: &Path, work: impl FnOnce()) {
    const SOMEBODY_SLEEPS: u64 = 1 << 31;
    let raw = Raw::map(path);
    let slot =
        (0..layout::SLOTS).find(|slot| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 == 1);
    let held = (slot.unwrap() as u64 + 1) << 20;
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        raw.word(layout::LOCK).store(held, Ordering::Relaxed);
        scope.spawn(|| {
            while raw.word(layout::LOCK).load(Ordering::Relaxed) & SOMEBODY_SLEEPS == 0
                && !enough.load(Ordering::Relaxed)
            {
                std::thread::yield_now();
            }
            raw.word(layout::LOCK).store(0, Ordering::Release);
        });
        // A failed assertion must not leave the thread above running for ever.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        enough.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|failed| std::panic::resume_unwind(failed));
    });
}

/// Waits in the queue until the timeout is over, and then runs `work`. Returns how many calls are still in the
/// queue.
fn when_time_is_over(work: impl FnOnce(&Path, Queued<'_, '_>, &Cell<bool>)) -> usize {
    let directory = directory();
    let path = segment_path(directory.path());
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let _permit = limiter.acquire(&Request::new()).unwrap();
    let (request, awake) = (Request::new().timeout(MOMENT), Cell::new(false));
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    let since = Instant::now();
    while since.elapsed() <= MOMENT {
        std::thread::yield_now();
    }
    work(&path, call, &awake);
    limiter.snapshot().unwrap().queue.len()
}

#[test]
fn r132_a_call_whose_time_is_over_is_refused_although_the_lock_is_busy() {
    let left = when_time_is_over(|path, mut call, awake| {
        awake.set(true);
        hold_the_lock_meanwhile(path, || {
            let told = poll(&mut call);
            assert!(matches!(told, Poll::Ready(Err(AcquireError::Refused(_)))), "{told:?}");
        });
    });
    assert_eq!(left, 0);
}

#[test]
fn r132_a_dropped_call_whose_time_is_over_leaves_the_queue_although_the_lock_is_busy() {
    let left = when_time_is_over(|path, call, _| hold_the_lock_meanwhile(path, || drop(call)));
    assert_eq!(left, 0);
}

/// The lock word that names the attachment of this process as the holder.
fn held_by_the_living(raw: &Raw) -> u64 {
    let owned = |slot: &usize| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 == 1;
    ((0..layout::SLOTS).find(owned).unwrap() as u64 + 1) << 20
}

/// DESIGN: a deadline that ends while a living process holds the lock is a refusal. It is an error only if the
/// holder has made no progress for a second.
#[test]
fn caller_whose_deadline_ends_while_a_living_process_holds_the_lock_is_refused_as_busy() {
    let directory = directory();
    let path = segment_path(directory.path());
    let bounds = AttachOptions { place: Duration::from_secs(3600), ..AttachOptions::default() };
    let limiter = builder(directory.path()).bounds(bounds).policy(permits(1)).open().unwrap();
    let raw = Raw::map(&path);
    let (lock, held) = (raw.word(layout::LOCK), held_by_the_living(&raw));
    let request = Request::new().timeout(MOMENT);
    let refused = |error: AcquireError| match error {
        AcquireError::Refused(refusal) => (refusal.reason(), refusal.retry_after()),
        AcquireError::Failed(error) => panic!("{error}"),
    };
    let busy = (Reason::Busy, Some(Duration::from_millis(10)));
    // The lock has another acquisition each time, which counts as progress of the holder.
    let mut epoch = 0;
    let mut hold = || {
        epoch += 1;
        lock.store(held | epoch, Ordering::Relaxed);
    };
    hold();
    assert_eq!(refused(limiter.try_acquire(&request).unwrap_err()), busy);
    hold();
    assert_eq!(refused(limiter.acquire(&request).unwrap_err()), busy);
    hold();
    assert_eq!(refused(limiter.acquire_cancellable(&request, || false).unwrap_err()), busy);
    hold();
    assert_eq!(refused(limiter.enqueue(&request).unwrap().step().unwrap_err()), busy);
    hold();
    let awake = Cell::new(false);
    let Poll::Ready(Err(error)) = poll(&mut queued(&limiter, &request, &awake)) else { panic!("not told") };
    assert_eq!(error.to_string().matches("try again in 10").count(), 1, "{error}");
    assert_eq!(refused(error), busy);
    lock.store(0, Ordering::Relaxed);
    let counts = limiter.snapshot().unwrap().counts;
    assert_eq!(counts.refused, 5, "each is counted once");
    limiter.acquire(&request).unwrap().release().unwrap();
}

#[test]
fn lock_holder_without_progress_for_a_second_is_an_error_that_never_blames_the_caller() {
    let directory = directory();
    let path = segment_path(directory.path());
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let raw = Raw::map(&path);
    raw.word(layout::LOCK).store(held_by_the_living(&raw), Ordering::Relaxed);
    // The test's bounds have 200 ms in place of the second.
    let error = limiter.try_acquire(&Request::new()).unwrap_err();
    let AcquireError::Failed(error) = error else { panic!("{error}") };
    assert!(matches!(*error, Error::Busy { stopped: true, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("another thread of this process") && !text.contains("kill"), "{text}");
    // Now it is known that the holder has stopped, so a caller with little time gets the error too.
    let error = limiter.acquire(&Request::new().timeout(MOMENT)).unwrap_err();
    assert!(matches!(error, AcquireError::Failed(_)), "{error}");
    raw.word(layout::LOCK).store(0, Ordering::Relaxed);
}

#[test]
fn call_without_a_deadline_keeps_waiting_while_the_lock_changes_hands() {
    let directory = directory();
    let path = segment_path(directory.path());
    let bounds = AttachOptions { lock: MOMENT, stall: Duration::from_secs(3600), ..AttachOptions::default() };
    let limiter = builder(directory.path()).bounds(bounds).policy(permits(1)).open().unwrap();
    let raw = Raw::map(&path);
    raw.word(layout::LOCK).store(held_by_the_living(&raw), Ordering::Relaxed);
    // Called after every step that did not get the lock. The third call releases the lock.
    let asked = Cell::new(0);
    let grant = limiter.acquire_cancellable(&Request::new(), || {
        asked.set(asked.get() + 1);
        if asked.get() == 3 {
            raw.word(layout::LOCK).store(0, Ordering::Relaxed);
        }
        false
    });
    grant.unwrap().expect("not called off").release().unwrap();
    assert_eq!(asked.get(), 3);
}

#[test]
fn r132_a_call_that_could_not_leave_the_queue_is_removed_when_its_time_is_over() {
    let directory = directory();
    let path = segment_path(directory.path());
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let permit = limiter.acquire(&Request::new()).unwrap();
    let (request, awake) = (Request::new().timeout(MOMENT), Cell::new(false));
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    let raw = Raw::map(&path);
    let slot =
        (0..layout::SLOTS).find(|slot| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) & 1 == 1);
    raw.word(layout::LOCK).store((slot.unwrap() as u64 + 1) << 20, Ordering::Relaxed);
    drop(call);
    raw.word(layout::LOCK).store(0, Ordering::Relaxed);
    assert_eq!(limiter.snapshot().unwrap().queue.len(), 1, "it could not leave");

    permit.release().unwrap();
    // No call is refused. A call that finds the fast path closed looks for the reason.
    let nobody_waits = || {
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
        raw.word(layout::WAITING).load(Ordering::Relaxed) == 0
    };
    assert!(eventually(nobody_waits), "the short way stays closed");
}

#[test]
fn r132_a_call_removed_because_its_time_is_over_does_not_enter_again() {
    let directory = directory();
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let permit = limiter.acquire(&Request::new()).unwrap();
    let (request, awake) = (Request::new().timeout(MOMENT), Cell::new(false));
    let mut call = queued(&limiter, &request, &awake);
    assert!(poll(&mut call).is_pending());
    // The call behaves like a stopped one. A refused call looks for waiting calls that are gone.
    let is_taken_out = || {
        assert!(limiter.try_acquire(&Request::new()).is_err());
        limiter.snapshot().unwrap().queue.is_empty()
    };
    assert!(eventually(is_taken_out));
    permit.release().unwrap();
    awake.set(true);
    assert!(
        matches!(poll(&mut call), Poll::Ready(Err(AcquireError::Refused(_)))),
        "served long after its deadline"
    );
}

#[test]
fn a_process_attaches_to_a_successor_once_for_all_its_waiting_threads() {
    const THREADS: usize = 64;
    let directory = directory();
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let _permit = limiter.acquire(&Request::new()).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| limiter.acquire(&Request::new()).map(drop))).collect();
        assert!(eventually(|| limiter.snapshot().unwrap().queue.len() == THREADS));
        let _successor = builder(directory.path()).policy(permits(2)).replace().unwrap();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
    });
    let raw = Raw::map(&segment_path(directory.path()));
    let attached = |slot| raw.word(layout::slot_base(slot)).load(Ordering::Relaxed) >> 32;
    assert_eq!((0..layout::SLOTS).map(attached).sum::<u64>(), 2, "whoever replaced it, and this handle");
}

#[test]
fn r131_many_waiters_killed_together_are_reclaimed_by_the_next_call() {
    // Starting a program is slow on Windows.
    const WAITERS: usize = if cfg!(windows) { 12 } else { 80 };
    let directory = directory();
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let _permit = limiter.acquire(&Request::new()).unwrap();
    let wait = || {
        Running::start(children::command(&[], concat!(module_path!(), "::role_that_waits"), directory.path()))
    };
    let mut waiters: Vec<Running> = (0..WAITERS).map(|_| wait()).collect();
    let raw = Raw::map(&segment_path(directory.path()));
    let waiting = || raw.word(layout::WAITING).load(Ordering::Relaxed);
    assert!(eventually(|| waiting() == WAITERS as u64));
    waiters.iter_mut().for_each(Running::kill);
    // Most of their wake times are still in the future.
    assert!(limiter.try_acquire(&Request::new()).is_err());
    assert_eq!(waiting(), 0);
}

#[test]
fn role_that_waits() {
    let Some(directory) = children::role("role_that_waits") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    drop(limiter.acquire(&Request::new()));
}

#[test]
fn r131_a_large_group_keeps_its_order_when_some_of_its_calls_leave() {
    let directory = directory();
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    let _permit = limiter.acquire(&Request::new()).unwrap();
    let (long, last, awake) =
        (Request::new(), Request::new().timeout(Duration::from_secs(3600)), Cell::new(false));
    let enter = |request| {
        let mut call = queued(&limiter, request, &awake);
        assert!(poll(&mut call).is_pending());
        call
    };
    // More than one transaction can move.
    let mut group: Vec<_> = (0..300).map(|_| enter(&long)).collect();
    drop(group.drain(..3));
    let _last = enter(&last);
    let queue = limiter.snapshot().unwrap().queue;
    assert_eq!(queue.iter().position(|one| one.gives_up_in.is_some()), Some(297));
}
