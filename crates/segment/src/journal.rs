//! Transactions: old words are journaled first, and one store commits.
//!
//! ```text
//! version even ── begin ──> odd ── write, write … ──> odd ── commit (one store) ──> even
//!                            │
//!                            └── owner dies ──> the next lock holder puts the old words back ──> even
//! ```
//!
//! Before a shared word changes, its index and old value are in the journal and the journal's length covers them.
//! So at every instruction the journal undoes exactly what has been done (I2), undoing twice does the same as
//! undoing once (I3), and recovery may be killed like anything else.
//!
//! A kill is precise: stores before it happened, stores after it did not. Between journal and data, only the
//! compiler must be held back. Readers without the lock treat the version as a sequence lock, hence the fences.

use super::layout::{JOURNAL, JOURNAL_ENTRIES, JOURNAL_LEN, VERSION, is_journaled};
use super::lock::{self, Claim, Deadline, Key, Os, StillHeld};
use super::words::{Cells, Words};
use crate::sync::{AtomicU64, Ordering, compiler_fence, fence, spin_hint};

/// The state as a transaction found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As the last commit left it.
    Whole,
    /// The last owner died in a transaction; it has been undone.
    Undone,
    /// The journal of a dead owner made no sense. Nothing was undone: the state must be reset.
    Damaged,
}

/// A transaction: the lock is held and words may be changed. Dropping it without [`commit`](Self::commit) undoes
/// every change.
///
/// Do not move it on a fast path: it is small, but copying it costs more than all its work.
pub struct Transaction<'a, O: Os> {
    words: &'a Words,
    cells: Cells<'a>,
    os: &'a O,
    key: Key,
    /// Journal entries written. The version is odd while this transaction has any.
    entries: usize,
    full: bool,
}

/// A transaction that began after a wait, and the state it found.
pub struct Begun<'a, O: Os> {
    /// The transaction. Drop it before the liveness lock below is given back.
    pub tx: Transaction<'a, O>,
    /// How it found the state.
    pub found: Found,
    /// If the lock was taken over from a dead owner: that owner's slot and its liveness lock.
    pub taken_over: Option<(usize, O::LivenessLock)>,
}

/// A transaction tried to change more words than the journal holds. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl<'a, O: Os> Transaction<'a, O> {
    /// Begins under a lock that was free. Check that the state [is whole](Self::is_whole) before anything else.
    #[inline(always)]
    pub fn under(words: &'a Words, os: &'a O, key: Key) -> Self {
        Transaction { words, cells: words.cells(), os, key, entries: 0, full: false }
    }

    /// Takes the lock, and undoes what a dead holder left half done.
    pub fn begin(
        words: &'a Words,
        os: &'a O,
        slot: usize,
        claim: Claim,
        deadline: &Deadline,
    ) -> Result<Begun<'a, O>, StillHeld> {
        let lock::Waited { key, taken_over } = lock::acquire(words, os, slot, claim, deadline)?;
        let tx = Transaction::under(words, os, key);
        let found = if tx.is_whole() { Found::Whole } else { undo(words) };
        Ok(Begun { tx, found, taken_over })
    }

    /// Whether the state is whole: no owner died in a transaction.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.cells.load(VERSION) & 1 == 0
    }

    /// Reads a word. No other thread can change it now.
    #[inline(always)]
    pub fn load(&self, word: usize) -> u64 {
        self.cells.load(word)
    }

    /// The words, for reading, with their address at hand.
    #[inline(always)]
    pub fn cells(&self) -> Cells<'a> {
        self.cells
    }

    /// The words, for reading.
    #[inline(always)]
    pub fn words(&self) -> &'a Words {
        self.words
    }

    /// How many more words can be changed.
    pub fn room(&self) -> usize {
        JOURNAL_ENTRIES - self.entries
    }

    /// Changes a word after writing the old value to the journal.
    #[inline(always)]
    pub fn write(&mut self, word: usize, value: u64) {
        self.write_to(word, self.cells.at(word), value);
    }

    /// The same for a word of the logs.
    #[inline(always)]
    pub(crate) fn write_log(&mut self, word: usize, value: u64) {
        self.write_to(word, self.cells.at_any(word), value);
    }

    /// Changes a word whose value `old` the caller has read in this transaction.
    #[inline(always)]
    pub(crate) fn replace(&mut self, word: usize, old: u64, value: u64) {
        self.replace_in(word, self.cells.at(word), old, value);
    }

    /// Changes those of several words in a row that differ from the `old` ones.
    #[inline(always)]
    pub(crate) fn replace_array<const N: usize>(&mut self, first: usize, old: [u64; N], values: [u64; N]) {
        for i in 0..N {
            self.replace(first + i, old[i], values[i]);
        }
    }

    #[inline(always)]
    fn write_to(&mut self, word: usize, cell: &AtomicU64, value: u64) {
        self.replace_in(word, cell, cell.load(Ordering::Relaxed), value);
    }

    #[inline(always)]
    fn replace_in(&mut self, word: usize, cell: &AtomicU64, old: u64, value: u64) {
        if old == value {
            return;
        }
        debug_assert!(is_journaled(word, self.cells.count()), "word {word} is not transactional");
        // One comparison for both: the first entry, and one too many.
        if self.entries.wrapping_sub(1) >= JOURNAL_ENTRIES - 1 {
            if self.entries >= JOURNAL_ENTRIES {
                self.full = true;
                return;
            }
            open(self.cells);
        }
        let entry = JOURNAL + 2 * self.entries;
        self.cells.store(entry, word as u64);
        self.cells.store(entry + 1, old);
        compiler_fence(Ordering::Release);
        self.entries += 1;
        self.cells.store(JOURNAL_LEN, self.entries as u64);
        compiler_fence(Ordering::Release);
        cell.store(value, Ordering::Relaxed);
    }

    /// Changes several words in a row.
    #[inline(always)]
    pub(crate) fn write_array<const N: usize>(&mut self, first: usize, values: [u64; N]) {
        for (i, value) in values.into_iter().enumerate() {
            self.write(first + i, value);
        }
    }

    /// [`write_array`](Self::write_array) as a function of its own.
    #[inline(never)]
    pub(crate) fn write_words(&mut self, first: usize, values: &[u64]) {
        for (i, value) in values.iter().enumerate() {
            self.write(first + i, *value);
        }
    }

    /// Commits all changes with one store.
    #[inline(always)]
    pub fn commit(&mut self) -> Result<(), TooLong> {
        if self.full {
            return Err(TooLong);
        }
        if self.entries > 0 {
            self.entries = 0;
            close(self.cells);
        }
        Ok(())
    }
}

