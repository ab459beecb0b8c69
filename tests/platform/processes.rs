//! Real processes share one limiter and are killed at any moment (P1, P2, R131). The same on every platform: SIGKILL where
//! there are signals, `TerminateProcess` on Windows.
//!
//! What single steps can show of every instruction is in the tests that need ptrace; here is what the operating system
//! itself must do: give locks back on death, wake others, keep the file.

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

/// Starting a program takes its time on Windows.
const ROUNDS: usize = if cfg!(windows) { 10 } else { 40 };
const LONGEST: Duration = Duration::from_secs(240);

fn start(name: &str, directory: &Path) -> Running {
    Running::start(command(&[], &format!("{}::{name}", module_path!()), directory))
}

/// As programs open it. (AttachOptions of nothing would have the file looked at in every call; and Wine keeps for good what was
/// opened and closed again as long as anybody has a lock on the file.)
fn open(directory: &Path) -> Limiter {
    Limiter::builder(NAME).directory(directory).open_existing().unwrap()
}

/// For one who looks for the dead whenever it is refused.
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

/// Where each thread of a victim notes, after every call that was granted, how many were: what it was told before it died.
const LEDGER: &str = "ledger";
/// More than there are processors: who holds the lock is often not running, and is killed with it.
const THREADS: usize = 8;

#[test]
fn p1_p2_a_killed_lock_holder_is_taken_over_and_no_grant_is_forgotten_nor_made_up() {
    const LIMIT: u64 = 1_000_000_000;
    const PERMITS: u64 = 16;
    const WANTED: usize = if cfg!(windows) { 2 } else { 8 };
    let _watchdog = Watchdog::new("killing lock holders", LONGEST);
    let mut random = Random::seeded("killing lock holders");
    let directory = directory();
    // So many that victims cannot use them up, and none comes back within a test.
    let year = RuleDraft::new(Algorithm::FixedWindow, LIMIT, Duration::from_secs(300 * 86_400));
    let draft = PolicyDraft { concurrency: Some(PERMITS), rules: &[year], ..PolicyDraft::default() };
    let policy = Policy::new(&draft).unwrap();
    std::fs::write(directory.path().join(LEDGER), [0; 8 * THREADS]).unwrap();
    let ledger = Raw::map(&directory.path().join(LEDGER));
    let limiter = watchful(directory.path(), policy);
    let told = || (0..THREADS).map(|thread| ledger.word(thread).load(Ordering::Relaxed)).sum::<u64>();
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
        assert!(eventually(|| told() > 0));
        (0..random.index(50_000)).for_each(|_| std::hint::spin_loop());
        victim.kill();
        kills += 1;
        // Nobody else is at it now: who holds the lock is the dead.
        holders += usize::from(raw.word(layout::LOCK).load(Ordering::Relaxed) as u32 >> 20 != 0);
        halves += usize::from(raw.word(layout::VERSION).load(Ordering::Relaxed) % 2 == 1);
        let told = told();
        // Another process first: it must take the lock from the dead, within the bound; else it says what went wrong.
        survivor.go_on();
        assert_eq!(survivor.receive(), "granted", "after {kills} kills");
        charged += 1;
        let seen = limiter.snapshot().unwrap();
        let by_the_victim = LIMIT - seen.rules[0].remaining - charged;
        assert!(
            (told..=told + THREADS as u64).contains(&by_the_victim),
            "kill {kills}: {told} were granted, {by_the_victim} are charged"
        );
        wasted += by_the_victim - told;
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
            let told = ledger.word(thread).fetch_add(1, Ordering::Relaxed);
            // Half of them recorded, half merely given back.
            if told.is_multiple_of(2) {
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
        // Given back before it is told: the other counts permits then.
        match limiter.try_acquire(&Request::new()).map(drop) {
            Ok(()) => send("granted"),
            Err(error) => send(&format!("{error}")),
        }
    }
}

#[test]
fn r131_the_head_of_the_queue_is_killed_and_the_next_is_served() {
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
        // Nobody but the one that sleeps can find out that the first is dead.
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
fn r131_permits_of_killed_processes_come_back_and_never_too_many_are_out() {
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
        // In either order: each may have died in the middle of a change.
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
fn what_was_charged_is_still_charged_when_all_have_gone() {
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
