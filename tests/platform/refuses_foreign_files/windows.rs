//! P5 on Windows, which controls access by lists, and the names and places that only Windows has.

use super::{every_open, portrait, refused_as_unsafe, with_segment};
use crate::util::children::{self, Running};
use crate::util::windows::set_access;
use crate::util::{self, builder, counted, drain, segment_path, take};
use shmlimit::{Error, Limiter, Removal};
use std::ffi::OsString;
use std::fs;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{symlink_dir, symlink_file};
use std::path::Path;

/// Full access for the owner and for every user: Wine has only these two.
const OPEN: &str = "D:P(A;;FA;;;OW)(A;;FA;;;WD)";

#[test]
fn p5_unsafe_files_are_refused() {
    type Put = fn(&Path, &Path);
    let puts: [(&str, Put); 3] = [
        ("a directory", |_, path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a file with two names", |directory, path| fs::hard_link(path, directory.join("second")).unwrap()),
        ("a file open to everybody", |_, path| set_access(path, OPEN)),
    ];
    for (what, put) in puts {
        let (directory, path) = with_segment();
        put(directory.path(), &path);
        refused_as_unsafe(directory.path(), &path, what);
    }
}

#[test]
fn p5_links_are_not_followed() {
    let (directory, path) = with_segment();
    let good = path.with_extension("elsewhere");
    fs::rename(&path, &good).unwrap();
    // Wine reports success although it has not made a link.
    if symlink_file(&good, &path).is_err() || fs::symlink_metadata(&path).is_err() {
        return println!("not tested: links cannot be made here");
    }
    refused_as_unsafe(directory.path(), &path, "a link to a good segment");
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink_dir(&real, &link).unwrap();
    for error in every_open(&link) {
        assert!(matches!(error, Error::Directory { .. }), "{error:?}");
    }
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

#[test]
fn p5_unsafe_creation_locks_are_refused() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 3] = [
        ("a directory", |creation_lock| fs::create_dir(creation_lock).unwrap()),
        ("a file with two names", |creation_lock| {
            fs::write(creation_lock, "").unwrap();
            fs::hard_link(creation_lock, creation_lock.with_extension("second")).unwrap();
        }),
        ("a file open to everybody", |creation_lock| {
            fs::write(creation_lock, "").unwrap();
            set_access(creation_lock, OPEN);
        }),
    ];
    for (what, put) in puts {
        let directory = util::directory();
        put(&directory.path().join("ratelimit.lock"));
        let error = builder(directory.path()).policy(counted(5, None)).create().unwrap_err();
        assert!(matches!(error, Error::UnsafeFile { .. } | Error::Io { .. }), "{what}: {error:?}");
        assert!(!segment_path(directory.path()).exists(), "{what}");
    }
}

#[test]
fn p5_unsafe_directories_are_refused_with_the_remedy() {
    let (directory, path) = with_segment();
    set_access(directory.path(), OPEN);
    let before = portrait(&path);
    for error in every_open(directory.path()) {
        assert!(matches!(error, Error::Directory { .. }), "{error:?}");
        let text = error.to_string();
        for part in ["every user can write", "icacls", directory.path().to_str().unwrap()] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
    assert_eq!(portrait(&path), before);
    let file = segment_path(with_segment().0.path());
    assert!(matches!(builder(&file).open().unwrap_err(), Error::Directory { .. } | Error::Io { .. }));
}

#[test]
fn a_denied_access_names_the_path_and_the_tool_that_shows_more() {
    let (directory, path) = with_segment();
    set_access(&path, "D:P(D;;FA;;;WD)");
    match builder(directory.path()).open_existing() {
        // Wine leaves access control to the host system, where the superuser may do everything.
        Ok(_) => println!("not tested: nothing is denied to this user"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("icacls") && text.contains(path.to_str().unwrap()), "{text}");
        }
    }
}

#[test]
fn a_segment_marked_read_only_is_an_error_with_path_and_remedy() {
    let (directory, path) = with_segment();
    let mark = |read_only| {
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(read_only);
        fs::set_permissions(&path, permissions).unwrap();
    };
    mark(true);
    match builder(directory.path()).open_existing() {
        Ok(_) => println!("not tested: nothing keeps this user from writing"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("attrib -r") && text.contains(path.to_str().unwrap()), "{text}");
        }
    }
    mark(false);
    assert_eq!(drain(&builder(directory.path()).open_existing().unwrap()), 5);
}

