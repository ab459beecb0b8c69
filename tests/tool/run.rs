//! `shmlimit run`: the command behaves as if it had been started directly, and its permit is always returned.

use crate::cli::{Home, ONE, binary, pid};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use shmlimit_segment::layout;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// The permit may be stuck behind a stopped process; that must not change the command's exit code.
#[test]
fn the_commands_exit_code_is_kept_even_if_the_permit_cannot_be_returned() {
    let home = Home::with(&ONE);
    let (mut keeper, _out, _) =
        home.start(&["run", "one", "--cost", "0", "--", "sh", "-c", "echo up; read line"]);
    let segment = std::fs::read(home.path().join("one.shm")).unwrap();
    let owner = (0..512_u32).find(|slot| segment[layout::slot_base(*slot as usize) * 8] & 1 != 0).unwrap();
    // As if the keeper were stopped while it holds the lock.
    std::fs::write(home.path().join("lock"), ((owner + 1) << 20).to_ne_bytes()).unwrap();
    let hold = "dd if=lock of=one.shm bs=4 seek=32 conv=notrunc status=none; exit 7";
    let command = format!("cd '{}'; {hold}", home.path().display());
    let answer = home.tool(&["run", "one", "--", "sh", "-c", &command]);
    assert_eq!(answer.code, 7, "{}", answer.err);
    assert!(answer.err.contains("is busy"), "{}", answer.err);
    keeper.kill().unwrap();
    keeper.wait().unwrap();
}

#[test]
fn death_by_a_signal_is_reported_as_a_shell_reports_it() {
    let home = Home::with(&ONE);
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130), ("USR1", 138)] {
        let script = format!("kill -{signal} $$");
        let status =
            home.as_a_shell_would().args(["run", "one", "--", "sh", "-c", &script]).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn input_output_and_arguments_pass_through() {
    let home = Home::with(&ONE);
    let output = assert_cmd::Command::cargo_bin("shmlimit")
        .unwrap()
        .env("SHMLIMIT_DIR", home.path())
        .args(["run", "one", "--", "sh", "-c", "cat; echo \"$1\" >&2", "sh", "--timeout -- x"])
        .write_stdin("through")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"through");
    assert_eq!(output.stderr, b"--timeout -- x\n");
}

#[test]
fn the_command_gets_the_signal_mask_and_dispositions_that_it_would_have_got() {
    let home = Home::with(&ONE);
    let show = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"];
    let directly = Command::new(show[0]).args(&show[1..]).output().unwrap();
    let inside = home.tool(&[&["run", "one", "--"][..], &show].concat());
    assert_eq!(inside.succeeds().as_bytes(), directly.stdout);
    // The same with signals that a parent ignores: nohup, a background job, a parent that ignores its children.
    let ignoring = |rest: &[&str]| {
        let ignore = ["--ignore-signal=HUP", "--ignore-signal=INT", "--ignore-signal=CHLD"];
        let words = ignore.iter().chain(rest).chain(&show);
        let output = Command::new("env").args(words).env("SHMLIMIT_DIR", home.path()).output().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    assert_eq!(ignoring(&[binary(), "run", "one", "--"]), ignoring(&[]));
    assert_ne!(ignoring(&[]), directly.stdout);
}

#[test]
fn an_exit_code_survives_a_parent_that_ignores_sigchld() {
    let home = Home::with(&ONE);
    let words = ["--ignore-signal=CHLD", binary(), "run", "one", "--", "sh", "-c", "exit 9"];
    let status = Command::new("env").args(words).env("SHMLIMIT_DIR", home.path()).status().unwrap();
    assert_eq!(status.code(), Some(9));
}

#[test]
fn a_signal_sent_to_shmlimit_reaches_the_command() {
    let home = Home::with(&ONE);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGQUIT] {
        let name = signal.as_str().trim_start_matches("SIG");
        let script =
            format!("trap 'echo caught; exit 3' {name}; echo ready; while read -r _; do :; done; exit 4");
        let (mut child, mut out, ready) = home.start(&["run", "one", "--", "sh", "-c", &script]);
        assert_eq!(ready, "ready");
        kill(pid(&child), signal).unwrap();
        // Keep the input open, so that only the signal ends the command.
        let _stdin = child.stdin.take();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("caught\n", Some(3)), "{signal}");
    }
    assert_eq!(home.status("one")["in_flight"], 0);
}

