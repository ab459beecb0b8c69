//! `shmlimit run`: terminals, pipes and disks behave as if the command had been started directly.

use crate::cli::{Home, ONE, binary};
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
    // A closed stream never becomes one of our files, nor a file that the command opens.
    let output = shell(&home, "$RUN -- sh -c '(readlink /proc/$$/fd/0 /proc/$$/fd/1 >&2); true' <&- >&-");
    assert_eq!(text(&output.stderr), "/dev/null\n/dev/null\n");
    // The tool's own message has nowhere to go.
    assert_eq!(shell(&home, "$RUN -- no-such-command 2>&-").status.code(), Some(127));
    assert_eq!(shell(&home, "$RUN -- true <&- >&- 2>&-").status.code(), Some(0));
    is_idle(&home);
}

#[test]
fn a_full_disk_is_reported_by_the_command_or_by_the_tool_if_it_relays_the_output() {
    let home = Home::with(&ONE);
    let direct = shell(&home, "cat /etc/passwd >/dev/full");
    let inside = shell(&home, "$RUN -- cat /etc/passwd >/dev/full");
    assert_eq!((inside.status.code(), &inside.stderr), (direct.status.code(), &direct.stderr));
    let watched = shell(&home, "$RUN --status-from '(x)' -- cat /etc/passwd >/dev/full");
    assert_eq!(watched.status.code(), Some(1), "{}", text(&watched.stderr));
    assert!(text(&watched.stderr).contains("cannot pass on the command's output: No space left"));
    let failed = shell(&home, "$RUN --status-from '(x)' -- sh -c 'echo x; exit 8' >/dev/full");
    assert_eq!(failed.status.code(), Some(8));
    // The tool's own lines are lost on a full disk, but the exit code is not.
    let line = "$RUN --retries 1 --timeout 10ms -- sh -c 'exit 75' 2>/dev/full";
    assert_eq!(shell(&home, line).status.code(), Some(75));
    assert_eq!(shell(&home, "$RUN -- no-such-command 2>/dev/full").status.code(), Some(127));
    is_idle(&home);
}

#[test]
fn a_closed_pipe_ends_the_command_as_in_any_pipeline() {
    let home = Home::with(&ONE);
    for options in ["", "--status-from '(x)'", "--status-from '(x)' --status-in stdout"] {
        let output = shell(&home, &format!("{{ $RUN {options} -- yes; echo $? >&2; }} | head -n 1"));
        assert_eq!(text(&output.stdout), "y\n");
        assert_eq!(text(&output.stderr), "141\n", "{options}");
    }
    is_idle(&home);
}

#[test]
fn a_slow_reader_does_not_keep_a_signal_from_the_command() {
    let home = Home::with(&ONE);
    let script = "echo ready; exec yes";
    // The test stops reading after the first line, so every pipe fills soon.
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
    // The permit is back, so the command has ended, although the test has not read on.
    while home.status("one")["in_flight"] != 0 {
        std::thread::yield_now();
    }
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    is_idle(&home);
}

#[test]
fn output_of_processes_left_behind_is_passed_on_without_holding_a_permit() {
    let home = Home::with(&ONE);
    let script = "{ read -r _; echo late; } <&0 & echo ready; exit 3";
    let script = format!("exec 4<&0; {}", script.replace("<&0", "<&4"));
    let (mut child, mut out, ready) =
        home.start(&["run", "one", "--status-from", "(x)", "--", "sh", "-c", &script]);
    assert_eq!(ready, "ready");
    // The command has ended, or is about to. Its permit is back although its output is not complete.
    home.tool(&["acquire", "one", "--timeout", "60s"]).succeeds();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("late\n", Some(3)));
}

/// Longer than any step at a terminal takes on any machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal with an interactive shell.
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

    /// Reads until `wanted` is on the screen. Returns the text before it.
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
fn job_control_in_an_interactive_shell_works_as_without_the_tool() {
    let home = Home::with(&ONE);
    for options in ["", "--retries --exit curl --status-fd 3", "--status-from '(x)' --status-in stdout"] {
        let Some(mut terminal) = Terminal::new(&home) else {
            return println!("no terminal here, so not tested");
        };
        // The shell assembles the words, so that typed text is not mistaken for an answer.
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
        // An interrupt ends the command, and with it the shell's loop.
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
    // Each line is one write, so the order of lines is that of the calls.
    let line = format!(
        "seq 200 | xargs -P 50 -n 1 $RUN --exit 3=503 -- sh -c 'echo + >>\"$0\"; ls / >/dev/null; echo - >>\"$0\"; [ $1 != 100 ] || exit 3' '{}'",
        log.display()
    );
    let output = shell(&home, &line);
    // One command failed, which xargs reports; xargs did not stop the others.
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

/// Without a bound, 3000 such lines delayed the output by 40 s.
#[test]
fn a_search_that_would_delay_the_output_for_long_is_limited() {
    let home = Home::with(&ONE);
    let line = r#"$RUN --status-from '(4)(?:.*x)?' -- sh -c 'i=0; while [ $i -lt 150 ]; do head -c 65536 /dev/zero | tr "\0" 4; echo; i=$((i+1)); done; exit 3'"#;
    let output = shell(&home, line);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 150 * 65537));
    let said = text(&output.stderr);
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    assert!(
        said.contains("--status-from") && said.contains("only the end of the remaining output is searched"),
        "{said}"
    );
    is_idle(&home);
}
