//! Lets processes that map the same file wait for each other: one named semaphore for each word on which a thread
//! sleeps.
//!
//! `WaitOnAddress` wakes only threads of its own process. So a thread that goes to sleep creates a semaphore whose
//! name contains the file and the word. It then checks once more that the word is unchanged, and waits for the
//! semaphore or a timer. A waker first changes the word and then opens the semaphore. The semaphore exists exactly
//! while some thread sleeps or is about to sleep: a sleeper that wakes or dies closes it, and the last one to close
//! it removes it. So nothing is left behind, and a waker learns whether there was a sleeper. The semaphore counts,
//! so two wake-ups wake two threads even if neither has gone to sleep yet. A wake-up that no thread waited for only
//! causes one unnecessary check.
//!
//! If the semaphore cannot be opened (its name belongs to another user, or the process may not use global names), a
//! sleeper polls every two milliseconds instead. Another user who has created the semaphore first and gives us
//! access can consume our wake-ups, but no more than that: every sleep has a time limit.

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

/// The polling interval when no process can wake us.
const LOOK: Duration = Duration::from_millis(2);
/// Timers count in units of 100 ns.
const NANOS_PER_UNIT: u128 = 100;
/// How many wake-ups the semaphore can store before a thread goes to sleep; more would not wake any further thread.
const MOST_WOKEN: i32 = 1 << 10;
/// Limit of the wait itself if the timer fails: much longer than any time limit here.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// See the contract.
#[derive(Clone, Debug)]
pub struct Parker {
    device: u64,
    file: u64,
    base: usize,
    /// The access of the semaphores: every account that may use the file may use them.
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
        // The semaphore must exist before the word is checked, so a waker that comes later finds it.
        fence(Ordering::SeqCst);
        if word.load(Ordering::Relaxed) == expected {
            sleep(Some(&wake_word), timeout);
        }
    }

    /// Same as [`Parker::wait`], whose timer is already the most precise one.
    pub fn wait_in_time(&self, word: &AtomicU32, expected: u32, timeout: Duration) {
        self.wait(word, expected, timeout);
    }

    pub fn wake(&self, word: &AtomicU32) -> bool {
        fence(Ordering::SeqCst);
        let name = self.name(word);
        // SAFETY: the name ends with a zero and is alive for the whole call; only this code owns the returned
        // handle.
        let wake_word = unsafe { owned(OpenSemaphoreW(SEMAPHORE_MODIFY_STATE, 0, name.as_ptr())) };
        // If the semaphore is full, releasing it fails, and the next sleeper wakes anyway.
        wake_word.is_ok_and(|wake_word| {
            // SAFETY: the handle is open for the whole call; the previous count is not requested.
            unsafe { ReleaseSemaphore(wake_word.as_raw_handle(), 1, std::ptr::null_mut()) };
            true
        })
    }

    /// Creates or opens the semaphore of a word. Each time it is released, it wakes one thread.
    fn wake_word(&self, word: &AtomicU32) -> io::Result<OwnedHandle> {
        let name = self.name(word);
        let attributes = self.access.as_deref().map(Descriptor::attributes);
        let attributes = attributes.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: name and attributes are alive for the whole call; only this code owns the returned handle.
        unsafe { owned(CreateSemaphoreW(attributes, 0, MOST_WOKEN, name.as_ptr())) }
    }

    /// The name of the semaphore. It is global to all sessions, because a service and a terminal may share a
    /// limiter.
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

/// Waits for the semaphore or until the time is over.
fn sleep(wake_word: Option<&OwnedHandle>, timeout: Duration) {
    let timer = timer(timeout.min(LONGEST));
    let handles: Vec<HANDLE> =
        wake_word.into_iter().chain(timer.as_ref().ok()).map(|handle| handle.as_raw_handle()).collect();
    if handles.is_empty() {
        return std::thread::sleep(timeout.min(LOOK));
    }
    // A coarse limit that applies only if there is no timer.
    let limit = if timer.is_ok() { LONGEST } else { timeout.min(LONGEST) };
    let millis = u32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX - 1);
    // SAFETY: the handles are open for the whole call, and their number is correct. Every outcome means "check
    // again" to the caller, so none is reported.
    unsafe { WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), 0, millis) };
}

/// A timer that fires once. Ordinary timers fire at the next tick of the system, up to 15.6 ms late.
/// High-resolution timers exist since Windows 10 1803.
fn timer(after: Duration) -> io::Result<OwnedHandle> {
    let make = |kind| {
        // SAFETY: no name and no attributes are given; only this code owns the returned handle.
        unsafe { owned(CreateWaitableTimerExW(std::ptr::null(), std::ptr::null(), kind, TIMER_ALL_ACCESS)) }
    };
    let timer = make(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION).or_else(|_| make(0))?;
    // A negative time is relative to now.
    let due = -i64::try_from(after.as_nanos().div_ceil(NANOS_PER_UNIT)).unwrap_or(i64::MAX);
    // SAFETY: the handle is open and `due` alive for the whole call; there is no callback.
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
    fn sleeper_is_woken_through_another_mapping_of_the_same_word_only() {
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
    fn thread_woken_before_it_sleeps_does_not_sleep() {
        let (_file, [(ours, our_map), (theirs, their_map)]) = parkers();
        let word = word(&our_map, 1);
        // Two threads are about to sleep: their semaphore exists, and they have checked the word for the last time.
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
    fn sleeper_polls_when_its_semaphore_cannot_be_created() {
        let (_file, [(parker, map), _]) = parkers();
        let word = word(&map, 1);
        // An object of another kind, created by another user, already has the name.
        let name = parker.name(word);
        // SAFETY: the name ends with a zero and is alive for the whole call; only this code owns the returned
        // handle.
        let stranger = unsafe {
            owned(windows_sys::Win32::System::Threading::CreateEventW(std::ptr::null(), 0, 0, name.as_ptr()))
        };
        let _stranger = stranger.unwrap();
        assert!(parker.wake_word(word).is_err() && !parker.wake(word));
        let started = Instant::now();
        parker.wait(word, 0, Duration::from_secs(60));
        assert!(started.elapsed() < Duration::from_secs(30), "it slept although nobody could wake it");
    }

    /// The other user can consume a wake-up, as any other sleeper can. The sleep still ends at its time limit.
    #[test]
    fn consumed_wake_up_does_not_extend_a_sleep_past_its_limit() {
        const BOUND: Duration = Duration::from_millis(200);
        let (_file, [(ours, our_map), (theirs, their_map)]) = parkers();
        let word = word(&our_map, 1);
        // Another user has created the semaphore first, with room for one wake-up.
        let name = theirs.name(self::word(&their_map, 1));
        // SAFETY: the name ends with a zero and is alive for the whole call; only this code owns the returned
        // handle.
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
    fn wait_ends_when_the_word_differs_or_time_is_over() {
        let (_file, [(parker, map), _]) = parkers();
        word(&map, 0).store(1, Ordering::Relaxed);
        parker.wait(word(&map, 0), 0, Duration::MAX);
        let started = Instant::now();
        parker.wait(word(&map, 0), 1, Duration::from_millis(20));
        assert!(started.elapsed() >= Duration::from_millis(19));
    }
}
