//! A test clock moves instead of making calls sleep. Times are exact, no real time passes, and a limiter is never
//! shared with other clocks.

use crate::util::Watchdog;
use shmlimit::policy::{Breaker, BreakerKind};
use shmlimit::{
    AcquireError, Algorithm, BreakerCommand, BreakerState, Error, Limiter, Outcome, PauseRequest, Policy,
    PolicyDraft, Reason, Request, RuleDraft, Step, TestClock,
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const MINUTE: Duration = Duration::from_secs(60);
/// More real time than any of these tests needs, and far less than the time that passes on their clocks.
const REAL: Duration = Duration::from_secs(30);

fn per_minute(limit: u64) -> PolicyDraft<'static> {
    let rule = RuleDraft::new(Algorithm::SlidingLog, limit, Duration::from_secs(60));
    PolicyDraft { rules: Vec::leak(vec![rule]), ..PolicyDraft::default() }
}

fn open(directory: &TempDir, clock: &TestClock, draft: &PolicyDraft<'_>) -> Limiter {
    let policy = Policy::new(draft).unwrap();
    Limiter::builder("api").directory(directory.path()).policy(policy).test_clock(clock).open().unwrap()
}

/// A limiter with its own clock.
fn fresh(draft: &PolicyDraft<'_>) -> (TempDir, TestClock, Limiter) {
    let (directory, clock) = (crate::util::directory(), TestClock::new());
    let limiter = open(&directory, &clock, draft);
    (directory, clock, limiter)
}

/// Fails if real time passes.
fn in_no_time(work: impl FnOnce()) {
    let _watchdog = Watchdog::new("a test on a test clock", 2 * REAL);
    let began = Instant::now();
    work();
    assert!(began.elapsed() < REAL, "{:?} of real time", began.elapsed());
}

