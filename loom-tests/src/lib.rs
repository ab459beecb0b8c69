//! Models of the shared-memory protocol; the tests are in `tests/`, built with `--cfg loom`.
//!
//! The library is compiled with loom's atomics (`shmlimit_segment::sync::killable`), so that what is explored is the source
//! that ships. `machine` stands for the operating system, `explore` runs a model for every point of death.
#![cfg(loom)]

pub mod explore;
pub mod machine;
pub mod queue;

use crate::machine::Machine;
use shmlimit_segment::journal::Transaction;
use shmlimit_segment::layout::CORE;
use shmlimit_segment::sync::killable::is_dead;
use shmlimit_segment::words::Words;

/// The first of the two words that most models have: they only ever change together.
pub const A: usize = CORE;
/// The second word: in every committed state the same as the first.
pub const B: usize = CORE + 1;

/// Both words, in one look.
pub fn both(words: &Words) -> (u64, u64) {
    (words.load(A), words.load(B))
}

/// Adds `n` to both. In between the first has a value that no committed state has: it is written twice.
pub fn add(tx: &mut Transaction<'_, Machine>, n: u64) {
    let (a, b) = both(tx.words());
    assert!(a == b || is_dead(), "a transaction found half of another: {a} {b}");
    tx.write(A, a + 100);
    tx.write(B, b + n);
    tx.write(A, a + n);
}
