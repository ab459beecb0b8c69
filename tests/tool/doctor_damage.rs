//! `shmlimit doctor` with damaged, foreign or unfinished segments: it never hangs and does no harm.

use crate::cli::Home;
use crate::cli::queue;
use crate::util::raw;
use serde_json::Value;
use shmlimit_segment::layout;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

fn home() -> (Home, PathBuf) {
    let home = Home::with(&["api", "--rate", "9/s", "--concurrency", "4"]);
    let path = home.path().join("api.shm");
    (home, path)
}

/// The findings that report a problem of a limiter.
fn complaints(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let answer = home.tool(&[&["doctor", "--json"], arguments].concat());
    let lines = answer.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found: Vec<Value> =
        lines.filter(|line| line["check"] == "limiter" && line["level"] != "ok").collect();
    let bad = found.iter().any(|one| one["level"] == "bad" && one["fixed"] == false);
    assert_eq!(answer.code, i32::from(bad), "{}{}", answer.out, answer.err);
    found
}

#[track_caller]
fn complains(home: &Home, level: &str, parts: &[&str]) {
    let found = complaints(home, &[]);
    let [one] = &found[..] else { panic!("not one complaint: {found:?}") };
    assert_eq!(one["level"], level, "{one}");
    for part in parts {
        assert!(one.to_string().contains(part), "{part:?} is not in {one}");
    }
}

#[track_caller]
fn is_fixed(home: &Home) {
    let fixed = complaints(home, &["--fix"]);
    assert!(fixed.len() == 1 && fixed[0]["fixed"] == true, "{fixed:?}");
    assert_eq!(complaints(home, &["--fix"]), Vec::<Value>::new());
}

/// A slot without a living owner has the lock, in the middle of a transaction.
#[test]
fn p2_the_unfinished_change_of_an_exited_process_is_undone() {
    let (home, path) = home();
    let word = |index| raw::read_word(&path, index);
    raw::write_word(&path, layout::LOCK, u64::from(raw::lock_word_of(7)));
    raw::write_word(&path, layout::VERSION, word(layout::VERSION) | 1);
    raw::write_word(&path, layout::JOURNAL_LEN, 0);
    let image = std::fs::read(&path).unwrap();
    complains(&home, "warn", &["died in the middle of a change"]);
    assert!(std::fs::read(&path).unwrap() == image, "only looked at");
    is_fixed(&home);
    assert_eq!(word(layout::VERSION) & 1, 0);
    home.tool(&["acquire", "api"]).succeeds();
}

#[test]
fn p3_an_impossible_state_is_reported_and_reset() {
    let (home, path) = home();
    raw::write_word(&path, layout::CORE + 1, 3);
    complains(&home, "bad", &["damaged", "starts used up"]);
    is_fixed(&home);
    let status = home.status("api");
    assert_eq!((&status["in_flight"], &status["resets"]), (&0.into(), &1.into()));
    assert!(home.tool(&["doctor"]).out.contains("was reset once after damage"));
}

#[test]
fn permits_without_a_holder_are_returned() {
    let (home, path) = home();
    raw::write_word(&path, layout::slot_base(9) + layout::slot::HELD, 2);
    raw::write_word(&path, layout::CORE + 1, 2);
    complains(&home, "warn", &["2 permits are held by exited processes"]);
    is_fixed(&home);
    assert_eq!(home.status("api")["in_flight"], 0);
}

#[test]
fn r134_a_segment_of_another_boot_has_no_findings() {
    let (home, path) = home();
    raw::write_word(&path, layout::BOOT, 4711);
    assert_eq!(complaints(&home, &[]), Vec::<Value>::new());
    assert!(home.tool(&["doctor"]).out.contains("created before the last boot"));
}

#[test]
fn p4_another_version_or_a_damaged_header_is_bad_and_not_one_byte_is_written() {
    type Damage = fn(&std::path::Path);
    let damages: [(Damage, &str); 4] = [
        (
            |path| raw::rewrite_header(path, layout::header::FORMAT, 3 << 32 | u64::from(layout::BYTE_ORDER)),
            "layout version 3",
        ),
        (|path| raw::write_word(path, layout::header::CREATED, 1), "header is damaged"),
        (|path| raw::write_word(path, layout::POLICY + 3, !0), "checksum of its configuration"),
        (|path| std::fs::write(path, "a letter").unwrap(), "8 bytes long"),
    ];
    for (damage, problem) in damages {
        let (home, path) = home();
        damage(&path);
        let before = home.contents();
        complains(&home, "bad", &[problem]);
        let found = complaints(&home, &["--fix"]);
        assert_eq!((found.len(), &found[0]["fixed"]), (1, &false.into()), "{found:?}");
        assert!(found[0]["advice"].is_string(), "{found:?}");
        assert!(home.contents() == before, "{problem}");
    }
}

#[test]
fn p5_links_and_pipes_are_bad_and_left_alone() {
    let home = Home::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), home.path().join("link.shm")).unwrap();
    nix::unistd::mkfifo(&home.path().join("pipe.shm"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for arguments in [&[][..], &["--fix"]] {
        let found = complaints(&home, arguments);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|one| one["level"] == "bad" && one["fixed"] == false), "{found:?}");
    }
    assert_eq!(home.names(), ["link.shm", "pipe.shm"]);
    assert_eq!(outside.as_file().metadata().unwrap().len(), 0);
}

/// The lock holder is this test itself: a living process that does not go on.
#[test]
fn p2_a_lock_whose_holder_is_stopped_is_named_in_bounded_time() {
    let (home, path) = home();
    let limiter = queue::open(&home, "api");
    let raw = raw::Raw::map(&path);
    let me = u64::from(std::process::id());
    let slot = (0..layout::SLOTS)
        .find(|slot| raw.word(layout::slot_base(*slot) + layout::slot::PID).load(Ordering::Relaxed) == me)
        .unwrap();
    let free = raw.word(layout::LOCK).load(Ordering::Relaxed);
    raw.word(layout::LOCK).store(u64::from(raw::lock_word_of(slot)), Ordering::Relaxed);
    complains(&home, "bad", &["holds the lock and is stopped", &format!("kill -CONT {me}")]);
    assert_eq!(complaints(&home, &["--fix"])[0]["fixed"], false);
    raw.word(layout::LOCK).store(free, Ordering::Relaxed);
    assert_eq!(complaints(&home, &[]), Vec::<Value>::new());
    drop(limiter);
}

#[test]
fn a_replacement_or_removal_killed_half_way_is_completed() {
    for (mark, left) in [(layout::REPLACED, true), (layout::REMOVED, false)] {
        let (home, path) = home();
        raw::write_word(&path, layout::RETIRED, mark);
        complains(&home, "warn", &["died while it replaced or removed the limiter"]);
        is_fixed(&home);
        assert_eq!(path.exists(), left);
    }
}

#[test]
fn calendar_windows_follow_a_corrected_clock() {
    let home = Home::with(&["api", "--rate", "9/min", "--algorithm", "fixed_window"]);
    let path = home.path().join("api.shm");
    let anchor = raw::read_word(&path, layout::ANCHOR_WALL);
    raw::write_word(&path, layout::ANCHOR_WALL, anchor + 7_200_000_000_000);
    complains(&home, "warn", &["the wall clock was changed by"]);
    is_fixed(&home);
}
