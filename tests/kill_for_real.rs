//! P1 and P2 with real kills: what pictures of a segment cannot show, the operating system's locks and sleepers.
//!
//! Two processes hold permits and contend for the lock; a third is killed after every so many instructions of an
//! operation. The two must go on, the dead one's permits must come back, and the books must balance.

#![cfg(target_os = "linux")]

mod support;

use shmlimit::internals::layout::RESETS;
use shmlimit::{AcquireError, Limiter, Reason, Request};
use std::path::Path;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};
use support::actor::{self, Actor, mark, ready};
use support::image::{self, Image};
use support::ptrace::{Step, Tracee};
use support::{boot_time, builder, directory, eventually, fast_policy};

/// More than the peers and a victim ever want: nobody has to look for the dead on the way.
const PERMITS: u64 = 6;

/// Not a claim: here the actors of the other tests begin.
#[test]
fn actor() {
    if let Some((role, directory)) = actor::role() {
        play(&role, &directory);
    }
}

fn play(role: &str, directory: &Path) {
    let one = Request::new();
    let limiter = builder(directory).open_existing().unwrap();
    let marked = |work: &mut dyn FnMut()| {
        ready();
        mark();
        work();
        mark();
        actor::hear();
    };
    match role {
        "peer" => contend(&limiter),
        "acquire" => {
            let mut grant = None;
            marked(&mut || grant = limiter.try_acquire(&one).ok());
        }
        "release" | "cancel" => {
            let mut grant = limiter.try_acquire(&one).ok();
            marked(&mut || {
                let grant = grant.take().expect("a permit is free");
                if role == "release" { grant.release().unwrap() } else { grant.cancel().unwrap() }
            });
        }
        "denied" => marked(&mut || {
            let dear = Request::new().cost("requests", 1 << 40);
            assert!(matches!(limiter.try_acquire(&dear), Err(AcquireError::Refused(_))));
        }),
        "holder" => {
            let mut all: Vec<_> = (0..PERMITS).map(|_| limiter.try_acquire(&one).unwrap()).collect();
            marked(&mut || all.pop().unwrap().release().unwrap());
        }
        "asker" => {
            ready();
            mark();
            match limiter.try_acquire(&one) {
                Ok(_) => actor::say("granted"),
                Err(error) => actor::say(&format!("{error}")),
            }
            actor::hear();
        }
        "waiter" => {
            ready();
            loop {
                let grant = limiter.acquire(&one).unwrap();
                let at = boot_time();
                drop(grant);
                actor::say(&format!("granted {at}"));
                actor::hear();
            }
        }
        other => panic!("no such role: {other}"),
    }
}

/// Keeps one permit and takes and returns another, until told to pause.
fn contend(limiter: &Limiter) {
    let _kept = limiter.try_acquire(&Request::new()).unwrap();
    ready();
    let (tell, told) = channel();
    std::thread::spawn(move || while tell.send(actor::hear()).is_ok() {});
    loop {
        while told.try_recv() == Err(TryRecvError::Empty) {
            match limiter.try_acquire(&Request::new()) {
                Ok(grant) => grant.release().unwrap(),
                Err(error) => return actor::say(&format!("{error}")),
            }
            // Leaves the processor to the tracer; nothing waits for this.
            std::thread::sleep(Duration::from_micros(20));
        }
        actor::say("idle");
        told.recv().unwrap();
    }
}

fn fresh() -> tempfile::TempDir {
    let directory = directory();
    drop(builder(directory.path()).policy(fast_policy(PERMITS)).create().unwrap());
    directory
}

