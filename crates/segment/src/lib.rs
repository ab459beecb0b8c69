//! Shared memory that survives anything: one file, one lock, one journal.
//!
//! Read in this order: [`layout`] (what lies where), [`words`] (how it is touched), [`lock`], [`journal`], [`slots`],
//! [`recover`]. A [`Segment`] is one mapped file as one process uses it.

#[cfg(not(loom))]
pub mod attach;
#[cfg(not(loom))]
pub mod attendance;
#[cfg(not(loom))]
pub mod backing;
pub mod bell;
#[cfg(not(loom))]
pub mod bounds;
#[cfg(not(loom))]
pub mod change;
#[cfg(not(loom))]
pub mod contention;
#[cfg(not(loom))]
pub mod create;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod error;
#[cfg(not(loom))]
pub mod grave;
#[cfg(not(loom))]
pub mod inherit;
#[cfg(not(loom))]
pub mod join;
pub mod journal;
pub mod layout;
pub mod lock;
pub mod memory;
#[cfg(not(loom))]
pub mod observe;
#[cfg(not(loom))]
pub mod paths;
#[cfg(not(loom))]
pub mod queue;
#[cfg(not(loom))]
pub mod reap;
#[cfg(not(loom))]
pub mod recover;
pub mod slots;
#[cfg(not(loom))]
pub mod succession;
pub mod sys;
#[cfg(not(loom))]
pub mod trial;
pub mod wall;
pub mod words;

#[cfg(not(loom))]
pub use attach::{Segment, Tx, program_name};
#[cfg(not(loom))]
pub use bounds::{Bounds, Role};
#[cfg(not(loom))]
pub use error::Error;
#[cfg(not(loom))]
pub use join::Member;
