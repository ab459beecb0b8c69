//! What shmlimit needs from the operating system: one contract, one folder for each platform.
//!
//! Every promise below is made on every platform on which a limiter can be opened. Where a platform cannot keep one,
//! its [`MISSING`] says which, and opening is an error that repeats it, never a weaker imitation. How a promise is kept
//! is told in the platform's folder.
//!
//! **Time**
//! - [`Clock`]: one clock for all processes of the machine. `discover` finds out how this process must read it;
//!   `now` is nanoseconds since boot, counting suspend, the same number in every container. It is `correct` of
//!   `read`, which says something only to a process that has discovered its clock; `now_coarse` is
//!   cheaper, lags a few milliseconds, and is never above a `now` read after it. `to_words` and `from_words` carry
//!   a clock through [`ForkWords`]: a forked child may live in another time namespace and must discover anew.
//!   A clock without any shift is all zero words, so keep "discovered" in a word of its own.
//! - [`wall_now`]: nanoseconds since 1970 (UTC); may jump. [`boot_id`]: differs after each boot.
//!
//! **Memory**
//! - [`SharedMap`]: a whole file, mapped shared, readable and writable; stays at one address until dropped. The file
//!   must be exactly `len` bytes long at that moment (else `InvalidInput`); truncating it later is fatal.
//!   `forget_pages` gives its memory back; what is touched again comes back from the file. `replace` puts private memory
//!   in its place, at the same address and at once for all threads: zeros, and the words given (index, value). It returns
//!   a second mapping of the file; when that is dropped, the first refers to the file no more, and its pages must not be
//!   forgotten. `Unsupported` where the system cannot. `is_of_deleted_file` is true only if the file is known to have no
//!   name any more.
//! - [`Parker`]: where those meet who map the same file, to wait for each other at one of its words. `wait` sleeps
//!   while `word` holds `expected`, at most `timeout`; also returns early for no reason. `wait_in_time`: the same, as
//!   little late as the system can, and without lasting effect on the thread. `wake` wakes one sleeper of any process;
//!   says whether there was one.
//! - [`ForkWords`]: words that are 0 when new and 0 again in every forked child, however it was forked. Its
//!   `LivenessCell`s keep [`LivenessLock`]s under the same rule.
//!
//! **Liveness**: a byte lock for each slot, which the system gives back on any death of its holder. Each needs an open
//! file description of its own (open the file again, a duplicate will not do).
//! - [`LivenessLock`]: `hold` takes the lock of `slot` for as long as this process's memory lives ([`Hold`]). Closing descriptors
//!   does not lose it, a forked child does not inherit it, dropping gives it back. That this is true in the file system at
//!   hand is looked at through `probe`, a third description of the file.
//! - [`TakenLivenessLock`]: the same lock for a short time, by somebody who believes the slot's owner dead. Dropping gives
//!   it back even if a child forked meanwhile shares the description.
//! - [`Spare`]: a description of a file for a process that may lose the right to open it again. `keep` gives it one that
//!   holds no lock; a process that cannot change its user does not keep it. `liveness_lock_is_held`, `take` and `links` (how many
//!   names the file has) do without opening what the others do; `None` if there is nothing to do it with. `forget`
//!   closes it, unless a thread holds a lock through it. Of no use to a forked child, nor after something else has closed
//!   it, and then it says so.
//! - `LivenessLock::register_user` takes a shared lock of one place of the creation lock, below 2^60, for as long as this process's memory lives.
//!   [`has_users`] says whether any process holds one of these places, also a process that cannot be seen otherwise. It
//!   may say so wrongly while another process asks. Where the system has no such locks, nobody is registered.
//! - [`try_lock_creation`], [`unlock_creation`]: the lock under which limiters are made and removed, one at a time. It does not
//!   meet those of `register_user`.
//! - [`begin_generation`] gives the limiter of that number its [`next_generation`], a number that the creation lock keeps and that
//!   never comes back; the caller has the creation lock locked from one to the other. [`generation`] reads it without that; 0 if none
//!   has begun. Another limiter may share it.
//! - [`liveness_lock_is_held`]: whether anybody but this very `file` description has the lock of `slot`.
//!
//! **Files**: names are looked up in an open directory, symbolic links are never followed in the last component,
//! descriptors are never inherited by other programs.
//! - [`facts`], [`facts_at`]: what a file is ([`FileFacts`]); `facts_at` describes a link itself.
//! - [`open_directory`], [`open_file_at`]: open what exists. A FIFO or device does not block; check the facts.
//! - [`open_or_create_at`]: opens, or makes an empty file with exactly the access of a file in a directory that is shared
//!   with that account, or with nobody.
//! - [`unnamed_file`]: a new file with that access, of `len` zero bytes that have room on the disk *now*. A file that this
//!   process must not make so large is an error (`FileTooLarge`), and never a signal.
//!   [`UnnamedFile::link`] gives it a name, whole and at once, or fails with `AlreadyExists`. Without `link` nothing
//!   is left behind. [`UnnamedFile::keeps_locks`]: whether a [`LivenessLock`] can be held in the file system it is in.
//! - [`remove_at`]: the same for a file that is not to come back; a mapping of it does not look deleted by hand.
//! - [`is_deleted_in_use`]: whether a process that can be looked at has a file mapped that was deleted at a path.
//! - [`unlink_at`]: takes a file's name away, at once and also while others use it. The file goes when the last of them
//!   has gone.
//! - [`file_system`]: what kind of place a file lives in ([`FileSystem`]).
//!
//! **Access**: who owns a file and who may use it. Directories are private, or shared on purpose with one account.
//! - [`Account`]: a user or a group of users.
//! - [`Access`], of a file or a directory: `owner`, `is_mine`; `trusted` says whom a directory is shared with, or why
//!   nobody should keep limiters there (P5), with stricter rules for one that was not `chosen` by anybody;
//!   `directory_is_open_to_me` whether a trusted one can be used by this user; `danger` why a file is not to be used in
//!   a directory of that owner which is shared so (P5); `permission_mismatch` how its permissions differ from those it would be made
//!   with there.
//! - [`make_directory`] (private), [`share_directory`], [`give_access`] (what a file is made with in a directory of that owner): as
//!   they say.
//!   [`why_closed`]: why a directory cannot be opened, where more can be said than that. [`default_directories`]: where
//!   limiters live if no directory is named, best first ([`DefaultDirectory`]). [`former_directories`]: where earlier versions
//!   kept them by default.
//!
//! **Names**: [`program_name`] (at most 15 bytes and zeros).
//!
//! **The command-line tool** has a contract of its own (`platform` there); [`tool`] is what of it needs `unsafe`, and has
//! other functions on each platform. [`baselines`] are simpler designs to measure limiters against; `hold_whole_file`
//! waits for the lock of some of them, or gives it back.

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

