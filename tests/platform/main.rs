//! Files, directories, processes and namespaces as the operating system provides them.

mod counts;
#[cfg(target_os = "linux")]
mod deleted;
#[cfg(target_os = "linux")]
mod deleted_orders;
#[cfg(target_os = "linux")]
mod deleted_permits;
#[cfg(target_os = "linux")]
mod deleted_seen;
#[cfg(any(windows, target_os = "linux"))]
mod deleted_while_open;
mod failing_storage;
mod files_in_the_way;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(any(windows, target_os = "linux"))]
mod handles;
mod mapped_twice;
#[cfg(target_os = "linux")]
mod namespaces;
mod observer;
#[cfg(target_os = "linux")]
mod participants;
mod paused;
mod processes;
mod refuses_foreign_files;
#[cfg(target_os = "linux")]
mod replaced;
#[path = "../util/mod.rs"]
mod util;