fn call(limiter: &Limiter) {
    limiter.acquire(&Request::new()).unwrap().release().unwrap();
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, AcquireError>) -> shmlimit::Refusal {
    match answer {
        Err(AcquireError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn eleventh_call_of_ten_a_minute_is_refused_and_waits_exactly_a_minute() {
    let (_directory, clock, limiter) = fresh(&per_minute(10));
    in_no_time(|| {
        (0..10).for_each(|_| limiter.try_acquire(&Request::new()).unwrap().release().unwrap());
        assert_eq!(refused(limiter.try_acquire(&Request::new())).retry_after(), Some(MINUTE));
        assert_eq!(clock.elapsed(), Duration::ZERO);
        call(&limiter);
        assert_eq!(clock.elapsed(), MINUTE);
        // The log still has nine of the first ten entries, all a minute old.
        (0..9).for_each(|_| call(&limiter));
        assert_eq!(clock.elapsed(), MINUTE);
        call(&limiter);
        assert_eq!(clock.elapsed(), 2 * MINUTE);
    });
}

#[test]
fn advance_refills_and_nothing_else_does() {
    let rule =
        RuleDraft { burst: Some(2), ..RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(3600)) };
    let (_directory, clock, limiter) = fresh(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    let remaining = || limiter.snapshot().unwrap().rules[0].remaining;
    (0..2).for_each(|_| call(&limiter));
    assert_eq!(remaining(), 0);
    clock.advance(60 * MINUTE - Duration::from_nanos(1));
    assert_eq!(remaining(), 0);
    assert_eq!(refused(limiter.try_acquire(&Request::new())).retry_after(), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(remaining(), 1);
    limiter.try_acquire(&Request::new()).unwrap().release().unwrap();
}

#[test]
fn retry_after_closes_the_gate_for_exactly_its_time() {
    let (_directory, clock, limiter) = fresh(&per_minute(1000));
    in_no_time(|| {
        let grant = limiter.acquire(&Request::new()).unwrap();
        let advice = grant.record(&Outcome::http(429, &[("Retry-After", "30")])).unwrap();
        assert!(advice.retry && advice.wait >= Duration::from_secs(30));
        clock.advance(Duration::from_nanos(29_999_999_999));
        assert_eq!(refused(limiter.try_acquire(&Request::new())).reason(), Reason::RetryAfter);
        clock.advance(Duration::from_nanos(1));
        let grant = limiter.try_acquire(&Request::new()).unwrap();
        // A date, which is read by the test's clock: 2030-01-01 00:01:00, half a minute from now.
        let date = [("Retry-After", "Tue, 01 Jan 2030 00:01:00 GMT")];
        grant.record(&Outcome::http(429, &date)).unwrap();
        call(&limiter);
        assert_eq!(clock.elapsed(), MINUTE);
    });
}

#[test]
fn breaker_sleeps_and_recovers_on_the_test_clock() {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    breaker.sleep_min = Duration::from_secs(40);
    let (_directory, clock, limiter) = fresh(&PolicyDraft { breaker, ..per_minute(1000) });
    let state = || limiter.snapshot().unwrap().condition.state;
    in_no_time(|| {
        limiter.force(BreakerCommand::Sleep).unwrap();
        assert_eq!(state(), BreakerState::Sleep);
        clock.advance(Duration::from_secs(39));
        assert_eq!(refused(limiter.try_acquire(&Request::new())).reason(), Reason::Sleep);
        let probe = limiter.acquire(&Request::new()).unwrap();
        assert_eq!((clock.elapsed(), state()), (Duration::from_secs(40), BreakerState::HalfOpen));
        probe.record(&Outcome::http(200, &[])).unwrap();
        for _ in 0..1000 {
            limiter.acquire(&Request::new()).unwrap().record(&Outcome::http(200, &[])).unwrap();
            clock.advance(Duration::from_secs(10));
            if state() == BreakerState::Normal {
                return;
            }
        }
        panic!("the breaker is {:?} after {:?}", state(), clock.elapsed());
    });
}

#[test]
fn deadline_that_cannot_be_met_is_refused_at_once_and_no_time_passes() {
    let (_directory, clock, limiter) = fresh(&per_minute(1));
    call(&limiter);
    let short = Request::new().timeout(MINUTE - Duration::from_nanos(1));
    assert_eq!(refused(limiter.acquire(&short)).retry_after(), Some(MINUTE));
    // The clock of Windows has a resolution of 100 ns.
    let past = Request::new().deadline(clock.now() + MINUTE - Duration::from_micros(1));
    refused(limiter.acquire(&past));
    assert_eq!(clock.elapsed(), Duration::ZERO);
    limiter.acquire(&Request::new().deadline(clock.now() + MINUTE)).unwrap().release().unwrap();
    assert_eq!(clock.elapsed(), MINUTE);
}

#[test]
fn call_that_gets_no_permit_in_time_moves_the_clock_to_its_deadline() {
    let draft = PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() };
    let (_directory, clock, limiter) = fresh(&draft);
    in_no_time(|| {
        let _held = limiter.acquire(&Request::new()).unwrap();
        let request = Request::new().timeout(60 * MINUTE);
        assert_eq!(refused(limiter.acquire(&request)).reason(), Reason::Concurrency);
        assert_eq!(clock.elapsed(), 60 * MINUTE);
        let mut pending = limiter.enqueue(&request).unwrap();
        let refusal = loop {
            match pending.step() {
                Ok(Step::Sleep(later, time)) => {
                    std::thread::sleep(time);
                    pending = later;
                }
                ended => break refused(ended),
            }
        };
        assert_eq!((refusal.reason(), clock.elapsed()), (Reason::Concurrency, 120 * MINUTE));
    });
}

#[test]
fn call_that_waits_for_a_permit_gets_the_one_that_another_thread_gives_back() {
    let draft = PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() };
    let (_directory, clock, limiter) = fresh(&draft);
    in_no_time(|| {
        let held = limiter.acquire(&Request::new()).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| limiter.acquire(&Request::new()).unwrap().release().unwrap());
            crate::util::wait_until("the call waits", || !limiter.snapshot().unwrap().queue.is_empty());
            // A call that checks much too late by the test's clock is not forgotten either.
            clock.advance(60 * MINUTE);
            held.release().unwrap();
            waits.join().unwrap();
        });
        assert_eq!(clock.elapsed(), 60 * MINUTE);
    });
}

#[test]
fn paused_limiter_is_waited_for_until_the_pause_ends_by_itself() {
    let (_directory, clock, limiter) = fresh(&per_minute(10));
    in_no_time(|| {
        limiter.pause(&PauseRequest::new().duration(5 * MINUTE)).unwrap();
        call(&limiter);
        assert_eq!(clock.elapsed(), 5 * MINUTE);
    });
}

#[test]
fn threads_that_share_a_clock_waste_none_of_the_budget() {
    const THREADS: u32 = 4;
    const CALLS: u32 = 10;
    // One call at once, then one per second: a second in which no waiting call goes is lost for good.
    let rule =
        RuleDraft { burst: Some(1), ..RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(1)) };
    let (_directory, clock, limiter) = fresh(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    in_no_time(|| {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..CALLS).for_each(|_| call(&limiter)));
            }
        });
        assert_eq!(clock.elapsed(), Duration::from_secs(u64::from(THREADS * CALLS - 1)));
    });
}

#[test]
fn two_limiters_and_two_threads_share_one_clock() {
    let (first_home, clock, first) = fresh(&per_minute(1));
    let second_home = crate::util::directory();
    let second = open(&second_home, &clock, &per_minute(1));
    in_no_time(|| {
        let _outcomes = [&first, &second].map(call);
        std::thread::scope(|scope| {
            for limiter in [&first, &second] {
                scope.spawn(|| call(limiter));
            }
        });
        assert_eq!(clock.elapsed(), MINUTE, "both waited for the same moment");
    });
    drop(first_home);
}

