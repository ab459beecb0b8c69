//! Code that all commands share for output: texts, tables, colours, errors and exit codes.

pub mod escape;
pub mod failure;
pub mod json;
pub mod layout;
pub mod limiter;
pub mod output;
pub mod plural;
pub mod suggestion;
pub mod time;
