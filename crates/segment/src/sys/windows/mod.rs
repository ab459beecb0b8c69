//! Windows 10 (1809) and later: the performance counter, named semaphores, `LockFileEx` byte locks, files opened
//! relative to an open directory, access control lists.
//!
//! docs/platforms.md lists the differences from Linux. Windows has no fork, so [`ForkWords`] are plain words.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "shmlimit: every word of a segment is 64 bits wide and read in one access; 32-bit Windows is not supported."
);

mod access;
mod acl;
mod byte_lock;
mod clock;
mod deferred_unlink;
mod file_system;
mod files;
mod identity;
mod liveness;
mod memory;
mod native;
mod parker;
mod sid;
#[cfg(feature = "tool")]
pub mod tool;
mod unnamed_file;

/// No promise is missing: limiters can be shared here.
pub const MISSING: Option<&str> = None;
/// A rename cannot replace a mapped file.
pub const REPLACES_IN_TWO_STEPS: bool = true;

pub use access::{
    Access, default_directories, former_directories, give_access, make_directory, share_directory, why_closed,
};
pub use clock::{Clock, wall_now};
pub use deferred_unlink::{is_deleted_in_use, remove_at, unlink_at};
pub use file_system::file_system;
#[cfg(test)]
pub use files::open_to_anybody;
pub use files::{facts, facts_at, open_directory, open_file_at, open_or_create_at};
pub use identity::{boot_id, program_name};
pub use liveness::FIRST_LIVENESS_BYTE;
pub use liveness::{
    LivenessLock, TakenLivenessLock, has_users, liveness_lock_is_held, try_lock_creation, unlock_creation,
};
pub use memory::{ForkWords, SharedMap};
pub use parker::Parker;
pub use sid::Account;
#[cfg(feature = "tool")]
pub use tool::hold_whole_file;
pub use unnamed_file::{UnnamedFile, unnamed_file};
