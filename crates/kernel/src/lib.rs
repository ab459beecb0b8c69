//! Pure rules: (state, operation, now) gives (state, answer).
//!
//! No clock, no file, no thread, no heap on the way of a decision. Time is an argument, state is plain words
//! behind [`View`] and [`Memory`], and the only way in is [`decide`].
//!
//! A module uses only modules of the layers below it:
//!
//! ```text
//! memory                a limiter in private memory, for tests and simulation
//! decide, log_context   the entry points; how a limiter is doing, for a log line
//! queue                 whose turn it is
//! admission             whether one call may go now: breaker, gate, pace, permits and rules together
//! breaker, backoff      what an outcome leads to: for all callers, and for its own
//! gate                  closed for as long as Retry-After said
//! outcome               the window of recent outcomes, and what a report of one says
//! pace, pause, ledger   the gap that headers taught; an operator's pause; counts for people
//! rule                  the algorithms
//! health_state          where the state of health, pace, pause and ledger lies, word by word
//! state                 what is stored, and the traits that read and write it; a grant as its caller holds it
//! terms, growth         a rule as its decisions need it; geometric growth
//! policy, request       configuration; what callers ask for and are told
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

/// Most rules one limiter may have (R137).
pub const MAX_RULES: usize = 8;
/// Most units one limiter may count, `requests` included (R128).
pub const MAX_UNITS: usize = 4;
/// Largest limit of a sliding log (R137).
pub const MAX_LOG: u64 = 100_000;
/// Most permits one limiter may hand out at a time (R137).
pub const MAX_PERMITS: u32 = 4096;
