//! Tests of liveness locks with real locks and real processes.

use super::*;
use crate::sys::linux::memory::ForkWords;
use crate::sys::linux::spare_descriptor::TakenLivenessLock;
use crate::sys::linux::testing::{
    Helper, as_helper, eventually, exit_code_of, helper_command, in_forked_child, raw_fork,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

fn segment() -> (tempfile::NamedTempFile, File) {
    let named = tempfile::NamedTempFile::new().unwrap();
    named.as_file().set_len(4096).unwrap();
    let file = named.reopen().unwrap();
    (named, file)
}

/// Opens the file again. A duplicate would share the description and every lock of it; only a new `open` makes a
/// new one.
fn reopen(file: &File) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn hold(file: &File, slot: u32) -> Option<LivenessLock> {
    match LivenessLock::hold(reopen(file).unwrap(), slot, file).unwrap() {
        Hold::Held(liveness_lock) => Some(liveness_lock),
        Hold::Taken => None,
        Hold::Lost => panic!("this file system loses locks"),
    }
}

/// Whether the lock is released *soon*. A process that another test is forking may have a copy of the descriptor
/// until it calls exec.
fn becomes_free(file: &File, slot: u32) -> bool {
    eventually(|| !liveness_lock_is_held(file, slot).unwrap())
}

#[test]
fn held_liveness_lock_is_exclusive_and_drop_releases_it() {
    let (_named, file) = segment();
    let liveness_lock = hold(&file, 3).unwrap();
    assert!(liveness_lock_is_held(&file, 3).unwrap());
    assert!(hold(&file, 3).is_none());
    assert!(TakenLivenessLock::take(reopen(&file).unwrap(), 3).unwrap().is_none());
    drop(liveness_lock);
    assert!(becomes_free(&file, 3));
    assert!(eventually(|| hold(&file, 3).is_some()));
}

#[test]
fn liveness_locks_of_different_slots_are_independent() {
    let (_named, file) = segment();
    let _one = hold(&file, 0).unwrap();
    let _other = hold(&file, u32::MAX).unwrap();
    assert!(liveness_lock_is_held(&file, u32::MAX).unwrap());
    assert!(!liveness_lock_is_held(&file, 1).unwrap());
}

#[test]
fn reopened_file_has_another_description() {
    let (_named, file) = segment();
    let own = reopen(&file).unwrap();
    let taken = TakenLivenessLock::take(own.try_clone().unwrap(), 0).unwrap().unwrap();
    let copy = file.try_clone().unwrap();
    assert!(liveness_lock_is_held(&copy, 0).unwrap());
    assert!(!liveness_lock_is_held(&own, 0).unwrap(), "a description never conflicts with itself");
    drop(taken);
}

#[test]
fn forked_child_does_not_inherit_the_liveness_lock() {
    let (_named, file) = segment();
    let liveness_lock = hold(&file, 0).unwrap();
    let page = liveness_lock.page.as_ptr();
    let mapped = || {
        // SAFETY: msync of a PROT_NONE page touches no memory; it only says whether the range is mapped.
        i32::from(unsafe { libc::msync(page, 1, libc::MS_ASYNC) } == 0)
    };
    assert_eq!(mapped(), 1);
    assert_eq!(in_forked_child(mapped), 0);
}

#[test]
fn taken_liveness_lock_is_released_even_if_a_forked_child_shares_its_description() {
    let (_named, file) = segment();
    let taken = TakenLivenessLock::take(reopen(&file).unwrap(), 0).unwrap().unwrap();
    let child = raw_fork(|| {
        loop {
            // SAFETY: pause has no arguments and touches no memory.
            unsafe { libc::pause() };
        }
    });
    assert!(liveness_lock_is_held(&file, 0).unwrap());
    drop(taken);
    let free = !liveness_lock_is_held(&file, 0).unwrap();
    kill(child, Signal::SIGKILL).unwrap();
    exit_code_of(child);
    assert!(free);
}

#[test]
fn liveness_cell_is_empty_in_a_child_and_releases_its_lock_on_drop() {
    let (_named, file) = segment();
    let words = ForkWords::new().unwrap();
    assert!(words.liveness_lock().is_empty() && words.liveness_lock().take().is_none());
    assert!(words.liveness_lock().put(hold(&file, 0).unwrap()).is_none());
    assert_eq!(in_forked_child(|| i32::from(!words.liveness_lock().is_empty())), 0);
    let first = words.liveness_lock().put(hold(&file, 1).unwrap());
    assert!(first.is_some() && liveness_lock_is_held(&file, 0).unwrap());
    drop(first);
    assert!(becomes_free(&file, 0) && liveness_lock_is_held(&file, 1).unwrap());
    drop(words);
    assert!(becomes_free(&file, 1));
}

#[test]
fn p2_liveness_lock_survives_closing_descriptors_and_ends_with_its_owner_even_if_a_child_lives_on() {
    let (named, file) = segment();
    let mut command = helper_command(&[], "sys::linux::liveness::tests::helper_holds_a_liveness_lock");
    command.env("SHMLIMIT_TEST_FILE", named.path());
    let mut owner = Helper::start(command);
    let grandchild = Pid::from_raw(owner.answer().parse().unwrap());
    assert!(liveness_lock_is_held(&file, 7).unwrap(), "lost when the owner closed its descriptors");
    owner.kill();
    let freed = becomes_free(&file, 7);
    let lives_on = kill(grandchild, None).is_ok();
    kill(grandchild, Signal::SIGKILL).unwrap();
    assert!(lives_on, "the claim needs a living grandchild");
    assert!(freed, "the grandchild kept the liveness lock of a dead owner");
}

#[test]
fn helper_holds_a_liveness_lock() {
    as_helper(|helper| {
        let path = std::env::var_os("SHMLIMIT_TEST_FILE").unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        let _liveness_lock = hold(&file, 7).unwrap();
        std::mem::forget(file);
        // SAFETY: from here on this process only answers and waits; no descriptor above 2 is used again.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
        let grandchild = raw_fork(|| {
            // SAFETY: neither call touches memory; the alarm ends a grandchild whose test failed.
            unsafe {
                libc::alarm(60);
                libc::pause();
            }
            0
        });
        helper.say(&grandchild.to_string());
        helper.wait_for_the_end();
    });
}

/// Maps a file, locks it and closes it. Returns whether the lock is still held.
fn is_kept_by_a_mapping(path: &std::path::Path) -> bool {
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
    let mapped = open();
    mapped.set_len(4096).unwrap();
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing. With PROT_NONE it is never read.
    let page =
        unsafe { mmap(None, ONE_PAGE, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, &mapped, 0) }.unwrap();
    let _liveness_lock = LivenessLock { page };
    outlives_its_descriptor(mapped, &open()).unwrap()
}

#[test]
fn lock_lost_by_any_file_system_is_detected() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let directory = tempfile::tempdir().unwrap();
    assert!(is_kept_by_a_mapping(&directory.path().join("file")));
    // In a separate thread, because the mount namespace ends with the thread.
    let tried = std::thread::scope(|scope| {
        let on_overlayfs = || -> nix::Result<bool> {
            let none = None::<&str>;
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            mount(Some("none"), directory.path(), Some("tmpfs"), MsFlags::empty(), none)?;
            assert!(is_kept_by_a_mapping(&directory.path().join("file")));
            let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| {
                let path = directory.path().join(name);
                std::fs::create_dir(&path).unwrap();
                path
            });
            let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
            let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
            mount(Some("overlay"), &merged, Some("overlay"), MsFlags::empty(), Some(options.as_str()))?;
            // A process that another test is forking may have a copy of the descriptor until it calls exec.
            Ok(eventually(|| !is_kept_by_a_mapping(&merged.join("file"))))
        };
        scope.spawn(on_overlayfs).join().unwrap()
    });
    match tried {
        Ok(lost) => assert!(lost, "overlayfs keeps locks by now: look at `FileSystem::Lossy` again"),
        Err(error) => eprintln!("not tested: mounting is not permitted here ({error})"),
    }
}

