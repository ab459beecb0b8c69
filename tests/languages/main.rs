//! Programs in several languages that share one limiter: the tool, Rust, C, C++ and Python.

#![cfg(target_os = "linux")]

mod budget_check;
#[path = "../util/cli/mod.rs"]
mod cli;
mod killed;
mod leaks;
mod programs;
mod share;
mod two_clis;
#[path = "../util/mod.rs"]
mod util;

/// The entry point of a process that a test starts as a client of the server; checks nothing by itself.
#[test]
fn client_process() {
    util::server::client::live();
}
