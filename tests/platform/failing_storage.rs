//! Storage that changes or fails under a limiter: full and read-only disks, deleted and replaced segments, full
//! slots, other boots, other configurations.

use crate::util;
use crate::util::children::{self, Running};
use crate::util::raw::{self, Raw, lock_word_of};
use crate::util::{NAME, builder, counted, drain, permits, quick, segment_path, take, take_away};
use shmlimit::{Algorithm, Error, Limiter, Policy, PolicyDraft, Removal, Request, RuleDraft};
use shmlimit_segment::{AttachOptions, layout};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Creates a limiter in a place with room for little more than the creation lock.
fn refuses_a_full_place(path: &Path) {
    for _ in 0..3 {
        let error = builder(path).policy(permits(1)).open().unwrap_err();
        assert!(
            matches!(&error, Error::Io { source, .. }
            if source.kind() == std::io::ErrorKind::StorageFull),
            "{error:?}"
        );
        assert!(error.to_string().contains("free some space"), "{error}");
        let names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["ratelimit.lock"], "only the creation lock, which is never deleted");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_tmpfs_is_a_typed_error_and_nothing_is_left_behind() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let directory = util::directory();
    let path = directory.path().to_owned();
    // In its own thread, whose mount namespace ends with it.
    let tried = std::thread::spawn(move || -> nix::Result<()> {
        let none = None::<&str>;
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
        mount(Some("none"), &path, Some("tmpfs"), MsFlags::empty(), Some("size=64k,mode=0700"))?;
        refuses_a_full_place(&path);
        Ok(())
    });
    if let Err(error) = tried.join().unwrap() {
        println!("not tested: mounting a small tmpfs is not permitted here ({error})");
    }
}

/// A process that may not write files of this size gets a signal from the system that ends it (SIGXFSZ).
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_file_sizes_is_a_typed_error_and_ends_no_process() {
    let directory = util::directory();
    let mut limited = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_with_small_files"),
        directory.path(),
    ));
    let said = limited.receive();
    assert!(said.contains("raise the limit on the size of files"), "{said}");
    limited.finish();
    let names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ratelimit.lock"], "only the creation lock, which is never deleted");
}

#[cfg(target_os = "linux")]
#[test]
fn role_with_small_files() {
    use nix::sys::resource::{Resource, setrlimit};
    let Some(directory) = children::role("role_with_small_files") else { return };
    let size = layout::SIZE as u64;
    setrlimit(Resource::RLIMIT_FSIZE, size - 1, size).unwrap();
    let error = builder(&directory).policy(permits(1)).open().unwrap_err();
    assert!(
        matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::FileTooLarge),
        "{error:?}"
    );
    assert!(Limiter::directory_facts(Some(&directory), false).unwrap().self_test().is_err());
    children::send(&error.to_string());
    setrlimit(Resource::RLIMIT_FSIZE, size, size).unwrap();
    builder(&directory).policy(permits(1)).open().unwrap().directory();
    fs::remove_file(segment_path(&directory)).unwrap();
}

/// A Windows test cannot create a disk. Wine runs programs of the host system, which can create one.
#[cfg(windows)]
#[test]
fn a_full_disk_is_a_typed_error_and_nothing_is_left_behind() {
    let Some(disk) = util::windows::SmallDisk::new("size=64k,mode=0700") else {
        return println!("not tested: no small disk can be made here");
    };
    refuses_a_full_place(disk.path());
}

#[test]
fn an_unlinked_segment_is_noticed_and_continues_where_it_was() {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    (0..4).for_each(|_| assert!(take(&limiter)));
    take_away(&segment_path(directory.path()));
    assert_eq!(drain(&limiter), 6, "what was charged stays charged");
    let other = builder(directory.path()).policy(counted(10, None)).open().unwrap();
    assert_eq!(drain(&other), 0, "and the file that is there now is the same limiter");
}

#[test]
fn a_deleted_segment_grants_nothing_after_one_of_its_users_has_noticed() {
    let directory = util::directory();
    let watchful = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    // This handle would not check the file for an hour.
    let hour = AttachOptions { place: Duration::from_secs(3600), ..AttachOptions::default() };
    let sleepy = builder(directory.path()).bounds(hour).open_existing().unwrap();
    assert!(take(&sleepy));
    take_away(&segment_path(directory.path()));
    assert!(take(&watchful), "it notices, and goes on with a successor");
    assert_eq!(drain(&sleepy) + drain(&watchful), 8, "one budget, not two");
}

