//! Segments that are deleted by hand or removed while handles are open: there is exactly one successor, and it
//! keeps what was spent. `deleted_orders.rs` tests sequences of such deletions, `deleted_seen.rs` tests users that
//! are hard to detect.

use crate::util::respawn::in_own_process;
use crate::util::{NAME, builder, counted, directory, drain, segment_path, take};
use shmlimit::{Error, Limiter, Request};
use shmlimit_segment::AttachOptions;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: usize = 10;

fn delete(directory: &Path) {
    std::fs::remove_file(segment_path(directory)).unwrap();
}

#[test]
fn a_handle_that_was_idle_while_its_limiter_was_deleted_twice_restores_no_budget() {
    in_own_process!();
    let home = directory();
    let idle = builder(home.path()).policy(counted(LIMIT as u64, None)).create().unwrap();
    let busy = builder(home.path()).open_existing().unwrap();
    assert!(take(&idle));
    delete(home.path());
    assert_eq!(drain(&busy), LIMIT - 1, "the successor knows what was spent");
    delete(home.path());
    assert_eq!(drain(&idle), 0, "what the first segment had left was spent in the second");
    assert_eq!(drain(&busy), 0);
}

/// A renamed file is not deleted. It cannot be marked as retired, and the other handles use it until they check its
/// place.
#[test]
fn limiter_whose_file_was_renamed_is_not_continued_while_others_use_it() {
    in_own_process!();
    for permits in [None, Some(1)] {
        let home = directory();
        let policy = counted(LIMIT as u64, permits);
        let first = builder(home.path()).policy(policy).create().unwrap();
        let unaware = AttachOptions { place: Duration::from_secs(3600), ..AttachOptions::default() };
        let second = builder(home.path()).bounds(unaware).open_existing().unwrap();
        std::fs::rename(segment_path(home.path()), home.path().join("moved")).unwrap();
        let held = second.try_acquire(&Request::new()).unwrap();
        assert_eq!(drain(&first), 0, "what is left of it belongs to the other handle");
        held.cancel().unwrap();
        assert_eq!(drain(&second), permits.map_or(LIMIT, |most| most as usize));
    }
}

#[test]
fn a_newcomer_after_a_deletion_finds_nothing_to_spend_while_others_are_attached() {
    in_own_process!();
    for init in [true, false] {
        let home = directory();
        let policy = counted(LIMIT as u64, None);
        let old = builder(home.path()).policy(policy).create().unwrap();
        assert_eq!(drain(&old), LIMIT);
        delete(home.path());
        let again = builder(home.path()).policy(policy);
        let new = if init { again.create() } else { again.open() }.unwrap();
        assert_eq!((drain(&new), drain(&old)), (0, 0), "init: {init}");
        assert_eq!(new.snapshot().unwrap().participants.len(), 2, "the old handle has gone over");
    }
}

#[test]
fn a_newcomer_after_a_deletion_starts_afresh_if_no_process_was_attached() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    assert_eq!(drain(&builder(home.path()).policy(policy).create().unwrap()), LIMIT);
    delete(home.path());
    assert_eq!(drain(&builder(home.path()).policy(policy).create().unwrap()), LIMIT);
}

#[test]
fn removing_and_replacing_on_purpose_start_afresh_even_while_others_are_attached() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let old = builder(home.path()).policy(policy).create().unwrap();
    assert_eq!(drain(&old), LIMIT);
    assert_eq!(drain(&builder(home.path()).policy(policy).replace().unwrap()), LIMIT);
    builder(home.path()).remove(true).unwrap();
    assert_eq!(drain(&builder(home.path()).policy(policy).create().unwrap()), LIMIT);
}

fn note(directory: &Path) -> PathBuf {
    directory.join(format!(".{NAME}.removed"))
}

#[test]
fn a_forced_removal_is_noted_for_the_next_creation_only() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let made = || builder(home.path()).policy(policy).create().unwrap();
    let names = || Limiter::list(Some(home.path())).unwrap().names;
    let idle = made();
    assert_eq!(drain(&idle), LIMIT);
    let secret = home.path().join("secret");
    symlink(&secret, note(home.path())).unwrap();
    builder(home.path()).remove(true).unwrap();
    assert!(note(home.path()).symlink_metadata().unwrap().is_file() && !secret.exists());
    assert_eq!(names(), [""; 0]);
    let new = made();
    assert!(!note(home.path()).exists());
    assert_eq!(drain(&new), LIMIT, "it was removed on purpose");
    delete(home.path());
    assert_eq!(drain(&made()), 0, "it was deleted by hand");
    drop((idle, new));
    builder(home.path()).remove(true).unwrap();
    assert!(!note(home.path()).exists(), "no program had it open");
}

#[test]
fn a_handle_of_an_older_segment_does_not_bring_a_removed_limiter_back() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let idle = builder(home.path()).policy(policy).create().unwrap();
    delete(home.path());
    drop(builder(home.path()).policy(policy).create().unwrap());
    builder(home.path()).remove(false).unwrap();
    assert!(matches!(idle.snapshot(), Err(Error::UnknownLimiter { .. })));
    assert!(!segment_path(home.path()).exists());
}

/// The state that a process leaves when it is killed after it noted the removal of a damaged segment.
#[test]
fn a_removal_note_is_deleted_when_its_segment_is_replaced() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let old = builder(home.path()).policy(policy).create().unwrap();
    std::fs::write(note(home.path()), "").unwrap();
    let new = builder(home.path()).policy(policy).replace().unwrap();
    assert!(!note(home.path()).exists());
    delete(home.path());
    assert_eq!(drain(&builder(home.path()).policy(policy).create().unwrap()), 0, "two have it open");
    drop((old, new));
}

#[test]
fn a_newcomer_finds_nothing_to_spend_after_segment_and_creation_lock_were_deleted_together() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let old = builder(home.path()).policy(policy).create().unwrap();
    assert_eq!(drain(&old), LIMIT);
    delete(home.path());
    std::fs::remove_file(home.path().join("ratelimit.lock")).unwrap();
    let new = builder(home.path()).policy(policy).create().unwrap();
    assert_eq!((drain(&new), drain(&old)), (0, 0));
}

/// A new creation lock counts other generations, so the handle cannot prove that its state is the newest.
#[test]
fn an_idle_handle_restores_no_budget_after_segment_and_creation_lock_were_deleted_twice() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let idle = builder(home.path()).policy(policy).create().unwrap();
    let delete_all = || {
        delete(home.path());
        std::fs::remove_file(home.path().join("ratelimit.lock")).unwrap();
    };
    delete_all();
    assert_eq!(drain(&builder(home.path()).policy(policy).replace().unwrap()), LIMIT, "afresh on purpose");
    delete_all();
    assert_eq!(drain(&idle), 0);
}
