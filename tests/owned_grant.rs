//! A grant that outlives the borrow of its limiter, and keeps it open.

use shmlimit::{Algorithm, Limiter, Nanos, OwnedGrant, Policy, PolicyDraft, Request, RuleDraft};
use std::path::Path;

fn policy() -> Policy {
    let rule = RuleDraft::new(Algorithm::Gcra, 10, Nanos::from_secs(3600));
    Policy::new(&PolicyDraft { concurrency: Some(2), rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

fn open(directory: &Path) -> Limiter {
    Limiter::builder("api").directory(directory).policy(policy()).open().unwrap()
}

fn take(limiter: &Limiter) -> OwnedGrant {
    limiter.try_acquire(&Request::new()).unwrap().into_owned()
}

fn in_flight(limiter: &Limiter) -> u32 {
    limiter.snapshot().unwrap().in_flight
}

#[test]
fn its_permit_is_out_until_it_is_released_or_dropped_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = open(directory.path());
    let (kept, moved) = {
        let limiter = open(directory.path());
        (take(&limiter), take(&limiter))
    };
    assert_eq!(in_flight(&watcher), 2, "the handle they came from is gone, they are not");
    std::thread::spawn(move || drop(moved)).join().unwrap();
    assert_eq!(in_flight(&watcher), 1);
    kept.release().unwrap();
    assert_eq!(in_flight(&watcher), 0);
    assert_eq!(watcher.snapshot().unwrap().participants.len(), 1, "the handle has left with its last grant");
}

#[test]
fn r129_cancelling_gives_back_what_the_rule_lent() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = open(directory.path());
    take(&limiter).cancel().unwrap();
    let snapshot = limiter.snapshot().unwrap();
    assert_eq!((snapshot.in_flight, snapshot.rules[0].remaining), (0, 10));
    take(&limiter).release().unwrap();
    assert_eq!(limiter.snapshot().unwrap().rules[0].remaining, 9);
}

#[test]
fn one_of_a_replaced_segment_gives_nothing_back_to_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = open(directory.path());
    let old = take(&limiter);
    let replaced = Limiter::builder("api").directory(directory.path()).policy(policy()).replace().unwrap();
    assert_eq!(in_flight(&limiter), 0, "the new one knows nothing of it");
    let new = take(&limiter);
    assert_eq!(in_flight(&replaced), 1);
    drop(old);
    assert_eq!(in_flight(&replaced), 1);
    drop(new);
    assert_eq!(in_flight(&replaced), 0);
}
