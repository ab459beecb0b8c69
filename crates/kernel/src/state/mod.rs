//! The mutable state of a limiter as plain words, and the traits through which the kernel accesses it.
//!
//! A segment stores these structs. They can encode and decode their words, but they make no decisions.

mod common;
mod health;
mod ledger;
mod pause;
mod queue;
mod view;

pub use common::{
    CORE_WORDS, Charge, Checked, Core, GENERAL_WORDS, General, Held, RULE_WORDS, RuleState, Ticket, UNKNOWN,
};
pub(crate) use health::bucket;
pub use health::{
    ATTEMPT, BreakerState, GateNote, Health, LATENCY_BOUNDS, OFFLINE, ObservedWindow, Pace, RAMPING, Tallies,
    Transition, TransitionCause,
};
pub use ledger::{CODES, LEDGER_WORDS, Ledger, USUAL};
pub(crate) use pause::OPEN_ENDED;
pub use pause::{LONGEST_PAUSE, PAUSE_REASON_BYTES, PAUSE_WORDS, Pause, Pausing, is_showable};
pub(crate) use queue::slot_of;
pub use queue::{ENTRY_HEAD_WORDS, ENTRY_WORDS, PROGRESS_WORDS, TURN_WINDOW, TURN_WORDS, TURNS, WAITERS};
pub use queue::{Entry, EntryHead, PlaceSet, Progress, Turn, WaiterCounts};
pub use view::{Memory, View};
