//! The cost of a decision: no allocation and no system call. This program is separate because it replaces the
//! allocator.

mod no_allocations;
#[cfg(target_os = "linux")]
mod no_syscalls;
#[path = "../../cli/src/bench/shapes.rs"]
mod shapes;
#[path = "../util/mod.rs"]
mod util;
