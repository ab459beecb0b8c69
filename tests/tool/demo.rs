//! `shmlimit demo` shows what it promises, in a terminal and in lines, and leaves nothing behind however it ends.

use crate::cli;
use crate::cli::binary;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A temporary directory for the demo, in which it must leave nothing.
struct DemoRun(TempDir);

impl DemoRun {
    fn new() -> DemoRun {
        DemoRun(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The demo as an interactive shell would start it, with default signal dispositions.
    fn demo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal", binary(), "demo"]).args(arguments);
        command.env("TMPDIR", self.path()).env_remove("NO_COLOR").process_group(0);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.demo(arguments).output().unwrap()
    }

    /// The processes of this demo: their environment names its directory.
    fn processes(&self) -> Vec<PathBuf> {
        let mark = self.path().to_str().unwrap().as_bytes();
        let knows = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark)
        };
        let numbered = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().parse::<u32>().is_ok();
        let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(numbered);
        all.filter(knows).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Waits until no process and no file of the demo is left.
    #[track_caller]
    fn is_empty(&self) {
        let by = Instant::now() + Duration::from_secs(20);
        loop {
            let left = (self.processes(), self.files());
            if left.0.is_empty() && left.1.is_empty() {
                return;
            }
            let commands: Vec<_> =
                left.0.iter().map(|process| fs::read_to_string(process.join("cmdline"))).collect();
            assert!(Instant::now() < by, "left behind: {left:?} {commands:?}");
            sleep(Duration::from_millis(20));
        }
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Removes the figures, which differ from run to run. The words and their order do not differ.
fn without_figures(text: &str) -> String {
    let mut words = String::new();
    for line in text.lines() {
        let number = |word: &str| word.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        let line: Vec<&str> = line.split(' ').map(|word| if number(word) { "N" } else { word }).collect();
        words += &line.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        words.push('\n');
    }
    words
}

#[test]
fn the_plain_demo_shows_429s_without_shmlimit_and_none_with_it() {
    let demo_run = DemoRun::new();
    let output = demo_run.run(&["--plain", "--seconds", "2"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert_eq!(err, "");
    assert!(!out.contains('\x1b'), "{out}");
    let line = out.lines().find(|line| line.starts_with("together")).unwrap();
    let figures: Vec<u64> = line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
    let [calls, ok, throttled, calls_with, ok_with, throttled_with] = figures[..] else { panic!("{line}") };
    assert_eq!(calls, ok + throttled);
    assert!(throttled > 0, "{out}");
    assert_eq!((calls_with, throttled_with), (ok_with, 0), "{out}");
    assert!(ok_with > 0, "{out}");
    assert!(out.contains("shmlimit init ") && out.contains("shmlimit run "), "{out}");
    demo_run.is_empty();
}

#[test]
fn the_plain_demo_prints_its_lines_in_this_order() {
    let demo_run = DemoRun::new();
    // With an empty path the tool itself plays all four programs, independent of this machine's programs.
    let output = demo_run.demo(&["--plain", "--seconds", "2"]);
    let output = without_programs(output, &demo_run).output().unwrap();
    let told = text(&output.stdout);
    // The number of calls under way differs from run to run.
    let told: String =
        told.lines().filter(|line| !line.starts_with("probe")).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(without_figures(&told));
    demo_run.is_empty();
}

/// A command that finds only the tool itself, as if no other program were installed.
fn without_programs(command: Command, demo_run: &DemoRun) -> Command {
    let mut bare = Command::new(binary());
    bare.args(command.get_args().skip(2)).env("TMPDIR", demo_run.path()).env("PATH", "/nowhere");
    bare
}

#[test]
fn the_json_of_the_demo_has_every_figure_and_confirms_the_promise() {
    let demo_run = DemoRun::new();
    let output = demo_run.run(&["--json", "--seconds", "2", "--rate", "10/s"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    let object = json(&output);
    assert_eq!(object["rate"], 10);
    assert_eq!(object["held"], true);
    assert_eq!(object["programs"].as_array().unwrap().len(), 4);
    for half in ["without", "with"] {
        let sum = |key: &str, list: &str| -> u64 {
            object[half][list].as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum()
        };
        for key in ["calls", "ok", "throttled"] {
            assert_eq!(object[half]["total"][key], sum(key, "programs"), "{half} {key}");
            assert_eq!(object[half]["total"][key], sum(key, "seconds"), "{half} {key}");
        }
        // All programs together get no more than the limit: a burst and one second of the rate.
        let burst = object["burst_of_server"].as_u64().unwrap();
        assert!(sum("ok", "programs") <= burst + 10, "{object}");
    }
    assert_eq!(object["with"]["total"]["throttled"], 0);
    let probe = &object["probe"];
    assert_eq!(probe["retry_after_ns"], 1_000_000_000_u64);
    assert_eq!(probe["own_calls"], 0, "the program that received the 429 waits: {object}");
    demo_run.is_empty();
}

#[test]
fn a_missing_or_broken_program_is_replaced_by_the_tool_with_a_note() {
    let demo_run = DemoRun::new();
    let bin = tempfile::tempdir().unwrap();
    let python = bin.path().join("python3");
    fs::write(&python, "#!/bin/sh\necho boom >&2\nexit 1\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut demo = without_programs(demo_run.demo(&["--plain", "--seconds", "2"]), &demo_run);
    let output = demo.env("PATH", bin.path()).output().unwrap();
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    assert!(out.contains("note: python3 does not work here (boom): this tool takes its place"), "{out}");
    for name in ["rust 1", "rust 2", "rust 3", "rust 4"] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{name}: {out}");
    }
    demo_run.is_empty();
}

#[test]
fn settings_of_the_users_own_limiters_do_not_reach_the_demo() {
    let demo_run = DemoRun::new();
    let home = cli::Home::new();
    let mut demo = demo_run.demo(&["--json", "--seconds", "2"]);
    demo.env("SHMLIMIT_DIR", home.path()).env("SHMLIMIT_BUCKET_CAP", "1000").env("SHMLIMIT_GROUP", "mine");
    demo.env("http_proxy", "http://127.0.0.1:9");
    let output = demo.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(json(&output)["with"]["total"]["throttled"], 0);
    assert_eq!(home.names(), [""; 0]);
    demo_run.is_empty();
}

#[test]
fn a_rate_outside_the_range_of_the_demo_is_refused() {
    let demo_run = DemoRun::new();
    for rate in ["0", "4/s", "51/s", "20/m", "many"] {
        let output = demo_run.run(&["--rate", rate]);
        assert_eq!(output.status.code(), Some(2), "{rate}");
        assert!(text(&output.stderr).contains("from 5/s to 50/s"), "{rate}");
    }
    demo_run.is_empty();
}

/// Starts the demo and waits for the half that the word names.
fn started(demo_run: &DemoRun, half: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = demo_run
        .demo(&["--plain", "--seconds", "60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(half) {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "ended before {half}");
    }
    (child, out)
}

#[test]
fn a_demo_ended_by_any_signal_leaves_no_process_and_no_file() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        let demo_run = DemoRun::new();
        let (mut child, _out) = started(&demo_run, "without");
        assert!(demo_run.processes().len() >= 5, "four programs and the demo: {:?}", demo_run.processes());
        assert_eq!(demo_run.files().len(), 1);
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal as i32));
        demo_run.is_empty();
    }
}

#[test]
fn a_demo_killed_while_its_programs_wait_leaves_no_process() {
    let demo_run = DemoRun::new();
    let mut child = demo_run
        .demo(&["--plain", "--seconds", "4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("with ")), "the second half");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    demo_run.is_empty();
}

#[test]
fn a_closed_pipe_ends_the_demo_with_success() {
    let demo_run = DemoRun::new();
    let (mut child, out) = started(&demo_run, "without");
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    demo_run.is_empty();
}

/// A tmux terminal of a given size.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn open(demo_run: &DemoRun, name: &str, columns: u32, rows: u32, command: &str) -> Terminal {
        let terminal = Terminal { socket: format!("shmlimit-{name}-{}", std::process::id()) };
        let shell =
            format!("TMPDIR='{}' {command}; printf 'ended with %s' $?; exec cat", demo_run.path().display());
        let (columns, rows) = (columns.to_string(), rows.to_string());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, &shell]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().expect("tmux");
        assert!(output.status.success(), "tmux {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn wait_for(&self, words: &str) -> String {
        let by = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if screen.contains(words) {
                return screen;
            }
            assert!(Instant::now() < by, "no {words:?} in:\n{screen}");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

#[test]
fn the_whole_demo_fits_a_terminal_of_80_columns_and_24_lines() {
    let demo_run = DemoRun::new();
    let command = format!("'{}' demo --seconds 2", binary());
    let terminal = Terminal::open(&demo_run, "show", 80, 24, &command);
    let during = terminal.wait_for(" s of 1.0");
    assert!(during.contains("together"), "{during}");
    let end = terminal.wait_for("ended with");
    assert!(end.contains("ended with 0"), "{end}");
    assert!(end.starts_with("shmlimit demo:"), "the first line is still there:\n{end}");
    for part in ["1 each limits itself", "2 all share one shmlimit", "was told", "no 429s", "Now:"] {
        assert_eq!(end.matches(part).count(), 1, "{part:?} once in:\n{end}");
    }
    let coloured = terminal.tmux(&["capture-pane", "-e", "-p"]);
    assert!(coloured.contains("\x1b[32m█") && coloured.contains("\x1b[31m▒"), "{coloured}");
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1");
    demo_run.is_empty();
}

#[test]
fn a_small_terminal_stays_clean_and_no_color_is_obeyed() {
    let demo_run = DemoRun::new();
    let command = format!("NO_COLOR=1 '{}' demo --seconds 2", binary());
    let terminal = Terminal::open(&demo_run, "small", 50, 30, &command);
    let end = terminal.wait_for("ended with");
    assert!(end.contains("ended with 0"), "{end}");
    for part in ["1 without", "2 shmlimit", "together"] {
        assert_eq!(end.matches(part).count(), 1, "{part:?} once in:\n{end}");
    }
    let coloured = terminal.tmux(&["capture-pane", "-e", "-p"]);
    assert!(!coloured.contains("\x1b["), "{coloured}");
    demo_run.is_empty();
}

#[test]
fn ctrl_c_restores_the_terminal() {
    let demo_run = DemoRun::new();
    let command = format!("'{}' demo --seconds 60", binary());
    let terminal = Terminal::open(&demo_run, "keys", 80, 24, &format!("trap : INT; {command}"));
    terminal.wait_for(" s of 30.0");
    terminal.tmux(&["send-keys", "C-c"]);
    terminal.wait_for("ended with 130");
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1");
    demo_run.is_empty();
}

#[test]
fn ctrl_z_restores_the_cursor_for_the_shell() {
    let demo_run = DemoRun::new();
    let terminal = Terminal::open(&demo_run, "stop", 80, 24, "bash --norc -i");
    terminal.tmux(&["send-keys", &format!("'{}' demo --seconds 60", binary()), "Enter"]);
    terminal.wait_for(" s of 30.0");
    terminal.tmux(&["send-keys", "C-z"]);
    terminal.wait_for("Stopped");
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1");
    terminal.tmux(&["send-keys", "kill -TERM %1; fg; exit 7", "Enter"]);
    terminal.wait_for("ended with 7");
    demo_run.is_empty();
}

#[test]
fn the_cleanup_process_of_the_demo_touches_nothing_if_started_by_hand() {
    let demo_run = DemoRun::new();
    let directory = demo_run.path().join("mine");
    std::fs::create_dir(&directory).unwrap();
    let output = demo_run.demo(&["--act-as", "supervisor"]).arg(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(directory.is_dir());
}
