//! P6: fork, exec, raw clone, daemons and threads keep every promise.
//!
//! The rules here refill once an hour, so the number of grants within a test is exact.

use crate::util;
use crate::util::forks::{Pipe, cloned, exit_code, forked, kill_now};
use crate::util::respawn::in_own_process;
use crate::util::{Watchdog, builder, counted, drain, eventually, permits, take};
use nix::libc;
use shmlimit::{AcquireError, Limiter, Request};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn make(directory: &Path, policy: shmlimit::Policy) -> Limiter {
    builder(directory).policy(policy).create().unwrap()
}

/// Runs `scenario` twice: with children by fork, and by raw clone. The second run is in its own process with one
/// thread: raw clone bypasses libc, which then does not repair malloc's locks, so a program with threads must not
/// do it.
fn by_fork_and_by_raw_clone(scenario: impl Fn(bool)) {
    scenario(false);
    let alone = forked(|| {
        scenario(true);
        0
    });
    assert_eq!(exit_code(alone), 0);
}

/// A child by fork, or by raw clone.
fn started(raw: bool, body: impl FnOnce() -> i32) -> nix::unistd::Pid {
    if raw { cloned(body) } else { forked(body) }
}

fn in_flight(limiter: &Limiter) -> u32 {
    limiter.snapshot().unwrap().in_flight
}

#[test]
fn p6_a_forked_child_attaches_by_itself_with_its_own_slot() {
    in_own_process!();
    by_fork_and_by_raw_clone(|raw| {
        let directory = util::directory();
        let limiter = make(directory.path(), counted(10, Some(10)));
        assert!(take(&limiter));
        {
            let (ready, go) = (Pipe::new(), Pipe::new());
            let body = || {
                let granted = take(&limiter);
                ready.send(granted.into());
                go.receive();
                0
            };
            let child = started(raw, body);
            assert_eq!(ready.receive(), 1);
            let seen = limiter.snapshot().unwrap();
            let mut pids: Vec<u32> = seen.participants.iter().map(|p| p.pid).collect();
            pids.sort_unstable();
            let mut expected = vec![std::process::id(), child.as_raw() as u32];
            expected.sort_unstable();
            assert_eq!(pids, expected, "two participants, each with its own slot");
            assert!(seen.participants.iter().all(|p| p.held == 1), "{seen:?}");
            assert_eq!(seen.in_flight, 2);
            go.send(0);
            assert_eq!(exit_code(child), 0);
            // The child ended without detaching: `_exit` runs no destructor.
            assert!(builder(directory.path()).open_existing().is_ok());
            assert!(eventually(|| limiter.snapshot().unwrap().participants.len() == 1));
            reclaim_on_demand(&limiter, 10);
            assert_eq!(in_flight(&limiter), 1);
        }
    });
}

/// Makes permits short, so that exited processes are reclaimed, without spending the rule. Every call costs a unit,
/// so the policy is changed for a moment instead.
fn reclaim_on_demand(limiter: &Limiter, burst: u64) {
    limiter.set_policy(&counted(burst, Some(1))).unwrap();
    let _ = limiter.try_acquire(&Request::new()).map(|grant| grant.cancel());
    limiter.set_policy(&counted(burst, Some(10))).unwrap();
}

#[test]
fn p6_a_grant_does_not_cross_a_fork() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(3));
    for how in 0..6 {
        let mut grant = Some(limiter.try_acquire(&Request::new()).unwrap());
        let child = forked(|| {
            let grant = grant.take().unwrap();
            // Also after the child has attached itself and holds a permit that it could lose.
            let own = (how % 2 == 1).then(|| limiter.try_acquire(&Request::new()).unwrap());
            match how / 2 {
                0 => drop(grant),
                1 => grant.release().unwrap(),
                _ => grant.cancel().unwrap(),
            }
            let seen = in_flight(&limiter);
            drop(own);
            seen as i32
        });
        assert_eq!(exit_code(child), 1 + how % 2, "way {how}");
        assert_eq!(in_flight(&limiter), 1, "way {how}: the parent's permit is still out");
        grant.take().unwrap().release().unwrap();
        assert_eq!(in_flight(&limiter), 0, "way {how}");
    }
}

