//! Bells: each entry of the queue has a word on which its owner sleeps until it is rung.
//!
//! The owner finds under the lock that it must wait, and reads its bell *there*; then it lets go and sleeps as long as
//! the bell has not changed. A ringer changes the state under the lock, lets go, and then changes the bell and wakes. So
//! either the owner saw the change under the lock, or it read the bell before it was rung and does not sleep through
//! (the lock orders them, I16). A ring for somebody who has left makes its successor in the entry look once too often.
//! A dead ringer rings nobody; then whoever sleeps does so until its own bound.

use super::lock::Os;
use super::words::Words;
use crate::sync::Ordering;
use std::time::Duration;

/// Reads a bell, under the lock. What is returned goes to [`sleep`].
pub fn hear(words: &Words, place: usize) -> u32 {
    words.bell(place).load(Ordering::Relaxed)
}

/// Sleeps until the bell is rung after [`hear`], for `limit` at most.
pub fn sleep<O: Os>(words: &Words, os: &O, place: usize, heard: u32, limit: Duration) {
    os.sleep_in_time(words.bell(place), heard, limit);
}

/// Wakes the owner of an entry. Call it after the transaction that brought its turn nearer has given the lock back. Says
/// whether anybody slept there: if not, its owner is awake, or dead.
#[cold]
pub fn ring<O: Os>(words: &Words, os: &O, place: usize) -> bool {
    words.bell(place).fetch_add(1, Ordering::Relaxed);
    os.wake(words.bell(place))
}
