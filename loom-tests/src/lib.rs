//! Models of the shared-memory protocol; the tests are in `tests/`, built with `--cfg loom`.
//!
//! The library is compiled with loom's atomics (`shmlimit_segment::sync::killable`), so that what is explored is the source
//! that ships. `machine` stands for the operating system, `explore` runs a model for every point of death.
#![cfg(loom)]

pub mod explore;
pub mod machine;
pub mod pair;
pub mod queue;
