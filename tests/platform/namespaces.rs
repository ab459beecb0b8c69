//! Containers: processes in other pid and time namespaces share one limiter. If the system does not permit new
//! namespaces, the test prints that it was skipped.

use crate::util;
use crate::util::children::{self, Running};
use crate::util::{builder, counted, drain, eventually, permits, take};
use std::process::Command;

/// Whether `unshare` with these flags is permitted here.
fn permitted(flags: &[&str]) -> bool {
    let tried = Command::new("unshare").args(flags).arg("true").output();
    let permitted = tried.is_ok_and(|output| output.status.success());
    if !permitted {
        println!("not tested: `unshare {}` is missing or not permitted here", flags.join(" "));
    }
    permitted
}

const PID: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];
const TIME: [&str; 7] = ["unshare", "--time", "--fork", "--boottime", "1000000", "--monotonic", "5000"];

#[test]
fn a_process_in_another_pid_namespace_shares_the_limiter_and_its_death_is_noticed() {
    if !permitted(&PID[1..]) {
        return;
    }
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(3)).create().unwrap();
    assert!(take(&limiter));
    let mut other = Running::start(children::command(
        &PID,
        concat!(module_path!(), "::role_that_takes_all"),
        directory.path(),
    ));
    // Its pid in that namespace is small, and may belong to another process here. The library does not rely on it.
    assert_eq!(other.receive(), "2");
    assert!(!take(&limiter), "its holder is alive, though its pid means nothing here");
    assert_eq!(limiter.snapshot().unwrap().participants.len(), 2);
    other.kill();
    assert!(eventually(|| take(&limiter)), "the death of the other was not seen");
    assert_eq!(drain(&limiter), 1);
}

#[test]
fn a_death_outside_is_noticed_inside_another_pid_namespace() {
    if !permitted(&PID[1..]) {
        return;
    }
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(permits(2)).create().unwrap();
    let mut holder = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_takes_all"),
        directory.path(),
    ));
    assert_eq!(holder.receive(), "2");
    let mut inside = Running::start(children::command(
        &PID,
        concat!(module_path!(), "::role_that_asks_again"),
        directory.path(),
    ));
    assert_eq!(inside.receive(), "false");
    holder.kill();
    inside.go_on();
    assert_eq!(inside.receive(), "true");
    inside.finish();
    drop(limiter);
}

#[test]
fn a_process_in_another_time_namespace_reads_the_same_clock() {
    if !permitted(&TIME[1..]) {
        return;
    }
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(counted(4, None)).create().unwrap();
    assert!(take(&limiter));
    let mut ahead = Running::start(children::command(
        &TIME,
        concat!(module_path!(), "::role_that_takes_all"),
        directory.path(),
    ));
    assert_eq!(ahead.receive(), "3", "eleven days ahead it must not find the bucket refilled");
    assert_eq!(drain(&limiter), 0);
    let seen = limiter.snapshot().unwrap();
    assert_eq!(seen.resets, 0, "its times looked damaged");
    assert!(seen.participants.iter().all(|p| p.attached_for.as_secs() < 3600), "{:?}", seen.participants);
    ahead.go_on();
    ahead.finish();
}

#[test]
fn a_limiter_created_in_another_time_namespace_works_outside() {
    if !permitted(&TIME[1..]) {
        return;
    }
    let directory = util::directory();
    let mut maker = Running::start(children::command(
        &TIME,
        concat!(module_path!(), "::role_that_makes_one"),
        directory.path(),
    ));
    assert_eq!(maker.receive(), "1");
    let limiter = builder(directory.path()).open_existing().unwrap();
    assert_eq!(drain(&limiter), 4);
    assert_eq!(limiter.snapshot().unwrap().resets, 0);
    maker.go_on();
    maker.finish();
}

#[test]
fn role_that_takes_all() {
    let Some(directory) = children::role("role_that_takes_all") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    children::send(&drain(&limiter).to_string());
    children::wait_for_go_on();
}

#[test]
fn role_that_asks_again() {
    let Some(directory) = children::role("role_that_asks_again") else { return };
    let limiter = builder(&directory).open_existing().unwrap();
    children::send(&take(&limiter).to_string());
    assert!(children::wait_for_go_on());
    children::send(&eventually(|| take(&limiter)).to_string());
}

#[test]
fn role_that_makes_one() {
    let Some(directory) = children::role("role_that_makes_one") else { return };
    let limiter = builder(&directory).policy(counted(5, None)).create().unwrap();
    children::send(&usize::from(take(&limiter)).to_string());
    children::wait_for_go_on();
}
