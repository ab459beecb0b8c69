//! The operating-system interface of shmlimit: one contract, and one folder per platform that keeps it.
//!
//! Every platform on which a limiter can be opened keeps every promise below. If a platform cannot keep one, its
//! [`MISSING`] names that promise, and opening a limiter fails with that text. There is never a weaker imitation.
//! The platform's folder explains how it keeps each promise.
//!
//! **Time**
//! - [`Clock`]: one clock for all processes of the machine. `discover` finds out how this process must read it.
//!   `now` is nanoseconds since boot, including time spent suspended, and is the same number in every container. It
//!   equals `correct` applied to `read`; the result of `read` alone is meaningful only to a process that has
//!   discovered its clock. `now_coarse` is cheaper, lags a few milliseconds, and is never above a `now` that is
//!   read after it. `to_words` and `from_words` store a clock in [`ForkWords`]: a forked child may live in another
//!   time namespace and must discover its clock again. A clock without any shift consists of zero words, so a
//!   separate word must record that the clock was discovered.
//! - [`wall_now`]: nanoseconds since 1970 (UTC). It may jump. [`boot_id`]: differs after each boot.
//!
//! **Memory**
//! - [`SharedMap`]: a whole file, mapped shared, readable and writable. It stays at one address until dropped. The
//!   file must be exactly `len` bytes long when it is mapped (else `InvalidInput`). Truncating the file later is
//!   fatal. `forget_pages` releases the resident memory; pages that are touched again are read from the file.
//!   `replace` puts private memory in place of the mapping, at the same address and in one step for all threads.
//!   That memory is zero except for the given words (index, value). `replace` returns a second mapping of the file.
//!   Once that is dropped too, this mapping no longer refers to the file, and its pages must not be forgotten.
//!   `replace` fails with `Unsupported` where the system cannot do this. `is_of_deleted_file` is true only if the
//!   file is known to have no name any more.
//! - [`Parker`]: lets processes that map the same file wait for each other at one of its words. `wait` sleeps while
//!   `word` holds `expected`, for at most `timeout`. It may also return early without a reason. `wait_in_time` does
//!   the same with the smallest delay the system offers, and without a lasting effect on the thread. `wake` wakes
//!   one sleeper of any process and returns whether there was one.
//! - [`ForkWords`]: words that are 0 when new and 0 again in every forked child, however it was forked. Its
//!   `LivenessCell`s store [`LivenessLock`]s under the same rule.
//!
//! **Liveness**: a byte lock for each slot. The system releases it when the process that holds it dies, whatever
//! the cause. Each lock needs a separate open file description: open the file again; a duplicated descriptor does
//! not work.
//! - [`LivenessLock`]: `hold` takes the lock of `slot` until this process's memory is gone ([`Hold`]). Closing
//!   descriptors does not release the lock, a forked child does not inherit it, and dropping the value releases it.
//!   `hold` checks through `probe`, a third description of the file, that the file system at hand really behaves
//!   this way.
//! - [`TakenLivenessLock`]: the same lock, taken for a short time by a process that believes the slot's owner to be
//!   dead. Dropping it releases the lock even if a child that was forked meanwhile shares the description.
//! - [`Spare`]: a description of a file for a process that may lose the right to open the file again. `keep` stores
//!   a description that holds no lock; a process that cannot change its user does not store it.
//!   `liveness_lock_is_held`, `take` and `links` (how many names the file has) work without opening the file. They
//!   return `None` if there is no usable description. `forget` closes the description, unless a thread holds a lock
//!   through it. A forked child cannot use the spare, and no process can use it after other code has closed it; the
//!   methods return `None` then.
//! - `LivenessLock::register_user` takes a shared lock of one user byte of the creation lock, numbered below 2^60,
//!   until this process's memory is gone. [`has_users`] returns whether any process holds one of these bytes, including a
//!   process that is not visible otherwise. It may return true wrongly while another process is asking. If the
//!   system has no such locks, no process is registered.
//! - [`try_lock_creation`], [`unlock_creation`]: the lock under which limiters are created and removed, one at a
//!   time. It does not conflict with the locks of `register_user`.
//! - [`begin_generation`] gives the limiter of that number its [`next_generation`], a number that is stored in the
//!   file of the creation lock and is never used again. The caller holds the creation lock from `next_generation`
//!   to `begin_generation`. [`generation`] reads the number without the lock; 0 if no generation has begun. Another
//!   limiter may share the number.
//! - [`liveness_lock_is_held`]: whether any open file description other than `file` itself holds the lock of
//!   `slot`.
//!
//! **Files**: names are looked up in an open directory, symbolic links in the last component are never followed,
//! and descriptors are never inherited by other programs.
//! - [`facts`], [`facts_at`]: what a file is ([`FileFacts`]). `facts_at` describes a link itself.
//! - [`open_directory`], [`open_file_at`]: open what exists. A FIFO or a device does not block; the caller checks
//!   the facts.
//! - [`open_or_create_at`]: opens a file, or creates an empty one. A new file has exactly the access of a file in a
//!   directory that is shared with that account, or in a private directory if there is no account.
//! - [`unnamed_file`]: a new file with that access and `len` zero bytes, for which the disk space is allocated
//!   *now*. If this process may not create a file that large, the result is an error (`FileTooLarge`), never a
//!   signal. [`UnnamedFile::link`] names the complete file in one step, or fails with `AlreadyExists`. Without
//!   `link`, nothing is left behind. [`UnnamedFile::keeps_locks`]: whether a [`LivenessLock`] can be held in the
//!   file system of the file.
//! - [`unlink_at`]: removes a file's name at once, even while other processes use the file. The file is deleted
//!   when the last of them has closed it.
//! - [`remove_at`]: does the same for a file that is removed for good. A mapping of it does not look as if the file
//!   had been deleted by hand.
//! - [`is_deleted_in_use`]: whether a process that this process may inspect maps a file that was deleted at a path.
//! - [`file_system`]: what kind of file system a file lives in ([`FileSystem`]).
//!
//! **Access**: ownership and access rights of a file. A directory is private, or shared on purpose with one account.
//! - [`Account`]: a user or a group of users.
//! - [`Access`] of a file or a directory: `owner` and `is_mine`. `trusted` returns the account that a directory is
//!   shared with, or why no process should keep limiters there (P5); its rules are stricter for a directory that
//!   the user has not `chosen`. `directory_is_open_to_me`: whether this user can use a trusted directory. `danger`:
//!   why a file must not be used in a directory of that owner that is shared with that account (P5).
//!   `permission_mismatch`: how a file's permissions differ from those of a file created there.
//! - [`make_directory`] creates a private directory. [`share_directory`] shares a directory with a group.
//!   [`give_access`] gives a file the access of a file created in a directory of that owner. [`why_closed`]: why a
//!   directory cannot be opened, where more is known than the system's error. [`default_directories`]: where
//!   limiters live if no directory is named, best first ([`DefaultDirectory`]). [`former_directories`]: where
//!   earlier versions kept them by default.
//!
//! **Names**: [`program_name`] (at most 15 bytes, then zeros).
//!
//! **The command-line tool** has a separate contract (`platform` in its crate). [`tool`] is the part of it that
//! needs `unsafe`; it has different functions on each platform. [`baselines`] are simpler designs that benchmarks
//! compare limiters with. `hold_whole_file` waits for the lock that some of them use, or releases it.