/// What the checks at opening want to know about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// A regular file: no link, FIFO, socket, device or directory.
    pub regular: bool,
    /// A directory.
    pub directory: bool,
    /// Who owns it and who may use it.
    pub access: Access,
    /// How many names the file has; 0 means deleted.
    pub links: u64,
    /// Length in bytes.
    pub len: u64,
    /// With `ino`, tells whether two files are the same.
    pub dev: u64,
    /// See `dev`.
    pub ino: u64,
}

/// Why a directory is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// What is wrong with it.
    pub problem: String,
    /// What to do; {} stands for the directory.
    pub remedy: String,
}

impl Distrust {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Distrust {
        Distrust { problem: problem.into(), remedy: remedy.into() }
    }
}

/// What kind of place a file lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// On this machine, and still there after a reboot.
    Local,
    /// On this machine, in memory: emptied at boot.
    Volatile,
    /// Other machines may see it, so neither a mapping nor a byte lock can be trusted there. Holds its name.
    Network(&'static str),
    /// On this machine, but known to lose the lock of a [`LivenessLock`]. Holds its name.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere no file system loses locks"))]
    Lossy(&'static str),
}

/// What became of the lock of a slot.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "elsewhere no file system loses locks"))]
pub enum Hold {
    /// It is held, and other descriptions see that.
    Held(LivenessLock),
    /// Another process has it.
    Taken,
    /// The file system has lost it: no process can be seen to live there.
    Lost,
}

/// A directory for limiters where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultDirectory {
    pub path: std::path::PathBuf,
    /// It is made if it is missing, unless its file system is of no use. The others are used only if they are there.
    pub made: bool,
}