#[test]
fn a_signal_that_ends_the_command_ends_the_wait() {
    let home = Home::with(&ONE);
    let (mut child, _out, _) = home.start(&["run", "one", "--", "sh", "-c", "echo ready; read -r _"]);
    // `wait` would close the input, which ends the command as well.
    let _stdin = child.stdin.take();
    kill(pid(&child), Signal::SIGTERM).unwrap();
    // `wait` would close the input, and the command might end by itself before the signal is passed on.
    let _stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn a_stop_from_the_terminal_stops_tool_and_command_and_a_continue_continues_both() {
    let home = Home::with(&ONE);
    let (mut child, mut out, _) =
        home.start(&["run", "one", "--", "sh", "-c", "echo ready; read -r word; echo \"$word\"; exit 5"]);
    let id = pid(&child);
    kill(id, Signal::SIGTSTP).unwrap();
    assert_eq!(waitpid(id, Some(WaitPidFlag::WUNTRACED)).unwrap(), WaitStatus::Stopped(id, Signal::SIGSTOP));
    kill(id, Signal::SIGCONT).unwrap();
    child.stdin.take().unwrap().write_all(b"on\n").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("on\n", Some(5)));
}

#[test]
fn an_interrupted_wait_is_not_granted() {
    let home = Home::with(&ONE);
    let (mut holder, _out, _) = home.start(&["run", "one", "--", "sh", "-c", "echo ready; read -r _"]);
    let mut waiter = home.as_a_shell_would().args(["run", "one", "--", "echo", "never"]).spawn().unwrap();
    // Before that it may ignore the signal, like the process that started the tests.
    while std::fs::read_link(format!("/proc/{}/exe", waiter.id())).unwrap() != std::path::Path::new(binary())
    {
        std::thread::yield_now();
    }
    // The outcome is the same whether it already waits or has only just begun.
    kill(pid(&waiter), Signal::SIGINT).unwrap();
    assert_eq!(waiter.wait().unwrap().signal(), Some(Signal::SIGINT as i32));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(home.status("one")["in_flight"], 0);
}

#[test]
fn twenty_at_once_under_xargs_never_exceed_the_permits() {
    let home = Home::with(&["four", "--concurrency", "4"]);
    let log = home.path().join("log");
    let script = format!(
        "seq 20 | xargs -P 20 -n 1 {} run four -- sh -c 'echo + >>\"$0\"; ls / >/dev/null; echo - >>\"$0\"' {}",
        binary(),
        log.display()
    );
    let status = Command::new("sh").args(["-c", &script]).env("SHMLIMIT_DIR", home.path()).status().unwrap();
    assert!(status.success());
    let (mut now, mut most, mut all) = (0_i32, 0, 0);
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
        all += 1;
    }
    assert_eq!((now, all), (0, 40));
    assert!(most <= 4, "{most} at once");
}

/// Prints the sender of each interrupt: the kernel, for the terminal, or a process.
const SENDERS: &str = "
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print('ready', flush=True)
for _ in range(20):
    news = signal.sigtimedwait({signal.SIGINT}, 20)
    if news is None:
        exit('nothing came')
    print('from the terminal' if news.si_code > 0 else 'passed on', flush=True)
";

/// The answers of a command, at its own terminal, to the interrupts typed there.
#[derive(Debug)]
struct Typed {
    from_terminal: usize,
    passed_on: usize,
    code: Option<i32>,
    screen: String,
}

