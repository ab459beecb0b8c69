//! Where processes meet that map the same file: one named semaphore for each word at which somebody sleeps.
//!
//! `WaitOnAddress` wakes only threads of its own process. So who goes to sleep makes a semaphore whose name tells file and
//! word, looks once more whether the word is still what it was, and waits for the semaphore or a timer. Who wakes changes
//! the word first and then opens the semaphore: it exists exactly as long as somebody is going to sleep or sleeps, because
//! a sleeper that wakes or dies closes it and the last to close it ends it. So nothing is left behind, and a waker learns
//! whether there was anybody. It counts, so that two wake two also if neither has gone to sleep yet; one that nobody
//! waited for makes somebody look once too often.
//!
//! Where it cannot be had (its name belongs to a stranger, or the process may not use global names), a sleeper looks every
//! two milliseconds instead. A stranger who has made it first and lets us in can swallow what wakes us, no more: every
//! sleep has a bound of its own.

use std::fmt::Write;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateSemaphoreW, CreateWaitableTimerExW, OpenSemaphoreW,
    ReleaseSemaphore, SEMAPHORE_MODIFY_STATE, SetWaitableTimer, TIMER_ALL_ACCESS, WaitForMultipleObjects,
};

use super::acl::Descriptor;
use super::memory::SharedMap;
use super::native::{check, owned, wide};
use crate::sys::FileFacts;

/// How often to look where nobody can wake us.
const LOOK: Duration = Duration::from_millis(2);
/// Timers count in units of 100 ns.
const NANOS_PER_UNIT: u128 = 100;
/// How many may be woken before one of them has gone to sleep; more would wake nobody else.
const MOST_WOKEN: i32 = 1 << 10;
/// For the wait itself, should the timer not come: much longer than any bound here.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// See the contract.
#[derive(Clone, Debug)]
pub struct Parker {
    device: u64,
    file: u64,
    base: usize,
    /// Who may use the semaphores: those who may use the file.
    access: Option<Arc<Descriptor>>,
}

impl Parker {
    pub fn new(facts: &FileFacts, map: &SharedMap) -> Parker {
        Parker {
            device: facts.dev,
            file: facts.ino,
            base: map.base().addr().get(),
            access: facts.access.of_wake_words().ok().map(Arc::new),
        }
    }

    pub fn wait(&self, word: &AtomicU32, expected: u32, timeout: Duration) {
        let Ok(wake_word) = self.wake_word(word) else { return poll(word, expected, timeout) };
        // The wake word must be there before the look: a waker that comes later finds it.
        fence(Ordering::SeqCst);
        if word.load(Ordering::Relaxed) == expected {
            sleep(Some(&wake_word), timeout);
        }
    }

    /// The timer of [`Parker::wait`] is the best there is.
    pub fn wait_in_time(&self, word: &AtomicU32, expected: u32, timeout: Duration) {
        self.wait(word, expected, timeout);
    }

    pub fn wake(&self, word: &AtomicU32) -> bool {
        fence(Ordering::SeqCst);
        let name = self.name(word);
        // SAFETY: the name ends with a zero and is alive for the whole call; what comes back is ours alone.
        let wake_word = unsafe { owned(OpenSemaphoreW(SEMAPHORE_MODIFY_STATE, 0, name.as_ptr())) };
        // One that cannot be counted up any more wakes whoever comes.
        wake_word.is_ok_and(|wake_word| {
            // SAFETY: the handle is open for the whole call; nobody asks for the count before.
            unsafe { ReleaseSemaphore(wake_word.as_raw_handle(), 1, std::ptr::null_mut()) };
            true
        })
    }

    /// A semaphore that wakes one for each time it is counted up.
    fn wake_word(&self, word: &AtomicU32) -> io::Result<OwnedHandle> {
        let name = self.name(word);
        let attributes = self.access.as_deref().map(Descriptor::attributes);
        let attributes = attributes.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: name and attributes are alive for the whole call; what comes back is ours alone.
        unsafe { owned(CreateSemaphoreW(attributes, 0, MOST_WOKEN, name.as_ptr())) }
    }

    /// Of all sessions, because a service and a terminal may share a limiter.
    fn name(&self, word: &AtomicU32) -> Vec<u16> {
        let offset = word.as_ptr().addr().wrapping_sub(self.base);
        let mut name = String::with_capacity(64);
        // Writing to a string cannot fail.
        let _ = write!(name, r"Global\shmlimit-{:016x}-{:016x}-{offset:x}", self.device, self.file);
        wide(&name)
    }
}

fn poll(word: &AtomicU32, expected: u32, timeout: Duration) {
    if word.load(Ordering::Relaxed) == expected {
        sleep(None, timeout.min(LOOK));
    }
}

/// Waits for the wake word or the time, whichever comes first.
fn sleep(wake_word: Option<&OwnedHandle>, timeout: Duration) {
    let timer = timer(timeout.min(LONGEST));
    let handles: Vec<HANDLE> =
        wake_word.into_iter().chain(timer.as_ref().ok()).map(|handle| handle.as_raw_handle()).collect();
    if handles.is_empty() {
        return std::thread::sleep(timeout.min(LOOK));
    }
    // Coarse, and only what the timer does not do.
    let limit = if timer.is_ok() { LONGEST } else { timeout.min(LONGEST) };
    let millis = u32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX - 1);
    // SAFETY: the handles are open for the whole call, and there are as many as said. Every outcome means "look again"
    // to the caller, so none is reported.
    unsafe { WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), 0, millis) };
}

