//! Other programs that have a limiter's files open or locked: backups, scanners, a process that hangs while it
//! creates a limiter. The library waits a bounded time for temporary obstacles. A lasting obstacle is an error that
//! names the file.

use crate::util::children::{Running, command, role, send, wait_for_go_on};
use crate::util::{builder, directory, permits, segment_path, take};
use fs4::FileExt;
use shmlimit::{Error, Limiter};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process that locks a whole file. It prints "locked", and releases the lock when the test says so.
fn locker(file: &Path) -> Running {
    in_role("role_that_locks", file)
}

fn in_role(name: &str, file: &Path) -> Running {
    let mut locker = Running::start(command(&[], &format!("{}::{name}", module_path!()), file));
    assert_eq!(locker.receive(), "locked");
    locker
}

#[test]
fn role_that_locks() {
    let Some(path) = role("role_that_locks") else { return };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    FileExt::try_lock(&file).unwrap();
    send("locked");
    wait_for_go_on();
}

/// A process that holds the creation lock and does not finish.
#[test]
fn role_that_keeps_the_creation_lock() {
    let Some(path) = role("role_that_keeps_the_creation_lock") else { return };
    let creation_lock = OpenOptions::new().read(true).write(true).open(path).unwrap();
    #[cfg(windows)]
    crate::util::windows::lock_first_byte(&creation_lock);
    #[cfg(not(windows))]
    FileExt::try_lock(&creation_lock).unwrap();
    send("locked");
    wait_for_go_on();
}

fn kind_of(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Io { source, .. } => Some(source.kind()),
        _ => None,
    }
}

#[test]
fn a_creation_lock_that_is_held_stops_only_creation_and_removal() {
    let directory = directory();
    let limiter = builder(directory.path()).policy(permits(2)).create().unwrap();
    let mut holder =
        Running::start(command(&[], concat!(module_path!(), "::role_that_holds"), directory.path()));
    assert_eq!(holder.receive(), "true");
    let locker = in_role("role_that_keeps_the_creation_lock", &directory.path().join("ratelimit.lock"));
    // Attached handles continue, others attach, and killed processes are told from living ones.
    let other = builder(directory.path()).open_existing().unwrap();
    assert!(take(&other) && !take(&limiter), "one is held by a living process");
    holder.kill();
    assert!(take(&limiter), "and comes back when that is dead");
    let started = Instant::now();
    let error = Limiter::builder("another").directory(directory.path()).policy(permits(1)).create();
    let error = error.unwrap_err();
    assert_eq!(kind_of(&error), Some(ErrorKind::WouldBlock), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("ratelimit.lock") && text.contains("another process is creating or removing"),
        "{text}"
    );
    assert!(started.elapsed() < Duration::from_secs(20), "the wait is bounded");
    drop(locker);
    Limiter::builder("another").directory(directory.path()).policy(permits(1)).create().unwrap();
}

#[test]
fn role_that_holds() {
    let Some(directory) = role("role_that_holds") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    send(&take(&limiter).to_string());
    wait_for_go_on();
}

/// On Windows such a lock covers the liveness locks too; elsewhere it is another kind of lock. On no platform may a
/// living process be taken for dead, or a call hang.
#[test]
fn a_segment_that_another_program_locks_as_a_whole_is_not_taken_over() {
    let directory = directory();
    let path = segment_path(directory.path());
    drop(builder(directory.path()).policy(permits(1)).create().unwrap());
    let mut locker = Some(locker(&path));
    let newcomer = builder(directory.path()).open_existing();
    if cfg!(windows) {
        let error = newcomer.unwrap_err();
        assert_eq!(kind_of(&error), Some(ErrorKind::ResourceBusy), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("another program"), "{text}");
        drop(locker.take());
        drop(builder(directory.path()).open_existing().expect("as soon as it lets go"));
    } else {
        drop(newcomer.unwrap());
    }
}

#[cfg(windows)]
mod files_that_another_program_opened_exclusively {
    use super::*;
    use crate::util::windows::open_alone;
    use shmlimit::Request;

    fn closed() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = directory();
        drop(builder(directory.path()).policy(permits(1)).create().unwrap());
        let path = segment_path(directory.path());
        (directory, path)
    }

    #[test]
    fn a_file_that_stays_closed_is_an_error_after_half_a_second() {
        let (directory, path) = closed();
        let alone = open_alone(&path).unwrap();
        let started = Instant::now();
        let error = builder(directory.path()).open_existing().unwrap_err();
        let waited = started.elapsed();
        assert_eq!(kind_of(&error), Some(ErrorKind::ResourceBusy), "{error:?}");
        assert!(waited >= Duration::from_millis(450) && waited < Duration::from_secs(10), "{waited:?}");
        let text = error.to_string();
        for part in [path.to_str().unwrap(), "another program", "resmon"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        drop(alone);
        builder(directory.path()).open_existing().unwrap();
    }

    #[test]
    fn a_file_that_a_scanner_opens_for_a_moment_is_waited_for() {
        const MOMENT: Duration = Duration::from_millis(100);
        let (directory, path) = closed();
        let started = Instant::now();
        let alone = open_alone(&path).unwrap();
        let scanner = std::thread::spawn(move || {
            std::thread::sleep(MOMENT);
            drop(alone);
        });
        let limiter = builder(directory.path()).open_existing().unwrap();
        assert!(started.elapsed() >= MOMENT, "it was opened while somebody else had it");
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
        scanner.join().unwrap();
    }

    #[test]
    fn the_creation_lock_is_waited_for_as_well() {
        let (directory, _) = closed();
        let alone = open_alone(&directory.path().join("ratelimit.lock")).unwrap();
        let error = builder(directory.path()).policy(permits(1)).replace().unwrap_err();
        assert_eq!(kind_of(&error), Some(ErrorKind::ResourceBusy), "{error:?}");
        drop(alone);
        builder(directory.path()).policy(permits(1)).replace().unwrap();
    }

    /// On other platforms, such a lock means that a process creates a limiter.
    #[test]
    fn a_creation_lock_that_is_locked_as_a_whole_does_not_block_opening_a_limiter() {
        let (directory, _) = closed();
        let locker = locker(&directory.path().join("ratelimit.lock"));
        let limiter = builder(directory.path()).open_existing().unwrap();
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
        drop(locker);
        builder(directory.path()).policy(permits(1)).replace().unwrap();
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    }

    #[test]
    fn a_segment_in_use_cannot_be_opened_exclusively() {
        let (directory, path) = closed();
        let limiter = builder(directory.path()).open_existing().unwrap();
        let error = open_alone(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(32), "a scanner is told that it is in use");
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    }

    #[test]
    fn a_segment_in_use_can_be_neither_truncated_nor_overwritten_and_the_limiter_continues() {
        let (directory, path) = closed();
        let limiter = builder(directory.path()).open_existing().unwrap();
        let cut = OpenOptions::new().write(true).open(&path).unwrap().set_len(0);
        assert_eq!(cut.unwrap_err().raw_os_error(), Some(1224), "it is mapped");
        let other = directory.path().join("other");
        std::fs::write(&other, "x").unwrap();
        assert!(std::fs::rename(&other, &path).is_err());
        limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    }
}
