//! Linux: vDSO clocks, shared futexes, open-file-description locks, wipe-on-fork pages, `O_TMPFILE`.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "shmlimit: liveness locks are byte locks at offset 2^62 and times are 64-bit timespecs; a 32-bit Linux offers neither \
     through its plain system calls. Supported: 64-bit Linux."
);

mod access;
#[cfg(feature = "tool")]
mod baselines;
mod byte_lock;
#[cfg(feature = "tool")]
mod child;
mod clock;
mod file_system;
mod files;
mod identity;
mod liveness;
mod memory;
mod parker;
mod spare_descriptor;
mod unnamed_file;

/// No promise is missing: limiters can be shared here.
pub const MISSING: Option<&str> = None;
/// One rename replaces a file.
pub const REPLACES_IN_TWO_STEPS: bool = false;

pub use access::Account;
#[cfg(test)]
pub use access::open_to_anybody;
pub use access::{
    Access, default_directories, former_directories, give_access, make_directory, share_directory, why_closed,
};
#[cfg(feature = "tool")]
pub use baselines::hold_whole_file;
pub use byte_lock::FIRST_LIVENESS_BYTE;
pub use clock::{Clock, wall_now};
pub use file_system::file_system;
pub use files::{
    facts, facts_at, is_deleted_in_use, open_directory, open_file_at, open_or_create_at, remove_at, unlink_at,
};
pub use identity::{boot_id, program_name};
pub use liveness::{LivenessLock, has_users, liveness_lock_is_held, try_lock_creation, unlock_creation};
pub use memory::{ForkWords, SharedMap};
pub use parker::Parker;
pub use spare_descriptor::{Spare, TakenLivenessLock};
pub use unnamed_file::{UnnamedFile, unnamed_file};

/// Functions for the command-line tool.
#[cfg(feature = "tool")]
pub mod tool {
    pub use super::baselines::processor_time;
    pub use super::child::{pass_descriptor, spawn_with_mask};
}

#[cfg(test)]
mod testing;