#[test]
fn p6_dropping_the_parents_handle_in_the_child_changes_nothing() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(3));
    let grant = limiter.try_acquire(&Request::new()).unwrap();
    let copy = std::mem::ManuallyDrop::new(limiter.clone());
    let child = forked(|| {
        // The last two references in the child's own copy of memory: dropping them unmaps the segment there.
        // SAFETY: the child ends by `_exit`; nothing uses the handle again in it.
        unsafe {
            drop(std::ptr::read(&limiter));
            drop(std::ptr::read(&*copy));
        }
        0
    });
    assert_eq!(exit_code(child), 0);
    assert_eq!(in_flight(&limiter), 1);
    assert_eq!(limiter.snapshot().unwrap().participants.len(), 1);
    drop(grant);
    drop(std::mem::ManuallyDrop::into_inner(copy));
    assert_eq!(in_flight(&limiter), 0);
}

/// While one thread reclaims the permits of exited processes, another may still be refused; it asks again.
fn use_once(limiter: &Limiter) {
    let once = || match limiter.try_acquire(&Request::new()) {
        Ok(grant) => grant.release().map(|()| true).unwrap(),
        Err(AcquireError::Refused(_)) => false,
        Err(error) => panic!("{error}"),
    };
    assert!(eventually(once));
}

#[test]
fn p6_fork_while_other_threads_are_inside() {
    in_own_process!();
    let _watchdog = Watchdog::new("forking beside busy threads", Duration::from_secs(100));
    let directory = util::directory();
    let limiter = make(directory.path(), permits(64));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    use_once(&limiter);
                }
            });
        }
        for round in 0..300 {
            let body = || {
                for _ in 0..20 {
                    use_once(&limiter);
                }
                // Every other child exits with a permit.
                round % 2 * i32::from(eventually(|| take(&limiter)))
            };
            assert_eq!(exit_code(forked(body)), round % 2, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    // 150 permits were lost with children; all 64 are available again.
    assert_eq!(drain(&limiter), 64);
}

#[test]
fn p6_permits_of_a_killed_parent_are_reclaimed_although_its_idle_child_lives_on() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(3));
    let (ready, go) = (Pipe::new(), Pipe::new());
    let parent = forked(|| {
        // The parent has its own attachment, and then a child that inherits it and does nothing.
        let own = builder(directory.path()).open_existing().unwrap();
        assert_eq!(drain(&own), 3);
        forked(|| {
            ready.send(1);
            go.receive().into()
        });
        loop {
            std::thread::park();
        }
    });
    assert_eq!(ready.receive(), 1);
    assert!(!take(&limiter), "all permits are out, and their holder lives");
    kill_now(parent);
    assert!(eventually(|| take(&limiter)), "the permits of the killed parent never came back");
    assert_eq!(drain(&limiter), 2);
    go.send(0);
}

#[test]
fn p6_permits_of_a_killed_child_are_reclaimed_and_the_parents_stay() {
    in_own_process!();
    by_fork_and_by_raw_clone(|raw| {
        let directory = util::directory();
        let limiter = make(directory.path(), permits(4));
        assert!(take(&limiter));
        {
            let ready = Pipe::new();
            let body = || {
                ready.send(drain(&limiter) as u8);
                loop {
                    std::thread::park();
                }
            };
            let child = started(raw, body);
            assert_eq!(ready.receive(), 3);
            assert!(!take(&limiter));
            kill_now(child);
            let grants: Vec<_> = (0..3).map(|_| limiter.try_acquire(&Request::new()).unwrap()).collect();
            assert!(limiter.try_acquire(&Request::new()).is_err(), "the parent's own permit is still out");
            drop(grants);
        }
    });
}

