//! Texts and JSON about one limiter, for all commands that show limiters.

pub mod condition;
pub mod next_change;
pub mod overview;
pub mod policy;
pub mod refusal;
pub mod severity;
pub mod tables;
pub mod warnings;
