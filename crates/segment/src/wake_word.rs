//! Wake words: each entry of the queue has a word on which its owner sleeps until another process wakes it.
//!
//! ```text
//! owner                                          the process that changes the state
//! takes the lock, finds that it must wait
//! reads its wake word (`read`)
//! gives the lock back                            takes the lock, changes the state
//! sleeps while the word is as it was (`sleep`)   gives the lock back
//!                                                changes the word, wakes the owner (`wake`)
//! ```
//!
//! The lock orders the two (I16). Either the owner sees the change under the lock, or it read its word before the
//! word was changed, and does not sleep. A wake-up for an owner that has left makes its successor in the entry
//! check once too often. If the process that changes the state dies before the wake-up, the owner sleeps until its
//! own time limit.

use super::lock::Os;
use super::words::Words;
use crate::sync::Ordering;
use std::time::Duration;

/// Reads a wake word, under the lock. The result goes to [`sleep`].
pub fn read(words: &Words, place: usize) -> u32 {
    words.wake_word(place).load(Ordering::Relaxed)
}

/// Sleeps until the wake word changes after [`read`], for `limit` at most.
pub fn sleep<O: Os>(words: &Words, os: &O, place: usize, seen: u32, limit: Duration) {
    os.sleep_in_time(words.wake_word(place), seen, limit);
}

/// Wakes the owner of an entry. Call it after the transaction that brought its turn nearer has given the lock back.
/// Returns whether the owner slept there. If not, it is awake, or dead.
#[cold]
pub fn wake<O: Os>(words: &Words, os: &O, place: usize) -> bool {
    words.wake_word(place).fetch_add(1, Ordering::Relaxed);
    os.wake(words.wake_word(place))
}