#[test]
fn p6_exec_releases_all_permits() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(2));
    let ready = Pipe::new();
    let child = forked(|| {
        assert_eq!(drain(&limiter), 2);
        ready.send(1);
        // The process lives on, but as another program that has nothing of the library.
        let arguments = [c"sleep", c"1000"];
        nix::unistd::execvp(arguments[0], &arguments).map_or(9, |_| 0)
    });
    assert_eq!(ready.receive(), 1);
    assert!(eventually(|| take(&limiter)), "a program that replaced the holder kept its permits");
    let comm = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap();
    assert_eq!(comm.trim(), "sleep", "the process itself is still there");
    kill_now(child);
}

#[test]
fn p6_a_daemon_that_closes_every_descriptor_keeps_working() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(2));
    let child = forked(|| {
        assert_eq!(in_flight(&limiter), 0);
        // SAFETY: closes descriptors of this child only, which uses none of them any more.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
        // The numbers of the closed descriptors now mean other files.
        let _others: Vec<_> = (0..8).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert_eq!(drain(&limiter), 2);
        // Reclaiming from a killed process must work too: the child's own child takes a permit and is killed.
        drop(limiter.snapshot().unwrap());
        let seen = limiter.snapshot().unwrap();
        assert_eq!((seen.in_flight, seen.participants.len()), (2, 2));
        limiter.set_policy(&permits(3)).unwrap();
        let victim = forked(|| {
            assert!(take(&limiter));
            // SAFETY: ends this process itself, as an out-of-memory killer would.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            0
        });
        assert_eq!(exit_code(victim), 128 + libc::SIGKILL);
        assert!(take(&limiter), "the permit of the dead was not found");
        0
    });
    assert_eq!(exit_code(child), 0);
    assert_eq!(drain(&limiter), 3, "and what the daemon held comes back");
}

#[test]
fn p6_many_threads_on_one_handle_and_on_clones_are_granted_exactly_what_the_rule_allows() {
    const ALLOWED: usize = 3000;
    let directory = util::directory();
    let limiter = make(directory.path(), counted(ALLOWED as u64, None));
    let own_handles: Vec<_> = (0..2).map(|_| builder(directory.path()).open_existing().unwrap()).collect();
    let granted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let (limiter, granted, clone) = (&limiter, &granted, limiter.clone());
            let own = &own_handles[thread % 2];
            scope.spawn(move || {
                let handle = [limiter, &clone, own][thread % 3];
                let mine = std::iter::repeat_with(|| handle.try_acquire(&Request::new()))
                    .take_while(|answer| answer.is_ok())
                    .count();
                granted.fetch_add(mine, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(granted.into_inner(), ALLOWED);
    assert_eq!(in_flight(&limiter), 0, "every grant was dropped");
}

#[test]
fn p6_threads_of_a_fresh_child_attach_once() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), permits(64));
    for _ in 0..30 {
        let child = forked(|| {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| assert!(eventually(|| take(&limiter))));
                }
            });
            let me = std::process::id();
            let seen = limiter.snapshot().unwrap();
            let mine: Vec<u32> = seen.participants.iter().filter(|p| p.pid == me).map(|p| p.held).collect();
            i32::from(mine != [8])
        });
        assert_eq!(exit_code(child), 0, "one slot with all eight permits");
    }
}

#[test]
fn p6_forked_processes_together_are_granted_exactly_what_the_rule_allows() {
    in_own_process!();
    let directory = util::directory();
    let limiter = make(directory.path(), counted(500, None));
    let (start, granted) = (Pipe::new(), Pipe::new());
    let workers: Vec<_> = (0..8)
        .map(|_| {
            forked(|| {
                start.receive();
                while take(&limiter) {
                    granted.send(1);
                }
                0
            })
        })
        .collect();
    (0..8).for_each(|_| start.send(0));
    workers.into_iter().for_each(|worker| assert_eq!(exit_code(worker), 0));
    granted.send(0);
    assert_eq!(std::iter::repeat_with(|| granted.receive()).take_while(|said| *said == 1).count(), 500);
}
