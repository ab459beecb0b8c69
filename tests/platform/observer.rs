//! A limiter that was opened only to observe it is not recreated by observing (`Builder::observer`).

use crate::util;
use shmlimit::{Algorithm, Error, Limiter, Policy, PolicyDraft, Request, RuleDraft, Snapshot};
use std::path::Path;
use std::time::{Duration, Instant};

fn policy(limit: u64) -> Policy {
    let daily = RuleDraft::new(Algorithm::TokenBucket, limit, Duration::from_secs(86_400));
    Policy::new(&PolicyDraft { rules: &[daily], ..PolicyDraft::default() }).unwrap()
}

fn observer(directory: &Path) -> Limiter {
    Limiter::builder("web").directory(directory).observer().open_existing().unwrap()
}

/// Takes snapshots until `wanted` holds. A removed file is noticed within a second.
fn until(limiter: &Limiter, wanted: impl Fn(&Result<Snapshot, Error>) -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !wanted(&limiter.snapshot()) {
        assert!(Instant::now() < end, "{:?}", limiter.snapshot());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_unknown(seen: &Result<Snapshot, Error>) -> bool {
    matches!(seen, Err(Error::UnknownLimiter { .. }))
}

#[test]
fn an_observer_does_not_recreate_a_deleted_limiter_and_a_user_does() {
    let directory = tempfile::tempdir().unwrap();
    let user = Limiter::builder("web").directory(directory.path()).policy(policy(5)).open().unwrap();
    user.try_acquire(&Request::new()).unwrap().release().unwrap();
    let observer = observer(directory.path());
    assert_eq!(observer.snapshot().unwrap().rules[0].remaining, 4);
    let file = directory.path().join("web.shm");
    util::take_away(&file);
    until(&observer, is_unknown);
    assert!(!file.exists());
    until(&user, Result::is_ok);
    until(&user, |_| file.exists());
    until(&observer, |seen| matches!(seen, Ok(seen) if seen.rules[0].remaining == 4));
}

#[test]
fn an_observer_follows_a_replaced_limiter() {
    let directory = tempfile::tempdir().unwrap();
    Limiter::builder("web").directory(directory.path()).policy(policy(5)).open().unwrap();
    let observer = observer(directory.path());
    Limiter::builder("web").directory(directory.path()).policy(policy(7)).replace().unwrap();
    until(&observer, |seen| matches!(seen, Ok(seen) if seen.rules[0].remaining == 7));
}

#[test]
fn a_rule_reports_when_it_refills() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = Limiter::builder("web").directory(directory.path()).policy(policy(4)).open().unwrap();
    let rule = |limiter: &Limiter| limiter.snapshot().unwrap().rules[0].clone();
    assert_eq!((rule(&limiter).next_in, rule(&limiter).full_in), (None, None));
    (0..2).for_each(|_| limiter.try_acquire(&Request::new()).unwrap().release().unwrap());
    let (six, hour) = (Duration::from_secs(6 * 3600), Duration::from_secs(3600));
    let seen = rule(&limiter);
    let (next, full) = (seen.next_in.unwrap(), seen.full_in.unwrap());
    assert!(next <= six && next > six - hour, "{next:?}");
    assert!(full <= 2 * six && full > 2 * six - hour, "{full:?}");
}
