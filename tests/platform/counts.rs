//! The statistics of a limiter survive the processes that counted them (R116).

use crate::util::children::{Running, command, role, send, wait_for_go_on};
use shmlimit::{Algorithm, Limiter, NetError, Outcome, Policy, PolicyDraft, Request, RuleDraft};
use std::path::Path;
use std::time::Duration;

fn open(directory: &Path) -> Limiter {
    let rule = RuleDraft::new(Algorithm::Gcra, 10, Duration::from_secs(3600));
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap();
    Limiter::builder("api").directory(directory).policy(policy).open().unwrap()
}

fn use_up(limiter: &Limiter, times: usize) {
    for _ in 0..times {
        if let Ok(grant) = limiter.try_acquire(&Request::new()) {
            grant.release().unwrap();
        }
    }
}

#[test]
fn r116_counts_of_detached_processes_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = open(directory.path());
    for _ in 0..3 {
        use_up(&open(directory.path()), 4);
    }
    let counts = watcher.snapshot().unwrap().counts;
    assert_eq!((counts.granted, counts.refused), (10, 2));
    use_up(&watcher, 1);
    let counts = watcher.snapshot().unwrap().counts;
    assert_eq!((counts.granted, counts.refused), (10, 3), "and those who are there count too");
}

#[test]
fn r116_counts_of_killed_processes_are_kept_and_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = open(directory.path());
    for killed in 1..=4 {
        let mut child =
            Running::start(command(&[], concat!(module_path!(), "::role_to_be_killed"), directory.path()));
        assert_eq!(child.receive(), "used");
        child.kill();
        assert_eq!(watcher.snapshot().unwrap().counts.granted, 2 * killed, "dead, not reclaimed");
        // A newcomer may take the slot of the killed process, and must not inherit its counts.
        drop(open(directory.path()));
        assert_eq!(watcher.snapshot().unwrap().counts.granted, 2 * killed);
    }
}

#[test]
fn role_to_be_killed() {
    let Some(directory) = role("role_to_be_killed") else { return };
    let limiter = open(&directory);
    use_up(&limiter, 2);
    send("used");
    wait_for_go_on();
}

const ROUNDS: usize = 300;
/// Enough calls that other processes cannot make up for the missing counts of one process.
const CALLS: usize = 1000;

/// A dashboard takes a counter that falls for a restart, and adds all of it once more.
#[test]
fn r116_counters_never_fall_while_processes_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = open(directory.path());
    let start = || {
        Running::start(command(&[], concat!(module_path!(), "::role_that_comes_and_goes"), directory.path()))
    };
    let mut workers: Vec<Running> = (0..2).map(|_| start()).collect();
    let counted = || {
        let counts = watcher.snapshot().unwrap().counts;
        counts.granted + counts.refused
    };
    let mut seen = 0;
    for child in &mut workers {
        while child.is_running() {
            let now = counted();
            assert!(now >= seen, "{seen}, and then {now}");
            seen = now;
        }
    }
    assert_eq!(counted() as usize, workers.len() * ROUNDS * CALLS);
}

#[test]
fn role_that_comes_and_goes() {
    let Some(directory) = role("role_that_comes_and_goes") else { return };
    for _ in 0..ROUNDS {
        use_up(&open(&directory), CALLS);
    }
}

#[test]
fn r116_sleeps_and_cache_answers_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = open(directory.path());
    let recorded = limiter.record(&Outcome::http(429, &[("Retry-After", "2")])).unwrap();
    assert_eq!(recorded.wait.as_secs(), 2);
    limiter.record(&Outcome::http(200, &[])).unwrap();
    let counts = limiter.snapshot().unwrap().counts;
    assert_eq!((counts.sleep.iter().sum(), counts.sleep_sum), (1u64, Duration::from_secs(2)));
    assert_eq!(counts.sleep[10], 1, "2 s are up to 2500 ms");
    let drawn = limiter.record(&Outcome::error(NetError::Dns)).unwrap().wait;
    limiter.count_cache(true).unwrap();
    limiter.count_cache(true).unwrap();
    limiter.count_cache(false).unwrap();
    let counts = limiter.snapshot().unwrap().counts;
    assert_eq!((counts.cache_hits, counts.cache_misses), (2, 1));
    assert_eq!(counts.sleep_sum, Duration::from_secs(2) + drawn);
}

#[test]
fn r116_calls_are_counted_by_their_code() {
    let directory = tempfile::tempdir().unwrap();
    let limiter = open(directory.path());
    for status in [200, 204, 200, 404, 429, 200, 503, 204] {
        let grant = limiter.try_acquire(&Request::new()).unwrap();
        grant.record(&Outcome::http(status, &[])).unwrap();
        limiter.force(shmlimit::BreakerCommand::ClearGate).unwrap();
    }
    limiter.record(&Outcome::error(NetError::ConnectTimeout)).unwrap();
    limiter.record(&Outcome::error(NetError::Connection)).unwrap();
    limiter.record(&Outcome::http(200, &[])).unwrap();
    let codes: Vec<String> = limiter
        .snapshot()
        .unwrap()
        .counts
        .codes
        .iter()
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    assert_eq!(codes, ["200 4", "204 2", "404 1", "429 1", "503 1", "connect_timeout 1", "connection 1"]);
}
