//! One rate limit for every program on the machine that calls the same API.
//!
//! It lives in one memory-mapped file. There is no server: the processes themselves are the system.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use shmlimit::{Limiter, Outcome, Request};
//!
//! // 35 calls a second, 4 at a time, shared with every other program that opens `tmdb`.
//! let limiter = Limiter::open("tmdb")?;
//! let grant = limiter.acquire(&Request::new())?;
//! // … call the API, then tell all who share the limiter how it went; the permit goes back …
//! let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")]))?;
//! assert!(advice.retry); // in 30 seconds, and nobody calls before
//! # Ok(()) }
//! ```
//!
//! Where to read on: [`Limiter`] is the handle, [`Request`] what you ask for, [`Grant`] and [`Refusal`] what you
//! get, [`Outcome`] how a call ended and [`Recorded`] what to do then, [`Condition`] how the server is doing. The design, with its promises and the tests that prove them, is `docs/design.md` in the repository.

#![warn(missing_docs)]

#[cfg(all(feature = "config", not(loom)))]
pub mod config;
#[cfg(not(loom))]
pub mod describe;
#[cfg(not(loom))]
pub mod environment;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
pub mod headers;
pub mod kernel;
#[cfg(not(loom))]
mod limiter;
#[cfg(not(loom))]
pub mod paths;
#[cfg(not(loom))]
pub mod presets;
#[cfg(not(loom))]
// Without files only what the environment and descriptions need is used of these two.
#[cfg_attr(not(feature = "config"), allow(dead_code))]
mod quantity;
#[cfg(not(loom))]
mod segment;
#[cfg(loom)]
pub mod segment;
#[cfg(not(loom))]
#[cfg_attr(not(feature = "config"), allow(dead_code, unused_imports))]
mod settings;
#[cfg(not(loom))]
mod sys;
#[cfg(loom)]
pub mod sys;

#[cfg(not(loom))]
pub use error::Error;
#[cfg(not(loom))]
pub use kernel::backoff::Source;
#[cfg(not(loom))]
pub use kernel::breaker::{Cause, Force, State};
#[cfg(not(loom))]
pub use kernel::outcome::Class;
#[cfg(not(loom))]
pub use kernel::sheet::Transition;
#[cfg(not(loom))]
pub use kernel::{Algorithm, Fairness, Nanos, Policy, PolicyDraft, PolicyError, Priority, Reason, RuleDraft};
#[cfg(not(loom))]
pub use limiter::{
    AcquireError, Builder, Code, Condition, Counts, GateSnapshot, Grant, Limiter, Listing, NetError, Outcome,
    OutcomeCounts, OwnedGrant, PaceSnapshot, PaceWindowSnapshot, ParticipantSnapshot, Recorded, Refusal,
    Request, RuleSnapshot, Snapshot, Step, WaiterSnapshot, Waiting,
};

/// What the C header tells and the tests of the promises must see: where things lie in a segment, and bounds that a
/// test can wait for.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod internals {
    pub use crate::segment::{Bounds, layout};
    #[cfg(target_os = "linux")]
    pub use crate::sys::FIRST_PULSE;
}

/// What the command-line tool asks of the operating system, and nobody else should.
#[cfg(all(feature = "cli", not(loom)))]
#[doc(hidden)]
pub mod tool {
    pub use crate::sys::{pass_descriptor, spawn_with_mask};
}

/// The sample in the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