#![allow(missing_docs, reason = "the contract above documents every item, once for all platforms")]
#![cfg_attr(
    all(unix, not(target_os = "linux")),
    allow(
        dead_code,
        reason = "where nothing can be shared, nobody describes files or distrusts directories"
    )
)]

#[cfg(feature = "tool")]
pub mod baselines;
mod generation;
#[cfg(not(target_os = "linux"))]
mod no_spare;

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as platform;

#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(all(unix, not(target_os = "linux")))]
use unix as platform;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as platform;

pub use generation::{begin_generation, generation, next_generation};
#[cfg(not(target_os = "linux"))]
pub use no_spare::Spare;
#[cfg(target_os = "linux")]
pub use platform::Spare;
#[cfg(test)]
pub use platform::open_to_anybody;
#[cfg(feature = "tool")]
pub use platform::tool;
pub use platform::{
    Access, Clock, ForkWords, LivenessLock, MISSING, Parker, REPLACES_IN_TWO_STEPS, SharedMap,
    TakenLivenessLock, UnnamedFile, boot_id, default_directories, facts, facts_at, file_system,
    former_directories, give_access, has_users, is_deleted_in_use, liveness_lock_is_held, make_directory,
    open_directory, open_file_at, open_or_create_at, program_name, remove_at, share_directory,
    try_lock_creation, unlink_at, unlock_creation, unnamed_file, wall_now, why_closed,
};
pub use platform::{Account, FIRST_LIVENESS_BYTE};

/// Facts about a file that are checked when a limiter is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Whether it is a regular file: not a link, FIFO, socket, device or directory.
    pub regular: bool,
    /// Whether it is a directory.
    pub directory: bool,
    /// Its owner and access rights.
    pub access: Access,
    /// How many names the file has; 0 means deleted.
    pub links: u64,
    /// Length in bytes.
    pub len: u64,
    /// The device. Two files are the same if `dev` and `ino` are equal.
    pub dev: u64,
    /// The number of the file on its device.
    pub ino: u64,
}

/// Why a directory is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// The problem with the directory.
    pub problem: String,
    /// The advice to the user; {} stands for the directory.
    pub remedy: String,
}

impl Distrust {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Distrust {
        Distrust { problem: problem.into(), remedy: remedy.into() }
    }
}

/// The kind of file system that a file lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// On this machine, and kept across a reboot.
    Local,
    /// On this machine, in memory: emptied at boot.
    Volatile,
    /// Possibly visible to other machines, so neither a mapping nor a byte lock can be trusted there. Holds its
    /// name.
    Network(&'static str),
    /// On this machine, but known to lose the lock of a [`LivenessLock`]. Holds its name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere no file system loses locks"))]
    Lossy(&'static str),
}

/// The result of trying to hold the liveness lock of a slot.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere no file system loses locks"))]
pub enum Hold {
    /// This process holds the lock, and other descriptions see that.
    Held(LivenessLock),
    /// Another process holds it.
    Taken,
    /// The file system has lost the lock, so a process that uses the file could not be seen to be alive.
    Lost,
}

/// A directory for limiters that is used if none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultDirectory {
    pub path: std::path::PathBuf,
    /// Whether the directory is created if it is missing, unless its file system is unusable. The others are used
    /// only if they exist.
    pub made: bool,
}
