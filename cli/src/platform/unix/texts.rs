//! Texts of help and advice that differ between platforms.

use clap::builder::ValueParser;
use std::path::Path;

pub const DEFAULT_DIRECTORIES: &str = "/var/run/shmlimit, /var/tmp/shmlimit-UID, /dev/shm/shmlimit-UID";
pub const NO_CURSOR: &str = "a terminal that can move its cursor (TERM)";
pub const TEMPORARY: &str = "TMPDIR";
pub const CLOCK_UNREADABLE: &str =
    "mount /proc: shmlimit reads the offset of the clock and the identity of the boot there";
pub const SET_THE_CLOCK: &str = "set it: timedatectl set-ntp true";
pub const SAFE_PARENTS: &str = "keep limiters only in directories whose parents belong to root or to you";

pub const EXAMPLES_OF_RUN: &str = "\
Eight at once, but never more calls than the limit. Then with curl, so that all programs pause after a 429 with \
Retry-After:

  seq 1 100 | xargs -P 8 -n 1 shmlimit run tmdb -- ./fetch
  shmlimit run tmdb --retries --status-fd 3 --exit curl -- curl -fsS -D /dev/fd/3 -o 11.json URL";

/// Parses the descriptor number under which a program can inherit a pipe.
pub fn descriptor() -> ValueParser {
    let parse = |text: &str| match text.parse() {
        Ok(number @ 3..=1023) => Ok(number),
        _ => Err("must be the number of a file descriptor, from 3 to 1023"),
    };
    ValueParser::new(parse)
}

pub fn let_it_go_on(pid: u32) -> String {
    format!("resume it: kill -CONT {pid}, or end it: kill -9 {pid}")
}

pub fn make_directory(path: &Path) -> String {
    format!("mkdir -p {}", path.display())
}

pub fn remove_file(path: &Path) -> String {
    format!("rm {}", path.display())
}

pub fn unset(name: &str) -> String {
    format!("unset {name}; all variables: shmlimit man | man -l -")
}

pub fn make_group(name: &str) -> String {
    format!("groupadd {name}")
}

/// Returns a hint why a command was not found.
pub fn not_found(_program: &str) -> &'static str {
    ""
}
