//! `shmlimit simulate`, through the real binary.

mod acquire;
mod adaptive;
mod breaker;
mod consecutive;
mod errors;
mod examples;
mod interactive;
mod long;
mod pause;
mod plot;
mod record;
mod reduced;
mod resets;
mod rules;
mod set;
mod sleeps;

use assert_cmd::Command;
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

/// The preset that most scenarios use.
const TMDB: &str = "preset = \"tmdb\"\n";

/// The output of one run.
struct SimulationOutput {
    pub code: i32,
    pub lines: Vec<Value>,
    pub err: String,
}

/// A configuration in a separate file, which is removed on drop.
struct Simulation {
    home: TempDir,
}

impl Simulation {
    pub fn new(config: &str) -> Simulation {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("c.toml"), config).unwrap();
        Simulation { home }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::cargo_bin("shmlimit").unwrap();
        command.arg("simulate").arg("--config").arg(self.path("c.toml"));
        command
    }

    pub fn run_with(&self, arguments: &[&str], script: impl Into<Vec<u8>>) -> SimulationOutput {
        let output = self.command().args(arguments).write_stdin(script).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        SimulationOutput {
            code: output.status.code().expect("ended by itself"),
            lines: out.lines().map(read).collect(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a script that must succeed, and returns its answers.
fn simulate(config: &str, script: &str) -> Vec<Value> {
    let output = Simulation::new(config).run_with(&[], script);
    assert_eq!((output.code, output.err.as_str()), (0, ""), "{:?}", output.lines);
    let expected = script.lines().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(output.lines.len(), expected, "one line for each operation");
    for (i, line) in output.lines.iter().enumerate() {
        assert_eq!(line["i"], i, "{line}");
    }
    output.lines
}

/// The keys of an object, sorted.
fn keys(line: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// All transitions of a run: time, from, to, reason.
fn transitions(lines: &[Value]) -> Vec<(u64, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .iter()
        .flat_map(|line| line["transitions"].as_array().unwrap())
        .map(|it| (it["t"].as_u64().unwrap(), text(&it["from"]), text(&it["to"]), text(&it["reason"])))
        .collect()
}

/// All transitions of a run, each as one text: `from>to reason @t`.
fn moves(lines: &[Value]) -> Vec<String> {
    transitions(lines).into_iter().map(|(t, from, to, why)| format!("{from}>{to} {why} @{t}")).collect()
}

/// A script that repeats `line` `count` times.
fn times(count: usize, line: &str) -> String {
    format!("{line}\n").repeat(count)
}
