//! P5 on systems that control access by mode bits.
//!
//! Each test runs as the user of the test run. If that is root, it runs again in an unprivileged child, because
//! root passes every permission check, which would hide a missing one.

use super::{every_open, portrait, refused_as_unsafe, with_segment};
use crate::util::children::{self, Running};
use crate::util::forks::{self, UNPRIVILEGED, is_root};
use crate::util::respawn::in_own_process;
use crate::util::{self, NAME, builder, counted, permits, segment_path};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{Uid, chown, mkfifo};
use shmlimit::{Error, Limiter};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tempfile::TempDir;

/// P5 for files, as the current user.
fn unsafe_files_are_refused() {
    type Put = fn(&Path, &Path);
    let puts: [(&str, Put); 9] = [
        ("a symbolic link to a good segment", |_, path| {
            let good = path.with_extension("elsewhere");
            fs::rename(path, &good).unwrap();
            symlink(good, path).unwrap();
        }),
        ("a dangling symbolic link", |_, path| {
            fs::remove_file(path).unwrap();
            symlink(path.with_extension("nowhere"), path).unwrap();
        }),
        ("a FIFO", |_, path| {
            fs::remove_file(path).unwrap();
            mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        }),
        ("a socket", |_, path| {
            fs::remove_file(path).unwrap();
            drop(UnixListener::bind(path).unwrap());
        }),
        ("a directory", |_, path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a file with two names", |directory, path| fs::hard_link(path, directory.join("second")).unwrap()),
        ("a group-writable file", |_, path| {
            fs::set_permissions(path, Permissions::from_mode(0o620)).unwrap()
        }),
        ("a world-writable file", |_, path| {
            fs::set_permissions(path, Permissions::from_mode(0o602)).unwrap()
        }),
        ("a file writable by all", |_, path| {
            fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap()
        }),
    ];
    for (what, put) in puts {
        let (directory, path) = with_segment();
        put(directory.path(), &path);
        refused_as_unsafe(directory.path(), &path, what);
        assert!(!path.with_extension("nowhere").exists(), "{what}: it was followed");
    }
}

/// P5 for the creation lock: creating a limiter must not follow or trust an unsafe one either.
fn unsafe_creation_locks_are_refused() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 4] = [
        ("a dangling symbolic link", |creation_lock| {
            symlink(creation_lock.with_extension("nowhere"), creation_lock).unwrap()
        }),
        ("a FIFO", |creation_lock| mkfifo(creation_lock, Mode::S_IRUSR | Mode::S_IWUSR).unwrap()),
        ("a file with two names", |creation_lock| {
            fs::write(creation_lock, "").unwrap();
            fs::hard_link(creation_lock, creation_lock.with_extension("second")).unwrap();
        }),
        ("a world-writable file", |creation_lock| {
            fs::write(creation_lock, "").unwrap();
            fs::set_permissions(creation_lock, Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, put) in puts {
        let directory = util::directory();
        let creation_lock = directory.path().join("ratelimit.lock");
        put(&creation_lock);
        let error = builder(directory.path()).policy(counted(5, None)).create().unwrap_err();
        assert!(matches!(error, Error::UnsafeFile { .. } | Error::Io { .. }), "{what}: {error:?}");
        assert!(!segment_path(directory.path()).exists(), "{what}");
        assert!(!creation_lock.with_extension("nowhere").exists(), "{what}: it was followed");
    }
}

/// P5 for directories.
fn unsafe_directories_are_refused() {
    for mode in [0o777, 0o1777, 0o702, 0o770, 0o720] {
        let (directory, path) = with_segment();
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let before = portrait(&path);
        for error in every_open(directory.path()) {
            assert!(matches!(error, Error::Directory { .. }), "mode {mode:o}: {error:?}");
        }
        assert_eq!(portrait(&path), before);
    }
    let (directory, _) = with_segment();
    let link = directory.path().join("link");
    fs::create_dir(directory.path().join("real")).unwrap();
    symlink(directory.path().join("real"), &link).unwrap();
    for end in ["", "/", "//", "/.", "/./", "//.//"] {
        let named = format!("{}{end}", link.display());
        for error in every_open(Path::new(&named)) {
            assert!(matches!(error, Error::Directory { .. }), "{named}: {error:?}");
        }
    }
    assert_eq!(fs::read_dir(directory.path().join("real")).unwrap().count(), 0);
    let file = segment_path(directory.path());
    assert!(matches!(builder(&file).open().unwrap_err(), Error::Directory { .. }), "a file is no directory");
}

#[test]
fn p5_unsafe_files_creation_locks_and_directories_are_refused() {
    unsafe_files_are_refused();
    unsafe_creation_locks_are_refused();
    unsafe_directories_are_refused();
}

#[test]
fn p5_a_device_and_a_file_of_another_owner_are_refused_even_by_root() {
    if !is_root() {
        return println!("not tested: only root can make devices and give files away");
    }
    let (directory, path) = with_segment();
    chown(&path, Some(Uid::from_raw(UNPRIVILEGED)), None).unwrap();
    refused_as_unsafe(directory.path(), &path, "a file of another user");
    fs::remove_file(&path).unwrap();
    // The null device: opening it does no harm if the check fails.
    match mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, nix::sys::stat::makedev(1, 3)) {
        Ok(()) => refused_as_unsafe(directory.path(), &path, "a device"),
        Err(error) => println!("not tested: making a device is not permitted here ({error})"),
    }
    let (directory, path) = with_segment();
    chown(directory.path(), Some(Uid::from_raw(UNPRIVILEGED)), None).unwrap();
    let before = portrait(&path);
    for error in every_open(directory.path()) {
        assert!(matches!(error, Error::Directory { .. }), "a directory of another user: {error:?}");
    }
    assert_eq!(portrait(&path), before);
}

#[test]
fn p5_unsafe_files_are_refused_in_an_unprivileged_child() {
    in_own_process!();
    if !is_root() {
        return println!("not tested: this user is unprivileged already");
    }
    let reachable = TempDir::new().unwrap();
    fs::set_permissions(reachable.path(), Permissions::from_mode(0o755)).unwrap();
    // Root's private directory, and root's segment in a readable one.
    let closed = reachable.path().join("closed");
    let readable = reachable.path().join("readable");
    for (directory, mode) in [(&closed, 0o700), (&readable, 0o755)] {
        fs::create_dir(directory).unwrap();
        drop(builder(directory).policy(counted(5, None)).create().unwrap());
        fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
    }
    let before = [&closed, &readable].map(|directory| format!("{:?}", portrait(&segment_path(directory))));
    let mut child = children::Running::start(forks::unprivileged(
        concat!(module_path!(), "::role_of_the_unprivileged"),
        reachable.path(),
        reachable.path(),
    ));
    assert_eq!(child.receive(), "refused all");
    child.finish();
    let after = [&closed, &readable].map(|directory| format!("{:?}", portrait(&segment_path(directory))));
    assert_eq!(before, after);
}

#[test]
fn role_of_the_unprivileged() {
    let Some(parent) = children::role("role_of_the_unprivileged") else { return };
    assert!(!is_root());
    unsafe_files_are_refused();
    unsafe_creation_locks_are_refused();
    unsafe_directories_are_refused();
    for directory in ["closed", "readable"] {
        let directory = parent.join(directory);
        for error in every_open(&directory) {
            let denied = matches!(&error, Error::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied);
            assert!(denied || matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        }
        let other = Limiter::builder("other").directory(&directory).policy(counted(5, None)).create();
        assert!(matches!(other, Err(Error::Io { .. })), "{other:?}");
    }
    assert_ne!(NAME, "other");
    children::send("refused all");
}

#[test]
fn a_read_only_directory_is_a_typed_error() {
    in_own_process!();
    if is_root() {
        // Root may write anywhere, so the test needs an unprivileged user.
        let reachable = tempfile::TempDir::new().unwrap();
        fs::set_permissions(reachable.path(), Permissions::from_mode(0o755)).unwrap();
        let command = forks::unprivileged(
            concat!(module_path!(), "::role_in_a_read_only_directory"),
            reachable.path(),
            reachable.path(),
        );
        let mut child = Running::start(command);
        assert_eq!(child.receive(), "refused");
        child.finish();
    } else {
        in_a_read_only_directory();
    }
}

#[test]
fn role_in_a_read_only_directory() {
    if children::role("role_in_a_read_only_directory").is_some() {
        in_a_read_only_directory();
        children::send("refused");
    }
}

fn in_a_read_only_directory() {
    let directory = util::directory();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o500)).unwrap();
    let error = builder(directory.path()).policy(permits(1)).open().unwrap_err();
    assert!(
        matches!(&error, Error::Io { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied),
        "{error:?}"
    );
    assert!(error.to_string().contains("--dir"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