/// Runs a command on a new terminal and types an interrupt whenever it asks for one. No shell is in between, because
/// its own output could be mistaken for an answer.
fn type_interrupts(command: &[&str], home: &Home) -> nix::Result<Typed> {
    let terminal = openpty(None, None)?;
    let slave = || Stdio::from(terminal.slave.try_clone().unwrap());
    let mut command = Command::new("setsid")
        .arg("--ctty")
        .args(command)
        .env("SHMLIMIT_DIR", home.path())
        .stdin(slave())
        .stdout(slave())
        .stderr(slave())
        .spawn()
        .unwrap();
    let mut keys = File::from(terminal.master.try_clone().unwrap());
    let mut lines = BufReader::new(File::from(terminal.master)).lines();
    drop(terminal.slave);
    let mut typed = Typed { from_terminal: 0, passed_on: 0, code: None, screen: String::new() };
    // Reading ends with an error when the last process has closed the terminal.
    while let Some(Ok(line)) = lines.next() {
        let answered = line.contains("from the terminal");
        typed.from_terminal += usize::from(answered);
        typed.passed_on += usize::from(line.contains("passed on"));
        // Type one at a time: each is answered before the next.
        if (answered || line.contains("ready")) && typed.from_terminal < 20 {
            keys.write_all(b"\x03").unwrap();
        }
        typed.screen.push_str(&line);
        typed.screen.push('\n');
    }
    typed.code = command.wait().unwrap().code();
    Ok(typed)
}

#[test]
fn an_interrupt_typed_at_the_terminal_reaches_the_command_once() {
    let home = Home::with(&ONE);
    let program = home.path().join("senders.py");
    std::fs::write(&program, SENDERS).unwrap();
    let python = ["python3", program.to_str().unwrap()];
    // Try without shmlimit first: some containers have no terminals, or none that interrupt.
    let right = |typed: &Typed| (typed.from_terminal, typed.passed_on, typed.code) == (20, 0, Some(0));
    match type_interrupts(&python, &home) {
        Ok(typed) if right(&typed) => {}
        other => return println!("no working terminal here, so not tested: {other:?}"),
    }
    let typed = type_interrupts(&[&[binary(), "run", "one", "--"], &python[..]].concat(), &home).unwrap();
    assert!(right(&typed), "{typed:#?}");
}

/// `status` names the calling command, not `shmlimit` (R136).
#[test]
fn r136_status_names_the_command() {
    let home = Home::with(&ONE);
    let (mut child, _out, _) = home.start(&["run", "one", "--", "/bin/sh", "-c", "echo up; read line"]);
    let status = home.status("one");
    assert_eq!(status["participants"][0]["program"], "sh", "{status}");
    drop(child.stdin.take());
    child.wait().unwrap();
    let long = home.path().join("a-name-longer-than-fits-é");
    std::os::unix::fs::symlink("/bin/sh", &long).unwrap();
    let (mut child, _out, _) =
        home.start(&["run", "one", "--", long.to_str().unwrap(), "-c", "echo up; read line"]);
    assert_eq!(home.status("one")["participants"][0]["program"], "a-name-longer-t");
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Without an explanation a user at a terminal would think that it hangs.
#[test]
fn a_long_wait_is_explained_only_on_a_terminal() {
    let home = Home::with(&["api", "--rate", "1000/s"]);
    let gate =
        || home.tool(&["record", "api", "--status", "429", "--retry-after", "3", "-q"]).succeeds().to_owned();
    gate();
    let command = format!("'{}' --dir '{}' run api -- echo done", binary(), home.path().display());
    let shown =
        Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("api: waiting: Retry-After ends in ") && shown.contains("done"), "{shown}");
    gate();
    let answer = home.tool(&["run", "api", "--", "echo", "done"]);
    assert_eq!((answer.succeeds(), answer.err.as_str()), ("done\n", ""));
}
