//! P1 for waiting calls: SIGKILL at any instruction of entering the queue, looking, leaving, and changing the order
//! of turns leaves the state exactly before or after; entries, places, turns and counts included.
//!
//! The method is that of `kill_every_instruction.rs`. The other waiters are real processes, stopped in their sleep,
//! so that only the traced process changes anything.

use crate::util::crash::child_process::stop_in_its_sleep;
use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::image::{self, Image, entry};
use crate::util::crash::ptrace::Tracee;
use crate::util::crash::walk::{Walk, walk_on, walk_where};
use crate::util::crash::{CONCURRENCY, builder, policy, usual_policy};
use crate::util::{boot_time, directory, poll, queued, wait_until};
use shmlimit::{AcquireError, Grant, Limiter, Priority, Reason, Request};
use shmlimit_segment::layout::{self, CORE, RESETS, WAITING};
use std::cell::Cell;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;
use tempfile::TempDir;

/// The test that serves as the entry point of actor processes.
const CHILD_PROCESS: &str = concat!(module_path!(), "::child_process");

/// The entry point of the actors of the other tests; checks nothing by itself.
#[test]
fn child_process() {
    if let Some((role, directory)) = child_process::role() {
        run_role(&role, &directory);
        child_process::receive();
    }
}

fn run_role(role: &str, directory: &Path) {
    let mut limiter = Some(builder(directory).open_existing().unwrap());
    if let Some(priorities) = role.strip_prefix("waiters ") {
        return wait_with(limiter.as_ref().unwrap(), priorities);
    }
    let one = Request::new();
    let here = limiter.as_ref().unwrap();
    let take = || here.try_acquire(&one).unwrap();
    if role == "bystander" {
        let _one = take();
        ready();
        child_process::receive();
    }
    // Take all permits that the bystander left. From here on every call has to wait.
    let mut held: Vec<_> = (1..CONCURRENCY).map(|_| take()).collect();
    let marked = |work: &mut dyn FnMut()| {
        mark();
        work();
        mark();
        child_process::receive();
    };
    let awake = Cell::new(false);
    let first = Request::new().priority(Priority::Webhook);
    let last = Request::new().priority(Priority::Background);
    let enter = |request| {
        let mut call = queued(here, request, &awake);
        assert!(poll(&mut call).is_pending());
        call
    };
    match role {
        "enter" => {
            let mut call = queued(here, &last, &awake);
            ready();
            marked(&mut || assert!(poll(&mut call).is_pending()));
        }
        "enter past the late" => {
            let mut call = queued(here, &last, &awake);
            ready();
            mark();
            drop(held.pop());
            let mut grant = None;
            marked(&mut || match poll(&mut call) {
                Poll::Ready(Ok(granted)) => grant = Some(granted),
                other => panic!("{other:?}"),
            });
        }
        "look in vain" => {
            let mut call = enter(&first);
            ready();
            awake.set(true);
            marked(&mut || assert!(poll(&mut call).is_pending()));
        }
        "look and go" => {
            let mut call = enter(&first);
            ready();
            mark();
            held.drain(..2).for_each(drop);
            awake.set(true);
            let mut grant = None;
            marked(&mut || match poll(&mut call) {
                Poll::Ready(Ok(granted)) => grant = Some(granted),
                other => panic!("{other:?}"),
            });
        }
        "leave" => {
            let mut calls: Vec<_> = (0..4).map(|_| enter(&first)).collect();
            ready();
            marked(&mut || drop(calls.remove(0)));
        }
        "time out" => {
            // It times out only when the other processes have arrived and are stopped: otherwise they would remove
            // it.
            let hasty = Request::new().timeout(Duration::from_secs(8));
            let mut call = enter(&hasty);
            let _later = enter(&last);
            let over = boot_time() + 8_000_000_000;
            ready();
            wait_until("its time is over", || boot_time() > over);
            awake.set(true);
            marked(&mut || assert!(matches!(poll(&mut call), Poll::Ready(Err(AcquireError::Refused(_))))));
        }
        "wait in vain" => {
            let hasty = Request::new().timeout(Duration::from_millis(300));
            ready();
            marked(&mut || assert_eq!(reason(here.acquire(&hasty)), Reason::Concurrency));
        }
        "release" | "cancel" => {
            ready();
            marked(&mut || match (role, held.pop()) {
                ("release", Some(grant)) => grant.release().unwrap(),
                (_, Some(grant)) => grant.cancel().unwrap(),
                (_, None) => panic!("no grant"),
            });
        }
        "detach" => {
            // Forget the grants and calls, so that the handle can be dropped while they exist.
            held.into_iter().for_each(std::mem::forget);
            (0..2).for_each(|_| std::mem::forget(enter(&first)));
            ready();
            marked(&mut || drop(limiter.take()));
        }
        "reclaim" => {
            ready();
            marked(&mut || assert_eq!(reason(here.try_acquire(&one)), Reason::Concurrency));
        }
        "set policy" => {
            ready();
            marked(&mut || here.set_policy(&policy(20, 10)).unwrap());
        }
        "reset" => {
            ready();
            marked(&mut || assert!(here.try_acquire(&one).is_err(), "after a reset no permit is free"));
        }
        other => panic!("no such role: {other}"),
    }
}

