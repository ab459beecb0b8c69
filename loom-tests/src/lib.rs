//! Models of the shared-memory protocol. The tests are in `tests/` and are built with `--cfg loom`.
//!
//! The library is compiled with loom's atomics (`shmlimit_segment::sync::killable`), so the models explore the
//! source that ships. `machine` models the operating system, and `explore` runs a model for every point of death.
#![cfg(loom)]

pub mod explore;
pub mod machine;
pub mod queue;

use crate::machine::Machine;
use shmlimit_segment::journal::Transaction;
use shmlimit_segment::layout::CORE;
use shmlimit_segment::sync::killable::is_dead;
use shmlimit_segment::words::Words;

/// The first of the two words that most models use. Both words always change together.
pub const A: usize = CORE;
/// The second word. It equals the first in every committed state.
pub const B: usize = CORE + 1;

/// Loads both words.
pub fn both(words: &Words) -> (u64, u64) {
    (words.load(A), words.load(B))
}

/// Adds `n` to both words. The first word is written twice: in between it has a value that no committed state has.
pub fn add(tx: &mut Transaction<'_, Machine>, n: u64) {
    let (a, b) = both(tx.words());
    assert!(a == b || is_dead(), "a transaction found a part of another one: {a} {b}");
    tx.write(A, a + 100);
    tx.write(B, b + n);
    tx.write(A, a + n);
}
