//! The decisions of the rate limiter as pure functions: (state, operation, now) gives (state, answer).
//!
//! The kernel has no clock, no files and no threads, and a decision allocates no memory. Time is an argument.
//! The state is plain words behind [`View`] and [`Memory`]. The only entry point is [`decide`].
//!
//! A module uses only modules of the layers below it:
//!
//! ```text
//! memory                a limiter in private memory, for tests and simulation
//! decide, log_context   the entry points; the condition of a limiter, for a log line
//! queue                 the order of waiting calls
//! admission             whether one call may go now: breaker, gate, pace, permits and rules together
//! breaker, backoff      consequences of an outcome: for all callers, and for the caller itself
//! gate                  closed for as long as Retry-After said
//! outcome               the window of recent outcomes, and the contents of a report
//! pace, pause, ledger   the gap from response headers; an operator's pause; statistics
//! rule                  the algorithms
//! health_state          the layout of health, pace, pause and ledger, word by word
//! state                 the stored structs, the traits that read and write them, and the caller's copy of a grant
//! terms, growth         a rule in the form that decisions need; geometric growth
//! policy, request       configuration; requests and refusals of callers
//! time, span, named_enum
//! ```
#![forbid(unsafe_code)]

mod admission;
pub mod backoff;
pub mod breaker;
pub mod characters;
pub mod decide;
mod gate;
mod growth;
pub mod health_state;
pub mod ledger;
pub mod log_context;
pub mod memory;
mod named_enum;
pub mod outcome;
pub mod pace;
pub mod pause;
pub mod policy;
pub mod queue;
pub mod request;
pub mod rule;
pub mod span;
pub mod state;
pub mod terms;
#[cfg(test)]
mod tests;
pub mod time;

pub use memory::LocalMemory;
pub use named_enum::UnknownName;
pub use policy::{
    Algorithm, BurstMode, Fairness, Name, Policy, PolicyDraft, PolicyError, Queueing, Rule, RuleDraft,
};
pub use request::{AcquireRequest, Priority, Reason, Refusal};
pub use state::{Core, General, Held, Memory, RuleState, Ticket, View};
pub use terms::Terms;
pub use time::{Nanos, Time};

/// Maximum number of rules of one limiter (R137).
pub const MAX_RULES: usize = 8;
/// Maximum number of units of one limiter, including `requests` (R128).
pub const MAX_UNITS: usize = 4;
/// Largest limit of a sliding log (R137).
pub const MAX_LOG: u64 = 100_000;
/// Maximum number of permits that one limiter can have in flight (R137).
pub const MAX_PERMITS: u32 = 4096;
