//! Runs every command in README.md and docs/shell.md, and compares its output with the documented one.

use crate::cli::ROOT;
use crate::cli::web::Web;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const README: &str = include_str!("../../README.md");
const SHELL: &str = include_str!("../../docs/shell.md");
/// A substitute for cargo: the programs are already built, and the tests are already running.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
    "run --release -- "*) shift 3; exec shmlimit "$@" ;;
    "test --workspace" | "install --path cli" | "build --release") exit 0 ;;
    *) echo "README.md has an unknown command: cargo $*" >&2; exit 64 ;;
esac
"#;

/// Substitutes for installers: scripts/languages/python-tests and scripts/languages/c-install-check do the real
/// thing.
const PIP: &str = r#"#!/bin/sh
[ "$*" = "install ./ffi/python" ] || { echo "README.md has an unknown command: pip $*" >&2; exit 64; }
"#;
const INSTALL_C: &str = r#"#!/bin/sh
[ "$*" = "--prefix $HOME/.local" ] || { echo "README.md has an unknown command: install-c $*" >&2; exit 64; }
"#;

/// The real curl, redirected to the example server on this machine.
const CURL: &str = r#"#!/bin/sh
for word; do
    shift
    case $word in https://api.example.org/*) word=$WEB${word#https://api.example.org/} ;; esac
    set -- "$@" "$word"
done
PATH=${PATH#*:} exec curl "$@"
"#;

/// A fenced block: its language and its text.
struct Block {
    language: &'static str,
    text: String,
}

fn blocks(document: &'static str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in document.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some(Block { language, text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Writes an executable file.
fn put(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory with `shmlimit` and `cargo` for the path, and the samples.
fn prepared_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bin = directory.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shmlimit"), bin.join("shmlimit")).unwrap();
    std::fs::create_dir_all(directory.path().join("scripts/languages")).unwrap();
    for (file, text) in [("bin/cargo", CARGO), ("bin/pip", PIP), ("scripts/languages/install-c", INSTALL_C)] {
        put(&directory.path().join(file), text);
    }
    let examples = Path::new(ROOT).join("examples");
    std::os::unix::fs::symlink(examples, directory.path().join("examples")).unwrap();
    directory
}

/// Runs a block as a script that stops at the first failure. Returns what a terminal would show.
fn run(directory: &Path, script: &str) -> String {
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-euc", &format!("exec 2>&1\n{script}")])
        .current_dir(directory)
        .env("PATH", path)
        .env("SHMLIMIT_DIR", directory.join("limiters"))
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{script}\n{:?}\n{shown}", output.status);
    shown
}

/// Replaces directories, times and levels, so that only the words are compared.
fn shape(output: &str, directory: &str) -> String {
    let mut shape = String::new();
    for c in output.replace(directory, "DIR").chars() {
        match c {
            '0'..='9' if shape.ends_with('N') => {}
            '0'..='9' => shape.push('N'),
            '█' | '░' => {}
            c => shape.push(c),
        }
    }
    // On a busy machine, something that takes milliseconds may take seconds.
    shape.replace("Nms", "Ns")
}

/// Runs all commands of a document in their order. Returns the number of commands and of documented outputs.
fn run_all(document: &'static str, directory: &Path) -> (usize, usize) {
    let limiters = directory.join("limiters");
    let (mut commands, mut shown) = (0, 0);
    let mut output: Option<String> = None;
    for Block { language, text } in blocks(document) {
        match (language, output.take()) {
            ("sh", _) => {
                output = Some(run(directory, &text));
                commands += text.lines().count();
            }
            ("text", Some(output)) => {
                let output = shape(&output, limiters.to_str().unwrap());
                assert_eq!(output, shape(&text, "/var/tmp/shmlimit-1000"));
                shown += 1;
            }
            _ => {}
        }
    }
    (commands, shown)
}

#[test]
fn every_command_of_the_readme_runs_and_shows_the_documented_output() {
    let (commands, shown) = run_all(README, prepared_directory().path());
    assert!(commands >= 10 && shown >= 2, "{commands} commands, {shown} outputs");
}

/// The server of the examples: it refuses the first request for `/busy`.
fn example() -> Web {
    let busy = AtomicBool::new(true);
    Web::answering(move |asked, _| {
        if asked.starts_with("GET /busy ") && busy.swap(false, Ordering::SeqCst) {
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 3\r\n\r\nno\n"
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfine\n"
        }
    })
}

#[test]
fn every_command_of_the_shell_guide_runs_and_shows_the_documented_output() {
    let (directory, web) = (prepared_directory(), example());
    put(&directory.path().join("bin/curl"), &CURL.replace("$WEB", &web.url()));
    let (commands, shown) = run_all(SHELL, directory.path());
    assert!(commands >= 30 && shown >= 3, "{commands} commands, {shown} outputs");
    // One request per call, and two where the guide says so.
    assert_eq!(web.calls(), 3 + 20 + 3 + 2 + 1);
}

#[test]
fn the_first_two_commands_of_the_readme_need_no_other_setup() {
    let commands: Vec<String> = blocks(README)
        .into_iter()
        .filter(|block| block.language == "sh")
        .map(|block| block.text)
        .take(2)
        .collect();
    assert_eq!(commands[0], "cargo install --path cli\nshmlimit demo\n");
    // The second command works on its own; the demo creates nothing for it.
    assert_eq!(run(prepared_directory().path(), &commands[1]).lines().count(), 20);
}

#[test]
fn the_shell_sample_runs() {
    let directory = prepared_directory();
    let mut lines: Vec<String> =
        run(directory.path(), "seq 1 12 | examples/fetch-all.sh").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines.len(), 12);
    assert_eq!(lines[0], "movie 1");
}

#[test]
fn an_unknown_command_would_fail_this_test() {
    let directory = prepared_directory();
    let failed = std::panic::catch_unwind(|| run(directory.path(), "cargo frobnicate"));
    assert!(failed.is_err());
}
