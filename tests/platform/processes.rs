//! Real processes share one limiter and are killed at any moment (P1, P2, R131). The tests are the same on every
//! platform: they use SIGKILL on Unix and `TerminateProcess` on Windows.
//!
//! The ptrace tests check every single instruction. These tests check the operating system: it must release locks
//! on death, wake other processes, and keep the file.

use crate::util::children::{Running, command, role, send, wait_for_go_on};
use crate::util::raw::Raw;
use crate::util::{
    NAME, Random, Watchdog, counted, directory, drain, eventually, permits, segment_path, take,
};
use shmlimit::{Algorithm, Limiter, Outcome, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_segment::{AttachOptions, layout};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Starting a program is slow on Windows.
const ROUNDS: usize = if cfg!(windows) { 10 } else { 40 };
const LONGEST: Duration = Duration::from_secs(240);

fn start(name: &str, directory: &Path) -> Running {
    Running::start(command(&[], &format!("{}::{name}", module_path!()), directory))
}

/// Opens the limiter as programs do. (With zero bounds, every call would open and close the file, and Wine keeps a
/// file that was opened and closed as long as any process has a lock on it.)
fn open(directory: &Path) -> Limiter {
    Limiter::builder(NAME).directory(directory).open_existing().unwrap()
}

/// Creates the limiter with a handle that looks for exited processes at every refusal.
fn watchful(directory: &Path, policy: Policy) -> Limiter {
    let bounds = AttachOptions { reclaim: Duration::ZERO, ..AttachOptions::default() };
    Limiter::builder(NAME).directory(directory).bounds(bounds).policy(policy).create().unwrap()
}

#[test]
fn r131_two_and_four_processes_together_are_granted_exactly_what_the_rule_allows() {
    let _watchdog = Watchdog::new("sharing a budget", LONGEST);
    for (processes, burst) in [(2, 20_000), (4, 20_001)] {
        let directory = directory();
        let limiter = watchful(directory.path(), counted(burst, None));
        let mut workers: Vec<_> =
            (0..processes).map(|_| start("role_that_drains", directory.path())).collect();
        workers.iter_mut().for_each(|worker| assert_eq!(worker.receive(), "ready"));
        workers.iter_mut().for_each(Running::go_on);
        let granted: Vec<u64> = workers.iter_mut().map(|worker| worker.receive().parse().unwrap()).collect();
        assert_eq!(granted.iter().sum::<u64>(), burst, "{granted:?}");
        assert_eq!(drain(&limiter), 0);
        println!("{processes} processes: {granted:?}");
        workers.into_iter().for_each(Running::finish);
    }
}

#[test]
fn role_that_drains() {
    let Some(directory) = role("role_that_drains") else { return };
    let limiter = open(&directory);
    send("ready");
    assert!(wait_for_go_on());
    let call = || limiter.try_acquire(&Request::new()).map(|grant| grant.release().unwrap());
    send(&(0..).take_while(|_| call().is_ok()).count().to_string());
    wait_for_go_on();
}

/// Each thread of a victim counts its granted calls here, after each grant. The counts show what it was counted before
/// it was killed.
const LEDGER: &str = "ledger";
/// More threads than processors: the lock holder is often not running, and is killed while it holds the lock.
const THREADS: usize = 8;

#[test]
fn p1_p2_the_lock_of_a_killed_holder_is_taken_over_and_no_grant_is_lost_or_invented() {
    const LIMIT: u64 = 1_000_000_000;
    const PERMITS: u64 = 16;
    const WANTED: usize = if cfg!(windows) { 2 } else { 8 };
    let _watchdog = Watchdog::new("killing lock holders", LONGEST);
    let mut random = Random::seeded("killing lock holders");
    let directory = directory();
    // More units than the victims can use, and a period that outlasts the test.
    let year = RuleDraft::new(Algorithm::FixedWindow, LIMIT, Duration::from_secs(300 * 86_400));
    let draft = PolicyDraft { concurrency: Some(PERMITS), rules: &[year], ..PolicyDraft::default() };
    let policy = Policy::new(&draft).unwrap();
    std::fs::write(directory.path().join(LEDGER), [0; 8 * THREADS]).unwrap();
    let ledger = Raw::map(&directory.path().join(LEDGER));
    let limiter = watchful(directory.path(), policy);
    let counted = || (0..THREADS).map(|thread| ledger.word(thread).load(Ordering::Relaxed)).sum::<u64>();
    let raw = Raw::map(&segment_path(directory.path()));
    let mut survivor = start("role_that_goes_on", directory.path());
    assert_eq!(survivor.receive(), "ready");
    let (mut kills, mut holders, mut halves, mut wasted) = (0, 0, 0, 0);
    let mut charged = 0;
    while holders < WANTED || kills < ROUNDS {
        assert!(kills < 5 * ROUNDS, "{holders} of {kills} were killed while they held the lock");
        (0..THREADS).for_each(|thread| ledger.word(thread).store(0, Ordering::Relaxed));
        let mut victim = start("role_of_a_victim", directory.path());
        assert_eq!(victim.receive(), "ready");
        assert!(eventually(|| counted() > 0));
        (0..random.index(50_000)).for_each(|_| std::hint::spin_loop());
        victim.kill();
        kills += 1;
        // No other process uses the limiter now, so a lock holder is the killed process.
        holders += usize::from(raw.word(layout::LOCK).load(Ordering::Relaxed) as u32 >> 20 != 0);
        halves += usize::from(raw.word(layout::VERSION).load(Ordering::Relaxed) % 2 == 1);
        let counted = counted();
        // Another process goes first. It must take over the lock from the killed process within the bound; else it
        // sends its error.
        survivor.go_on();
        assert_eq!(survivor.receive(), "granted", "after {kills} kills");
        charged += 1;
        let seen = limiter.snapshot().unwrap();
        let by_the_victim = LIMIT - seen.rules[0].remaining - charged;
        assert!(
            (counted..=counted + THREADS as u64).contains(&by_the_victim),
            "kill {kills}: {counted} were granted, {by_the_victim} are charged"
        );
        wasted += by_the_victim - counted;
        charged += by_the_victim;
        assert_eq!(seen.resets, 0, "a killed process leaves nothing damaged");
        let held: Vec<_> = (0..PERMITS).map(|_| limiter.try_acquire(&Request::new())).collect();
        let got = held.iter().filter(|one| one.is_ok()).count();
        assert_eq!(got as u64, PERMITS, "kill {kills}: its permits come back");
        assert!(limiter.try_acquire(&Request::new()).is_err(), "kill {kills}: and no more of them");
        charged += PERMITS;
    }
    println!(
        "{kills} kills, {holders} with the lock, {halves} in the middle of a change; {wasted} grants wasted"
    );
    survivor.finish();
}

#[test]
fn role_of_a_victim() {
    let Some(directory) = role("role_of_a_victim") else { return };
    let ledger = Raw::map(&directory.join(LEDGER));
    let limiter = open(&directory);
    send("ready");
    let work = |thread| {
        loop {
            let Ok(grant) = limiter.try_acquire(&Request::new()) else { continue };
            let counted = ledger.word(thread).fetch_add(1, Ordering::Relaxed);
            // Half of the grants are recorded, the other half only released.
            if counted.is_multiple_of(2) {
                drop(grant.record(&Outcome::http(200, &[])))
            } else {
                drop(grant.release())
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || work(thread))));
    });
}

