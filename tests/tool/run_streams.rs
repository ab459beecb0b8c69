//! `shmlimit run`: terminals, pipes and disks as if the command had been started directly.

use crate::cli::{Home, binary};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const ONE: [&str; 3] = ["one", "--concurrency", "1"];

/// Runs a line of shell in which `$RUN` is `shmlimit run one`.
fn shell(home: &Home, line: &str) -> Output {
    Command::new("sh")
        .args(["-c", line])
        .env("RUN", format!("{} run one", binary()))
        .env("SHMLIMIT_DIR", home.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_idle(home: &Home) {
    let status = home.status("one");
    assert_eq!((&status["in_flight"], &status["queue"]), (&json!(0), &json!([])));
}

#[test]
fn closed_streams_change_nothing_for_the_limiter_and_the_command_runs() {
    let home = Home::with(&ONE);
    for options in ["", "--retries --status-fd 3", "--status-from '([0-9]+)'"] {
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
            let file = home.path().join("ran");
            let line = format!(
                "$RUN {options} -- sh -c 'echo out; echo err >&2; echo x >\"$0\"; exit 6' '{}' {closed}",
                file.display()
            );
            let output = shell(&home, &line);
            assert_eq!(output.status.code(), Some(6), "{line}: {}", text(&output.stderr));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n", "{line}");
            std::fs::remove_file(file).unwrap();
        }
    }
    // Never a file of ours, nor one that the command happens to open.
    let output = shell(&home, "$RUN -- sh -c '(readlink /proc/$$/fd/0 /proc/$$/fd/1 >&2); true' <&- >&-");
    assert_eq!(text(&output.stderr), "/dev/null\n/dev/null\n");
    // What it has to say itself has nowhere to go.
    assert_eq!(shell(&home, "$RUN -- no-such-command 2>&-").status.code(), Some(127));
    assert_eq!(shell(&home, "$RUN -- true <&- >&- 2>&-").status.code(), Some(0));
    is_idle(&home);
}

#[test]
fn a_full_disk_is_the_commands_to_notice_and_ours_if_we_pass_the_output_on() {
    let home = Home::with(&ONE);
    let direct = shell(&home, "cat /etc/passwd >/dev/full");
    let inside = shell(&home, "$RUN -- cat /etc/passwd >/dev/full");
    assert_eq!((inside.status.code(), &inside.stderr), (direct.status.code(), &direct.stderr));
    let watched = shell(&home, "$RUN --status-from '(x)' -- cat /etc/passwd >/dev/full");
    assert_eq!(watched.status.code(), Some(1), "{}", text(&watched.stderr));
    assert!(text(&watched.stderr).contains("cannot pass on the command's output: No space left"));
    let failed = shell(&home, "$RUN --status-from '(x)' -- sh -c 'echo x; exit 8' >/dev/full");
    assert_eq!(failed.status.code(), Some(8));
    // Our own lines on a full disk are lost, and the code is not.
    let line = "$RUN --retries 1 --timeout 10ms -- sh -c 'exit 75' 2>/dev/full";
    assert_eq!(shell(&home, line).status.code(), Some(75));
    assert_eq!(shell(&home, "$RUN -- no-such-command 2>/dev/full").status.code(), Some(127));
    is_idle(&home);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_in_any_pipe() {
    let home = Home::with(&ONE);
    for options in ["", "--status-from '(x)'", "--status-from '(x)' --status-in stdout"] {
        let output = shell(&home, &format!("{{ $RUN {options} -- yes; echo $? >&2; }} | head -n 1"));
        assert_eq!(text(&output.stdout), "y\n");
        assert_eq!(text(&output.stderr), "141\n", "{options}");
    }
    is_idle(&home);
}

#[test]
fn a_reader_that_is_slow_does_not_keep_a_signal_from_the_command() {
    let home = Home::with(&ONE);
    let script = "echo ready; exec yes";
    // Nobody reads after the first line: soon every pipe is full.
    let (mut child, out, ready) =
        home.start(&["run", "one", "--status-from", "(x)", "--", "sh", "-c", script]);
    assert_eq!(ready, "ready");
    let filler = format!("/proc/{}/io", child.id());
    let written = || {
        let io = std::fs::read_to_string(&filler).unwrap_or_default();
        io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse::<u64>().ok()).unwrap_or(0)
    };
    while written() < 64 << 10 {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    // The permit is back, so the command has ended, although nobody has read on.
    while home.status("one")["in_flight"] != 0 {
        std::thread::yield_now();
    }
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    is_idle(&home);
}

#[test]
fn what_was_left_behind_by_the_command_is_passed_on_until_it_ends_but_holds_no_permit() {
    let home = Home::with(&ONE);
    let script = "{ read -r _; echo late; } <&0 & echo ready; exit 3";
    let script = format!("exec 4<&0; {}", script.replace("<&0", "<&4"));
    let (mut child, mut out, ready) =
        home.start(&["run", "one", "--status-from", "(x)", "--", "sh", "-c", &script]);
    assert_eq!(ready, "ready");
    // The command has ended, or is about to; its permit is back although its output is not over.
    home.tool(&["acquire", "one", "--timeout", "60s"]).succeeds();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("late\n", Some(3)));
}

/// Nothing at a terminal takes so long, on any machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal with an interactive shell in it.
struct Terminal {
    keys: File,
    screen: String,
    shell: std::process::Child,
}

impl Terminal {
    fn new(home: &Home) -> Option<Terminal> {
        let pair = openpty(None, None).ok()?;
        let slave = || Stdio::from(pair.slave.try_clone().unwrap());
        let shell = Command::new("setsid")
            .args(["--ctty", "bash", "--norc", "--noprofile", "-i"])
            .env("PS1", "prompt> ")
            .env("TERM", "dumb")
            .env("HISTFILE", "")
            .env("RUN", format!("{} run one", binary()))
            .env("SHMLIMIT_DIR", home.path())
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .ok()?;
        let mut terminal = Terminal { keys: File::from(pair.master), screen: String::new(), shell };
        terminal.wait_for("prompt> ");
        Some(terminal)
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until that is on the screen; what was before it.
    #[track_caller]
    fn wait_for(&mut self, wanted: &str) -> String {
        let mut bytes = [0; 4096];
        let began = Instant::now();
        loop {
            if let Some(at) = self.screen.find(wanted) {
                let rest = self.screen.split_off(at + wanted.len());
                return std::mem::replace(&mut self.screen, rest);
            }
            let mut news = [PollFd::new(self.keys.as_fd(), PollFlags::POLLIN)];
            let heard = poll(&mut news, PollTimeout::from(1000_u16)).unwrap();
            assert!(began.elapsed() < WAIT_TIMEOUT, "no {wanted:?}: {}", self.screen);
            if heard == 0 {
                continue;
            }
            match self.keys.read(&mut bytes) {
                Ok(count) if count > 0 => self.screen.push_str(&String::from_utf8_lossy(&bytes[..count])),
                _ => panic!("the terminal closed before {wanted:?}: {}", self.screen),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn job_control_in_an_interactive_shell_works_as_without_us() {
    let home = Home::with(&ONE);
    for options in ["", "--retries --exit curl --status-fd 3", "--status-from '(x)' --status-in stdout"] {
        let Some(mut terminal) = Terminal::new(&home) else {
            return println!("no terminal here, so not tested");
        };
        // Words are put together by the shell, so that what is typed is not taken for an answer.
        let script = "trap \"\" PIPE; echo be\"\"gun; read -r word; echo got-$word; exit 8";
        terminal.type_in(&format!("$RUN {options} -- sh -c '{script}'\n"));
        terminal.wait_for("begun");
        terminal.type_in("\x1a");
        terminal.wait_for("Stopped");
        terminal.wait_for("prompt> ");
        terminal.type_in("fg\n");
        terminal.wait_for("sh -c");
        terminal.type_in("input\n");
        terminal.wait_for("got-input");
        terminal.wait_for("prompt> ");
        terminal.type_in("echo code-$?\n");
        terminal.wait_for("code-8");
        // An interrupt ends it, and the shell's loop with it.
        terminal.type_in(&format!(
            "for i in 1 2 3; do $RUN {options} -- sh -c 'echo lo\"\"op; read -r _'; done\n"
        ));
        terminal.wait_for("loop");
        terminal.type_in("\x03");
        terminal.wait_for("prompt> ");
        terminal.type_in("echo code-$?\n");
        let before = terminal.wait_for("code-130");
        assert!(!before.contains("loop"), "the loop went on: {before}");
        is_idle(&home);
    }
}

#[test]
fn two_hundred_at_once_under_xargs_keep_the_limit_and_all_end() {
    let home = Home::with(&["one", "--concurrency", "7"]);
    let log = home.path().join("log");
    // A line of either is written at once, so that their order is that of the calls.
    let line = format!(
        "seq 200 | xargs -P 50 -n 1 $RUN --exit 3=503 -- sh -c 'echo + >>\"$0\"; ls / >/dev/null; echo - >>\"$0\"; [ $1 != 100 ] || exit 3' '{}'",
        log.display()
    );
    let output = shell(&home, &line);
    // One of them failed: that is what xargs says then, and none stopped it.
    assert_eq!(output.status.code(), Some(123), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let (mut now, mut most, mut all) = (0_i32, 0, 0);
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        now += if line == "+" { 1 } else { -1 };
        most = most.max(now);
        all += 1;
    }
    assert_eq!((now, all), (0, 400));
    assert!((2..=7).contains(&most), "{most} at once");
    let status = home.status("one");
    assert_eq!((&status["in_flight"], &status["queue"]), (&json!(0), &json!([])));
    assert_eq!(status["counts"]["granted"], 200);
    assert_eq!(status["counts"]["codes"], json!({"200": 199, "503": 1}));
}

/// 3000 such lines held the output up for 40 s.
#[test]
fn searching_ends_where_it_would_hold_the_output_up_for_long() {
    let home = Home::with(&ONE);
    let line = r#"$RUN --status-from '(4)(?:.*x)?' -- sh -c 'i=0; while [ $i -lt 150 ]; do head -c 65536 /dev/zero | tr "\0" 4; echo; i=$((i+1)); done; exit 3'"#;
    let output = shell(&home, line);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 150 * 65537));
    let said = text(&output.stderr);
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    assert!(said.contains("--status-from") && said.contains("only the end is searched"), "{said}");
    is_idle(&home);
}
