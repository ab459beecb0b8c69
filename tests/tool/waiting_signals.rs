//! Signals and terminal keys while a call waits.

use crate::cli::queue::{Holder, start_waiting, wait_until, waiting};
use crate::cli::{Home, ONE, binary, pid};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

#[test]
fn r131_a_stopped_waiter_is_passed_over_and_keeps_its_place() {
    let home = Home::with(&ONE);
    let holder = Holder::new(&home, "one");
    let mut stopped = start_waiting(&home, "one", &["acquire", "one"], &[]);
    kill(pid(&stopped), Signal::SIGSTOP).unwrap();
    let mut next = start_waiting(&home, "one", &["acquire", "one", "--timeout", "60s"], &[]);
    let status = wait_until(&home, "one", |status| status["queue"][0]["late"] == true);
    assert_eq!(waiting(&status), [stopped.id(), next.id()]);
    assert!(home.tool(&["status", "one"]).out.contains("late"));
    holder.let_go();
    assert_eq!(next.wait().unwrap().code(), Some(0));
    assert_eq!(waiting(&home.status("one")), [stopped.id()]);
    kill(pid(&stopped), Signal::SIGCONT).unwrap();
    assert_eq!(stopped.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_a_wait_at_once_and_nothing_is_granted_to_it() {
    let home = Home::with(&ONE);
    let ran = home.path().join("ran");
    let command = ["run", "one", "--", "touch", ran.to_str().unwrap()];
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let holder = Holder::new(&home, "one");
        let mut waiter = start_waiting(&home, "one", &command, &[]);
        let mut next = start_waiting(&home, "one", &["acquire", "one"], &[]);
        kill(pid(&waiter), signal).unwrap();
        assert_eq!(waiter.wait().unwrap().signal(), Some(signal as i32));
        assert_eq!(waiting(&home.status("one")), [next.id()]);
        holder.let_go();
        assert_eq!(next.wait().unwrap().code(), Some(0));
    }
    assert_eq!(home.status("one")["in_flight"], 0);
    assert!(!ran.exists());
}

/// Starts a command as the leader of a new terminal. Text written to the file is typed there.
fn at_a_terminal(command: &[&str], home: &Home) -> Option<(Child, File)> {
    let terminal = openpty(None, None).ok()?;
    let slave = || Stdio::from(terminal.slave.try_clone().unwrap());
    let child = Command::new("setsid")
        .args(["--ctty", "env", "--default-signal"])
        .args(command)
        .env("SHMLIMIT_DIR", home.path())
        .stdin(slave())
        .stdout(slave())
        .stderr(slave())
        .spawn()
        .unwrap();
    Some((child, File::from(terminal.master)))
}

#[test]
fn an_interrupt_typed_at_the_terminal_ends_a_wait() {
    let home = Home::with(&ONE);
    // Try without shmlimit first: some containers have no terminals, or none that interrupt.
    let works = at_a_terminal(&["sh", "-c", "trap 'exit 7' INT; echo ready; read -r _"], &home);
    let works = works.is_some_and(|(mut child, terminal)| {
        let mut lines = BufReader::new(terminal.try_clone().unwrap()).lines();
        lines.next().unwrap().unwrap();
        (&terminal).write_all(b"\x03\n").unwrap();
        child.wait().unwrap().code() == Some(7)
    });
    if !works {
        return println!("no working terminal here, so not tested");
    }
    let holder = Holder::new(&home, "one");
    let (mut waiter, mut keys) = at_a_terminal(&[binary(), "run", "one", "--", "true"], &home).unwrap();
    wait_until(&home, "one", |status| waiting(status) == [waiter.id()]);
    keys.write_all(b"\x03").unwrap();
    assert_eq!(waiter.wait().unwrap().signal(), Some(Signal::SIGINT as i32));
    assert_eq!(home.status("one")["queue"], serde_json::json!([]));
    holder.let_go();
    assert_eq!(home.status("one")["in_flight"], 0);
}
