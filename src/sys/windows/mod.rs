//! Windows 10 (1809) and later: the performance counter, named semaphores, `LockFileEx` byte locks, files opened relative to
//! an open directory, access control lists.
//!
//! What differs from Linux is told in docs/platforms.md. There is no fork, so [`ForkWords`] are plain words.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "shmlimit: every word of a segment is 64 bits wide and read in one access; 32-bit Windows is not supported."
);

mod access;
mod acl;
mod byte_lock;
mod clock;
mod file_system;
mod files;
mod gone;
mod meeting;
mod memory;
mod names;
mod native;
mod pulse;
mod sid;
#[cfg(feature = "cli")]
pub mod tool;
mod unnamed;

/// Nothing: limiters can be shared here.
pub(crate) const MISSING: Option<&str> = None;
/// A mapped file cannot be renamed over.
pub(crate) const REPLACES_IN_TWO_STEPS: bool = true;

#[cfg(test)]
pub(crate) use access::open_to_anybody;
pub(crate) use access::{
    Access, default_directories, give_access, make_directory, share_directory, why_closed,
};
pub(crate) use clock::{Clock, wall_now};
pub(crate) use file_system::file_system;
pub(crate) use files::{facts, facts_at, open_directory, open_file_at, open_or_create_at};
pub(crate) use gone::{is_deleted_in_use, remove_at, unlink_at};
pub(crate) use meeting::Meeting;
pub(crate) use memory::{ForkWords, SharedMap};
pub(crate) use names::{boot_id, process_id, program_name};
pub use pulse::FIRST_PULSE;
pub(crate) use pulse::{Pulse, TakenPulse, is_attended, pulse_is_held, try_lock_gate, unlock_gate};
pub use sid::Account;
#[cfg(feature = "cli")]
pub(crate) use tool::hold_whole_file;
pub(crate) use unnamed::{UnnamedFile, unnamed_file};
