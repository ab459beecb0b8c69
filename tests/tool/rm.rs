//! `shmlimit rm` removes a limiter unless a process uses it.

use crate::cli::Home;
use crate::cli::commands::{READY, SHELL, run};
use crate::cli::queue::{Holder, open, start_waiting};
use crate::util::raw;
use serde_json::Value;
use shmlimit::{AcquireError, Error, Request};
use shmlimit_segment::layout;

#[test]
fn an_unused_limiter_is_removed_and_the_others_stay() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    home.tool(&["init", "other", "--rate", "9/s"]).succeeds();
    assert_eq!(home.tool(&["rm", "api"]).succeeds(), "api: removed\n");
    assert_eq!(home.names(), ["other.shm", "ratelimit.lock"]);
    home.tool(&["rm", "api"]).fails(2, &["no limiter \"api\""]);
    home.tool(&["rm", "othr"]).fails(2, &["did you mean \"other\""]);
}

#[test]
fn a_limiter_in_use_is_not_removed_and_its_users_are_named() {
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
    assert_eq!(home.status("api")["in_flight"], 1, "its holder still has its permit");
    holder.let_go();
    home.tool(&["rm", "api"]).succeeds();
}

#[test]
fn removable_limiters_are_removed_even_if_another_is_not() {
    let home = Home::with(&["one", "--rate", "9/s"]);
    home.tool(&["init", "two", "--rate", "9/s"]).succeeds();
    let answer = home.tool(&["rm", "one", "nothing", "two"]);
    assert_eq!((answer.code, answer.out.as_str()), (2, "one: removed\ntwo: removed\n"));
    assert!(answer.err.contains("no limiter \"nothing\""));
}

#[test]
fn a_limiter_of_exited_processes_can_be_removed() {
    let home = Home::with(&["api", "--concurrency", "2"]);
    let (mut child, _out, _) = home.start(&run("api", READY));
    child.kill().unwrap();
    child.wait().unwrap();
    home.tool(&["rm", "api"]).succeeds();
}

/// A limiter whose file is deleted comes back; one removed with `--force` must not.
#[test]
fn a_forced_removal_fails_its_users_until_the_limiter_is_created_again() {
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
    assert_eq!(limiter.policy().unwrap().concurrency(), Some(5), "the handle switches to the new limiter");
}

#[test]
fn a_forced_removal_ends_waiting_calls_at_once() {
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
fn damaged_segments_and_those_of_other_versions_are_removed_only_by_force() {
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
fn p5_a_file_that_is_not_a_segment_stays_even_by_force() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(home.path().join("letter.shm"), "dear").unwrap();
    #[cfg(unix)] // elsewhere only administrators can make links
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
