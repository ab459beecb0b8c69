//! The cost of a decision: no allocation and no system call. This program is separate because it replaces the
//! allocator.

mod no_allocations;
#[cfg(target_os = "linux")]
mod no_syscalls;
#[path = "../util/mod.rs"]
mod util;
