//! P4 and P5: what is not ours is refused, and not one byte of it is written.
//!
//! Each claim runs as the user of the test; where that is root, once more as an unprivileged child, because root passes
//! every permission check and would hide a missing one. Network file systems cannot be mounted in a test: which kinds
//! count as such is tested beside `sys::file_system`.

mod common;

use common::children::{self, UNPRIVILEGED, is_root};
use common::{NAME, builder, counted, raw, segment_path};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{Uid, chown, mkfifo};
use shmlimit::internals::layout::{self, header};
use shmlimit::{Algorithm, Error, Limiter, Nanos, Policy, PolicyDraft, RuleDraft};
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A private place with a good segment in it that nobody uses.
fn with_segment() -> (TempDir, PathBuf) {
    let directory = common::directory();
    drop(builder(directory.path()).policy(counted(5, None)).create().unwrap());
    let path = segment_path(directory.path());
    (directory, path)
}

/// Everything about a file that opening must not change, and about its directory.
fn portrait(path: &Path) -> impl PartialEq + std::fmt::Debug {
    let facts = |path: &Path| {
        let file = fs::symlink_metadata(path).unwrap();
        (
            file.ino(),
            file.mode(),
            file.nlink(),
            file.size(),
            (file.mtime(), file.mtime_nsec(), file.ctime_nsec()),
        )
    };
    let bytes = fs::symlink_metadata(path).unwrap().is_file().then(|| fs::read(path).unwrap());
    (facts(path), bytes, facts(path.parent().unwrap()))
}

/// Every way to open a limiter; none may succeed.
fn every_open(directory: &Path) -> [Error; 4] {
    let open = || builder(directory);
    [
        open().open_existing().unwrap_err(),
        open().open().unwrap_err(),
        open().policy(counted(5, None)).open().unwrap_err(),
        // The gate to making one is ours to use; the file in the limiter's place is not.
        open().policy(counted(5, None)).create().unwrap_err(),
    ]
}

fn refused_as_foreign(directory: &Path, path: &Path, what: &str) {
    // The gate exists already, so that making one changes nothing either.
    let before = portrait(path);
    let [existing, open, with_policy, create] = every_open(directory);
    for error in [existing, open, with_policy] {
        assert!(matches!(error, Error::Foreign { .. }), "{what}: {error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{what}: {error}");
    }
    assert!(matches!(create, Error::AlreadyExists { .. }), "{what}: {create}");
    assert_eq!(portrait(path), before, "{what}: something was written");
}

#[test]
fn p4_another_length_is_refused() {
    for length in [0, 1, 8, 4096, layout::SIZE as u64 - 1, layout::SIZE as u64 + 1, 1 << 20] {
        let (directory, path) = with_segment();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        refused_as_foreign(directory.path(), &path, &format!("{length} bytes"));
    }
}

