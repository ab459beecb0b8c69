//! P1: SIGKILL at any instruction leaves the state exactly before or after the interrupted operation.
//!
//! Each operation runs in another process, one instruction at a time. Whenever a byte of the segment has changed, a
//! copy of the segment shows what a kill at this instruction would leave. Recovery of that copy must give the last
//! committed state, word for word. `kill_for_real.rs` tests what copies cannot show (locks of the operating system,
//! sleepers); `kill_queue.rs` tests the operations of waiting calls.

use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::image::{self, Image};
use crate::util::crash::ptrace::{Step, Tracee};
use crate::util::crash::walk::{Walk, walk, walk_on};
use crate::util::crash::{CONCURRENCY, NAME, builder, policy, usual_policy};
use crate::util::directory;
use shmlimit::{AcquireError, Limiter, Reason, Request};
use shmlimit_segment::layout::JOURNAL_LEN;
use std::path::Path;
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
    let open = || builder(directory).open_existing().unwrap();
    let marked = |work: &mut dyn FnMut()| {
        ready();
        mark();
        work();
        mark();
    };
    let one = Request::new();
    match role {
        "bystander" => {
            let limiter = open();
            let _one = limiter.try_acquire(&one).unwrap();
            ready();
            child_process::receive();
        }
        "granted" => {
            let limiter = open();
            let _first = limiter.try_acquire(&one).unwrap();
            let mut grant = None;
            marked(&mut || grant = limiter.try_acquire(&one).ok());
            assert!(grant.is_some());
            child_process::receive();
        }
        "denied for rate" => {
            let limiter = open();
            let _all = limiter.try_acquire(&Request::new().cost("requests", 49)).unwrap();
            marked(&mut || assert_refused(&limiter, Reason::Rate));
            child_process::receive();
        }
        "denied for concurrency" => {
            let limiter = open();
            let _all: Vec<_> = (1..CONCURRENCY).map(|_| limiter.try_acquire(&one).unwrap()).collect();
            marked(&mut || assert_refused(&limiter, Reason::Concurrency));
            child_process::receive();
        }
        "release" | "cancel" => {
            let limiter = open();
            let _other = limiter.try_acquire(&one).unwrap();
            let mut grant = limiter.try_acquire(&one).ok();
            marked(&mut || match (role, grant.take()) {
                ("release", Some(grant)) => grant.release().unwrap(),
                (_, Some(grant)) => grant.cancel().unwrap(),
                (_, None) => panic!("no grant"),
            });
            child_process::receive();
        }
        "detach" => {
            let mut limiter = Some(open());
            // Forget the grants, so that the handle can be dropped while they are held.
            (0..2).for_each(|_| std::mem::forget(limiter.as_ref().unwrap().try_acquire(&one).unwrap()));
            marked(&mut || drop(limiter.take()));
        }
        "attach" => {
            let mut limiter = None;
            marked(&mut || limiter = Some(open()));
            child_process::receive();
        }
        "set policy" => {
            let limiter = open();
            let _grant = limiter.try_acquire(&one).unwrap();
            marked(&mut || limiter.set_policy(&policy(20, 10)).unwrap());
            child_process::receive();
        }
        "holder" => {
            let limiter = open();
            let _all: Vec<_> = (1..CONCURRENCY).map(|_| limiter.try_acquire(&one).unwrap()).collect();
            ready();
        }
        "acquire" => {
            let limiter = open();
            let mut grant = None;
            marked(&mut || grant = Some(limiter.try_acquire(&one).unwrap()));
            child_process::receive();
        }
        "create" => marked(&mut || drop(builder(directory).policy(usual_policy()).create().unwrap())),
        "replace" => marked(&mut || drop(builder(directory).policy(policy(20, 10)).replace().unwrap())),
        other => panic!("no such role: {other}"),
    }
}

fn assert_refused(limiter: &Limiter, reason: Reason) {
    match limiter.try_acquire(&Request::new()) {
        Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), reason),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A limiter with a permit held by another participant: a count that is wrong by one cannot hide at zero.