#[test]
fn a_deleted_segment_is_noticed_by_a_caller_that_is_only_refused() {
    let directory = util::directory();
    let bounds = AttachOptions { place: Duration::from_millis(2), ..quick() };
    let limiter = builder(directory.path()).bounds(bounds).policy(counted(1, None)).create().unwrap();
    assert!(take(&limiter));
    // Refusals that need no lock do not check the file either, for as long as the bound says.
    (0..100).for_each(|_| assert!(!take(&limiter)));
    let path = segment_path(directory.path());
    take_away(&path);
    assert!(util::eventually(|| {
        assert!(!take(&limiter), "what was charged stays charged");
        path.exists()
    }));
}

#[test]
fn a_recreated_segment_is_followed() {
    let directory = util::directory();
    let running = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    assert!(take(&running));
    builder(directory.path()).remove(true).unwrap();
    let fresh = builder(directory.path()).policy(counted(3, None)).create().unwrap();
    assert!(take(&running), "by the new limiter");
    assert_eq!(drain(&fresh), 2);
    assert_eq!(running.policy().unwrap(), counted(3, None));
}

#[test]
fn a_replaced_segment_is_followed_at_once() {
    let directory = util::directory();
    // Without any check of the file: the mark in the old segment is enough.
    let blind = AttachOptions { place: std::time::Duration::from_secs(3600), ..quick() };
    let running = builder(directory.path()).policy(counted(10, None)).bounds(blind).create().unwrap();
    let grant = running.try_acquire(&Request::new()).unwrap();
    let fresh = builder(directory.path()).policy(counted(3, None)).replace().unwrap();
    assert!(take(&running));
    assert_eq!(drain(&fresh), 2);
    grant.release().expect("what was held of the old one is gone with it");
    assert_eq!(fresh.snapshot().unwrap().in_flight, 3);
}

#[test]
fn a_segment_retired_but_not_removed_recovers_when_opened_and_under_a_running_handle() {
    for running_first in [false, true] {
        let directory = util::directory();
        let path = segment_path(directory.path());
        let running = builder(directory.path()).policy(counted(10, None)).create().unwrap();
        // The state that `replace` leaves when it is killed before it unlinks the file.
        raw::write_word(&path, layout::RETIRED, 1);
        if running_first {
            assert!(take(&running));
        }
        let opened = builder(directory.path()).open_existing().unwrap();
        assert_eq!(raw::read_word(&path, layout::RETIRED), layout::LIVE, "it is another file");
        assert_eq!(opened.policy().unwrap(), counted(10, None));
        assert!(take(&running), "the running handle has found the new segment");
        assert_eq!(drain(&opened), 9 - usize::from(running_first));
    }
}

#[test]
fn a_deleted_segment_whose_lock_holder_died_is_followed_too() {
    let directory = util::directory();
    let path = segment_path(directory.path());
    let running = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    assert!(take(&running));
    let raw = Raw::map(&path);
    // The lock holder was killed in the middle of a transaction. Then the file is deleted, so its liveness lock
    // cannot be taken.
    let dead =
        (0..layout::SLOTS).find(|slot| raw.word(layout::slot_base(*slot)).load(Ordering::Relaxed) == 0);
    raw.word(layout::JOURNAL_LEN).store(0, Ordering::Relaxed);
    raw.word(layout::VERSION).fetch_add(1, Ordering::Relaxed);
    raw.word(layout::LOCK).store(lock_word_of(dead.unwrap()).into(), Ordering::Relaxed);
    take_away(&path);
    assert_eq!(drain(&running), 0, "what it left half done is lost, and nothing is handed out in its place");
    assert_eq!(running.policy().unwrap(), counted(10, None));
}

#[test]
fn replacing_a_damaged_limiter_repairs_the_handles_that_use_it() {
    let directory = util::directory();
    let path = segment_path(directory.path());
    let running = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    raw::write_word(&path, layout::POLICY + 70, 1);
    assert!(matches!(running.policy(), Err(Error::Damaged { .. })));
    assert!(matches!(builder(directory.path()).open_existing(), Err(Error::Damaged { .. })));
    let fresh = builder(directory.path()).policy(counted(3, None)).replace().unwrap();
    assert_eq!(running.policy().unwrap(), counted(3, None), "the remedy that the message names must help");
    assert!(take(&running));
    assert_eq!(drain(&fresh), 2);
}

