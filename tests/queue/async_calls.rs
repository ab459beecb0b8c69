//! `acquire_async` on tokio, on smol, and polled by hand: it uses the same queue, needs no thread of the library,
//! and a dropped future leaves the queue at once.

use crate::util::respawn::again;
use shmlimit::{AcquireError, Algorithm, Grant, Limiter, Policy, PolicyDraft, Reason, Request, RuleDraft};
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn limiter(concurrency: Option<u64>, rules: &[RuleDraft<'_>]) -> (TempDir, Limiter) {
    let directory = tempfile::tempdir().unwrap();
    let policy = Policy::new(&PolicyDraft { concurrency, rules, ..PolicyDraft::default() }).unwrap();
    let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open().unwrap();
    (directory, limiter)
}

fn one_permit() -> (TempDir, Limiter) {
    limiter(Some(1), &[])
}

/// A limiter that allows one call per hour, after that call.
fn spent() -> (TempDir, Limiter) {
    let (directory, limiter) =
        limiter(None, &[RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(3600))]);
    limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    (directory, limiter)
}

fn waiting(limiter: &Limiter) -> usize {
    limiter.snapshot().unwrap().queue.len()
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A sleep that ends at the second poll, independent of the clock.
async fn until_polled(_: Duration) {
    let mut polled = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await
}

async fn smol_sleep(time: Duration) {
    smol::Timer::after(time).await;
}

fn granted<'l>(polled: Poll<Result<Grant<'l>, AcquireError>>) -> Grant<'l> {
    match polled {
        Poll::Ready(Ok(grant)) => grant,
        other => panic!("{other:?}"),
    }
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[test]
fn the_future_may_move_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let (_directory, limiter) = one_permit();
    let request = Request::new();
    is_send(&limiter.acquire_async(&request, tokio::time::sleep));
    is_send(&limiter.acquire_async(&request, smol_sleep));
}

#[test]
fn r131_a_future_polled_by_hand_waits_in_the_queue_and_is_granted_in_its_turn() {
    let (_directory, limiter) = one_permit();
    let held = limiter.try_acquire(&Request::new()).unwrap();
    let (request, slept) = (Request::new(), RefCell::new(Vec::new()));
    let mut future = pin!(limiter.acquire_async(&request, |time| {
        slept.borrow_mut().push(time);
        until_polled(time)
    }));
    assert_eq!(waiting(&limiter), 0, "nothing happens before the first poll");
    for looks in 1..4 {
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!((waiting(&limiter), slept.borrow().len()), (1, looks));
    }
    held.release().unwrap();
    let grant = granted(poll(future.as_mut()));
    assert_eq!((waiting(&limiter), limiter.snapshot().unwrap().in_flight), (0, 1));
    grant.release().unwrap();
    let longest = Duration::from_millis(20);
    assert!(
        slept.borrow().iter().all(|time| *time <= longest),
        "the first looks often: {:?}",
        slept.borrow()
    );
}

#[test]
fn r131_dropping_the_future_leaves_the_queue_at_once_and_the_next_call_is_granted() {
    let (_directory, limiter) = one_permit();
    let held = limiter.try_acquire(&Request::new()).unwrap();
    let request = Request::new();
    let mut first = Box::pin(limiter.acquire_async(&request, until_polled));
    let mut second = pin!(limiter.acquire_async(&request, until_polled));
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!(waiting(&limiter), 2);
    drop(first);
    assert_eq!(waiting(&limiter), 1);
    assert!(poll(second.as_mut()).is_pending());
    held.release().unwrap();
    drop(granted(poll(second.as_mut())));
    assert_eq!(waiting(&limiter), 0);
}

#[test]
fn a_future_dropped_before_its_first_poll_or_after_its_grant_leaves_nothing() {
    let (_directory, limiter) = one_permit();
    let request = Request::new();
    drop(limiter.acquire_async(&request, until_polled));
    let mut future = Box::pin(limiter.acquire_async(&request, until_polled));
    let grant = granted(poll(future.as_mut()));
    drop(future);
    assert_eq!((waiting(&limiter), limiter.snapshot().unwrap().in_flight), (0, 1));
    drop(grant);
    assert_eq!(limiter.snapshot().unwrap().in_flight, 0);
}

#[test]
fn r132_a_zero_timeout_takes_a_free_permit_and_never_waits() {
    let (_directory, limiter) = one_permit();
    let hasty = Request::new().timeout(Duration::ZERO);
    let past = Request::new().deadline(SystemTime::UNIX_EPOCH);
    for request in [hasty, past] {
        let held = granted(poll(pin!(limiter.acquire_async(&request, until_polled))));
        let refused = poll(pin!(limiter.acquire_async(&request, until_polled)));
        let Poll::Ready(Err(AcquireError::Refused(refusal))) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.reason(), Reason::Concurrency);
        assert_eq!(
            limiter.acquire(&request).map(drop).unwrap_err().to_string(),
            format!("refused: {refusal}")
        );
        assert_eq!(waiting(&limiter), 0);
        held.release().unwrap();
    }
}

#[test]
fn r132_a_deadline_a_year_ahead_is_stored_in_the_queue_unchanged() {
    let (_directory, limiter) = one_permit();
    let _held = limiter.try_acquire(&Request::new()).unwrap();
    let gives_up = || limiter.snapshot().unwrap().queue[0].gives_up_in;
    let long = Request::new().timeout(YEAR);
    let dated = Request::new().deadline(SystemTime::now() + YEAR).timeout(2 * YEAR);
    let undying = Request::new().timeout(Duration::MAX);
    for (request, longest) in [(long, Some(YEAR)), (dated, Some(YEAR)), (undying, None)] {
        let mut future = pin!(limiter.acquire_async(&request, until_polled));
        assert!(poll(future.as_mut()).is_pending());
        match (gives_up(), longest) {
            (Some(time), Some(longest)) => assert!(time <= longest && time > longest - YEAR / 12, "{time:?}"),
            (time, longest) => assert_eq!(time, longest),
        }
    }
    assert_eq!(waiting(&limiter), 0);
}

