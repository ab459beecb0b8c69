//! Permits of a segment that was deleted by hand count in its successor until their holder returns them or ends.

use crate::util::respawn::in_own_process;
use crate::util::{builder, children, directory, forks, permits, segment_path};
use children::Running;
use shmlimit::{AcquireError, Limiter, Outcome, Reason, Request};
use std::path::Path;
use std::time::Duration;

fn delete(directory: &Path) {
    std::fs::remove_file(segment_path(directory)).unwrap();
}

/// Whether a permit is available at once.
fn is_free(limiter: &Limiter) -> bool {
    match limiter.try_acquire(&Request::new()) {
        Ok(_) => true,
        Err(AcquireError::Refused(refusal)) => {
            assert_eq!(refusal.reason(), Reason::Concurrency);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Waits until a permit is available.
fn becomes_free(limiter: &Limiter) {
    limiter.acquire(&Request::new().timeout(Duration::from_secs(60))).unwrap().release().unwrap();
}

/// A process that has taken a permit.
fn holder(directory: &Path) -> Running {
    let mut holder =
        Running::start(children::command(&[], concat!(module_path!(), "::role_of_a_holder"), directory));
    assert_eq!(holder.receive(), "holds");
    holder
}

#[test]
fn role_of_a_holder() {
    let Some(directory) = children::role("role_of_a_holder") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    let grant = limiter.acquire(&Request::new()).unwrap();
    children::send("holds");
    children::wait_for_go_on();
    grant.release().unwrap();
    children::send("has returned it");
    children::wait_for_go_on();
}

/// The ways in which a holder ends that has not moved to the successor.
fn ends() -> [fn(Running) -> Option<Running>; 2] {
    [
        |mut holder| {
            holder.kill();
            None
        },
        |mut holder| {
            holder.go_on();
            assert_eq!(holder.receive(), "has returned it");
            Some(holder)
        },
    ]
}

#[test]
fn a_user_of_a_deleted_segment_copies_its_holders_to_the_successor() {
    in_own_process!();
    for end in ends() {
        let home = directory();
        let limiter = builder(home.path()).policy(permits(2)).create().unwrap();
        let holder = holder(home.path());
        delete(home.path());
        let mine = limiter.try_acquire(&Request::new()).unwrap();
        assert!(!is_free(&limiter), "one of two is with the other process");
        let pid = holder.id();
        let seen = limiter.snapshot().unwrap().participants;
        assert!(seen.iter().any(|one| (one.pid, one.held) == (pid, 1)), "{seen:?}");
        // A process that attaches now sees the same.
        assert!(!is_free(&builder(home.path()).open_existing().unwrap()));
        let still_there = end(holder);
        becomes_free(&limiter);
        drop((mine, still_there));
    }
}

#[test]
fn a_newcomer_finds_all_permits_taken_until_the_holder_ends() {
    in_own_process!();
    for end in [Running::finish as fn(Running), |mut holder| holder.kill()] {
        let home = directory();
        drop(builder(home.path()).policy(permits(2)).create().unwrap());
        let holder = holder(home.path());
        delete(home.path());
        let newcomer = builder(home.path()).policy(permits(2)).create().unwrap();
        assert!(!is_free(&newcomer), "who holds how many is not known");
        end(holder);
        becomes_free(&newcomer);
        let both = [&newcomer; 2].map(|limiter| limiter.try_acquire(&Request::new()).unwrap());
        assert!(!is_free(&newcomer));
        drop(both);
    }
}

#[test]
fn a_user_that_moves_to_a_newcomers_segment_frees_the_permits_it_does_not_hold() {
    in_own_process!();
    let home = directory();
    let old = builder(home.path()).policy(permits(1)).create().unwrap();
    delete(home.path());
    let newcomer = builder(home.path()).policy(permits(1)).create().unwrap();
    assert!(!is_free(&newcomer), "the old handle may hold it");
    becomes_free(&old);
    assert!(is_free(&newcomer));
}

#[test]
fn permits_count_across_two_deletions_for_every_creator_of_the_segments() {
    in_own_process!();
    for makers in [[true, true], [true, false], [false, true], [false, false]] {
        let home = directory();
        let first = builder(home.path()).policy(permits(1)).create().unwrap();
        let holder = holder(home.path());
        let mut newest = first;
        for by_newcomer in makers {
            delete(home.path());
            if by_newcomer {
                newest = builder(home.path()).policy(permits(1)).create().unwrap();
            }
            assert!(!is_free(&newest), "{makers:?}");
        }
        holder.finish();
        becomes_free(&newest);
    }
}

#[test]
fn a_process_that_moves_to_a_successor_keeps_its_permits_until_it_has_returned_the_last() {
    in_own_process!();
    type Return = fn(shmlimit::Grant<'_>);
    let ways: [Return; 4] = [
        |grant| grant.release().unwrap(),
        |grant| grant.cancel().unwrap(),
        |grant| drop(grant.record(&Outcome::http(200, &[])).unwrap()),
        |grant| grant.into_owned().release().unwrap(),
    ];
    for way in ways {
        let home = directory();
        let limiter = builder(home.path()).policy(permits(3)).create().unwrap();
        let [one, two] = [&limiter; 2].map(|limiter| limiter.try_acquire(&Request::new()).unwrap());
        delete(home.path());
        let three = limiter.try_acquire(&Request::new()).unwrap();
        assert!(!is_free(&limiter));
        way(one);
        assert!(!is_free(&limiter), "they come back together");
        way(two);
        becomes_free(&limiter);
        assert_eq!(limiter.snapshot().unwrap().in_flight, 1);
        way(three);
        assert_eq!(limiter.snapshot().unwrap().in_flight, 0);
    }
}

#[test]
fn a_forked_child_inherits_no_permit_and_blocks_none() {
    in_own_process!();
    let home = directory();
    let limiter = builder(home.path()).policy(permits(1)).create().unwrap();
    let grant = limiter.try_acquire(&Request::new()).unwrap();
    let (commands, says) = (forks::Pipe::new(), forks::Pipe::new());
    let child = forks::forked(|| {
        says.send(u8::from(is_free(&limiter)));
        commands.receive();
        says.send(u8::from(is_free(&limiter)));
        commands.receive();
        becomes_free(&limiter);
        0
    });
    assert_eq!(says.receive(), 0, "the parent has it");
    delete(home.path());
    commands.send(0);
    assert_eq!(says.receive(), 0, "the child has handed over, and the parent still has it");
    grant.release().unwrap();
    commands.send(0);
    assert_eq!(forks::exit_code(child), 0);
}

#[test]
fn a_killed_parent_frees_its_permit_though_its_child_lives() {
    in_own_process!();
    let home = directory();
    let limiter = builder(home.path()).policy(permits(1)).create().unwrap();
    let (commands, says) = (forks::Pipe::new(), forks::Pipe::new());
    let parent = forks::forked(|| {
        let _grant = limiter.try_acquire(&Request::new()).unwrap();
        let _child = forks::forked(|| {
            says.send(1);
            i32::from(commands.receive())
        });
        i32::from(commands.receive())
    });
    assert_eq!(says.receive(), 1);
    delete(home.path());
    assert!(!is_free(&limiter));
    forks::kill_now(parent);
    becomes_free(&limiter);
    commands.send(0);
}

#[test]
fn replacing_and_removing_by_force_forget_permits_on_purpose() {
    in_own_process!();
    let home = directory();
    let limiter = builder(home.path()).policy(permits(1)).create().unwrap();
    let holder = holder(home.path());
    let replaced = builder(home.path()).policy(permits(1)).replace().unwrap();
    assert!(is_free(&replaced));
    builder(home.path()).remove(true).unwrap();
    let again = builder(home.path()).policy(permits(1)).create().unwrap();
    assert!(is_free(&again) && is_free(&limiter));
    holder.finish();
}

#[test]
fn a_segment_full_of_holders_leaves_room_for_users_that_move_to_it() {
    in_own_process!();
    let home = directory();
    let policy = permits(4096);
    drop(builder(home.path()).policy(policy).create().unwrap());
    let handles: Vec<Limiter> = (0..500).map(|_| builder(home.path()).open_existing().unwrap()).collect();
    let grants: Vec<_> =
        handles.iter().map(|limiter| limiter.try_acquire(&Request::new()).unwrap()).collect();
    delete(home.path());
    let (first, others) = handles.split_first().unwrap();
    assert_eq!(first.snapshot().unwrap().in_flight, 500);
    for limiter in &others[..200] {
        assert_eq!(limiter.snapshot().unwrap().in_flight, 500);
    }
    drop(grants);
    drop(handles);
    let left = builder(home.path()).open_existing().unwrap();
    left.reclaim_dead().unwrap();
    assert_eq!(left.snapshot().unwrap().in_flight, 0);
}