#[test]
fn a_wrong_permit_count_is_corrected_by_the_next_attachment() {
    let directory = util::directory();
    let running = builder(directory.path()).policy(permits(4)).create().unwrap();
    assert!(take(&running));
    let raw = Raw::map(&segment_path(directory.path()));
    for damaged in [0, 2, 3, 4, 4096] {
        raw.word(layout::CORE + 1).store(damaged, Ordering::Relaxed);
        drop(builder(directory.path()).open_existing().unwrap());
        let seen = running.snapshot().unwrap();
        assert_eq!((seen.in_flight, seen.in_flight_background), (1, 1), "{damaged} were written");
    }
    assert_eq!(drain(&running), 3);
}

#[test]
fn full_slots_name_the_limit_and_dead_slots_are_used_again() {
    let directory = util::directory();
    let first = builder(directory.path()).policy(permits(4)).create().unwrap();
    let handles: Vec<Limiter> =
        (1..layout::COMMON_SLOTS).map(|_| builder(directory.path()).open_existing().unwrap()).collect();
    let error = builder(directory.path()).open_existing().unwrap_err();
    assert!(matches!(error, Error::SlotsFull { limit: layout::COMMON_SLOTS, .. }), "{error:?}");
    assert!(error.to_string().contains("504"), "{error}");
    drop(handles);
    assert_eq!(first.snapshot().unwrap().participants.len(), 1);
    // The other 503 slots are taken by a process that is then killed, with all permits.
    let mut running = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_takes_every_slot"),
        directory.path(),
    ));
    assert_eq!(running.receive(), "4");
    running.kill();
    let late = builder(directory.path()).open_existing().expect("the slot of a dead participant");
    assert_eq!(drain(&late), 4);
    assert_eq!(first.snapshot().unwrap().participants.len(), 2);
}

#[test]
fn r137_observers_and_operators_attach_when_all_slots_are_taken() {
    let directory = util::directory();
    let tmdb = || builder(directory.path());
    let first = tmdb().policy(counted(10, Some(4))).create().unwrap();
    let handles: Vec<Limiter> = (1..layout::COMMON_SLOTS).map(|_| tmdb().open_existing().unwrap()).collect();
    assert!(matches!(tmdb().open_existing(), Err(Error::SlotsFull { .. })));

    let observers: Vec<Limiter> = (0..20).map(|_| tmdb().observer().open_existing().unwrap()).collect();
    for observer in &observers {
        assert_eq!(
            observer.snapshot().unwrap().participants.len(),
            layout::COMMON_SLOTS,
            "none of them is one"
        );
    }
    let mut operators: Vec<Limiter> =
        (0..layout::RESERVED_SLOTS).map(|_| tmdb().operator().open_existing().unwrap()).collect();
    let one_more = tmdb().operator().open_existing().unwrap_err();
    assert!(matches!(one_more, Error::SlotsFull { limit: layout::SLOTS, .. }), "{one_more:?}");
    assert_eq!(observers[0].snapshot().unwrap().participants.len(), layout::SLOTS);

    let operator = operators.pop().unwrap();
    // Setting a key needs the table of keys.
    #[cfg(feature = "config")]
    operator.set("concurrency", "3").unwrap();
    let permits_now = if cfg!(feature = "config") { 3 } else { 4 };
    operator.force(shmlimit::BreakerCommand::ClearGate).unwrap();
    operator.record(&shmlimit::Outcome::http(200, &[])).unwrap();
    assert_eq!(drain(&first), permits_now as usize);
    assert_eq!(observers[0].snapshot().unwrap().in_flight, permits_now);
    drop((operator, operators));
    assert!(matches!(tmdb().remove(false), Ok(Removal::InUse(users)) if users.len() == layout::COMMON_SLOTS));
    let fresh = tmdb().policy(permits(2)).replace().unwrap();
    assert_eq!(drain(&fresh), 2);
    assert_eq!(tmdb().remove(true).unwrap(), Removal::Removed);
    drop(handles);
}