#[test]
fn role_that_goes_on() {
    let Some(directory) = role("role_that_goes_on") else { return };
    let limiter = open(&directory);
    send("ready");
    while wait_for_go_on() {
        // The permit is released before the answer, because the parent counts permits then.
        match limiter.try_acquire(&Request::new()).map(drop) {
            Ok(()) => send("granted"),
            Err(error) => send(&format!("{error}")),
        }
    }
}

#[test]
fn r131_the_next_in_the_queue_is_served_after_the_head_is_killed() {
    let _watchdog = Watchdog::new("killing the head of the queue", LONGEST);
    let directory = directory();
    let limiter = watchful(directory.path(), permits(1));
    let mut next = start("role_that_waits", directory.path());
    assert_eq!(next.receive(), "ready");
    let queue = || limiter.snapshot().unwrap().queue.iter().map(|one| one.pid).collect::<Vec<_>>();
    for round in 0..ROUNDS {
        let permit = limiter.try_acquire(&Request::new()).unwrap();
        let mut head = start("role_that_waits", directory.path());
        assert_eq!(head.receive(), "ready");
        head.go_on();
        assert!(eventually(|| queue().len() == 1), "round {round}");
        next.go_on();
        assert!(eventually(|| queue().len() == 2), "round {round}");
        assert_eq!(queue(), [head.id(), next.id()], "round {round}: first come, first served");
        head.kill();
        permit.release().unwrap();
        // Only the sleeping process can find out that the first one is dead.
        assert_eq!(next.receive(), "granted", "round {round}");
        next.go_on();
        assert_eq!(next.receive(), "given back", "round {round}");
    }
    assert!(queue().is_empty());
    next.finish();
}

