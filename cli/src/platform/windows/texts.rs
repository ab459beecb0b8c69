//! Texts of help and advice that differ between platforms.

use clap::builder::ValueParser;
use std::path::Path;

pub const DEFAULT_DIRECTORIES: &str = r"%ProgramData%\AniVault";
pub const NO_CURSOR: &str = "a console that can move its cursor (Windows 10 or later)";
pub const TEMPORARY: &str = "TMP";
pub const CLOCK_UNREADABLE: &str = "this Windows is not supported: 10 (1809) is the oldest";
pub const SET_THE_CLOCK: &str = "set it: w32tm /resync";
pub const SAFE_PARENTS: &str =
    "keep limiters only in directories whose parents belong to administrators or to you";

pub const EXAMPLES_OF_RUN: &str = "\
Never more calls than the limit, whatever else runs. Then with curl, so that all programs pause after a 429:

  shmlimit run tmdb -- fetch.cmd 11
  shmlimit run tmdb --retries --status-from \"HTTP/[0-9.]+ ([0-9]+)\" --exit curl -- curl -fsS -D - -o 11.json URL

Commands of the shell itself, such as echo or dir, need the shell: shmlimit run tmdb -- cmd /c dir";

/// Refuses the option. Programs on Windows cannot inherit a pipe under a number, except those of one C library, and a
/// program does not tell which library it uses.
pub fn descriptor() -> ValueParser {
    let refuse = |_: &str| -> Result<i32, &'static str> {
        Err("on Windows a command cannot inherit a descriptor by number; let it print the status and use \
             --status-from, or let it call: shmlimit record --headers FILE")
    };
    ValueParser::new(refuse)
}

pub fn let_it_go_on(pid: u32) -> String {
    format!("end it: taskkill /F /PID {pid}")
}

pub fn make_directory(path: &Path) -> String {
    format!("mkdir \"{}\"", path.display())
}

pub fn remove_file(path: &Path) -> String {
    format!("del \"{}\"", path.display())
}

pub fn unset(name: &str) -> String {
    format!("unset it: set {name}=   or in PowerShell: Remove-Item Env:{name}")
}

pub fn make_group(name: &str) -> String {
    format!("net localgroup {name} /add")
}

/// Returns a hint why a command was not found.
pub fn not_found(program: &str) -> &'static str {
    const OF_THE_SHELL: [&str; 14] = [
        "assoc", "call", "copy", "date", "del", "dir", "echo", "md", "mklink", "move", "set", "start",
        "time", "type",
    ];
    match OF_THE_SHELL.contains(&program.to_lowercase().as_str()) {
        true => "; it is the shell's own: put cmd /c before it",
        false => "",
    }
}
