//! The command-line tool as users have it: the real binary, verb by verb, the commands of the documentation, and file
//! systems.

#![cfg(any(target_os = "linux", windows))]

#[path = "../util/cli/mod.rs"]
mod cli;
#[path = "../util/mod.rs"]
mod util;

mod bad_input;
#[cfg(unix)] // looks for processes in /proc, and kills by signals
mod bench;
#[cfg(unix)] // programs that are scripts for sh, with any name
mod characters;
mod common;
mod completions;
#[cfg(target_os = "linux")] // elsewhere a file in use cannot be deleted, or nothing is shared
mod deleted;
#[cfg(unix)] // looks for processes in /proc, kills by signals, needs tmux
mod demo;
mod demo_and_bench;
#[cfg(target_os = "linux")]
mod docs;
mod doctor;
#[cfg(unix)] // modes and owners
mod doctor_damage;
#[cfg(unix)] // modes, groups, stopped processes
mod doctor_modes;
#[cfg(target_os = "linux")] // mounts
mod file_systems;
#[cfg(target_os = "linux")]
mod guides;
mod health;
mod init;
mod json;
mod log;
mod log_files;
#[cfg(unix)] // manual pages are for Unix
mod man;
#[cfg(target_os = "linux")]
mod markdown;
mod messages;
mod metrics;
mod metrics_http;
#[cfg(target_os = "linux")]
mod operator;
mod pause;
#[cfg(target_os = "linux")]
mod readme_commands;
#[cfg(unix)] // Windows cannot delete a file in use
mod recreated_after_deletion;
#[cfg(unix)] // pastes suggestions into sh
mod remedies;
mod rm;
#[cfg(unix)] // signals, ptys, and commands that are scripts for sh
mod run;
mod run_anywhere;
#[cfg(unix)] // descriptors, and commands that are scripts for sh
mod run_outcomes;
mod run_retries;
#[cfg(unix)] // signals, descriptors, curl
mod run_retries_unix;
#[cfg(unix)] // ptys, and commands that are scripts for sh
mod run_streams;
#[cfg(windows)] // console, exit codes and jobs of Windows
mod run_windows;
#[cfg(target_os = "linux")]
mod shell;
mod slots_full;
mod status;
mod texts;
#[cfg(unix)] // tmux
mod top;
mod turns;
mod typos;
mod update;
mod waiting;
#[cfg(unix)] // ptys and signals
mod waiting_signals;

/// The entry point of a process that a test starts as a client of the server; checks nothing by itself.
#[test]
#[cfg(target_os = "linux")]
fn client_process() {
    util::server::client::live();
}
