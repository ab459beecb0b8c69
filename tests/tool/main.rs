//! The command-line tool as its users have it: the real binary, verb by verb. One program for all of them, because eighty
//! small ones take minutes to build.
#![cfg(all(feature = "cli", target_os = "linux"))]

#[path = "../cli/mod.rs"]
mod cli;
#[path = "../cli/queue.rs"]
mod queue;
#[allow(dead_code)] // others use the rest
#[path = "../common/raw.rs"]
mod raw;
#[path = "../cli/web.rs"]
mod web;
#[path = "../cli/window.rs"]
mod window;

use cli::{Home, binary};

mod bad_input;
mod bench;
mod completions;
mod demo;
mod doctor;
mod doctor_damage;
mod health;
mod init;
mod json;
mod log;
mod man;
mod metrics;
mod metrics_http;
mod rm;
mod run;
mod run_outcomes;
mod run_retries;
mod run_streams;
mod status;
mod texts;
mod top;
mod turns;
mod typos;
mod verbs;
mod waiting;