struct Fixture {
    directory: TempDir,
    _bystander: ChildProcess,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = directory();
        drop(builder(directory.path()).policy(usual_policy()).create().unwrap());
        let _bystander = ChildProcess::start(CHILD_PROCESS, "bystander", directory.path());
        Fixture { directory, _bystander }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Steps through an operation that must be one transaction.
fn one_transaction(role: &str, permits: bool) -> Walk {
    let walk = walk(CHILD_PROCESS, role, Fixture::new().path(), permits);
    assert_eq!(walk.committed.len(), 2, "{role} is one transaction");
    walk
}

#[test]
fn p1_try_acquire_granted_is_before_or_after_and_stays_charged() {
    let walk = one_transaction("granted", true);
    assert_eq!(walk.before().in_flight() + 1, walk.after().in_flight());
    let (before, after) = (walk.before().rules(), walk.after().rules());
    assert_ne!(before[..4], after[..4], "the bucket is charged");
    assert_ne!(before[4..8], after[4..8], "the GCRA is charged");
}

#[test]
fn p1_try_acquire_denied_changes_nothing() {
    for (role, permits) in [("denied for rate", false), ("denied for concurrency", true)] {
        assert_eq!(
            walk(CHILD_PROCESS, role, Fixture::new().path(), permits).committed.len(),
            1,
            "{role} commits nothing"
        );
    }
}

#[test]
fn p1_release_is_before_or_after_and_refunds_no_rule() {
    let walk = one_transaction("release", true);
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
    assert_eq!(walk.before().rules(), walk.after().rules());
}

#[test]
fn p1_cancel_is_before_or_after_and_refunds_every_rule() {
    let walk = one_transaction("cancel", true);
    assert_eq!(walk.before().in_flight(), walk.after().in_flight() + 1);
    let (before, after) = (walk.before().rules(), walk.after().rules());
    assert!(before[..4] != after[..4] && before[4..8] != after[4..8]);
}

#[test]
fn p1_attach_is_before_or_after() {
    one_transaction("attach", true);
}

#[test]
fn p1_detach_is_before_or_after_and_gives_every_permit_back() {
    let walk = one_transaction("detach", true);
    assert_eq!((walk.before().in_flight(), walk.after().in_flight()), (3, 1));
}

#[test]
fn p1_set_policy_is_before_or_after() {
    let walk = one_transaction("set policy", true);
    assert_ne!(walk.before().policy(), walk.after().policy());
    assert_ne!(walk.before().rules(), walk.after().rules());
}

/// Leaves a segment whose lock holder died in the middle of a grant, after `entries` words had been journaled.
fn die_in_a_grant(directory: &Path, entries: u64) -> usize {
    let file = image::open(directory);
    let mut victim = Tracee::start(CHILD_PROCESS, "granted", directory);
    let mut now = Image::blank();
    loop {
        assert_eq!(victim.step(), Step::Inside, "the grant ended before it had journaled {entries} words");
        now.take(&file);
        if !now.is_whole() && now.word(JOURNAL_LEN) == entries {
            break;
        }
    }
    let slot = now.lock_owner().expect("a transaction has an owner");
    // One more step writes the journaled word itself.
    victim.step();
    victim.kill();
    slot
}

#[test]
fn p1_recovery_by_a_newcomer_survives_a_kill() {
    let fixture = Fixture::new();
    let dead = die_in_a_grant(fixture.path(), 4);
    let walk = walk(CHILD_PROCESS, "attach", fixture.path(), true);
    assert_eq!(walk.committed.len(), 2, "undoing changes nothing, reclaiming and attaching are one change");
    assert!(walk.before().is_owned(dead) && !walk.after().is_owned(dead));
    assert_eq!((walk.before().held(dead), walk.after().in_flight()), (1, 1));
}

#[test]
fn p1_recovery_by_a_participant_survives_a_kill() {
    let fixture = Fixture::new();
    // It attached before the other process died, so that its call finds the lock held.
    let participant = Tracee::start(CHILD_PROCESS, "acquire", fixture.path());
    let dead = die_in_a_grant(fixture.path(), 3);
    let walk = walk_on(participant, "acquire from a dead holder", fixture.path(), true);
    assert_eq!(
        walk.committed.len(),
        3,
        "undoing changes nothing; reclaiming is one change, the grant another"
    );
    assert!(walk.before().is_owned(dead) && !walk.committed[1].is_owned(dead));
    assert_eq!((walk.committed[1].in_flight(), walk.after().in_flight()), (1, 2));
}

#[test]
fn p1_reclaiming_survives_a_kill_of_the_reclaimer() {
    let fixture = Fixture::new();
    let holder = ChildProcess::start(CHILD_PROCESS, "holder", fixture.path());
    let participant = Tracee::start(CHILD_PROCESS, "acquire", fixture.path());
    drop(holder);
    let walk = walk_on(participant, "acquire what a dead one holds", fixture.path(), true);
    assert_eq!(walk.committed.len(), 3, "reclaiming is one change, the grant another");
    let in_flight: Vec<u32> = walk.committed.iter().map(Image::in_flight).collect();
    assert_eq!(in_flight, [4, 1, 2]);
}

/// Steps through an operation that creates files, and passes every new state of the directory to `look`: the names in
/// it, and the segment if there is one.
fn walk_files(role: &str, directory: &Path, mut look: impl FnMut(Option<&Image>)) {
    let mut tracee = Tracee::start(CHILD_PROCESS, role, directory);
    let path = directory.join(format!("{NAME}.shm"));
    let (mut steps, mut pictures) = (0, 0);
    let mut last: Option<Option<Image>> = None;
    loop {
        let step = tracee.step();
        steps += 1;
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name();
            let expected = name == *path.file_name().unwrap() || name == "ratelimit.lock";
            assert!(expected || image::is_replacement(&name), "left behind: {name:?}");
        }
        let now = path.exists().then(|| Image::of(directory));
        if last.as_ref() != Some(&now) {
            pictures += 1;
            look(now.as_ref());
            last = Some(now);
        }
        if step == Step::Done {
            break;
        }
    }
    println!("{role}: {steps} instructions, {pictures} pictures");
}

#[test]
fn p1_create_makes_a_complete_segment_or_none() {
    let directory = directory();
    let (mut absent, mut there) = (0, 0);
    walk_files("create", directory.path(), |image| match image {
        None => {
            assert_eq!(there, 0, "an existing segment has vanished");
            absent += 1;
        }
        Some(image) => {
            there += 1;
            assert_eq!(image.reopened(), Some(usual_policy()));
            image.recovered(true);
        }
    });
    assert!(absent > 0 && there > 1);
}

#[test]
fn p1_replace_leaves_the_old_limiter_or_the_new_one() {
    let fixture = Fixture::new();
    let (old, new) = (usual_policy(), policy(20, 10));
    let mut seen = vec![Some(old)];
    walk_files("replace", fixture.path(), |image| {
        let there = image.map(|image| image.reopened().expect("an existing segment can be used"));
        if seen.last() != Some(&there) {
            seen.push(there);
        }
    });
    assert_eq!(seen, [Some(old), Some(new)]);
}