/// Takes every permit there is, gives them back, and says how many there were.
fn free_permits(limiter: &Limiter) -> u64 {
    let mut grants = Vec::new();
    loop {
        match limiter.try_acquire(&Request::new()) {
            Ok(grant) => grants.push(grant),
            Err(AcquireError::Refused(refusal)) => {
                assert_eq!(refusal.reason, Reason::Concurrency);
                return grants.len() as u64;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many places of each operation are tried; the long version tries more.
fn places() -> usize {
    std::env::var("SHMLIMIT_KILL_PLACES").ok().and_then(|n| n.parse().ok()).unwrap_or(50)
}

/// Grants that each survivor must make after a kill.
const FURTHER: u64 = 10;

#[test]
fn p1_p2_after_a_real_kill_at_any_place_survivors_go_on_and_the_books_balance() {
    let directory = fresh();
    let file = image::open(directory.path());
    let limiter = builder(directory.path()).open_existing().unwrap();
    let mut peers = [(); 2].map(|()| Actor::start("peer", directory.path()));
    let mut now = Image::of(directory.path());
    let slots = peers.each_ref().map(|peer| now.slot_of(peer.pid.as_raw() as u32).unwrap());

    let (mut kills, mut as_owner, mut with_sleeper, mut stalls) = (0, 0, 0, Vec::new());
    for role in ["acquire", "release", "cancel", "denied"] {
        let length = {
            let mut tracee = Tracee::start(role, directory.path());
            (1..).find(|_| tracee.step() == Step::Done).unwrap()
        };
        println!("{role}: {length} instructions");
        let stride = (length / places()).max(1);
        for place in (stride / 2..length).step_by(stride) {
            let mut victim = Tracee::start(role, directory.path());
            // The way may be shorter this time: then it dies just after it.
            (0..place).find(|_| victim.step() == Step::Done);
            // Only now: a process that is stepped through never wins a race for the lock.
            peers.iter_mut().for_each(|peer| peer.say("go"));
            now.take(&file);
            let slot = now.slot_of(victim.actor.pid.as_raw() as u32).unwrap();
            if now.lock_owner() == Some(slot) {
                as_owner += 1;
                eventually("a peer sleeps on the lock", || {
                    now.take(&file);
                    now.has_sleeper()
                });
                with_sleeper += 1;
            }
            let owned = now.lock_owner() == Some(slot);
            victim.kill();
            let killed = Instant::now();
            kills += 1;

            now.take(&file);
            let grants = slots.map(|slot| now.granted(slot));
            eventually("the survivors go on", || {
                now.take(&file);
                slots.iter().zip(grants).all(|(slot, before)| now.granted(*slot) > before)
            });
            if owned {
                stalls.push(killed.elapsed());
            }
            let goals = slots.map(|slot| now.granted(slot) + FURTHER);
            eventually("the survivors keep going", || {
                now.take(&file);
                slots.iter().zip(goals).all(|(slot, goal)| now.granted(*slot) >= goal)
            });
            for peer in &mut peers {
                peer.say("pause");
                assert_eq!(peer.hear(), "idle");
            }
            assert_eq!(free_permits(&limiter), PERMITS - 2, "{role}, killed after {place} instructions");
            now.take(&file);
            assert!(now.is_whole() && now.lock_owner().is_none());
            assert_eq!((now.in_flight(), now.held_by_all(), now.held(slot)), (2, 2, 0));
            assert_eq!(now.word(RESETS), 0, "nothing had to be started afresh");
        }
    }
    println!("{kills} kills, {as_owner} of them of the lock's owner, {with_sleeper} with a sleeper on it");
    report("both survivors granted again after the lock's owner died", stalls);
    assert!(as_owner > 0, "no kill hit the critical section");
}

/// For people and for the long version: how long it took. The tests themselves only mind whether it ended.
fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    if let (Some(median), Some(most)) = (times.get(times.len() / 2), times.last()) {
        println!("{what}: median {median:.2?}, at most {most:.2?}, {} times", times.len());
    }
}

#[test]
fn p2_a_waiter_gets_the_permits_of_the_dead() {
    let directory = fresh();
    let mut waiter = Actor::start("waiter", directory.path());
    let waiting = image::open(directory.path());
    let mut now = Image::blank();
    let mut waits = Vec::new();
    for _ in 0..places().min(20) {
        let holder = Tracee::start("holder", directory.path());
        now.take(&waiting);
        let slot = now.slot_of(waiter.pid.as_raw() as u32).unwrap();
        let refused = now.refused(slot);
        waiter.say("go");
        eventually("the waiter is refused and waits", || {
            now.take(&waiting);
            now.refused(slot) >= refused + 2
        });
        let killed = boot_time();
        holder.kill();
        let said = waiter.hear();
        let granted: u64 = said.strip_prefix("granted ").expect(&said).parse().unwrap();
        waits.push(Duration::from_nanos(granted.saturating_sub(killed)));
    }
    report("a waiter granted after the holder of all permits died", waits);
}

/// Steps a tracee until it holds the lock; says which slot that is.
fn step_into_the_lock(tracee: &mut Tracee, directory: &Path) -> usize {
    let file = image::open(directory);
    let mut now = Image::blank();
    now.take(&file);
    let slot = now.slot_of(tracee.actor.pid.as_raw() as u32).unwrap();
    while now.lock_owner() != Some(slot) {
        assert_eq!(tracee.step(), Step::Inside, "the operation never took the lock");
        now.take(&file);
    }
    slot
}

#[test]
fn p2_a_participant_that_dies_with_permits_and_lock_between_refusal_and_reaping_stalls_nobody() {
    let directory = fresh();
    let file = image::open(directory.path());
    let mut holder = Tracee::start("holder", directory.path());
    let mut asker = Tracee::start("asker", directory.path());
    let mut now = Image::blank();
    now.take(&file);
    let slot = now.slot_of(asker.actor.pid.as_raw() as u32).unwrap();
    while now.refused(slot) == 0 {
        assert_eq!(asker.step(), Step::Inside);
        now.take(&file);
    }
    assert_eq!(now.lock_owner(), None, "it was refused and has let go");
    step_into_the_lock(&mut holder, directory.path());
    holder.kill();
    asker.let_go();
    assert_eq!(asker.actor.hear(), "granted");
}
