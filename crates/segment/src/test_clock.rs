//! A clock that a test moves: time passes only when the test says so, or when a call has to wait for it.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time at which a clock starts by default: 2030-01-01 00:00:00 UTC.
const DEFAULT_START: Duration = Duration::from_secs(1_893_456_000);
/// The first time of the monotonic side of a test clock. It lies ahead of every real uptime. Times of the real
/// clock, which limit how often exited processes are looked for, are therefore always over.
const ORIGIN: u64 = 10 * 366 * 86_400 * 1_000_000_000;
/// A test clock stops here, far below the largest number.
const LONGEST: u64 = i64::MAX as u64 - ORIGIN;
/// How long a call that wants to move the clock waits, in real time, for calls that wait for an earlier time.
const LET_OTHERS_GO: Duration = Duration::from_millis(100);
/// How often a call that lets others go first checks whether it was woken.
const LOOK: Duration = Duration::from_millis(1);

/// The clock of a test. The library's `TestClock` explains it to users. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub struct TestClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Identifies this clock. It is stored in the files of its limiters in place of the boot identity.
    id: u64,
    /// The first time of the wall clock, in nanoseconds since 1970.
    start: u64,
    /// Nanoseconds that have passed.
    elapsed: AtomicU64,
    /// Until when each call waits, by the number of the call. If that time has come, the call is about to check.
    waits: Mutex<Waits>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    until: Vec<(u64, u64)>,
}

impl Waits {
    fn enter(&mut self) -> u64 {
        self.next += 1;
        self.until.push((self.next, 0));
        self.next
    }

    fn set(&mut self, number: u64, until: u64) {
        if let Some((_, mine)) = self.until.iter_mut().find(|(other, _)| *other == number) {
            *mine = until;
        }
    }

    fn are_not_before(&self, target: u64) -> bool {
        self.until.iter().all(|(_, until)| *until >= target)
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::starting_at(DEFAULT_START)
    }
}

impl Shared {
    fn starting_at(since_1970: Duration) -> Shared {
        Shared {
            id: RandomState::new().hash_one(std::process::id()),
            start: nanos(since_1970).min(LONGEST),
            elapsed: AtomicU64::new(0),
            waits: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TestClock {
    /// A clock that shows 2030-01-01 00:00:00 UTC and stands still.
    pub fn new() -> TestClock {
        TestClock::default()
    }

    /// A clock that shows this moment and stands still. A moment before 1970 counts as 1970.
    pub fn starting_at(start: SystemTime) -> TestClock {
        let since_1970 = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        TestClock { shared: Arc::new(Shared::starting_at(since_1970)) }
    }

    /// Lets this much time pass at once. The clock never goes back, and stops after 280 years.
    pub fn advance(&self, by: Duration) {
        let add = |elapsed: u64| Some(elapsed.saturating_add(nanos(by)).min(LONGEST));
        let _ = self.shared.elapsed.fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
        self.shared.changed.notify_all();
    }

    /// How much time has passed since the clock was created: the sum of all [`advance`](Self::advance) and of the
    /// waits of calls.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.shared.elapsed.load(Ordering::Acquire))
    }

    /// The clock's time. Deadlines are points on this clock.
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.wall_at(self.raw()))
    }

    /// Identifies this clock.
    pub(crate) fn id(&self) -> u64 {
        self.shared.id
    }

    /// The monotonic side of the clock.
    #[cold]
    pub(crate) fn raw(&self) -> u64 {
        ORIGIN + self.shared.elapsed.load(Ordering::Acquire)
    }

    /// The time of the wall clock when the monotonic side shows `raw`.
    pub(crate) fn wall_at(&self, raw: u64) -> u64 {
        self.shared.start.saturating_add(raw.saturating_sub(ORIGIN))
    }

    /// The waits of a call on this clock.
    pub(crate) fn alarm(&self) -> Alarm {
        Alarm { clock: self.clone(), number: None }
    }
}

