//! The command-line tool as its users have it: the real binary, verb by verb. One program for all of them, because eighty
//! small ones take minutes to build.
#![cfg(any(target_os = "linux", windows))]

#[path = "../cli/mod.rs"]
mod cli;
#[path = "../cli/commands.rs"]
mod commands;
#[path = "../cli/queue.rs"]
mod queue;
#[allow(dead_code)] // others use the rest
#[path = "../common/raw.rs"]
mod raw;
#[path = "../cli/web.rs"]
mod web;
#[cfg(unix)] // tmux
#[path = "../cli/window.rs"]
mod window;

use cli::Home;
#[cfg(unix)]
use cli::binary;

mod bad_input;
#[cfg(unix)] // looks for processes in /proc, and kills by signals
mod bench;
#[cfg(unix)] // programs that are scripts for sh, with any name
mod characters;
mod completions;
#[cfg(target_os = "linux")] // elsewhere a file in use cannot be deleted, or nothing is shared
mod deleted;
#[cfg(unix)] // looks for processes in /proc, kills by signals, needs tmux
mod demo;
mod demo_anywhere;
mod doctor;
#[cfg(unix)] // modes and owners
mod doctor_damage;
#[cfg(unix)] // modes, groups, stopped processes
mod doctor_modes;
mod health;
mod init;
mod json;
mod log;
#[cfg(unix)] // manual pages are for Unix
mod man;
mod messages;
mod metrics;
mod metrics_http;
mod pause;
#[cfg(unix)] // what is suggested is pasted into sh
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
#[cfg(windows)] // its console, its exit codes, its jobs
mod run_windows;
mod shows;
mod slots_full;
mod status;
mod texts;
#[cfg(unix)] // tmux
mod top;
mod turns;
mod typos;
mod update;
#[cfg(unix)] // Windows deletes no file that is used
mod used_up;
mod verbs;
mod waiting;
#[cfg(unix)] // ptys and signals
mod waiting_signals;