/// A policy whose log takes some pages.
fn with_log() -> Policy {
    let rule = RuleDraft::new(Algorithm::SlidingLog, 10_000, Nanos::from_secs(60));
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

#[test]
fn p4_another_length_of_a_file_with_logs_is_refused() {
    let whole = layout::size_for(&with_log()) as u64;
    assert!(whole >= layout::SIZE as u64 + 4 * 4096);
    let base = layout::SIZE as u64;
    for length in [0, base - 4096, base, base + 4096, whole - 4096, whole - 8, whole + 8, whole + 4096] {
        let directory = common::directory();
        drop(builder(directory.path()).policy(with_log()).create().unwrap());
        let path = segment_path(directory.path());
        assert_eq!(fs::metadata(&path).unwrap().len(), whole);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        refused_as_foreign(directory.path(), &path, &format!("{length} bytes instead of {whole}"));
    }
}

#[test]
fn p4_a_file_larger_than_any_segment_is_refused_whatever_its_header_says() {
    let (directory, path) = with_segment();
    let length = layout::LARGEST_SIZE as u64 + 4096;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
    raw::rewrite_header(&path, header::SIZE, length);
    let facts =
        |path: &Path| fs::metadata(path).map(|file| (file.ino(), file.mtime_nsec(), file.blocks())).unwrap();
    let before = facts(&path);
    let error = builder(directory.path()).open_existing().unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(facts(&path), before, "something was written");
}

/// The header fits the file, but the configuration in it asks for logs that the file has no room for.
#[test]
fn p4_a_configuration_that_needs_a_larger_file_is_refused() {
    let directory = common::directory();
    drop(builder(directory.path()).policy(with_log()).create().unwrap());
    let path = segment_path(directory.path());
    for length in [layout::SIZE as u64, layout::size_for(&with_log()) as u64 - 4096] {
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        raw::rewrite_header(&path, header::SIZE, length);
        let before = portrait(&path);
        for open in [builder(directory.path()), builder(directory.path()).policy(with_log())] {
            let error = open.open().unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
            assert!(error.to_string().contains("larger file"), "{error}");
        }
        assert_eq!(portrait(&path), before, "{length} bytes: something was written");
    }
}

/// Changing the policy of a limiter in use does not make its file larger.
#[test]
fn r110_a_policy_whose_logs_do_not_fit_the_file_is_refused_and_nothing_is_changed() {
    let directory = common::directory();
    let limiter = builder(directory.path()).policy(counted(5, None)).create().unwrap();
    let error = limiter.set_policy(&with_log()).unwrap_err();
    assert!(matches!(error, Error::DoesNotFit { .. }), "{error}");
    assert_eq!(limiter.policy().unwrap(), counted(5, None));
    assert_eq!(common::drain(&limiter), 5);
}

#[test]
fn p4_another_header_is_refused_even_with_a_fitting_checksum() {
    let format = u64::from(layout::LAYOUT_VERSION) << 32 | u64::from(layout::BYTE_ORDER);
    let damages: [(&str, usize, u64); 10] = [
        ("another magic", header::MAGIC, layout::MAGIC + 1),
        ("no magic", header::MAGIC, 0),
        ("magic of the other byte order", header::MAGIC, layout::MAGIC.swap_bytes()),
        ("the next version", header::FORMAT, format + (1 << 32)),
        ("version 0", header::FORMAT, u64::from(layout::BYTE_ORDER)),
        ("the other byte order", header::FORMAT, format.swap_bytes()),
        ("another byte order mark", header::FORMAT, format + 1),
        ("another layout hash", header::HASH, layout::layout_hash() ^ 1),
        ("another size", header::SIZE, layout::SIZE as u64 + 4096),
        ("size 0", header::SIZE, 0),
    ];
    for (what, word, value) in damages {
        let (directory, path) = with_segment();
        raw::rewrite_header(&path, word, value);
        refused_as_foreign(directory.path(), &path, what);
    }
}

#[test]
fn p4_a_damaged_header_is_refused() {
    for word in 0..=header::CHECKSUM {
        let (directory, path) = with_segment();
        raw::write_word(&path, word, raw::read_word(&path, word) ^ 0x100);
        refused_as_foreign(directory.path(), &path, &format!("header word {word}"));
    }
}

#[test]
fn p4_a_file_of_zeros_or_noise_is_refused() {
    for byte in [0, 0x55, 0xff] {
        let (directory, path) = with_segment();
        fs::write(&path, vec![byte; layout::SIZE]).unwrap();
        refused_as_foreign(directory.path(), &path, &format!("all {byte:#x}"));
    }
}

#[test]
fn p4_a_message_about_another_version_names_both() {
    let (directory, path) = with_segment();
    raw::rewrite_header(&path, header::FORMAT, 7 << 32 | u64::from(layout::BYTE_ORDER));
    let error = builder(directory.path()).open_existing().unwrap_err().to_string();
    let both = format!("layout version 7, this program has {}", layout::LAYOUT_VERSION);
    assert!(error.contains(&both) && error.contains("--replace"), "{error}");
}

/// Refused as unsafe by every way of opening, and left as it was.
fn refused_as_unsafe(directory: &Path, path: &Path, what: &str) {
    let before = portrait(path);
    for error in &every_open(directory)[..3] {
        assert!(matches!(error, Error::UnsafeFile { .. }), "{what}: {error:?}");
    }
    assert!(
        matches!(builder(directory).policy(counted(5, None)).replace(), Err(Error::UnsafeFile { .. })),
        "{what}"
    );
    assert_eq!(portrait(path), before, "{what}: something was changed");
}

/// P5 for whoever runs it.
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

/// P5 for the gate: making a limiter must not follow or trust it either.
fn unsafe_gates_are_refused() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 4] = [
        ("a dangling symbolic link", |gate| symlink(gate.with_extension("nowhere"), gate).unwrap()),
        ("a FIFO", |gate| mkfifo(gate, Mode::S_IRUSR | Mode::S_IWUSR).unwrap()),
        ("a file with two names", |gate| {
            fs::write(gate, "").unwrap();
            fs::hard_link(gate, gate.with_extension("second")).unwrap();
        }),
        ("a world-writable file", |gate| {
            fs::write(gate, "").unwrap();
            fs::set_permissions(gate, Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, put) in puts {
        let directory = common::directory();
        let gate = directory.path().join("ratelimit.lock");
        put(&gate);
        let error = builder(directory.path()).policy(counted(5, None)).create().unwrap_err();
        assert!(matches!(error, Error::UnsafeFile { .. } | Error::Io { .. }), "{what}: {error:?}");
        assert!(!segment_path(directory.path()).exists(), "{what}");
        assert!(!gate.with_extension("nowhere").exists(), "{what}: it was followed");
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
    for error in every_open(&link) {
        assert!(matches!(error, Error::Directory { .. }), "{error:?}");
    }
    assert_eq!(fs::read_dir(directory.path().join("real")).unwrap().count(), 0);
    let file = segment_path(directory.path());
    assert!(matches!(builder(&file).open().unwrap_err(), Error::Directory { .. }), "a file is no directory");
}

#[test]
fn p5_unsafe_files_gates_and_directories_are_refused() {
    unsafe_files_are_refused();
    unsafe_gates_are_refused();
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
    // The null device: opening it does no harm if the check should fail.
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
fn p5_the_same_as_an_unprivileged_child() {
    if !is_root() {
        return println!("not tested: this user is unprivileged already");
    }
    let reachable = TempDir::new().unwrap();
    fs::set_permissions(reachable.path(), Permissions::from_mode(0o755)).unwrap();
    // Root's private directory and root's segment in a readable one.
    let closed = reachable.path().join("closed");
    let readable = reachable.path().join("readable");
    for (directory, mode) in [(&closed, 0o700), (&readable, 0o755)] {
        fs::create_dir(directory).unwrap();
        drop(builder(directory).policy(counted(5, None)).create().unwrap());
        fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
    }
    let before = [&closed, &readable].map(|directory| format!("{:?}", portrait(&segment_path(directory))));
    let mut child = children::Running::start(children::unprivileged(
        "role_of_the_unprivileged",
        reachable.path(),
        reachable.path(),
    ));
    assert_eq!(child.hear(), "refused all");
    child.finish();
    let after = [&closed, &readable].map(|directory| format!("{:?}", portrait(&segment_path(directory))));
    assert_eq!(before, after);
}

#[test]
fn role_of_the_unprivileged() {
    let Some(place) = children::role("role_of_the_unprivileged") else { return };
    assert!(!is_root());
    unsafe_files_are_refused();
    unsafe_gates_are_refused();
    unsafe_directories_are_refused();
    for directory in ["closed", "readable"] {
        let directory = place.join(directory);
        for error in every_open(&directory) {
            let denied = matches!(&error, Error::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied);
            assert!(denied || matches!(error, Error::AlreadyExists { .. }), "{error:?}");
        }
        let other = Limiter::builder("other").directory(&directory).policy(counted(5, None)).create();
        assert!(matches!(other, Err(Error::Io { .. })), "{other:?}");
    }
    assert_ne!(NAME, "other");
    children::say("refused all");
}