#[test]
fn calendar_window_ends_at_midnight_of_the_test_clock() {
    let day = RuleDraft::new(Algorithm::FixedWindow, 3, Duration::from_secs(86_400));
    let draft = PolicyDraft { rules: &[day], ..PolicyDraft::default() };
    // 2031-03-30 23:59:50 and 2001-09-08 23:59:50. The second date is before any limiter existed.
    for start in [1_932_681_590, 999_993_590] {
        let directory = crate::util::directory();
        let clock = TestClock::starting_at(UNIX_EPOCH + Duration::from_secs(start));
        let limiter = open(&directory, &clock, &draft);
        in_no_time(|| {
            (0..3).for_each(|_| call(&limiter));
            assert_eq!(
                refused(limiter.try_acquire(&Request::new())).retry_after(),
                Some(Duration::from_secs(10))
            );
            call(&limiter);
            assert_eq!(clock.elapsed(), Duration::from_secs(10));
            (0..3).for_each(|_| call(&limiter));
            assert_eq!(clock.elapsed(), Duration::from_secs(86_410));
        });
    }
}

#[test]
fn async_calls_move_the_clock_and_need_no_timer() {
    let (_directory, clock, limiter) = fresh(&per_minute(1));
    in_no_time(|| {
        smol::block_on(async {
            for _ in 0..3 {
                let grant = limiter.acquire_async(&Request::new(), |_| std::future::pending()).await.unwrap();
                grant.release().unwrap();
            }
        });
        assert_eq!(clock.elapsed(), 2 * MINUTE);
        match limiter.enqueue(&Request::new()).unwrap().step().unwrap() {
            Step::Granted(grant) => grant.release().unwrap(),
            Step::Sleep(..) => panic!("a step on a test clock waits for the known time itself"),
        }
        assert_eq!(clock.elapsed(), 3 * MINUTE);
    });
}

#[test]
fn limiter_that_is_opened_again_continues_where_it_was() {
    let (directory, clock, limiter) = fresh(&per_minute(2));
    (0..2).for_each(|_| call(&limiter));
    clock.advance(MINUTE / 2);
    drop(limiter);
    let limiter = open(&directory, &clock, &per_minute(2));
    assert_eq!(limiter.snapshot().unwrap().rules[0].remaining, 0);
    call(&limiter);
    assert_eq!(clock.elapsed(), MINUTE);
}

#[test]
fn test_clock_without_a_directory_is_refused_with_the_remedy() {
    let error = Limiter::builder("tmdb").test_clock(&TestClock::new()).open().unwrap_err();
    assert!(matches!(error, Error::BadValue { .. }), "{error:?}");
    assert!(error.to_string().contains("temporary"), "{error}");
}

#[test]
fn limiters_of_other_clocks_are_left_alone() {
    let directory = crate::util::directory();
    let policy = Policy::new(&per_minute(10)).unwrap();
    let builder = |name| Limiter::builder(name).directory(directory.path()).policy(policy);
    let shared = builder("shared").open().unwrap();
    call(&shared);
    let (clock, other) = (TestClock::new(), TestClock::new());
    let of_test = builder("test").test_clock(&clock).open().unwrap();
    let cases = [
        (builder("shared").test_clock(&clock), "on the machine's clock"),
        (builder("test"), "on a test clock"),
        (builder("test").observer(), "on a test clock"),
        (builder("test").test_clock(&other), "another test clock"),
    ];
    for (builder, why) in cases {
        let error = builder.open_existing().unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }) && error.to_string().contains(why), "{error}");
    }
    let replaced = builder("shared").test_clock(&clock).replace();
    assert!(matches!(replaced, Err(Error::Foreign { .. })), "{replaced:?}");
    assert_eq!(shared.snapshot().unwrap().rules[0].remaining, 9);
    assert!(builder("test").test_clock(&clock).open().is_ok());
    drop(of_test);
    builder("test").remove(true).unwrap();
    assert!(builder("test").open().is_ok(), "what a test left behind can be removed");
}

#[test]
fn clock_that_starts_now_serves_deadlines_of_the_real_clock() {
    let (directory, start) = (crate::util::directory(), SystemTime::now());
    let clock = TestClock::starting_at(start);
    let limiter = open(&directory, &clock, &per_minute(1));
    call(&limiter);
    let soon = Request::new().deadline(SystemTime::now() + MINUTE / 2);
    refused(limiter.acquire(&soon));
    limiter.acquire(&Request::new().deadline(SystemTime::now() + 2 * MINUTE)).unwrap().release().unwrap();
    assert_eq!(clock.now(), start + MINUTE);
}