/// The waits of one call, one after the other. While it exists, the clock does not pass a time that the call has
/// waited for: a call that is about to check must find what it waited for.
#[derive(Debug)]
pub struct Alarm {
    clock: TestClock,
    number: Option<u64>,
}

impl Alarm {
    /// Waits until the clock shows `raw`. Moves the clock there once all calls that wait for an earlier time have
    /// finished. Ends earlier if `woken` returns `true`.
    pub fn wait_until(&mut self, raw: u64, woken: impl Fn() -> bool) {
        let shared = &*self.clock.shared;
        let target = raw.saturating_sub(ORIGIN).min(LONGEST);
        let began = Instant::now();
        let mut waits = shared.waits();
        let number = *self.number.get_or_insert_with(|| waits.enter());
        waits.set(number, target);
        loop {
            let now = shared.elapsed.load(Ordering::Acquire);
            if now >= target {
                break;
            }
            if woken() {
                waits.set(number, now);
                break;
            }
            if waits.are_not_before(target) || began.elapsed() >= LET_OTHERS_GO {
                shared.elapsed.fetch_max(target, Ordering::AcqRel);
                break;
            }
            waits = shared.changed.wait_timeout(waits, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(waits);
        shared.changed.notify_all();
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.shared.waits().until.retain(|(other, _)| *other != number);
            self.clock.shared.changed.notify_all();
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(clock: &TestClock, seconds: u64) -> u64 {
        clock.raw() + seconds * 1_000_000_000
    }

    #[test]
    fn clock_stands_still_until_it_is_advanced_and_clones_are_the_same_clock() {
        let clock = TestClock::new();
        let clone = clock.clone();
        assert_eq!((clock.elapsed(), clock.now()), (Duration::ZERO, UNIX_EPOCH + DEFAULT_START));
        clone.advance(HOUR);
        assert_eq!((clock.elapsed(), clock.now()), (HOUR, UNIX_EPOCH + DEFAULT_START + HOUR));
        assert_ne!(TestClock::new().id(), TestClock::new().id());
    }

    #[test]
    fn clock_stops_at_its_end_and_never_goes_back() {
        let clock = TestClock::starting_at(UNIX_EPOCH - HOUR);
        assert_eq!(clock.now(), UNIX_EPOCH);
        clock.advance(Duration::MAX);
        let end = clock.elapsed();
        clock.advance(HOUR);
        clock.alarm().wait_until(0, || false);
        assert_eq!(clock.elapsed(), end);
        assert!(clock.now() > UNIX_EPOCH + 280 * 365 * 24 * HOUR);
    }

    #[test]
    fn call_that_waits_moves_the_clock_to_exactly_its_target() {
        let clock = TestClock::new();
        let target = at(&clock, 60) + 1;
        clock.alarm().wait_until(target, || false);
        assert_eq!(clock.raw(), target);
        clock.alarm().wait_until(target + 5, || true);
        assert_eq!(clock.raw(), target, "a call that is woken moves nothing");
    }

    #[test]
    fn clock_does_not_pass_a_call_that_is_about_to_check() {
        let clock = TestClock::new();
        let (first, second) = (at(&clock, 1), at(&clock, 2));
        let mut looks = clock.alarm();
        looks.wait_until(first, || false);
        std::thread::scope(|scope| {
            let later = scope.spawn(|| clock.alarm().wait_until(second, || false));
            while clock.shared.waits().until.len() < 2 {
                std::thread::yield_now();
            }
            assert_eq!(clock.raw(), first);
            drop(looks);
            later.join().unwrap();
        });
        assert_eq!(clock.raw(), second);
    }

    #[test]
    fn call_that_never_checks_delays_others_only_briefly() {
        let clock = TestClock::new();
        let mut hangs = clock.alarm();
        hangs.wait_until(at(&clock, 1), || false);
        let second = at(&clock, 1);
        clock.alarm().wait_until(second, || false);
        assert_eq!(clock.raw(), second);
    }
}
