//! News: a hint word on which those sleep who wait for something to be given back.
//!
//! Bit 0 says that somebody listens; the rest counts. A listener sets the bit, looks once more *under the lock*,
//! and only then sleeps. An announcer changes the state under the lock, lets go, and then looks at the bit. So
//! either the listener saw the change, or the announcer sees the bit (the lock orders them). A dead listener costs
//! one wake-up, a dead announcer costs the listeners their bound.

use super::lock::Os;
use super::words::Words;
use crate::sys::sync::Ordering;
use std::time::Duration;

const LISTENED: u32 = 1;

/// Begins to listen. What is returned goes to [`sleep`].
pub fn listen(words: &Words) -> u32 {
    words.news().fetch_or(LISTENED, Ordering::Relaxed) | LISTENED
}

/// Sleeps until something is announced after [`listen`], for `limit` at most.
pub fn sleep<O: Os>(words: &Words, os: &O, heard: u32, limit: Duration) {
    os.sleep(words.news(), heard, limit);
}

/// Wakes all who listen. Call it after the transaction that changed something has given the lock back.
#[inline]
pub fn announce<O: Os>(words: &Words, os: &O) {
    let news = words.news().load(Ordering::Relaxed);
    if news & LISTENED != 0 {
        announce_to_listeners(words, os, news);
    }
}

#[cold]
fn announce_to_listeners<O: Os>(words: &Words, os: &O, news: u32) {
    let next = news.wrapping_add(2) & !LISTENED;
    // If somebody else announced meanwhile, it also wakes those whose bit we saw.
    if words.news().compare_exchange(news, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        os.wake(words.news(), u32::MAX >> 1);
    }
}