/// The read-only attribute has no effect on a directory; an access list has.
#[test]
fn a_read_only_directory_is_an_error_with_a_remedy_and_stays_unchanged() {
    let directory = util::directory();
    set_access(directory.path(), "D:P(A;OICI;0x1200a9;;;WD)");
    let made = builder(directory.path()).policy(counted(5, None)).create();
    set_access(directory.path(), OPEN);
    match made {
        Ok(_) => println!("not tested: nothing keeps this user from writing"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("icacls") && text.contains(directory.path().to_str().unwrap()), "{text}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}

/// The share and the drive that `scripts/platforms/wine` creates; a real Windows has none of that name. Wine finds
/// the drive behind the share.
#[test]
fn r135_shares_and_network_drives_are_refused_unless_they_are_allowed() {
    for root in [r"\\localhost\limits", r"N:\"] {
        let Ok(directory) = tempfile::TempDir::new_in(root) else {
            println!("not tested: there is no {root}");
            continue;
        };
        for error in every_open(directory.path()) {
            assert!(matches!(&error, Error::NetworkFileSystem { .. }), "{error:?}");
            let text = error.to_string();
            for part in [directory.path().to_str().unwrap(), "network", "--allow-network-fs"] {
                assert!(text.contains(part), "{part} is missing in: {text}");
            }
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let allowed = || builder(directory.path()).allow_network_fs();
        let limiter = allowed().policy(counted(3, None)).create().unwrap();
        assert!(take(&allowed().open_existing().unwrap()));
        assert_eq!(drain(&limiter), 2);
    }
}

/// File names are arbitrary 16-bit numbers. Half of a surrogate pair is not valid text.
#[test]
fn a_directory_whose_name_is_not_valid_text_works() {
    let home = util::directory();
    let odd = home.path().join(OsString::from_wide(&[0x78, 0xd800, 0x79]));
    if fs::create_dir(&odd).is_err() || fs::read_dir(&odd).is_err() {
        return println!("not tested: such names cannot be made here");
    }
    let limiter = builder(&odd).policy(counted(3, None)).create().unwrap();
    assert!(take(&builder(&odd).open_existing().unwrap()));
    assert_eq!(drain(&limiter), 2, "its file is not taken for deleted");
    drop(builder(&odd).policy(counted(2, None)).replace().unwrap());
    assert!(take(&limiter));
}

/// `%ProgramData%\AniVault`, in a process with another `%ProgramData%`.
#[test]
fn the_default_directory_is_created_private_and_refused_if_anyone_may_write_it() {
    let data = util::directory();
    let mut command =
        children::command(&[], concat!(module_path!(), "::role_in_the_default_directory"), data.path());
    command.env("ProgramData", data.path()).env_remove("SHMLIMIT_DIR").env_remove("ANIVAULT_DIR");
    let mut child = Running::start(command);
    assert_eq!(child.receive(), "made");
    let made = data.path().join("AniVault");
    assert!(segment_path(&made).is_file());
    set_access(&made, OPEN);
    child.go_on();
    let said = child.receive();
    assert!(said.contains("AniVault") && said.contains("every user can write"), "{said}");
    child.finish();
}

#[test]
fn role_in_the_default_directory() {
    let Some(data) = children::role("role_in_the_default_directory") else { return };
    let open = || Limiter::builder(util::NAME).policy(counted(5, None)).open();
    let limiter = open().unwrap();
    assert_eq!(limiter.directory(), data.join("AniVault"));
    drop(limiter);
    children::send("made");
    assert!(children::wait_for_go_on());
    children::send(&open().unwrap_err().to_string());
}

#[test]
fn names_that_differ_only_in_case_are_one_limiter() {
    let directory = util::directory();
    let open = |name| Limiter::builder(name).directory(directory.path()).bounds(util::quick());
    let lower = open("tmdb").policy(counted(3, None)).create().unwrap();
    assert!(matches!(open("TMDB").policy(counted(5, None)).create(), Err(Error::AlreadyExists { .. })));
    let upper = open("TMDB").open_existing().unwrap();
    assert!(take(&upper));
    assert_eq!(drain(&lower), 2, "one budget");
    assert!(matches!(open("Tmdb").remove(false).unwrap(), Removal::InUse(users) if users.len() == 2));
}

#[test]
fn a_path_longer_than_260_characters_works() {
    let home = util::directory();
    let deep = (0..8).fold(home.path().to_owned(), |path, _| path.join("x".repeat(40)));
    assert!(deep.as_os_str().len() > 300);
    fs::create_dir_all(&deep).unwrap();
    for place in [deep.clone(), deep.join("made")] {
        let limiter = builder(&place).policy(counted(3, None)).create().unwrap();
        let other = builder(&place).open_existing().unwrap();
        assert!(take(&other));
        let fresh = builder(&place).policy(counted(2, None)).replace().unwrap();
        assert_eq!((drain(&limiter), drain(&fresh)), (2, 0));
    }
}

#[test]
fn a_replaced_or_removed_file_is_deleted_when_no_process_uses_it() {
    let directory = util::directory();
    let hidden = || {
        let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with('.')).count()
    };
    let old = builder(directory.path()).policy(counted(3, None)).create().unwrap();
    let new = builder(directory.path()).policy(counted(3, None)).replace().unwrap();
    assert!(take(&old) && take(&new), "both use the new one");
    drop((old, new));
    drop(builder(directory.path()).policy(counted(3, None)).replace().unwrap());
    assert_eq!(builder(directory.path()).remove(false).unwrap(), Removal::Removed);
    drop(Limiter::builder("other").directory(directory.path()).policy(counted(3, None)).create().unwrap());
    assert_eq!(hidden(), 0, "making a limiter sweeps what is left");
}
