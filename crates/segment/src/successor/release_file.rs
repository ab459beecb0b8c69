//! Releases the file of a segment that has a successor, and maps a *placeholder* at its addresses.
//!
//! Other threads may be reading the old segment, and grants may refer to it, so its addresses must stay valid. The
//! placeholder is private memory at the same addresses. Every reader takes it for a retired segment. This thread maps
//! it while it holds the segment's lock, so no other thread of this process is in a transaction on it. The lock is
//! then released in the file itself, through a second mapping. docs/design/creation-and-replacement.md has the whole
//! argument.

use crate::attach::Segment;
use crate::attach::process_state::{self, FileRelease};
use crate::error::Error;
use crate::layout::{self, CLOCK_OFFSET, RETIRED, VERSION, WAKE_WORD, entry_base};
use crate::{lock, wake_word};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The version of a placeholder: even, and one that no segment ever reaches. So a read that began in the segment and
/// ended in the placeholder is never taken for a consistent one.
const PLACEHOLDER_VERSION: u64 = u64::MAX - 1;

/// How often the lock is tried, and the pause after each try. A holder that takes longer is stopped or has died.
/// The segment is then kept until a later attempt.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

impl Segment {
    /// Releases the file of a retired segment that has a successor. If that is not possible now, at least its
    /// resident memory is released. The call may be repeated.
    pub fn release_file(&self) {
        let FileRelease(state) = &self.file_release;
        let begun = state.compare_exchange(
            FileRelease::IN_USE,
            FileRelease::RELEASING,
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        if begun.is_err() {
            return;
        }
        let closed = match self.present() {
            Some(attachment) => self.replace_under_lock(attachment.slot),
            None => self.replace_without_slot(),
        };
        if closed {
            drop(self.process_state.liveness_lock().take());
            self.backing.forget();
        } else {
            // Do not do this to a placeholder: its pages would become zeros.
            self.words.forget_pages();
        }
        state.store(if closed { FileRelease::CLOSED } else { FileRelease::IN_USE }, Ordering::SeqCst);
    }

    /// The result of a read without the lock, unless part of it may come from a placeholder.
    pub fn unless_released<R>(&self, seen: R) -> Result<R, Error> {
        match self.file_release.0.load(Ordering::SeqCst) {
            FileRelease::IN_USE => Ok(seen),
            _ => Err(self.gone()),
        }
    }

    /// Replaces the segment for a participant, under the lock.
    fn replace_under_lock(&self, slot: usize) -> bool {
        let mut tries = 0;
        let key = loop {
            if let Some(key) = lock::spin(&self.words, slot) {
                break key;
            }
            tries += 1;
            if tries == TRIES {
                return false;
            }
            std::thread::sleep(PAUSE);
        };
        let whole = self.words.load(VERSION) & 1 == 0;
        let former = if whole && self.is_retired() { self.map_placeholder() } else { None };
        lock::release(former.as_ref().unwrap_or(&self.words), &self.backing, key);
        former.is_some()
    }

    /// Replaces the segment for a process without a slot in it, such as a forked child or an observer. Such a
    /// process holds no permits there. It takes the lock only after it has become a participant, which is blocked
    /// meanwhile.
    fn replace_without_slot(&self) -> bool {
        let state = self.process_state.word(process_state::STATE);
        let absent = (process_state::ABSENT, process_state::ATTACHING);
        if state.compare_exchange(absent.0, absent.1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        let closed = self.is_retired() && self.map_placeholder().is_some();
        state.store(process_state::ABSENT, Ordering::Release);
        closed
    }

    /// Maps the placeholder. Returns the words of the file.
    fn map_placeholder(&self) -> Option<crate::words::Words> {
        let mut words = vec![
            (VERSION, PLACEHOLDER_VERSION),
            (CLOCK_OFFSET, self.words.load(CLOCK_OFFSET)),
            (RETIRED, layout::REPLACED),
        ];
        // A thread that has read its wake word under the lock but does not sleep yet must find another value in it.
        for (block, places) in self.sleepers().into_iter().enumerate() {
            words.extend(places.map(|place| {
                let place = 64 * block + place;
                let woken = wake_word::read(&self.words, place).wrapping_add(1);
                // The wake word may be either half of the word.
                (entry_base(place) + WAKE_WORD, u64::from(woken) << 32 | u64::from(woken))
            }));
        }
        self.words.replace(&words).ok()
    }
}
