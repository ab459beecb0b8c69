//! A newcomer that finds its limiter deleted detects the remaining users of the old segment: by another path, in
//! another process, as another user, or in another pid namespace.

use crate::util::mounts::{bind, with_own_mounts};
use crate::util::respawn::in_own_process;
use crate::util::{builder, children, counted, directory, drain, forks, segment_path};
use children::Running;
use shmlimit::Limiter;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const LIMIT: usize = 10;

fn delete(directory: &Path) {
    std::fs::remove_file(segment_path(directory)).unwrap();
}

/// Two paths to one directory.
fn with_two_paths(work: impl FnOnce(&Path, &Path) + Send) {
    with_own_mounts(|directory| {
        let [here, there] = ["here", "there"].map(|name| directory.join(name));
        for path in [&here, &there] {
            std::fs::create_dir(path).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        bind(&here, &there)?;
        work(&here, &there);
        Ok(())
    });
}

#[test]
fn a_newcomer_by_one_path_detects_users_by_another_path() {
    in_own_process!();
    with_two_paths(|here, there| {
        let policy = counted(LIMIT as u64, None);
        for (old, new) in [(here, there), (there, here)] {
            let idle = builder(old).policy(policy).create().unwrap();
            assert_eq!(drain(&idle), LIMIT);
            delete(old);
            let newcomer = builder(new).policy(policy).create().unwrap();
            assert_eq!((drain(&newcomer), drain(&idle)), (0, 0));
            assert_eq!(newcomer.snapshot().unwrap().participants.len(), 2, "the old handle has gone over");
            drop((newcomer, idle));
            builder(old).remove(false).unwrap();
        }
    });
}

#[test]
fn a_forked_child_that_uses_a_deleted_limiter_is_seen_after_its_parent_has_left() {
    in_own_process!();
    with_two_paths(|here, there| {
        let policy = counted(LIMIT as u64, None);
        let limiter = builder(here).policy(policy).create().unwrap();
        let (ready, end) = (forks::Pipe::new(), forks::Pipe::new());
        let child = forks::forked(|| {
            let drained = drain(&limiter);
            ready.send(drained as u8);
            i32::from(end.receive())
        });
        assert_eq!(usize::from(ready.receive()), LIMIT);
        drop(limiter);
        delete(here);
        assert_eq!(drain(&builder(there).policy(policy).create().unwrap()), 0, "the child has it open");
        delete(here);
        end.send(0);
        assert_eq!(forks::exit_code(child), 0);
        assert_eq!(drain(&builder(there).policy(policy).create().unwrap()), LIMIT, "nobody has it open");
    });
}

/// Deletes a limiter that this process has drained. Returns what a newcomer is then granted.
fn newcomer_gets(directory: &Path, newcomer: Command, old: &Limiter) -> String {
    assert_eq!(drain(old), LIMIT);
    delete(directory);
    let mut newcomer = Running::start(newcomer);
    let got = newcomer.receive();
    newcomer.go_on();
    newcomer.finish();
    got
}

#[test]
fn a_newcomer_detects_users_in_another_pid_namespace() {
    in_own_process!();
    let wrapper = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let permitted = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        println!("not tested: a new pid namespace is not permitted here");
        return;
    }
    let home = directory();
    let old = builder(home.path()).policy(counted(LIMIT as u64, None)).create().unwrap();
    let newcomer = children::command(&wrapper, concat!(module_path!(), "::role_of_a_newcomer"), home.path());
    assert_eq!(newcomer_gets(home.path(), newcomer, &old), "0");
}

#[test]
fn a_newcomer_detects_processes_of_another_user() {
    in_own_process!();
    if !forks::is_root() {
        println!("not tested: only root can be another user");
        return;
    }
    let reachable = tempfile::tempdir().unwrap();
    std::fs::set_permissions(reachable.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let shared = reachable.path().join("shared");
    let policy = counted(LIMIT as u64, None);
    let old = builder(&shared).shared_with(forks::UNPRIVILEGED).policy(policy).create().unwrap();
    let newcomer =
        forks::unprivileged(concat!(module_path!(), "::role_of_a_newcomer"), &shared, reachable.path());
    assert_eq!(newcomer_gets(&shared, newcomer, &old), "0");
}

#[test]
fn role_of_a_newcomer() {
    let Some(directory) = children::role("role_of_a_newcomer") else { return };
    let limiter = builder(&directory).policy(counted(LIMIT as u64, None)).create().unwrap();
    children::send(&drain(&limiter).to_string());
    children::wait_for_go_on();
}

#[test]
fn other_processes_bring_a_deleted_limiter_back_as_it_was() {
    in_own_process!();
    let home = directory();
    let policy = counted(LIMIT as u64, None);
    let mut idle = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_drains_when_told"),
        home.path(),
    ));
    let mut busy = Running::start(children::command(
        &[],
        concat!(module_path!(), "::role_that_drains_when_told"),
        home.path(),
    ));
    assert_eq!((idle.receive(), busy.receive()), ("ready".to_owned(), "ready".to_owned()));
    delete(home.path());
    let new = builder(home.path()).policy(policy).create().unwrap();
    assert_eq!(drain(&new), 0, "two programs have it open and may have spent it");
    delete(home.path());
    for process in [&mut idle, &mut busy] {
        process.go_on();
        assert_eq!(process.receive(), "0");
    }
    idle.finish();
    busy.finish();
}

#[test]
fn role_that_drains_when_told() {
    let Some(directory) = children::role("role_that_drains_when_told") else { return };
    let limiter = builder(&directory).policy(counted(LIMIT as u64, None)).open().unwrap();
    drain(&limiter);
    children::send("ready");
    children::wait_for_go_on();
    children::send(&drain(&limiter).to_string());
}
