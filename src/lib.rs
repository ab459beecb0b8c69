//! One rate limit for every program on the machine that calls the same API.
//!
//! The limit is stored in one memory-mapped file. There is no server: the processes coordinate through the file.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use shmlimit::{Limiter, Outcome, Rate, Request};
//!
//! // 10 calls a second, 4 at a time, shared with every other program that opens `api`.
//! let limiter = Limiter::builder("api").rate(Rate::per_second(10)).concurrency(4).open()?;
//! let grant = limiter.acquire(&Request::new())?;
//! // … call the API, then record how it ended; this returns the permit …
//! let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")]))?;
//! assert!(advice.retry); // in 30 seconds; until then no program calls
//! # Ok(()) }
//! ```
//!
//! # In five minutes
//!
//! A [`Limiter`] is a name. All programs that open the same name in the same directory share its budget: threads,
//! other processes, programs in other languages, `shmlimit run NAME -- …` in a shell. Open it once and keep it.
//!
//! 1. **Acquire.** [`Limiter::acquire`] waits its turn in the queue of all processes, [`Limiter::try_acquire`] does
//!    not wait, and [`Limiter::acquire_async`] waits on any executor. A [`Request`] has the priority and the cost
//!    of the call, and the time that it may wait.
//! 2. **Call** while you hold the [`Grant`]. A [`Refusal`] instead says why the call must not be made now, and when
//!    to try again. It is not an error, and takes nothing.
//! 3. **Record.** [`Grant::record`] returns the permit and records for all programs how the call ended (an
//!    [`Outcome`]). It returns [`Advice`]: whether to retry, and when.
//!
//! A grant that is dropped returns its permit. If a process dies, at any instruction, the other processes reclaim
//! what it held.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use shmlimit::{AcquireError, Limiter, Priority, Request};
//! use std::time::Duration;
//!
//! // 2 an hour.
//! let limiter = Limiter::builder("mine").directory(directory.path()).rate("2/h").open()?;
//!
//! let request = Request::new().priority(Priority::User).timeout(Duration::from_secs(5));
//! limiter.acquire(&request)?.release()?;
//! limiter.acquire(&request)?.release()?;
//! match limiter.acquire(&request) {
//!     // Refused at once: the next unit comes in half an hour, after the timeout.
//!     Err(AcquireError::Refused(refusal)) => println!("not now: {refusal}"),
//!     Ok(_) => panic!("the rate admits only two calls"),
//!     Err(AcquireError::Failed(error)) => return Err(error.into()),
//! }
//! # Ok(()) }
//! ```
//!
//! # Where to read on
//!
//! | | |
//! | --- | --- |
//! | the handle, and how to open it | [`Limiter`], [`Builder`], [`Rate`], [`OnMismatch`], [`Policy`], `config::ConfigSource`, [`presets`] |
//! | a request and its answers | [`Request`], [`Grant`], [`OwnedGrant`], [`Refusal`], [`Reason`], [`PendingAcquire`] |
//! | how calls ended, and the condition of the server | [`Outcome`], [`Advice`], [`Condition`], [`BreakerState`], [`BreakerCommand`] |
//! | the state of a limiter | [`Limiter::snapshot`], [`Snapshot`], [`metrics`], [`Limiter::list`] |
//! | tests that do not sleep | [`TestClock`], [`Builder::test_clock`] |
//! | errors | [`Error`]; each message says what to do |
//!
//! In the repository, `docs/rust.md` is the guide, with testing and all options. `docs/algorithms.md` helps to
//! choose an algorithm, `docs/breaker.md` explains the effects of failures, and `docs/configuration.md` lists every
//! key. `docs/design/README.md` states the promises and the tests that prove them.
//!
//! # Features
//!
//! `config` reads limiter files in TOML and single settings as text: the module `config` (with `ConfigSource`),
//! `Builder::config`, `Limiter::set` and `Limiter::update`. No feature is on by default. The command-line tool is the
//! package `shmlimit-cli`.
//!
//! # Platforms
//!
//! 64-bit Linux and Windows. On macOS and other Unixes, everything compiles that needs no shared memory. Opening a
//! limiter there fails with [`Error::Unsupported`], which says which promise could not be kept
//! (`docs/platforms.md`).

#![warn(missing_docs)]

#[cfg(feature = "config")]
pub mod config;
mod config_error;
pub mod describe;
pub mod environment;
#[doc(hidden)]
pub mod headers;
mod limiter;
pub mod metrics;
pub mod presets;
// Without the feature `config`, only the environment and descriptions use these two modules.
#[cfg_attr(not(feature = "config"), allow(dead_code))]
mod quantity;
mod rate;
#[cfg_attr(not(feature = "config"), allow(dead_code, unused_imports))]
mod settings;
mod test_clock;

pub use config_error::ConfigError;
pub use limiter::{
    AcquireError, Advice, Attached, Builder, ClockFacts, Condition, Counts, DirectoryFacts, Document,
    GateSnapshot, Grant, GroupId, Inspection, Limiter, Listing, LockHolder, NetError, OnMismatch, Outcome,
    OutcomeCode, OutcomeCounts, OwnedGrant, PaceSnapshot, PaceWindowSnapshot, ParticipantSnapshot,
    PauseRequest, PauseSnapshot, Paused, PendingAcquire, Refusal, Removal, Request, RuleSnapshot, Snapshot,
    Step, Storage, Transition, TransitionSnapshot, Value, WaiterSnapshot,
};
pub use rate::{Rate, RateError};
pub use shmlimit_kernel::backoff::WaitSource;
pub use shmlimit_kernel::breaker::{BreakerCommand, BreakerState, TransitionCause};
pub use shmlimit_kernel::outcome::OutcomeClass;
pub use shmlimit_kernel::{
    Algorithm, Fairness, Policy, PolicyDraft, PolicyError, Priority, Reason, RuleDraft, UnknownName,
};
pub use shmlimit_segment::sys::Account;
pub use shmlimit_segment::{Error, paths};
pub use test_clock::TestClock;

/// The parts of a [`Policy`], and the drafts from which a policy is built.
pub mod policy {
    pub use crate::headers::HeaderFormat;
    pub use shmlimit_kernel::policy::{
        Adaptive, AdaptiveDraft, Backoff, Breaker, BreakerKind, BurstFrom, BurstMode, HeaderCode, Jitter,
        Key, Name, OutcomeWindow, PaceWindow, PaceWindowDraft, PerSecond, Queueing, Rule, WindowKind,
    };
}

/// The description of a snapshot, for the generators of this repository and the tool. It is not part of the API.
#[doc(hidden)]
pub mod schema {
    pub use crate::limiter::STRUCTS;
    pub use crate::limiter::schema::{Field, FieldValue, Kind, Metric, Part, Struct, document, snake_case};
}

/// Compiles the samples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// Runs the samples of the guide.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../docs/rust.md")]
pub struct Guide;
