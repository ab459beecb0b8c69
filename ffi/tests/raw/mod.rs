//! Runs the C example, compiled by every compiler, and the command-line tool in a directory of limiters.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The command-line tool. It belongs to another package, which cargo does not build when this package is tested
/// alone.
fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| {
        // …/TARGET/PROFILE/deps/this-test
        let this = std::env::current_exe().unwrap();
        let profile = this.parent().and_then(Path::parent).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "shmlimit-cli", "--bin", "shmlimit", "--target-dir"]);
        build.arg(profile.parent().unwrap()).current_dir(root());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.output().unwrap();
        assert!(built.status.success(), "{}", text(&built));
        profile.join("shmlimit")
    })
}

/// The example, compiled once by each installed compiler. CI has both.
pub fn programs() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let compile = |compiler: &str| {
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("raw_status-{compiler}"));
            let mut cc = Command::new(compiler);
            cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-Iinclude"]);
            let output =
                cc.args(["examples/c/raw_status.c", "-o"]).arg(&program).current_dir(root()).output();
            let output = output.unwrap_or_else(|error| panic!("{compiler}: {error}"));
            assert!(output.status.success(), "{}", text(&output));
            program
        };
        let is_there = |compiler: &&str| Command::new(compiler).arg("--version").output().is_ok();
        let (cc, clang) = ("cc", Some("clang").filter(is_there));
        assert!(clang.is_some() || std::env::var_os("CI").is_none(), "CI must have clang");
        std::iter::once(cc).chain(clang).map(compile).collect()
    })
}

/// A temporary directory of limiters. It is deleted with the test.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}.shm"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tool());
        command.args(arguments).env("SHMLIMIT_DIR", self.path());
        command
    }

    /// Runs the tool.
    #[track_caller]
    pub fn tool(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Creates a limiter from a configuration.
    #[track_caller]
    pub fn init(&self, name: &str, configuration: &str) {
        let file = self.path().join(format!("{name}.toml"));
        std::fs::write(&file, configuration).unwrap();
        self.tool(&["init", name, "--config", file.to_str().unwrap()]);
    }

    /// The names of all limiters.
    pub fn names(&self) -> Vec<String> {
        let lines = self.tool(&["status", "--json"]);
        let name =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
        lines.lines().map(name).collect()
    }

    /// The tool's `status --json` of a limiter.
    #[track_caller]
    pub fn status(&self, name: &str) -> Value {
        serde_json::from_str(&self.tool(&["status", name, "--json"])).unwrap()
    }

    /// Reads the status again and again until it is as wanted.
    pub fn wait_until(&self, name: &str, wanted: impl Fn(&Value) -> bool) {
        while !wanted(&self.status(name)) {
            std::thread::yield_now();
        }
    }

    /// Starts the tool in its own process group.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a call that holds a permit until it is ended.
    pub fn hold(&self, name: &str, priority: &str) -> Child {
        let mut child =
            self.start(&["run", name, "--priority", priority, "--", "sh", "-c", "echo ready; read -r _"]);
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        assert_eq!(first, "ready\n");
        child
    }

    /// The example's output, or its error message.
    pub fn raw(&self, program: &Path, name: &str) -> Result<Raw, String> {
        let output = Command::new(program).arg(self.path()).arg(name).output().unwrap();
        match output.status.code() {
            Some(0) => Ok(Raw(String::from_utf8(output.stdout).unwrap())),
            code => {
                assert_eq!((code, &output.stdout[..]), (Some(1), &b""[..]));
                Err(String::from_utf8(output.stderr).unwrap())
            }
        }
    }
}

/// Closes the standard input of a child of [`Home`], so that it goes on.
pub fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// Kills a child of [`Home`] and its own children.
pub fn kill_group(mut child: Child) {
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    child.wait().unwrap();
}

/// The example's output.
#[derive(Debug)]
pub struct Raw(String);

impl Raw {
    fn lines<'r>(&'r self, key: &str) -> impl Iterator<Item = &'r str> {
        let key = format!("{key} ");
        self.0.lines().filter_map(move |line| line.strip_prefix(&key))
    }

    #[track_caller]
    pub fn text(&self, key: &str) -> &str {
        self.lines(key).next().unwrap_or_else(|| panic!("no {key} in {}", self.0))
    }

    #[track_caller]
    pub fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap()
    }

    /// The words of every line with this key.
    pub fn all<'r>(&'r self, key: &str) -> impl Iterator<Item = Vec<&'r str>> {
        self.lines(key).map(|line| line.split(' ').collect())
    }

    /// Pid, held, granted, refused and program of all live participants, or of all dead ones.
    pub fn participants(&self, alive: bool) -> Vec<Value> {
        let wanted = if alive { "alive" } else { "dead" };
        let split = self.lines("participant").map(|line| line.splitn(6, ' ').collect::<Vec<_>>());
        let all = split.filter(|one| one[4] == wanted).map(|one| {
            let [pid, held, granted, refused] = numbers(&one[..4]);
            json!([pid, held, granted, refused, one[5]])
        });
        all.collect()
    }
}

/// Reads this many numbers.
#[track_caller]
pub fn numbers<const N: usize>(words: &[&str]) -> [u64; N] {
    let numbers: Vec<u64> = words.iter().map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}