/// A timer that goes off once. Ordinary ones go off at the next tick of the system, up to 15.6 ms late; the precise kind
/// exists since Windows 10 1803.
fn timer(after: Duration) -> io::Result<OwnedHandle> {
    let make = |kind| {
        // SAFETY: no name and no attributes; what comes back is ours alone.
        unsafe { owned(CreateWaitableTimerExW(std::ptr::null(), std::ptr::null(), kind, TIMER_ALL_ACCESS)) }
    };
    let timer = make(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION).or_else(|_| make(0))?;
    // Negative: from now on.
    let due = -i64::try_from(after.as_nanos().div_ceil(NANOS_PER_UNIT)).unwrap_or(i64::MAX);
    // SAFETY: the handle is open and `due` alive for the whole call; there is no routine to call.
    check(unsafe { SetWaitableTimer(timer.as_raw_handle(), &due, 0, None, std::ptr::null(), 0) })?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::facts;
    use std::time::Instant;

    fn parkers() -> (tempfile::NamedTempFile, [(Parker, SharedMap); 2]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let meet = || {
            let again = file.reopen().unwrap();
            let map = SharedMap::new(&again, 4096).unwrap();
            (Parker::new(&facts(&again).unwrap(), &map), map)
        };
        let both = [meet(), meet()];
        (file, both)
    }

    fn word(map: &SharedMap, index: usize) -> &AtomicU32 {
        // SAFETY: the address is a live, aligned word used only atomically.
        unsafe { AtomicU32::from_ptr(map.base().as_ptr().cast::<u32>().add(index)) }
    }

    #[test]
    fn a_sleeper_is_woken_through_another_mapping_of_its_word_and_no_other() {
        let (_file, [(ours, our_map), (theirs, their_map)]) = parkers();
        assert!(!ours.wake(word(&our_map, 1)), "nobody sleeps");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| theirs.wait(word(&their_map, 1), 0, Duration::from_secs(60)));
            while !ours.wake(word(&our_map, 1)) {
                std::thread::yield_now();
            }
            assert!(!ours.wake(word(&our_map, 2)), "nobody sleeps at that word");
            sleeper.join().unwrap();
        });
        assert!(!ours.wake(word(&our_map, 1)), "nothing is left of it");
    }

    #[test]
    fn whoever_was_woken_before_going_to_sleep_does_not_sleep() {
        let (_file, [(ours, our_map), (theirs, their_map)]) = parkers();
        let word = word(&our_map, 1);
        // Two are about to sleep: their wake word is there, and they have looked at the word for the last time.
        let (one, other) =
            (ours.wake_word(word).unwrap(), theirs.wake_word(self::word(&their_map, 1)).unwrap());
        assert!(ours.wake(word) && ours.wake(word));
        let started = Instant::now();
        for wake_word in [one, other] {
            sleep(Some(&wake_word), Duration::from_secs(60));
        }
        assert!(started.elapsed() < Duration::from_secs(30), "a wake-up was lost");
    }

    #[test]
    fn a_wake_word_that_cannot_be_had_is_replaced_by_looking() {
        let (_file, [(parker, map), _]) = parkers();
        let word = word(&map, 1);
        // A stranger's: the name is taken by something else.
        let name = parker.name(word);
        // SAFETY: the name ends with a zero and is alive for the whole call; what comes back is ours alone.
        let stranger = unsafe {
            owned(windows_sys::Win32::System::Threading::CreateEventW(std::ptr::null(), 0, 0, name.as_ptr()))
        };
        let _stranger = stranger.unwrap();
        assert!(parker.wake_word(word).is_err() && !parker.wake(word));
        let started = Instant::now();
        parker.wait(word, 0, Duration::from_secs(60));
        assert!(started.elapsed() < Duration::from_secs(30), "it slept although nobody could wake it");
    }

    /// It can, as any other sleeper, take what was meant for us; who sleeps looks by its own time all the same.
    #[test]
    fn one_who_swallows_what_should_wake_us_makes_us_sleep_no_longer_than_we_meant_to() {
        const BOUND: Duration = Duration::from_millis(200);
        let (_file, [(ours, our_map), (theirs, their_map)]) = parkers();
        let word = word(&our_map, 1);
        // Made by the stranger first, and full after one.
        let name = theirs.name(self::word(&their_map, 1));
        // SAFETY: the name ends with a zero and is alive for the whole call; what comes back is ours alone.
        let stranger = unsafe { owned(CreateSemaphoreW(std::ptr::null(), 0, 1, name.as_ptr())) }.unwrap();
        let started = Instant::now();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| ours.wait(word, 0, BOUND));
            while !sleeper.is_finished() {
                assert!(theirs.wake(self::word(&their_map, 1)), "somebody seems to sleep");
                sleep(Some(&stranger), Duration::ZERO);
            }
        });
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }

    #[test]
    fn a_word_that_changed_or_a_time_that_passed_ends_a_wait() {
        let (_file, [(parker, map), _]) = parkers();
        word(&map, 0).store(1, Ordering::Relaxed);
        parker.wait(word(&map, 0), 0, Duration::MAX);
        let started = Instant::now();
        parker.wait(word(&map, 0), 1, Duration::from_millis(20));
        assert!(started.elapsed() >= Duration::from_millis(19));
    }
}
