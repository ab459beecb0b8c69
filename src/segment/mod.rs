//! Shared memory that survives anything: one file, one lock, one journal.
//!
//! Read in this order: [`layout`] (what lies where), [`words`] (how it is touched), [`lock`], [`journal`], [`slots`],
//! [`recover`]. A [`Segment`] is one mapped file as one process uses it.

#[cfg(not(loom))]
mod attach;
#[cfg(not(loom))]
pub mod attendance;
#[cfg(not(loom))]
mod backing;
pub mod bell;
#[cfg(not(loom))]
mod bounds;
#[cfg(not(loom))]
pub mod change;
#[cfg(not(loom))]
mod contention;
#[cfg(not(loom))]
pub mod create;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
mod grave;
#[cfg(not(loom))]
pub mod inherit;
#[cfg(not(loom))]
mod join;
pub mod journal;
pub mod layout;
pub mod lock;
pub mod memory;
#[cfg(not(loom))]
mod observe;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod reap;
#[cfg(not(loom))]
pub mod recover;
pub mod slots;
#[cfg(not(loom))]
mod succession;
#[cfg(not(loom))]
mod trial;
pub mod wall;
pub mod words;

#[cfg(not(loom))]
pub(crate) use attach::Tx;
#[cfg(not(loom))]
pub use attach::{Segment, program_name};
#[cfg(not(loom))]
pub use bounds::{Bounds, Role};
#[cfg(not(loom))]
pub use join::Member;