#[test]
fn role_that_waits() {
    let Some(directory) = role("role_that_waits") else { return };
    let limiter = open(&directory);
    send("ready");
    while wait_for_go_on() {
        let grant = limiter.acquire(&Request::new()).unwrap();
        send("granted");
        wait_for_go_on();
        grant.release().unwrap();
        send("given back");
    }
}

#[test]
fn r131_permits_of_killed_processes_are_reclaimed_and_never_exceeded() {
    const PERMITS: u64 = 5;
    let _watchdog = Watchdog::new("killing permit holders", LONGEST);
    let mut random = Random::seeded("killing permit holders");
    let directory = directory();
    let limiter = watchful(directory.path(), permits(PERMITS));
    for round in 0..ROUNDS {
        let mut holder = start("role_that_holds", directory.path());
        let mut other = start("role_that_takes_and_gives", directory.path());
        assert_eq!(
            (holder.receive(), other.receive()),
            ("2".to_owned(), "ready".to_owned()),
            "round {round}"
        );
        for _ in 0..random.index(200) {
            let held: Vec<_> =
                (0..PERMITS).map_while(|_| limiter.try_acquire(&Request::new()).ok()).collect();
            assert!(held.len() <= 3, "round {round}: two are out, and three of five were there");
            let seen = limiter.snapshot().unwrap();
            assert!(u64::from(seen.in_flight) <= PERMITS, "round {round}: {} are out", seen.in_flight);
        }
        // In either order: each process may have been killed in the middle of a change.
        if random.index(2) == 0 {
            holder.kill();
            other.kill();
        } else {
            other.kill();
            holder.kill();
        }
        let held: Vec<_> = (0..PERMITS).map(|_| limiter.try_acquire(&Request::new())).collect();
        let got = held.iter().filter(|one| one.is_ok()).count();
        assert_eq!(got as u64, PERMITS, "round {round}: their permits come back");
        assert!(limiter.try_acquire(&Request::new()).is_err(), "round {round}: one too many");
        drop(held);
        let seen = limiter.snapshot().unwrap();
        assert_eq!((seen.in_flight, seen.participants.len(), seen.resets), (0, 1, 0), "round {round}");
    }
}

#[test]
fn role_that_holds() {
    let Some(directory) = role("role_that_holds") else { return };
    let limiter = open(&directory);
    send(&(0..2).filter(|_| take(&limiter)).count().to_string());
    wait_for_go_on();
}

#[test]
fn role_that_takes_and_gives() {
    let Some(directory) = role("role_that_takes_and_gives") else { return };
    let limiter = open(&directory);
    send("ready");
    loop {
        let held: Vec<_> = (0..3).map_while(|_| limiter.try_acquire(&Request::new()).ok()).collect();
        drop(held);
    }
}

#[test]
fn charges_persist_after_all_processes_have_gone() {
    let _watchdog = Watchdog::new("coming back", LONGEST);
    let directory = directory();
    drop(watchful(directory.path(), counted(10, Some(4))));
    for killed in [false, true] {
        let mut one = start("role_that_holds", directory.path());
        assert_eq!(one.receive(), "2");
        if killed { one.kill() } else { one.finish() }
    }
    let raw = Raw::map(&segment_path(directory.path()));
    assert_eq!(raw.word(layout::RETIRED).load(Ordering::Relaxed), layout::LIVE);
    drop(raw);
    let limiter = Limiter::builder(NAME).directory(directory.path()).open_existing().unwrap();
    assert_eq!(limiter.policy().unwrap(), counted(10, Some(4)));
    let seen = limiter.snapshot().unwrap();
    assert_eq!((seen.rules[0].remaining, seen.resets), (6, 0));
    let held: Vec<_> = (0..4).map(|_| limiter.try_acquire(&Request::new())).collect();
    assert!(held.iter().all(Result::is_ok), "all permits are back: {held:?}");
}
