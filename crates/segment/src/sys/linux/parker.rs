//! Sleeps at a word of a shared mapping until another process wakes it: shared futexes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use nix::libc;

use super::memory::SharedMap;
use crate::sys::FileFacts;

/// Lets processes wait for each other; see the contract. The kernel uses the file behind an address to find the
/// threads that wait at the same word.
#[derive(Clone, Copy, Debug)]
pub struct Parker;

impl Parker {
    pub fn new(_facts: &FileFacts, _map: &SharedMap) -> Parker {
        Parker
    }

    pub fn wait(self, word: &AtomicU32, expected: u32, timeout: Duration) {
        futex_wait(word, expected, timeout);
    }

    /// A timer may be late by the timer slack of the thread, 50 µs by default. The slack is reduced for this sleep
    /// only.
    pub fn wait_in_time(self, word: &AtomicU32, expected: u32, timeout: Duration) {
        // SAFETY: prctl with these operations reads and changes one number of the calling thread, and no memory of
        // ours.
        let usual = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
        // SAFETY: as above.
        let set = |slack: libc::c_int| unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
        // Real-time threads have no timer slack.
        if usual <= 1 {
            return futex_wait(word, expected, timeout);
        }
        set(1);
        futex_wait(word, expected, timeout);
        set(usual);
    }

    pub fn wake(self, word: &AtomicU32) -> bool {
        futex_wake(word) > 0
    }
}

/// Does not use `FUTEX_PRIVATE_FLAG`: a private futex never wakes a sleeper of another process.
fn futex_wait(word: &AtomicU32, expected: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: `word` is a live, aligned 32-bit word and `timeout` a live timespec for the whole call. Every outcome
    // (woken, value changed, timed out, interrupted) means "check again" to the caller, so none is reported.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, &raw const timeout) };
}

/// Wakes one sleeper and returns how many were woken.
fn futex_wake(word: &AtomicU32) -> libc::c_long {
    // SAFETY: `word` is a live, aligned 32-bit word; waking reads no memory of ours.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::linux::testing::{eventually, exit_code_of, raw_fork};

    #[test]
    fn shared_futex_wakes_another_process() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let (ours, theirs) = (SharedMap::new(&file, 4096).unwrap(), SharedMap::new(&file, 4096).unwrap());
        // SAFETY: both addresses are live, aligned words used only atomically.
        let (ours, theirs) = unsafe {
            (
                AtomicU32::from_ptr(ours.base().as_ptr().cast()),
                AtomicU32::from_ptr(theirs.base().as_ptr().cast()),
            )
        };
        let child = raw_fork(|| {
            futex_wait(theirs, 0, Duration::from_secs(60));
            0
        });
        assert!(eventually(|| futex_wake(ours) == 1), "nobody was ever asleep on the word");
        assert_eq!(exit_code_of(child), 0);
    }

    #[test]
    fn futex_wait_returns_when_the_word_differs_or_time_is_over() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0, Duration::MAX);
        futex_wait(&word, 1, Duration::from_millis(1));
        assert_eq!(futex_wake(&word), 0);
    }
}