/// Starts one thread for each priority; each sleeps until it is granted or killed.
fn wait_with(limiter: &Limiter, priorities: &str) {
    std::thread::scope(|scope| {
        for name in priorities.split(' ') {
            let priority = Priority::ALL.into_iter().find(|known| known.as_str() == name).unwrap();
            scope.spawn(move || drop(limiter.acquire(&Request::new().priority(priority))));
        }
        ready();
        child_process::receive();
    });
}

fn reason(decided: Result<Grant<'_>, AcquireError>) -> Reason {
    match decided {
        Err(AcquireError::Refused(refusal)) => refusal.reason(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A limiter without a free permit: a bystander holds one, the traced process holds the others.
struct Fixture {
    directory: TempDir,
    _bystander: ChildProcess,
    tracee: Tracee,
}

impl Fixture {
    fn new(role: &str) -> Fixture {
        let directory = directory();
        drop(builder(directory.path()).policy(usual_policy()).create().unwrap());
        let _bystander = ChildProcess::start(CHILD_PROCESS, "bystander", directory.path());
        let tracee = Tracee::start(CHILD_PROCESS, role, directory.path());
        Fixture { directory, _bystander, tracee }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn image(&self) -> Image {
        Image::of(self.path())
    }

    /// Starts a process whose threads wait, and stops it in its sleep.
    fn waiters(&self, priorities: &str) -> ChildProcess {
        let before = self.image().waiting();
        let child_process = ChildProcess::start(CHILD_PROCESS, &format!("waiters {priorities}"), self.path());
        let wanted = before + priorities.split(' ').count() as u64;
        wait_until("all wait", || self.image().waiting() == wanted);
        stop_in_its_sleep(&child_process, self.path());
        child_process
    }

    /// Lets all waiters be expected to look soon, so that none is late on a slow machine.
    fn set_wake_time(&self) {
        image::set_wake_time(self.path(), boot_time() + 900_000_000);
    }

    fn walk(self, role: &str) -> Walk {
        self.set_wake_time();
        walk_on(self.tracee, role, self.directory.path(), true)
    }
}

fn slot_of(image: &Image, child_process: &ChildProcess) -> usize {
    image.slot_of(child_process.pid.as_raw() as u32).unwrap()
}

fn counts(walk: &Walk) -> Vec<(u64, usize)> {
    walk.committed.iter().map(|image| (image.waiting(), image.taken().len())).collect()
}

/// Checks that exactly one of the earlier waiters is woken, exactly once. Returns its place.
fn woken(walk: &Walk) -> usize {
    let (before, after) = (walk.before(), walk.last());
    let woken: Vec<usize> = before
        .taken()
        .into_iter()
        .filter(|place| before.wake_word(*place) != after.wake_word(*place))
        .collect();
    assert_eq!(woken.len(), 1, "one is woken");
    assert_eq!(before.wake_word(woken[0]) + 1, after.wake_word(woken[0]), "once");
    woken[0]
}

#[test]
fn p1_r131_entering_an_empty_queue_is_before_or_after() {
    let walk = Fixture::new("enter").walk("enter");
    assert_eq!(counts(&walk), [(0, 0), (1, 1)]);
    assert_eq!(walk.before().rules(), walk.after().rules(), "a waiting call is not charged");
}

#[test]
fn p1_r131_entering_behind_others_is_before_or_after() {
    let fixture = Fixture::new("enter");
    let _others = fixture.waiters("background user webhook");
    let walk = fixture.walk("enter behind others");
    assert_eq!(counts(&walk), [(3, 3), (4, 4)]);
}

#[test]
fn p1_r131_passing_over_the_late_is_before_or_after() {
    let mut fixture = Fixture::new("enter past the late");
    let _others = fixture.waiters("background user");
    fixture.tracee.run_to_mark();
    image::set_wake_time(fixture.path(), boot_time() - 1_000_000_000);
    let walk = walk_on(fixture.tracee, "enter past the late", fixture.directory.path(), true);
    assert_eq!(counts(&walk), [(2, 2), (2, 2)], "the late waiters keep their places");
    assert_eq!(walk.before().in_flight() + 1, walk.after().in_flight());
}

#[test]
fn p1_r131_a_look_that_books_again_is_before_or_after() {
    let fixture = Fixture::new("look in vain");
    let _others = fixture.waiters("background user");
    let slot = slot_of(&fixture.image(), &fixture.tracee.child_process);
    let walk = fixture.walk("look in vain");
    assert_eq!(counts(&walk), [(3, 3), (3, 3)]);
    let wake_at = |image: &Image| image.entry(image.places_of(slot)[0], entry::WAKE_AT);
    assert_ne!(wake_at(walk.before()), wake_at(walk.after()));
}

#[test]
fn p1_r131_a_look_that_is_granted_is_before_or_after_and_wakes_the_next() {
    let mut fixture = Fixture::new("look and go");
    let others = fixture.waiters("background user");
    fixture.set_wake_time();
    fixture.tracee.run_to_mark();
    let next = fixture.image().places_of(slot_of(&fixture.image(), &others));
    let walk = fixture.walk("look and go");
    assert_eq!(counts(&walk), [(3, 3), (2, 2)]);
    assert_eq!(walk.before().in_flight() + 1, walk.after().in_flight());
    let woken = woken(&walk);
    assert!(next.contains(&woken));
    assert_eq!(walk.after().entry(woken, entry::NUMBER) & 3, Priority::User as u64, "in order of priority");
}

#[test]
fn p1_r131_leaving_is_before_or_after_and_later_calls_of_the_group_move_up() {
    let fixture = Fixture::new("leave");
    let _others = fixture.waiters("background webhook");
    let slot = slot_of(&fixture.image(), &fixture.tracee.child_process);
    let walk = fixture.walk("leave");
    assert_eq!(counts(&walk), [(6, 6), (5, 5)]);
    let tags = |image: &Image| -> Vec<u64> {
        image.places_of(slot).into_iter().map(|place| image.entry(place, entry::TAG)).collect()
    };
    assert_eq!(
        tags(walk.before())[..3],
        tags(walk.after())[..],
        "each call has the turn of the previous one"
    );
}

#[test]
fn p1_r132_a_time_out_is_before_or_after() {
    let fixture = Fixture::new("time out");
    let _others = fixture.waiters("background user");
    assert_eq!(counts(&fixture.walk("time out")), [(4, 4), (3, 3)]);
}

#[test]
fn p1_r132_a_wait_that_times_out_is_before_or_after_at_each_of_its_changes() {
    // Steps are slow, so the call may time out before it looks, and another process removes it. On a slow machine it
    // may time out before it enters; then there is nothing to check, and the test tries again.
    let entered = (0..10).any(|_| {
        let fixture = Fixture::new("wait in vain");
        let _others = fixture.waiters("background user");
        let mut counts = counts(&fixture.walk("wait in vain"));
        counts.dedup();
        assert!([&[(2, 2)][..], &[(2, 2), (3, 3), (2, 2)]].contains(&&counts[..]), "{counts:?}");
        counts.len() == 3
    });
    assert!(entered);
}

#[test]
fn p1_r131_giving_back_while_others_wait_is_before_or_after_and_wakes_the_first() {
    for role in ["release", "cancel"] {
        let fixture = Fixture::new(role);
        let _others = fixture.waiters("background user");
        let walk = fixture.walk(role);
        assert_eq!(counts(&walk), [(2, 2), (2, 2)]);
        assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
        let woken = woken(&walk);
        assert_eq!(walk.after().entry(woken, entry::NUMBER) & 3, Priority::User as u64);
        assert!(walk.after().entry(woken, entry::WAKE_AT) < walk.before().entry(woken, entry::WAKE_AT));
    }
}

#[test]
fn p1_r131_detaching_with_calls_in_the_queue_is_before_or_after() {
    let fixture = Fixture::new("detach");
    let _others = fixture.waiters("background user");
    let walk = fixture.walk("detach with calls in the queue");
    assert_eq!(counts(&walk), [(4, 4), (2, 2)]);
    woken(&walk);
}

#[test]
fn p1_r131_reclaiming_a_process_with_many_waiting_calls_is_before_or_after() {
    let fixture = Fixture::new("reclaim");
    let mut dead = fixture.waiters("background user user webhook user");
    let others = fixture.waiters("background user");
    let slots = (slot_of(&fixture.image(), &dead), slot_of(&fixture.image(), &others));
    dead.kill();
    for place in fixture.image().places_of(slots.0) {
        image::store(fixture.path(), layout::entry_base(place) + entry::WAKE_AT, 1);
    }
    let others = fixture.image().places_of(slots.1);
    for place in &others {
        let soon = boot_time() + 900_000_000;
        image::store(fixture.path(), layout::entry_base(*place) + entry::WAKE_AT, soon);
    }
    let walk = walk_on(fixture.tracee, "reclaim", fixture.directory.path(), true);
    assert_eq!(counts(&walk), [(7, 7), (2, 2)], "all at once");
    assert_eq!(walk.after().places_of(slots.1), others);
    assert!(walk.before().is_owned(slots.0) && !walk.after().is_owned(slots.0));
}

#[test]
fn p1_r110_another_policy_while_others_wait_is_before_or_after_and_wakes_all() {
    let fixture = Fixture::new("set policy");
    let _others = fixture.waiters("background user webhook");
    let walk = fixture.walk("set policy");
    assert_eq!(counts(&walk), [(3, 3), (3, 3)]);
    assert_ne!(walk.before().policy(), walk.after().policy());
    let (before, after) = (walk.before(), walk.last());
    assert!(before.taken().iter().all(|place| before.wake_word(*place) + 1 == after.wake_word(*place)));
}

#[test]
fn p1_p3_starting_afresh_while_others_wait_is_before_or_after_and_wakes_all() {
    let fixture = Fixture::new("reset");
    let _others = fixture.waiters("background user webhook");
    fixture.set_wake_time();
    image::store(fixture.path(), CORE + 1, u64::MAX);
    let before = fixture.image();
    // A newcomer also starts afresh, at another time. Words that depend on that time cannot be compared.
    let timeless = |word: usize| {
        word == WAITING
            || word == RESETS
            || word == CORE + 1
            || (layout::PROGRESS..layout::WORDS).contains(&word)
    };
    let path = fixture.directory.path();
    let walk = walk_where(fixture.tracee, "reset", path, false, timeless);
    let after = walk.last();
    assert_eq!((after.waiting(), after.taken().len(), after.in_flight()), (0, 0, CONCURRENCY as u32));
    assert_eq!(after.word(RESETS), 1);
    assert!(before.taken().iter().all(|place| before.wake_word(*place) + 1 == after.wake_word(*place)));
}
