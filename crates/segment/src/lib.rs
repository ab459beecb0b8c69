//! The shared file of a limiter: format, lock, journal, recovery and liveness.
//!
//! The protocol is at the top level, and loom runs its models on these very modules. Read them in this order:
//! [`layout`] (where each word lies), [`words`] (how words are read and written), [`lock`], [`journal`], [`memory`]
//! (the kernel's view of the words), [`slots`] (the participants), [`wake_word`]. Two more modules need no files:
//! [`sanity`] (whether the state is one that transactions can leave) and `wall_clock` (calendar time across
//! reboots).
//!
//! Folders hold everything that needs files or the operating system:
//!
//! | folder | content |
//! | --- | --- |
//! | `directory/` | which directory is used, whether it can be trusted, the creation lock, which processes use a limiter |
//! | `file/` | open, verify, create, replace and remove the file of a limiter |
//! | `attach/` | [`Segment`]: attach this process, run transactions, observe, wake waiting calls |
//! | `recovery/` | recovery from a lock holder that died, liveness, reclaiming what dead processes held |
//! | `successor/` | a segment that is replaced, removed, or deleted by hand and continued |
//! | `sys/` | the contract with the operating system, and one folder for each platform |

pub mod journal;
pub mod layout;
pub mod lock;
pub mod memory;
pub mod slots;
pub mod sync;
pub mod wake_word;
pub mod words;

#[cfg(not(loom))]
mod attach;
#[cfg(not(loom))]
mod clock_source;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod error;
#[cfg(not(loom))]
pub mod file;
#[cfg(not(loom))]
pub mod paths;
#[cfg(not(loom))]
mod recovery;
#[cfg(not(loom))]
pub mod sanity;
#[cfg(not(loom))]
mod successor;
#[cfg(not(loom))]
pub mod sys;
#[cfg(not(loom))]
mod test_clock;
#[cfg(not(loom))]
mod wall_clock;

#[cfg(not(loom))]
pub use {
    attach::options::{AttachOptions, Role},
    attach::policy_change::Changed,
    attach::process_state::Attachment,
    attach::wake::Wakeups,
    attach::{Segment, Tx, program_name},
    clock_source::ClockSource,
    error::Error,
    recovery::liveness::InheritedHolders,
    test_clock::{Alarm, TestClock},
};
