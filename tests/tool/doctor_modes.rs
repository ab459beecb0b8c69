//! `shmlimit doctor` on Unix: modes, groups and stopped processes.

use crate::cli::Home;
use crate::cli::queue::{Holder, start_waiting, wait_until, waiting};
use crate::doctor::{complains, complaints, doctor, is_fixed};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_stopped_waiter_is_reported_with_the_remedy_and_not_changed() {
    let home = Home::with(&["api", "--concurrency", "1"]);
    let holder = Holder::new(&home, "api");
    let mut waiter = start_waiting(&home, "api", &["acquire", "api"], &[]);
    let pid = waiter.id();
    let signal = |signal| kill(Pid::from_raw(pid as i32), signal).unwrap();
    signal(Signal::SIGSTOP);
    wait_until(&home, "api", |_| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T "));
    let way_on = format!("kill -CONT {pid}");
    complains(&home, "warn", &["is stopped", "waits in the queue", &way_on]);
    assert_eq!(complaints(&home, &["--fix"]).len(), 1, "only its user may end it");
    signal(Signal::SIGCONT);
    assert_eq!(waiting(&home.status("api")), [pid]);
    holder.let_go();
    assert!(waiter.wait().unwrap().success(), "the doctor has not harmed it");
}

#[test]
fn files_that_others_may_read_or_write_are_made_private() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    let mode = |name: &str| fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o7777;
    for (name, open, level) in
        [("api.shm", 0o644, "warn"), ("api.shm", 0o666, "bad"), ("ratelimit.lock", 0o666, "warn")]
    {
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(open)).unwrap();
        complains(&home, level, &[&format!("{open:04o}"), "doctor --fix"]);
        assert_eq!(mode(name), open, "only looked at");
        is_fixed(&home, &["now mode 0600"]);
        assert_eq!(mode(name), 0o600);
    }
    fs::write(home.path().join("letter.shm"), "dear").unwrap();
    fs::set_permissions(home.path().join("letter.shm"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        complaints(&home, &["--fix"])[0]["fixed"],
        false,
        "a file that is not a segment is left alone"
    );
    assert_eq!(mode("letter.shm"), 0o666);
}

#[test]
fn a_parent_in_which_another_user_could_replace_the_directory_is_reported() {
    let home = Home::new();
    let (parent, directory) = (home.path().join("open"), home.path().join("open/limiters"));
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
    let out = doctor(&home, &["--dir", directory.to_str().unwrap()], &[]).out;
    let problem =
        format!("every user can write to it (mode 0777), and could replace {}", directory.display());
    assert!(out.contains(&problem), "{out}");
}

#[test]
fn a_world_writable_directory_is_closed_if_it_serves_only_limiters() {
    let home = Home::with(&["api", "--rate", "9/s"]);
    let open = |mode| fs::set_permissions(home.path(), fs::Permissions::from_mode(mode)).unwrap();
    open(0o777);
    assert_eq!(doctor(&home, &[], &[]).code, 1);
    complains(&home, "bad", &["every user can write to it", "directory"]);
    home.tool(&["acquire", "api"]).fails(1, &["every user can write to it", "close it with: chmod 700 "]);
    // The owner must decide about a directory that the group may write without the set-group-id bit.
    open(0o707);
    is_fixed(&home, &["closed to others (mode 0705)"]);
    // A directory with a sticky bit like /tmp, or with other files in it, also serves another purpose.
    for (mode, letter) in [(0o1777, false), (0o707, true)] {
        if letter {
            fs::write(home.path().join("letter.txt"), "").unwrap();
        }
        open(mode);
        let found = complaints(&home, &["--fix"]);
        assert_eq!((found.len(), &found[0]["fixed"]), (1, &false.into()), "{found:?}");
        assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o7777, mode);
    }
}

#[test]
fn a_segment_that_the_group_cannot_use_is_shared_with_it() {
    let home = Home::new();
    let group = nix::unistd::getegid().to_string();
    home.tool(&["init", "api", "--rate", "9/s", "--shared-with", &group]).succeeds();
    assert_eq!(complaints(&home, &[]), Vec::<Value>::new());
    fs::set_permissions(home.path().join("api.shm"), fs::Permissions::from_mode(0o600)).unwrap();
    complains(&home, "warn", &["members of the group cannot use it", "0600", "0660"]);
    is_fixed(&home, &["now mode 0660"]);
}
