//! Waiting calls learn of a pause and of its end at once, because they are woken (R148). `tests/tool/pause.rs`
//! tests what they do then.

use crate::util::raw::Raw;
use crate::util::{builder, directory, permits, segment_path};
use shmlimit::{AcquireError, Limiter, PauseRequest, Reason, Request};
use shmlimit_kernel::queue::WAITERS;
use shmlimit_segment::layout;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The wake words of all places in the queue. Only a wake-up changes one.
fn wake_words(raw: &Raw) -> Vec<u64> {
    let wake_word = |place| raw.word(layout::entry_base(place) + layout::WAKE_WORD).load(Ordering::Relaxed);
    (0..WAITERS).map(wake_word).collect()
}

/// The result of a call that waits while `work` runs, and whether `work` woke it.
fn told_while_waiting(
    limiter: &Limiter,
    raw: &Raw,
    request: &Request<'_>,
    work: impl FnOnce(),
) -> (Result<(), AcquireError>, bool) {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| limiter.acquire(request).map(drop));
        while limiter.snapshot().unwrap().queue.is_empty() {
            std::thread::yield_now();
        }
        let before = wake_words(raw);
        work();
        let woken = wake_words(raw) != before;
        (call.join().unwrap(), woken)
    })
}

#[test]
fn r148_a_resume_wakes_the_first_waiting_call() {
    let home = directory();
    let limiter = builder(home.path()).policy(permits(4)).create().unwrap();
    let raw = Raw::map(&segment_path(home.path()));
    limiter.pause(&PauseRequest::new()).unwrap();
    let (result, woken) =
        told_while_waiting(&limiter, &raw, &Request::new(), || assert!(limiter.resume().unwrap().is_some()));
    result.unwrap();
    assert!(woken, "else it would look up to a second later");
}

#[test]
fn r148_a_pause_with_a_known_end_wakes_calls_whose_deadline_is_earlier() {
    let home = directory();
    let limiter = builder(home.path()).policy(permits(1)).create().unwrap();
    let raw = Raw::map(&segment_path(home.path()));
    let _held = limiter.try_acquire(&Request::new()).unwrap();
    let request = Request::new().timeout(Duration::from_secs(60));
    let hour = PauseRequest::new().duration(Duration::from_secs(3600));
    let (result, woken) =
        told_while_waiting(&limiter, &raw, &request, || drop(limiter.pause(&hour).unwrap()));
    let Err(AcquireError::Refused(refusal)) = result else { panic!("{result:?}") };
    assert_eq!(refusal.reason(), Reason::Paused);
    assert!(woken, "it is told at once (R132)");
}
