//! What a decision costs: no allocation and no system call. A program of its own, because it replaces the allocator.

mod no_allocations;
#[cfg(target_os = "linux")]
mod no_syscalls;
#[path = "../util/mod.rs"]
mod util;
