//! Several processes that call a real HTTP server through one limiter.

#![cfg(target_os = "linux")]

mod breaker;
mod gate;
mod permits;
mod record;
mod soak;
#[path = "../util/mod.rs"]
mod util;

/// The entry point of a process that a test starts as a client of the server; checks nothing by itself.
#[test]
fn client_process() {
    util::server::client::live();
}
