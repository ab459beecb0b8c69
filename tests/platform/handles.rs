//! Closing a limiter closes everything that it had opened: file handles on Windows, file descriptors on Linux.
//!
//! The test runs in its own process, because it counts the handles of the whole process.

use crate::util::respawn::in_own_process;
use crate::util::{builder, counted, directory, permits, segment_path};
use shmlimit::{Error, Limiter, Request};
use std::path::Path;
use std::time::Duration;

/// Operations on limiters in a directory.
type Scenario = fn(&Path);

/// How often each scenario runs between two counts.
const RUNS: u32 = 10;
/// The maximum number of counts. Handles that the system opens once and keeps, such as the directory of named
/// objects at the first sleep, appear in one of the counts. A leak appears in each.
const COUNTS: u32 = 3;

/// Tests each number that a handle may have, because Wine 8 answers 0 to `GetProcessHandleCount`.
#[cfg(windows)]
fn open_handles() -> usize {
    use windows_sys::Win32::Foundation::GetHandleInformation;
    const MOST: usize = 1024;
    let is_open = |number: &usize| {
        let mut flags = 0;
        // SAFETY: a number that is not a handle is an error; `flags` is alive for the whole call.
        unsafe { GetHandleInformation(std::ptr::without_provenance_mut(number * 4), &mut flags) != 0 }
    };
    (1..=MOST).filter(is_open).count()
}

#[cfg(target_os = "linux")]
fn open_handles() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn use_and_close(home: &Path) {
    let limiter = builder(home).policy(counted(100, Some(3))).open().unwrap();
    let held = limiter.acquire(&Request::new()).unwrap().into_owned();
    limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    limiter.snapshot().unwrap();
    drop(limiter);
    held.release().unwrap();
}

fn wait_until_the_timeout(home: &Path) {
    let limiter = builder(home).policy(permits(1)).open().unwrap();
    let _held = limiter.acquire(&Request::new()).unwrap();
    limiter.acquire(&Request::new().timeout(Duration::from_millis(5))).unwrap_err();
}

fn look(home: &Path) {
    let user = builder(home).policy(permits(1)).open().unwrap();
    let observer = builder(home).observer().open_existing().unwrap();
    assert_eq!(observer.snapshot().unwrap().participants.len(), 1);
    assert_eq!(Limiter::list(Some(home)).unwrap().names.len(), 1);
    drop(user);
}

fn replace_under_a_user(home: &Path) {
    let user = builder(home).policy(permits(3)).open().unwrap();
    for _ in 0..3 {
        drop(builder(home).policy(permits(3)).replace().unwrap());
        user.try_acquire(&Request::new()).unwrap().release().unwrap();
    }
}

fn remove_under_a_user(home: &Path) {
    let user = builder(home).policy(permits(3)).open().unwrap();
    builder(home).remove(true).unwrap();
    user.try_acquire(&Request::new()).unwrap_err();
    drop(builder(home).policy(permits(3)).open().unwrap());
    builder(home).remove(false).unwrap();
}

fn fail_to_open(home: &Path) {
    let missing = builder(home).open_existing();
    assert!(matches!(missing, Err(Error::UnknownLimiter { .. })), "{missing:?}");
    drop(builder(home).policy(permits(3)).open().unwrap());
    let other = builder(home).policy(permits(4)).open();
    assert!(matches!(other, Err(Error::ConfigMismatch { .. })), "{other:?}");
    let path = segment_path(home);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "not a segment").unwrap();
    builder(home).open_existing().unwrap_err();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn closing_a_limiter_closes_every_handle_it_opened() {
    in_own_process!();
    let scenarios: [(&str, Scenario); 6] = [
        ("use", use_and_close),
        ("wait", wait_until_the_timeout),
        ("look", look),
        ("replace", replace_under_a_user),
        ("remove", remove_under_a_user),
        ("fail to open", fail_to_open),
    ];
    let before = open_handles();
    let file = tempfile::tempfile().unwrap();
    assert_eq!(open_handles(), before + 1, "what is open is counted");
    drop(file);
    for (name, scenario) in scenarios {
        let mut counts = Vec::new();
        let is_closed = (0..COUNTS).any(|_| {
            let before = open_handles();
            for _ in 0..RUNS {
                scenario(directory().path());
            }
            counts.push((before, open_handles()));
            counts.last().is_some_and(|(before, after)| before == after)
        });
        assert!(is_closed, "{name}: open before and after {RUNS} runs: {counts:?}");
    }
}