#[test]
fn role_that_takes_every_slot() {
    let Some(directory) = children::role("role_that_takes_every_slot") else { return };
    let handles: Vec<_> =
        (1..layout::COMMON_SLOTS).map(|_| builder(&directory).open_existing().unwrap()).collect();
    children::send(&drain(&handles[0]).to_string());
    children::wait_for_go_on();
}

/// A closed segment with 7 of 10 units charged, as another boot left it `off` nanoseconds ago by the wall clock.
fn from_another_boot(directory: &Path, off: i64) {
    let minute =
        RuleDraft { burst: Some(10), ..RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(60)) };
    let policy = Policy::new(&PolicyDraft { rules: &[minute], ..PolicyDraft::default() }).unwrap();
    let limiter = builder(directory).policy(policy).create().unwrap();
    (0..7).for_each(|_| assert!(take(&limiter)));
    drop(limiter);
    let path = segment_path(directory);
    raw::write_word(&path, layout::BOOT, raw::read_word(&path, layout::BOOT) ^ 1);
    // The other boot's clock had run ten times as long.
    let far = raw::read_word(&path, layout::CORE) * 9;
    for time in [layout::CORE, layout::ANCHOR_TIME, layout::LATEST_TIME] {
        raw::write_word(&path, time, raw::read_word(&path, time) + far);
    }
    // The first word of a rule's state is stored inverted.
    raw::write_word(&path, layout::RULES, raw::read_word(&path, layout::RULES) - far);
    for wall in [layout::ANCHOR_WALL, layout::LATEST_WALL] {
        raw::write_word(&path, wall, raw::read_word(&path, wall).wrapping_sub(off as u64));
    }
}

#[test]
fn r134_after_a_reboot_time_continues_by_the_wall_clock_and_nothing_is_granted_twice() {
    const SECOND: i64 = 1_000_000_000;
    // The time that the machine was off, and the content of a bucket of one per minute after it. If the wall clock
    // is before the anchor, no time has passed.
    for (off, expected) in [(1, 3), (125, 5), (3600 * 24, 10), (-3600, 3)] {
        let directory = util::directory();
        from_another_boot(directory.path(), off * SECOND);
        let limiter = builder(directory.path()).open_existing().unwrap();
        assert_eq!(limiter.snapshot().unwrap().resets, 0, "off {off} s: the state looked damaged");
        assert_eq!(drain(&limiter), expected, "off {off} s");
        // A later attachment finds the new boot and changes nothing.
        assert_eq!(drain(&builder(directory.path()).open_existing().unwrap()), 0);
    }
}

#[test]
fn r144_a_mismatch_shows_both_sides() {
    let directory = util::directory();
    let _there = builder(directory.path()).policy(counted(10, Some(4))).create().unwrap();
    let error = builder(directory.path()).policy(counted(11, Some(5))).open().unwrap_err();
    assert!(matches!(error, Error::ConfigMismatch { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["10", "11", "4", "5", "on_mismatch = update", NAME] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    builder(directory.path()).policy(counted(10, Some(4))).open().expect("the same policy fits");
}

#[test]
fn r110_other_processes_use_a_changed_policy_at_once_and_units_cannot_change() {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(counted(10, None)).create().unwrap();
    let mut other = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_counts_twice"),
        directory.path(),
    ));
    assert_eq!(other.receive(), "2");
    limiter.set_policy(&counted(3, None)).unwrap();
    other.go_on();
    assert_eq!(other.receive(), "3", "eight were left, clipped to three");
    other.finish();
    let tokens =
        RuleDraft { unit: Some("tokens"), ..RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(1)) };
    let policy = Policy::new(&PolicyDraft { rules: &[tokens], ..PolicyDraft::default() }).unwrap();
    assert!(matches!(limiter.set_policy(&policy), Err(Error::DoesNotFit { .. })));
    assert_eq!(limiter.policy().unwrap(), counted(3, None));
}

#[test]
fn role_that_counts_twice() {
    let Some(directory) = children::role("role_that_counts_twice") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    children::send(&(0..2).filter(|_| take(&limiter)).count().to_string());
    assert!(children::wait_for_go_on());
    children::send(&drain(&limiter).to_string());
}

#[test]
fn a_chosen_directory_has_no_note_and_is_named() {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(1)).open().unwrap();
    assert_eq!(limiter.directory(), directory.path());
    assert_eq!(limiter.directory_note(), None);
}