#[test]
fn r132_a_call_that_cannot_be_granted_in_time_is_refused_at_the_first_poll() {
    let (_directory, limiter) = spent();
    for request in [
        Request::new().timeout(Duration::from_secs(60)),
        Request::new().deadline(SystemTime::now() + Duration::from_secs(60)),
        Request::new().timeout(YEAR).deadline(SystemTime::now() + Duration::from_secs(60)),
    ] {
        let refused = poll(pin!(limiter.acquire_async(&request, until_polled)));
        let Poll::Ready(Err(AcquireError::Refused(refusal))) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.reason(), Reason::Rate);
        assert!(refusal.retry_after().unwrap() > Duration::from_secs(3000));
    }
    let long = Request::new().deadline(SystemTime::now() + YEAR);
    assert!(poll(pin!(limiter.acquire_async(&long, until_polled))).is_pending());
}

#[test]
fn select_and_timeout_leave_the_queue() {
    let (_directory, limiter) = one_permit();
    let _held = limiter.try_acquire(&Request::new()).unwrap();
    current_thread().block_on(async {
        let request = Request::new();
        let waits = limiter.acquire_async(&request, tokio::time::sleep);
        assert!(tokio::time::timeout(Duration::from_millis(1), waits).await.is_err());
        assert_eq!(waiting(&limiter), 0);
        tokio::select! {
            biased;
            granted = limiter.acquire_async(&request, tokio::time::sleep) => panic!("{granted:?}"),
            () = async { assert_eq!(waiting(&limiter), 1) } => {}
        }
        assert_eq!(waiting(&limiter), 0);
        let refused =
            limiter.acquire_async(&request.timeout(Duration::from_millis(1)), tokio::time::sleep).await;
        assert!(matches!(refused, Err(AcquireError::Refused(_))), "{refused:?}");
        assert_eq!(waiting(&limiter), 0);
    });
}

/// The number of calls under way, and its maximum.
#[derive(Default)]
struct Calls {
    now: AtomicUsize,
    most: AtomicUsize,
    served: AtomicUsize,
}

const TASKS: usize = 500;
const PERMITS: usize = 64;

impl Calls {
    async fn call<S, F>(self: Arc<Calls>, limiter: Limiter, sleep: S)
    where
        S: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        let grant = limiter.acquire_async(&Request::new(), &sleep).await.unwrap();
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sleep(Duration::ZERO).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.served.fetch_add(1, Ordering::SeqCst);
        grant.release().unwrap();
    }

    fn check(&self, limiter: &Limiter) {
        assert_eq!(self.served.load(Ordering::SeqCst), TASKS);
        let most = self.most.load(Ordering::SeqCst);
        assert!((1..=PERMITS).contains(&most), "{most} at a time");
        let snapshot = limiter.snapshot().unwrap();
        assert_eq!((snapshot.queue.len(), snapshot.in_flight), (0, 0));
        assert_eq!(snapshot.participants.iter().map(|p| p.granted).sum::<u64>(), TASKS as u64);
    }
}

fn crowded() -> (TempDir, Limiter) {
    let rule = RuleDraft { burst: Some(50), ..RuleDraft::new(Algorithm::Gcra, 5000, Duration::from_secs(1)) };
    limiter(Some(PERMITS as u64), &[rule])
}

#[test]
fn r131_five_hundred_tasks_on_tokio_are_all_served_within_the_permits() {
    for runtime in [current_thread(), multi_thread()] {
        let (_directory, limiter) = crowded();
        let calls = Arc::new(Calls::default());
        runtime.block_on(async {
            let task = |_| tokio::spawn(calls.clone().call(limiter.clone(), tokio::time::sleep));
            let tasks: Vec<_> = (0..TASKS).map(task).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        calls.check(&limiter);
    }
}

#[test]
fn r131_five_hundred_tasks_on_smol_are_all_served_within_the_permits() {
    let (_directory, limiter) = crowded();
    let calls = Arc::new(Calls::default());
    smol::block_on(async {
        let task = |_| smol::spawn(calls.clone().call(limiter.clone(), smol_sleep));
        let tasks: Vec<_> = (0..TASKS).map(task).collect();
        for task in tasks {
            task.await;
        }
    });
    calls.check(&limiter);
}

const HELPER: &str = "SHMLIMIT_TEST_COUNT_THREADS";

#[test]
fn waiting_tasks_need_no_thread_of_the_library() {
    let mut again = again(&[], concat!(module_path!(), "::helper_counts_threads"));
    again.env(HELPER, "1");
    let output = again.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("counted"), "{output:?}");
}

/// Runs alone in its process, because other tests start threads.
#[test]
fn helper_counts_threads() {
    if std::env::var_os(HELPER).is_none() {
        return;
    }
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let (_directory, limiter) = one_permit();
    let held = limiter.try_acquire(&Request::new()).unwrap();
    let request = Request::new();
    let future = || Box::pin(limiter.acquire_async(&request, until_polled));
    let mut futures: Vec<_> = (0..100).map(|_| future()).collect();
    assert!(futures.iter_mut().all(|future| poll(future.as_mut()).is_pending()));
    assert_eq!((waiting(&limiter), threads()), (100, before));
    held.release().unwrap();
    for mut future in futures {
        granted(poll(future.as_mut())).release().unwrap();
    }
    assert_eq!((waiting(&limiter), threads()), (0, before));
    println!("counted");
}
