//! P4 and P5: foreign files are refused, and not one byte of them is written.
//!
//! The criteria for an unsafe file or directory (P5) differ between systems: see the module of each. A test on
//! Linux cannot mount network file systems; the unit tests of `sys::file_system` check which kinds count as such.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use crate::util;
use crate::util::{builder, counted, raw, segment_path};
use shmlimit::{Algorithm, Error, Policy, PolicyDraft, RuleDraft};
use shmlimit_segment::layout::{self, header};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A private directory with a valid segment that no process uses.
fn with_segment() -> (TempDir, PathBuf) {
    let directory = util::directory();
    drop(builder(directory.path()).policy(counted(5, None)).create().unwrap());
    let path = segment_path(directory.path());
    (directory, path)
}

/// Everything about a file and its directory that opening must not change.
fn portrait(path: &Path) -> impl PartialEq + std::fmt::Debug {
    let bytes = fs::symlink_metadata(path).unwrap().is_file().then(|| fs::read(path).unwrap());
    (facts(path), bytes, facts(path.parent().unwrap()))
}

#[cfg(unix)]
fn facts(path: &Path) -> impl PartialEq + std::fmt::Debug + use<> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::symlink_metadata(path).unwrap();
    let times = (file.mtime(), file.mtime_nsec(), file.ctime_nsec());
    (file.ino(), file.mode(), file.nlink(), file.size(), times, file.blocks())
}

#[cfg(windows)]
fn facts(path: &Path) -> impl PartialEq + std::fmt::Debug + use<> {
    let file = fs::symlink_metadata(path).unwrap();
    // A file that was created and removed again changes the time of its directory, so only files are compared by
    // time.
    let modified = file.is_file().then(|| file.modified().unwrap());
    let names = file.is_dir().then(|| {
        let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    });
    (file.file_type(), file.len(), modified, file.permissions(), names)
}

/// Every way to open a limiter; none may succeed.
fn every_open(directory: &Path) -> [Error; 4] {
    let open = || builder(directory);
    [
        open().open_existing().unwrap_err(),
        open().open().unwrap_err(),
        open().policy(counted(5, None)).open().unwrap_err(),
        // The creation lock is usable; the file in the limiter's place is not.
        open().policy(counted(5, None)).create().unwrap_err(),
    ]
}

fn refused_as_foreign(directory: &Path, path: &Path, what: &str) {
    // The creation lock exists already, so opening does not create it.
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
fn p4_a_file_of_another_length_is_refused() {
    for length in [0, 1, 8, 4096, layout::SIZE as u64 - 1, layout::SIZE as u64 + 1, 1 << 20] {
        let (directory, path) = with_segment();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        refused_as_foreign(directory.path(), &path, &format!("{length} bytes"));
    }
}

/// A policy whose log takes some pages.
fn with_log() -> Policy {
    let rule = RuleDraft::new(Algorithm::SlidingLog, 10_000, Duration::from_secs(60));
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

#[test]
fn p4_a_file_with_logs_of_another_length_is_refused() {
    let whole = layout::size_for(&with_log()) as u64;
    assert!(whole >= layout::SIZE as u64 + 4 * 4096);
    let base = layout::SIZE as u64;
    for length in [0, base - 4096, base, base + 4096, whole - 4096, whole - 8, whole + 8, whole + 4096] {
        let directory = util::directory();
        drop(builder(directory.path()).policy(with_log()).create().unwrap());
        let path = segment_path(directory.path());
        assert_eq!(fs::metadata(&path).unwrap().len(), whole);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        refused_as_foreign(directory.path(), &path, &format!("{length} bytes instead of {whole}"));
    }
}

#[test]
fn p4_a_file_larger_than_any_segment_is_refused_for_any_header() {
    let (directory, path) = with_segment();
    let length = layout::LARGEST_SIZE as u64 + 4096;
    OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
    raw::rewrite_header(&path, header::SIZE, length);
    let before = facts(&path);
    let error = builder(directory.path()).open_existing().unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(facts(&path), before, "something was written");
}

/// The header fits the file, but the configuration in it asks for logs for which the file has no room.
#[test]
fn p4_a_configuration_that_needs_a_larger_file_is_refused() {
    let directory = util::directory();
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

/// A change of the policy in use does not enlarge the file.
#[test]
fn r110_a_policy_whose_logs_do_not_fit_the_file_is_refused_and_nothing_is_changed() {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(counted(5, None)).create().unwrap();
    let error = limiter.set_policy(&with_log()).unwrap_err();
    assert!(matches!(error, Error::DoesNotFit { .. }), "{error}");
    assert_eq!(limiter.policy().unwrap(), counted(5, None));
    assert_eq!(util::drain(&limiter), 5);
}

#[test]
fn p4_another_header_is_refused_even_with_a_valid_checksum() {
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
    assert!(error.contains(&both) && error.contains("--force"), "{error}");
}

/// Refused as unsafe by every way of opening, and left unchanged.
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
