//! `shmlimit rm`: a limiter goes, unless somebody uses it.

use crate::cli::Home;
use crate::cli::commands::{READY, SHELL, run};
use crate::cli::queue::{Holder, open, start_waiting};
use crate::util::raw;
use serde_json::Value;
use shmlimit::{AcquireError, Error, Request};
use shmlimit_segment::layout;

#[test]
fn a_limiter_that_nobody_uses_goes_and_its_neighbours_stay() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    home.tool(&["init", "other", "--rate", "9/s"]).succeeds();
    assert_eq!(home.tool(&["rm", "api"]).succeeds(), "api: removed\n");
    assert_eq!(home.names(), ["other.shm", "ratelimit.lock"]);
    home.tool(&["rm", "api"]).fails(2, &["no limiter \"api\""]);
    home.tool(&["rm", "othr"]).fails(2, &["did you mean \"other\""]);
}

#[test]
fn one_in_use_is_left_alone_with_the_users_named() {
    let home = Home::with(&["api", "--concurrency", "2"]);
    let before = home.names();
    let holder = Holder::new(&home, "api");
    home.tool(&["rm", "api"]).fails(75, &[&format!("in use by {SHELL} ("), "rm api --force"]);
    let json = home.tool(&["rm", "api", "--json"]);
    let line: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (json.code, &line["removed"], line["users"].as_array().unwrap().len()),
        (75, &false.into(), 1)
    );
    assert_eq!(home.names(), before);
    assert_eq!(home.status("api")["in_flight"], 1, "its holder has its permit still");
    holder.let_go();
    home.tool(&["rm", "api"]).succeeds();
}

#[test]
fn what_can_be_removed_is_removed_though_another_cannot() {
    let home = Home::with(&["one", "--rate", "9/s"]);
    home.tool(&["init", "two", "--rate", "9/s"]).succeeds();
    let answer = home.tool(&["rm", "one", "nothing", "two"]);
    assert_eq!((answer.code, answer.out.as_str()), (2, "one: removed\ntwo: removed\n"));
    assert!(answer.err.contains("no limiter \"nothing\""));
}

#[test]
fn the_dead_do_not_keep_a_limiter() {
    let home = Home::with(&["api", "--concurrency", "2"]);
    let (mut child, _out, _) = home.start(&run("api", READY));
    child.kill().unwrap();
    child.wait().unwrap();
    home.tool(&["rm", "api"]).succeeds();
}

/// Deleting the file brings it back; this must not.
#[test]
fn by_force_its_users_are_told_and_it_stays_away_until_somebody_makes_it() {
    let home = Home::with(&["api", "--concurrency", "9"]);
    let limiter = open(&home, "api");
    limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    home.tool(&["rm", "api", "--force"]).succeeds();
    for _ in 0..3 {
        match limiter.try_acquire(&Request::new()) {
            Err(AcquireError::Failed(error)) => {
                assert!(matches!(*error, Error::UnknownLimiter { .. }), "{error}")
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(home.names(), [".api.removed", "ratelimit.lock"]);
    home.tool(&["init", "api", "--concurrency", "5"]).succeeds();
    assert_eq!(home.names(), ["api.shm", "ratelimit.lock"]);
    limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
    assert_eq!(limiter.policy().unwrap().concurrency(), Some(5), "it goes over to the new one");
}

#[test]
fn by_force_those_who_wait_are_told_at_once() {
    let home = Home::with(&["api", "--concurrency", "1"]);
    let holder = Holder::new(&home, "api");
    let waiter = start_waiting(&home, "api", &["acquire", "api"], &[]);
    home.tool(&["rm", "api", "--force"]).succeeds();
    let ended = waiter.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("no limiter \"api\""), "{ended:?}");
    holder.let_go();
    assert_eq!(home.names(), [".api.removed", "ratelimit.lock"]);
}

#[test]
fn damaged_segments_and_those_of_other_versions_go_by_force_only() {
    type Damage = fn(&std::path::Path);
    let damages: [Damage; 3] = [
        |path| raw::rewrite_header(path, layout::header::FORMAT, 3 << 32 | u64::from(layout::BYTE_ORDER)),
        |path| raw::write_word(path, layout::header::CREATED, 1),
        |path| raw::write_word(path, layout::POLICY + 3, !0),
    ];
    for damage in damages {
        let home = Home::with(&["api", "--rate", "9/s"]);
        damage(&home.path().join("api.shm"));
        let before = home.contents();
        home.tool(&["rm", "api"]).fails(2, &["rm api --force"]);
        assert!(home.contents() == before);
        home.tool(&["rm", "api", "--force"]).succeeds();
        assert_eq!(home.names(), ["ratelimit.lock"]);
    }
}

#[test]
fn p5_what_is_no_segment_stays_even_by_force() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(home.path().join("letter.shm"), "dear").unwrap();
    #[cfg(unix)] // elsewhere links are for administrators
    std::os::unix::fs::symlink(outside.path(), home.path().join("link.shm")).unwrap();
    let before = home.contents();
    for name in ["letter", "link"] {
        let answer = home.tool(&["rm", name, "--force"]);
        assert_ne!(answer.code, 0, "{name}: {}", answer.out);
    }
    for name in ["../api", "api.shm/", ".", "a/b", ""] {
        home.tool(&["rm", name, "--force"]).fails(2, &["bad limiter name"]);
    }
    assert!(home.contents() == before);
    assert!(outside.path().exists());
}
