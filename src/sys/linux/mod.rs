//! Linux: vDSO clocks, shared futexes, open-file-description locks, wipe-on-fork pages, `O_TMPFILE`.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "shmlimit: pulses are byte locks at offset 2^62 and times are 64-bit timespecs; a 32-bit Linux offers neither \
     through its plain system calls. Supported: 64-bit Linux."
);

mod access;
#[cfg(feature = "cli")]
mod baselines;
#[cfg(feature = "cli")]
mod child;
mod clock;
mod file_system;
mod files;
mod memory;
mod names;
mod pulse;
mod spare;
mod unnamed;

/// Nothing: limiters can be shared here.
pub(crate) const MISSING: Option<&str> = None;
/// A file is replaced by one rename.
pub(crate) const REPLACES_IN_TWO_STEPS: bool = false;

pub use access::Account;
#[cfg(test)]
pub(crate) use access::open_to_anybody;
pub(crate) use access::{
    Access, default_directories, give_access, make_directory, share_directory, why_closed,
};
#[cfg(feature = "cli")]
pub(crate) use baselines::hold_whole_file;
pub(crate) use clock::{Clock, wall_now};
pub(crate) use file_system::file_system;
pub(crate) use files::{
    facts, facts_at, is_deleted_in_use, open_directory, open_file_at, open_or_create_at, remove_at, unlink_at,
};
pub(crate) use memory::{ForkWords, Meeting, SharedMap};
pub(crate) use names::{boot_id, process_id, program_name};
pub use pulse::FIRST_PULSE;
pub(crate) use pulse::{Pulse, TakenPulse, is_attended, pulse_is_held, try_lock_gate, unlock_gate};
pub(crate) use spare::Spare;
pub(crate) use unnamed::{UnnamedFile, unnamed_file};

/// For the command-line tool.
#[cfg(feature = "cli")]
pub mod tool {
    pub use super::baselines::processor_time;
    pub use super::child::{pass_descriptor, spawn_with_mask};
}

#[cfg(test)]
mod testing;