#[test]
fn user_byte_is_in_use_until_the_last_registered_user_leaves() {
    const LAST: u64 = (1 << 60) - 1;
    let (_named, file) = segment();
    let register_user =
        |number| LivenessLock::register_user(reopen(&file).unwrap(), number).unwrap().unwrap();
    let has_users = |file: &File, number: u64| has_users(file, number..number + 1);
    let whole = reopen(&file).unwrap();
    fs4::FileExt::lock(&whole).unwrap();
    let (one, other, third) = (register_user(7), register_user(7), register_user(LAST));
    assert!(hold(&file, 7).is_some(), "a registered user takes no slot");
    let child = in_forked_child(|| i32::from(!has_users(&reopen(&file).unwrap(), 7).unwrap()));
    assert_eq!(child, 0);
    drop(one);
    assert!(has_users(&file, 7).unwrap() && !has_users(&file, 8).unwrap());
    for (numbers, used) in
        [(0..100, true), (0..7, false), (8..LAST, false), (8..LAST + 1, true), (7..7, false)]
    {
        assert_eq!(super::has_users(&file, numbers.clone()).unwrap(), used, "{numbers:?}");
    }
    drop((other, third));
    assert!(eventually(|| !has_users(&file, 7).unwrap() && !has_users(&file, LAST).unwrap()));
}
