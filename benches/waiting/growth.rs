//! Measures the cost of operations while many calls wait, and while many processes are attached.
//!
//! The waiting calls are futures that only this benchmark polls. In the queue they are like all others.

use crate::common::{Budget, clock, directory, limiter, median};
use crate::{Effort, Figure, Findings};
use shmlimit::{AcquireError, Algorithm, Grant, Limiter, Policy, PolicyDraft, Priority, Request, RuleDraft};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const WAITERS: [usize; 4] = [1, 10, 100, 1000];
const ATTACHED: [usize; 3] = [1, 16, 256];

type Waiting<'l> = Pin<Box<dyn Future<Output = Result<Grant<'l>, AcquireError>> + 'l>>;

/// A policy under which background calls wait until the reserve is full, and user calls have plenty.
fn policy() -> Policy {
    let rule = RuleDraft {
        burst: Some(1 << 32),
        reserve: (1 << 32) - 1,
        ..RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(1))
    };
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).expect("a valid policy")
}

/// A sleep that ends at the next poll.
async fn until_polled(_: Duration) {
    let mut polled = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

fn wait<'l>(limiter: &'l Limiter, request: &'l Request<'static>) -> Waiting<'l> {
    let mut waiting: Waiting<'l> = Box::pin(limiter.acquire_async(request, until_polled));
    look(&mut waiting);
    waiting
}

fn look(waiting: &mut Waiting<'_>) {
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn timed<R>(operation: impl FnOnce() -> R) -> (f64, R) {
    let start = clock();
    let result = operation();
    ((clock() - start) as f64, result)
}

/// The median of many single operations, in microseconds, while `count` other calls wait.
fn with_waiters(count: usize, rounds: usize) -> Vec<(&'static str, f64)> {
    let directory = directory();
    let limiter = limiter(directory.path(), "api", policy());
    let (background, user) = (Request::new(), Request::new().priority(Priority::User));
    // The reserve is so empty that background calls wait for days.
    let much = user.clone().cost("requests", 1 << 20);
    limiter.try_acquire(&much).and_then(|grant| Ok(grant.release()?)).expect("a grant");
    let mut waiters: Vec<Waiting<'_>> = (0..count).map(|_| wait(&limiter, &background)).collect();
    let names = ["enter", "leave", "look", "grant to a user", "release", "refusal"];
    let mut found = names.map(|_| Vec::new());
    let mut fresh = clock();
    for round in 0..rounds {
        // No waiter may become late, because that would be another measurement.
        if clock() - fresh > 300_000_000 {
            waiters.iter_mut().for_each(look);
            fresh = clock();
        }
        let (enter, newcomer) = timed(|| wait(&limiter, &background));
        let (leave, ()) = timed(|| drop(newcomer));
        let (looked, ()) = timed(|| look(&mut waiters[round % count]));
        let (grant, granted) = timed(|| limiter.try_acquire(&user));
        let (release, ()) = timed(|| granted.expect("a grant").release().expect("given back"));
        let (refusal, refused) = timed(|| limiter.try_acquire(&background));
        assert!(refused.is_err());
        for (found, value) in found.iter_mut().zip([enter, leave, looked, grant, release, refusal]) {
            found.push(value / 1e3);
        }
    }
    names.into_iter().zip(found.iter().map(|values| median(values))).collect()
}

fn with_attached(count: usize, rounds: usize) -> f64 {
    let directory = directory();
    let open = |_| limiter(directory.path(), "api", Budget::Plenty.policy(1, None));
    let handles: Vec<Limiter> = (0..count).map(open).collect();
    let request = Request::new();
    let one = || {
        let calls = 1000;
        let (spent, ()) = timed(|| {
            for _ in 0..calls {
                handles[0].try_acquire(&request).and_then(|grant| Ok(grant.release()?)).expect("a grant");
            }
        });
        spent / f64::from(calls) / 1e3
    };
    median(&(0..rounds).map(|_| one()).collect::<Vec<_>>())
}

pub fn measure(effort: Effort) -> Findings {
    let rounds = if effort.smoke { 3 } else { 1000 };
    let mut findings = Findings::default();
    for count in WAITERS.into_iter().filter(|count| !effort.smoke || *count <= 10) {
        for (name, value) in with_waiters(count, rounds) {
            findings.figures.push(Figure::new(format!("{name}, {count} waiting"), value, "us"));
        }
    }
    for count in ATTACHED.into_iter().filter(|count| !effort.smoke || *count <= 16) {
        let value = with_attached(count, rounds.min(101));
        findings.figures.push(Figure::new(format!("try_acquire and release, {count} attached"), value, "us"));
    }
    findings
}
