//! Runs the real binary in a temporary directory.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod commands;
pub mod queue;
#[cfg(unix)] // tmux
pub mod tmux;
pub mod web;

use assert_cmd::Command;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use tempfile::TempDir;

/// The arguments of `init` for a limiter with one call at a time, and no rule.
pub const ONE: [&str; 3] = ["one", "--concurrency", "1"];

#[cfg(unix)]
pub fn pid(child: &Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(child.id().cast_signed())
}

/// A directory for limiters, removed after the test.
pub struct Home(TempDir);

/// The exit code and the output of a run.
pub struct Answer {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Home {
        // In memory if possible, because some tests start many processes.
        let memory = Path::new("/dev/shm");
        let directory =
            if cfg!(unix) && memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
                .unwrap();
        make_private(directory.path());
        Home(directory)
    }

    /// A home with one limiter in it.
    pub fn with(init: &[&str]) -> Home {
        let home = Home::new();
        let answer = home.tool(&[&["init"], init].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        home
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `shmlimit` with these arguments.
    pub fn tool(&self, arguments: &[&str]) -> Answer {
        /// `ERROR_INTERNAL_ERROR`: seen once in thousands of starts under Wine, for a program that did not start.
        const NEVER_BEGAN: i32 = 1359;
        let start = || {
            let mut command = Command::cargo_bin("shmlimit").unwrap();
            command.args(arguments).env("SHMLIMIT_DIR", self.path()).output()
        };
        let again = |error: std::io::Error| match error.raw_os_error() {
            Some(NEVER_BEGAN) if cfg!(windows) => start(),
            _ => Err(error),
        };
        let output = start().or_else(again).unwrap();
        Answer {
            code: output.status.code().expect("ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts `shmlimit run …` with pipes, and reads the command's first line. The command runs from then on.
    pub fn start(&self, arguments: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
        let mut child = self
            .as_a_shell_would()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        (child, out, first.trim_end().to_owned())
    }

    /// The tool as an interactive shell would start it, however the tests were started. Under `nohup`, or in the
    /// background of a script, signals are ignored. Without a shell above (cron, a container), the process group is
    /// orphaned and the system stops none of its processes. A test that sends signals would then wait for ever.
    #[cfg(unix)]
    pub fn as_a_shell_would(&self) -> std::process::Command {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("env");
        command.args(["--default-signal", binary()]).env("SHMLIMIT_DIR", self.path()).process_group(0);
        command
    }

    /// The tool as a shell would start it.
    #[cfg(windows)]
    pub fn as_a_shell_would(&self) -> std::process::Command {
        let mut command = std::process::Command::new(binary());
        command.env("SHMLIMIT_DIR", self.path());
        command
    }

    /// Every file with its size and content, to check that nothing changed.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        // Windows cannot delete a file before its last user closes it. Until then the file has another name, and a
        // later process deletes it.
        let entries =
            entries.filter(|path| !cfg!(windows) || path.extension().is_none_or(|end| end != "gone"));
        let mut all: Vec<_> = entries
            .map(|path| {
                let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                (path, bytes)
            })
            .collect();
        all.sort();
        all
    }

    /// Deletes a limiter's file while programs may use it. On systems that do not allow this, the tool removes it.
    pub fn delete(&self, name: &str) {
        if cfg!(unix) {
            std::fs::remove_file(self.path().join(format!("{name}.shm"))).unwrap();
        } else {
            self.tool(&["rm", name, "--force"]).succeeds();
        }
    }

    pub fn names(&self) -> Vec<String> {
        let name = |(path, _): (PathBuf, Vec<u8>)| path.file_name().unwrap().to_str().unwrap().to_owned();
        self.contents().into_iter().map(name).collect()
    }

    /// The limiter's line of `status --json`.
    pub fn status(&self, name: &str) -> serde_json::Value {
        let answer = self.tool(&["status", name, "--json"]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        serde_json::from_str(&answer.out).unwrap()
    }
}

impl Answer {
    /// Asserts the exit code and that the message has all these parts.
    #[track_caller]
    pub fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.err);
        assert_eq!(self.out, "");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in: {}", self.err);
        }
    }

    #[track_caller]
    pub fn succeeds(&self) -> &str {
        assert_eq!(self.code, 0, "{}", self.err);
        &self.out
    }
}

/// Makes a file or directory private, like a user's own files, for any umask of the tests.
#[cfg(unix)]
pub fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Does nothing: files in a user's own directory are private on Windows.
#[cfg(windows)]
pub fn make_private(_path: &Path) {}

/// The directory of the repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The path of the binary `shmlimit`.
pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_shmlimit")
}
