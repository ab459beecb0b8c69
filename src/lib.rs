//! One rate limit for every program on the machine that calls the same API.
//!
//! It lives in one memory-mapped file. There is no server: the processes themselves are the system.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use shmlimit::{Limiter, Outcome, Rate, Request};
//!
//! // 10 calls a second, 4 at a time, shared with every other program that opens `api`.
//! let limiter = Limiter::builder("api").rate(Rate::per_second(10)).concurrency(4).open()?;
//! let grant = limiter.acquire(&Request::new())?;
//! // … call the API, then tell all who share the limiter how it went; the permit goes back …
//! let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")]))?;
//! assert!(advice.retry); // in 30 seconds, and nobody calls before
//! # Ok(()) }
//! ```
//!
//! # In five minutes
//!
//! A [`Limiter`] is a name. Whoever opens the same name in the same directory shares its budget: threads, other
//! processes, programs in other languages, `shmlimit run NAME -- …` in a shell. Open it once and keep it.
//!
//! 1. **Ask.** [`Limiter::acquire`] waits its turn in the queue of all processes, [`Limiter::try_acquire`] never waits,
//!    [`Limiter::acquire_async`] waits on any executor. A [`Request`] says for whom the call is, what it costs, and how
//!    long it may wait.
//! 2. **Call**, while you hold the [`Grant`]. Or heed the [`Refusal`], which says why not and when to come back; it is
//!    no error, and has taken nothing.
//! 3. **Tell.** [`Grant::record`] gives the permit back and tells everybody how the call ended (an [`Outcome`]). What
//!    comes back ([`Advice`]) is advice: whether to try again, and when.
//!
//! A grant that is dropped gives its permit back. A process that dies, at whatever instruction, gives back what it held.
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
//!     // Known at once: nobody waits five seconds for what comes in half an hour.
//!     Err(AcquireError::Refused(refusal)) => println!("not now: {refusal}"),
//!     Ok(_) => panic!("there were two"),
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
//! | what you ask for and get | [`Request`], [`Grant`], [`OwnedGrant`], [`Refusal`], [`Reason`], [`PendingAcquire`] |
//! | how calls ended, and how the server is doing | [`Outcome`], [`Advice`], [`Condition`], [`BreakerState`], [`BreakerCommand`] |
//! | what there is to see | [`Limiter::snapshot`], [`Snapshot`], [`metrics`], [`Limiter::list`] |
//! | tests that do not sleep | [`TestClock`], [`Builder::test_clock`] |
//! | what can go wrong | [`Error`]; each says what to do |
//!
//! In the repository: `docs/rust.md` is the guide, with testing and all choices; `docs/algorithms.md` says which
//! algorithm to take, `docs/breaker.md` what failures lead to, `docs/configuration.md` has every key, and
//! `docs/design/README.md` the promises with the tests that prove them.
//!
//! # Features
//!
//! `config` reads limiter files in TOML and single settings as text: the module `config` (with `ConfigSource`),
//! `Builder::config`, `Limiter::set` and `Limiter::update`. No feature is on by default. The command-line tool is the
//! package `shmlimit-cli`.
//!
//! # Platforms
//!
//! 64-bit Linux and Windows. On macOS and other Unixes everything compiles that needs no shared memory, and opening a
//! limiter is [`Error::Unsupported`], which says which promise could not be kept (`docs/platforms.md`).

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
// Without files only what the environment and descriptions need is used of these two.
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

/// The parts of a [`Policy`]: drafts to build it from, and what it is made of.
pub mod policy {
    pub use crate::headers::HeaderFormat;
    pub use shmlimit_kernel::policy::{
        Adaptive, AdaptiveDraft, Backoff, Breaker, BreakerKind, BurstFrom, BurstMode, HeaderCode, Jitter,
        Key, Name, OutcomeWindow, PaceWindow, PaceWindowDraft, PerSecond, Queueing, Rule, WindowKind,
    };
}

/// The description of a snapshot, for the generators of this repository and its tool. It is no part of the API.
#[doc(hidden)]
pub mod schema {
    pub use crate::limiter::STRUCTS;
    pub use crate::limiter::schema::{Field, FieldValue, Kind, Metric, Part, Struct, document, snake_case};
}

/// The sample in the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The guide's samples run.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../docs/rust.md")]
pub struct Guide;
