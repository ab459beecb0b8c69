//! Waiting that the caller controls: step by step, or until a callback cancels it (R131, R132).

use shmlimit::{Limiter, PendingAcquire, Policy, PolicyDraft, Request, Step};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

struct OnePermit {
    limiter: Limiter,
    _directory: tempfile::TempDir,
}

impl OnePermit {
    fn new() -> OnePermit {
        let directory = tempfile::tempdir().unwrap();
        let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() }).unwrap();
        let limiter = Limiter::builder("one").directory(directory.path()).policy(policy).open().unwrap();
        OnePermit { limiter, _directory: directory }
    }

    fn in_queue(&self) -> usize {
        self.limiter.snapshot().unwrap().queue.len()
    }
}

fn asleep(step: Step) -> PendingAcquire {
    match step {
        Step::Sleep(waiting, _) => waiting,
        Step::Granted(_) => panic!("granted although the permit is out"),
    }
}

#[test]
fn r131_a_step_enters_the_queue_and_a_later_one_is_granted() {
    let one = OnePermit::new();
    let held = one.limiter.acquire(&Request::new()).unwrap();
    let waiting = one.limiter.enqueue(&Request::new()).unwrap();
    assert_eq!(one.in_queue(), 0, "nothing is asked before the first step");
    let waiting = asleep(waiting.step().unwrap());
    let waiting = asleep(waiting.step().unwrap());
    assert_eq!(one.in_queue(), 1, "a second step keeps the place");
    held.release().unwrap();
    let mut step = waiting.step().unwrap();
    while let Step::Sleep(waiting, time) = step {
        std::thread::sleep(time);
        step = waiting.step().unwrap();
    }
    let snapshot = one.limiter.snapshot().unwrap();
    assert_eq!((snapshot.queue.len(), snapshot.in_flight), (0, 1));
    drop(step);
    assert_eq!(one.limiter.snapshot().unwrap().in_flight, 0, "a step that is dropped gives its grant back");
}

#[test]
fn dropping_a_pending_acquire_leaves_the_queue_at_once() {
    let one = OnePermit::new();
    let _held = one.limiter.acquire(&Request::new()).unwrap();
    let waiting = asleep(one.limiter.enqueue(&Request::new()).unwrap().step().unwrap());
    assert_eq!(one.in_queue(), 1);
    drop(waiting);
    assert_eq!(one.in_queue(), 0);
}

#[test]
fn r132_the_timeout_of_a_pending_acquire_runs_from_its_start() {
    let one = OnePermit::new();
    let _held = one.limiter.acquire(&Request::new()).unwrap();
    let request = Request::new().timeout(Duration::from_millis(30));
    let mut waiting = one.limiter.enqueue(&request).unwrap();
    let began = Instant::now();
    loop {
        match waiting.step() {
            Ok(step) => waiting = asleep(step),
            Err(refused) => break assert!(refused.to_string().contains("in flight"), "{refused}"),
        }
        std::thread::sleep(Duration::from_millis(1));
        assert!(began.elapsed() < Duration::from_secs(20), "never refused");
    }
    assert_eq!(one.in_queue(), 0);
}

#[test]
fn a_pending_acquire_moves_to_the_successor_of_its_limiter() {
    let one = OnePermit::new();
    let _held = one.limiter.acquire(&Request::new()).unwrap();
    let waiting = asleep(one.limiter.enqueue(&Request::new()).unwrap().step().unwrap());
    let policy = one.limiter.policy().unwrap();
    let _new = Limiter::builder("one").directory(one.limiter.directory()).policy(policy).replace().unwrap();
    // The permit is free: the successor does not count what was held of the old limiter.
    let mut step = waiting.step().unwrap();
    while let Step::Sleep(waiting, time) = step {
        std::thread::sleep(time);
        step = waiting.step().unwrap();
    }
}

#[test]
fn a_cancelled_call_leaves_the_queue_and_takes_nothing() {
    let one = OnePermit::new();
    let held = one.limiter.acquire(&Request::new()).unwrap();
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) == 2;
    assert!(one.limiter.acquire_cancellable(&Request::new(), stop).unwrap().is_none());
    assert_eq!(asked.load(Ordering::Relaxed), 3, "asked until it said so, and not again");
    assert_eq!(one.in_queue(), 0);
    held.release().unwrap();
    assert_eq!(one.limiter.snapshot().unwrap().in_flight, 0);
}

#[test]
fn the_cancel_callback_causes_no_extra_checks_of_the_queue() {
    let one = OnePermit::new();
    let limiter = &one.limiter;
    limiter.set("concurrency", "unlimited").unwrap();
    let gate = [("Retry-After", "3600")];
    limiter.record(&shmlimit::Outcome::http(429, &gate)).unwrap();
    let looked = || limiter.snapshot().unwrap().participants[0].looked;
    let asked = AtomicU32::new(0);
    let before = looked();
    let stop = || asked.fetch_add(1, Ordering::Relaxed) == 4;
    assert!(limiter.acquire_cancellable(&Request::new(), stop).unwrap().is_none());
    assert!(looked() - before <= 1, "looked {} times while it was asked five times", looked() - before);
}

#[test]
fn a_call_that_is_not_cancelled_is_granted_in_its_turn() {
    let one = OnePermit::new();
    let held = one.limiter.acquire(&Request::new()).unwrap().into_owned();
    let waits = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            waits.store(true, Ordering::Release);
            one.limiter.acquire_cancellable(&Request::new(), || false).unwrap().is_some()
        });
        while !waits.load(Ordering::Acquire) || one.in_queue() == 0 {
            std::thread::yield_now();
        }
        held.release().unwrap();
        assert!(waiter.join().unwrap());
    });
}

/// The sleep in `stop` is the work of a slow callback.
#[test]
fn the_time_that_the_cancel_callback_takes_is_part_of_the_wait() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = Limiter::builder("slow").directory(directory.path()).rate("1/s").open().unwrap();
    limiter.acquire(&Request::new()).unwrap().release().unwrap();
    let asked = AtomicU32::new(0);
    let stop = || {
        if asked.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1100));
        }
        false
    };
    let grant = limiter.acquire_cancellable(&Request::new(), stop).unwrap();
    // The rate admits the call when `stop` returns. A whole second more would ask ten times.
    assert!(grant.is_some() && asked.load(Ordering::Relaxed) <= 4, "asked {asked:?} times");
}
