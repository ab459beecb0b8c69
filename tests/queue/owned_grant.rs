//! `OwnedGrant`: a grant that outlives the borrow of its limiter, and keeps the limiter open.

use shmlimit::{
    Algorithm, BreakerCommand, Limiter, Outcome, OwnedGrant, Policy, PolicyDraft, Request, RuleDraft,
};
use std::path::Path;
use std::time::Duration;

fn policy() -> Policy {
    let rule = RuleDraft::new(Algorithm::Gcra, 10, Duration::from_secs(3600));
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
fn an_owned_grant_holds_its_permit_until_it_is_released_or_dropped_anywhere() {
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
fn r129_cancelling_gives_back_the_units_of_the_rule() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = open(directory.path());
    take(&limiter).cancel().unwrap();
    let snapshot = limiter.snapshot().unwrap();
    assert_eq!((snapshot.in_flight, snapshot.rules[0].remaining), (0, 10));
    take(&limiter).release().unwrap();
    assert_eq!(limiter.snapshot().unwrap().rules[0].remaining, 9);
}

#[test]
fn r129_the_largest_actual_cost_is_not_taken_for_damage() {
    let hour = Duration::from_secs(3600);
    for algorithm in Algorithm::ALL {
        let directory = tempfile::tempdir().unwrap();
        let rules = [
            RuleDraft::new(algorithm, 10, hour),
            RuleDraft { unit: Some("tokens"), ..RuleDraft::new(Algorithm::TokenBucket, 100, hour) },
        ];
        let policy = Policy::new(&PolicyDraft { rules: &rules, ..PolicyDraft::default() }).unwrap();
        let open = || Limiter::builder("api").directory(directory.path()).policy(policy).open().unwrap();
        let outcome = Outcome::http(200, &[]).cost(&[("requests", u64::MAX)]);
        take(&open()).record(&outcome).unwrap();
        let snapshot = open().snapshot().unwrap();
        let remaining = snapshot.rules.iter().map(|rule| rule.remaining).collect::<Vec<_>>();
        assert_eq!((snapshot.resets, remaining), (0, vec![0, 100]), "{algorithm}");
    }
}

#[test]
fn an_owned_grant_of_a_replaced_segment_gives_nothing_back_to_its_successor() {
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

#[test]
fn a_noted_outcome_reaches_every_handle_and_keeps_the_permit() {
    let directory = tempfile::tempdir().unwrap();
    let (limiter, other) = (open(directory.path()), open(directory.path()));
    let mut grant = take(&limiter);
    for outcome in [Outcome::http(200, &[]), Outcome::http(429, &[("Retry-After", "60")])] {
        grant.note(&outcome).unwrap().unwrap();
    }
    assert_eq!(in_flight(&other), 1);
    let counted = other.snapshot().unwrap().condition.outcomes;
    assert_eq!((counted.ok, counted.throttled), (1, 1));
    assert!(other.try_acquire(&Request::new()).is_err(), "the gate is closed");
    grant.try_release().unwrap();
    assert_eq!(in_flight(&other), 0);
    assert!(grant.note(&Outcome::http(200, &[])).unwrap().is_none(), "it is over");
    assert_eq!(other.snapshot().unwrap().condition.outcomes.ok, 1);
}

#[test]
fn r140_an_outcome_noted_for_a_call_from_before_probing_does_not_count_as_a_probe() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = Limiter::builder("tmdb").directory(directory.path()).open().unwrap();
    let before = take(&limiter);
    limiter.force(BreakerCommand::HalfOpen).unwrap();
    assert_eq!(before.note(&Outcome::http(200, &[])).unwrap().unwrap().samples, 0);
    assert_eq!(in_flight(&limiter), 1);
    before.release().unwrap();
    let during = take(&limiter);
    assert_eq!(during.note(&Outcome::http(200, &[])).unwrap().unwrap().samples, 1);
    assert_eq!(in_flight(&limiter), 1);
}