impl<O: Os> Transaction<'_, O> {
    /// Ends the transaction, as dropping does. An explicit end at this place means that the compiler need not keep
    /// a transaction in memory for a destructor somewhere else.
    #[inline(always)]
    pub fn end(self) {
        self.finish();
        std::mem::forget(self);
    }

    #[inline(always)]
    fn finish(&self) {
        if self.entries > 0 {
            undo(self.words);
        }
        lock::release(self.words, self.os, self.key);
    }
}

impl<O: Os> Drop for Transaction<'_, O> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.entries > 0 {
            // The arguments are copies: with a reference to it, the transaction would have to be kept in memory.
            abandon(self.words, self.os, self.key);
        } else {
            lock::release(self.words, self.os, self.key);
        }
    }
}

/// Ends a transaction that has not committed its changes.
#[cold]
#[inline(never)]
fn abandon<O: Os>(words: &Words, os: &O, key: Key) {
    undo(words);
    lock::release(words, os, key);
}

/// Makes the version odd. From here to [`close`] the journal is in effect.
#[inline(always)]
fn open(words: Cells<'_>) {
    words.store(JOURNAL_LEN, 0);
    // If the version became odd while the last transaction's journal was still there, an undo would revert what was
    // committed.
    compiler_fence(Ordering::Release);
    words.store(VERSION, words.load(VERSION).wrapping_add(1));
    // A reader that sees one of the words below must also see the odd version.
    fence(Ordering::Release);
}

/// Makes the version even: the one store that commits.
#[inline(always)]
fn close(words: Cells<'_>) {
    let version = words.load(VERSION);
    words.at(VERSION).store(version.wrapping_add(1), Ordering::Release);
}

/// Puts the old words back, newest first, and makes the version even.
#[cold]
fn undo(words: &Words) -> Found {
    let entries = words.load(JOURNAL_LEN) as usize;
    let all = words.cells().count();
    let sound = entries <= JOURNAL_ENTRIES
        && (0..entries).all(|entry| is_journaled(words.load(JOURNAL + 2 * entry) as usize, all));
    if sound {
        // A word written twice first gets its middle value back. A reader that sees that value must also see the
        // odd version. The odd version may be a store of an owner that died, and this thread has not fenced it yet.
        fence(Ordering::Release);
        for entry in (0..entries).rev() {
            let word = words.load(JOURNAL + 2 * entry) as usize;
            // Check again: a process that corrupts memory may have changed the index since.
            if is_journaled(word, all) {
                words.cells().at_any(word).store(words.load(JOURNAL + 2 * entry + 1), Ordering::Relaxed);
            }
        }
        compiler_fence(Ordering::Release);
    }
    close(words.cells());
    if sound { Found::Undone } else { Found::Damaged }
}

/// How many times a reader tries before it reports that it could not read a consistent state.
const READS: usize = if cfg!(loom) { 2 } else { 16 };

/// Runs `look` on one committed state, without the lock. Returns `None` if writers interfered each time, or if a
/// writer died and no process has recovered its transaction yet. Then take the lock instead.
///
/// `look` may see a torn state (its result is then thrown away), so it must cope with any words.
pub fn read<R>(words: &Words, mut look: impl FnMut(&Words) -> R) -> Option<R> {
    for _ in 0..READS {
        if let Some(seen) = read_once(words.cells(), |_| look(words)) {
            return Some(seen);
        }
        spin_hint();
    }
    None
}

/// One try of [`read`].
#[inline(always)]
pub fn read_once<'a, R>(cells: Cells<'a>, look: impl FnOnce(Cells<'a>) -> R) -> Option<R> {
    let before = cells.at(VERSION).load(Ordering::Acquire);
    if before & 1 != 0 {
        return None;
    }
    let seen = look(cells);
    fence(Ordering::Acquire);
    (cells.load(VERSION) == before).then_some(seen)
}
