//! A limiter's file is deleted by hand while a command runs: the next command waits for the running one.

use crate::cli::commands::{READY, READY_THEN_ALIVE, SAYS_HELLO, run};
use crate::cli::queue::{start_waiting, waiting};
use crate::cli::{Home, ONE};
use std::io::Read;

#[test]
fn a_command_after_init_waits_for_the_running_one() {
    let home = Home::with(&ONE);
    let (mut first, mut out, ready) = home.start(&run("one", READY_THEN_ALIVE));
    assert_eq!(ready, "ready");
    home.delete("one");
    home.tool(&[&["init"][..], &ONE].concat()).succeeds();
    home.tool(&["acquire", "one", "--timeout", "0"]).fails(75, &[]);
    let mut second = start_waiting(&home, "one", &run("one", SAYS_HELLO), &[]);
    assert!(second.try_wait().unwrap().is_none());
    drop(first.stdin.take());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim(), "alive");
    first.wait().unwrap();
    assert_eq!(second.wait_with_output().unwrap().stdout.trim_ascii(), b"hello");
}

#[test]
fn a_waiting_command_keeps_waiting_until_the_first_ends_or_is_killed() {
    for killed in [false, true] {
        let home = Home::with(&ONE);
        let (mut first, _out, ready) = home.start(&run("one", READY));
        assert_eq!(ready, "ready");
        let mut second = start_waiting(&home, "one", &run("one", SAYS_HELLO), &[]);
        home.delete("one");
        let file = home.path().join("one.shm");
        while !file.exists() {
            assert!(first.try_wait().unwrap().is_none());
            std::thread::yield_now();
        }
        while waiting(&home.status("one")).is_empty() {
            assert!(second.try_wait().unwrap().is_none(), "the second has not waited for the first");
        }
        assert_eq!(home.status("one")["in_flight"], 1);
        home.tool(&["acquire", "one", "--timeout", "0"]).fails(75, &[]);
        if killed {
            first.kill().unwrap();
        }
        drop(first.stdin.take());
        first.wait().unwrap();
        assert_eq!(second.wait_with_output().unwrap().stdout.trim_ascii(), b"hello");
    }
}
