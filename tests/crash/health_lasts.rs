//! The health state of a limiter and its logs outlive the file and the boot. The next process that attaches notices
//! damage to them. (For buckets alone see `failing_storage.rs`.)

use crate::util;
use crate::util::{builder, drain, raw, segment_path, take};
use shmlimit::{
    AcquireError, Algorithm, BreakerCommand, BreakerState, Limiter, Outcome, PauseRequest, Policy,
    PolicyDraft, Reason, Request, RuleDraft,
};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use shmlimit_segment::layout;
use std::fs;
use std::path::Path;
use std::time::Duration;

const RETRY_IN_AN_HOUR: [(&str, &str); 1] = [("Retry-After", "3600")];
const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;

/// The breaker drives the first rule; the second counts the calls of a test.
fn policy(algorithm: Algorithm, period: u64) -> Policy {
    let fast = RuleDraft::new(Algorithm::TokenBucket, 100_000, Duration::from_secs(1));
    let rules = [fast, RuleDraft::new(algorithm, 10, Duration::from_nanos(period))];
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.n_throttle, breaker.sleep_min, breaker.sleep_max) =
        (1, Duration::from_nanos(HOUR), Duration::from_nanos(HOUR));
    Policy::new(&PolicyDraft { rules: &rules, breaker, ..PolicyDraft::default() }).unwrap()
}

fn with_log(directory: &Path) -> Limiter {
    builder(directory).policy(policy(Algorithm::SlidingLog, DAY)).create().unwrap()
}

fn refusal(limiter: &Limiter) -> Reason {
    match limiter.try_acquire(&Request::new()) {
        Err(AcquireError::Refused(refusal)) => refusal.reason(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Deletes the file under `limiter`, and checks that the limiter continues in another file.
fn delete(limiter: &Limiter, directory: &Path) {
    let path = segment_path(directory);
    fs::remove_file(&path).unwrap();
    assert_eq!(limiter.snapshot().unwrap().resets, 0);
    assert!(path.exists(), "the limiter continues in another file");
}

#[test]
fn a_deleted_limiter_continues_with_its_log() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    (0..4).for_each(|_| assert!(take(&limiter)));
    delete(&limiter, directory.path());
    assert_eq!(drain(&limiter), 6, "charged calls stay charged");
    assert_eq!(drain(&builder(directory.path()).open_existing().unwrap()), 0);
}

#[test]
fn r142_a_deleted_limiter_continues_with_its_gate() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    limiter.record(&Outcome::http(503, &RETRY_IN_AN_HOUR)).unwrap();
    delete(&limiter, directory.path());
    assert_eq!(refusal(&limiter), Reason::RetryAfter);
    let gate = limiter.snapshot().unwrap().condition.gate.unwrap();
    assert!(gate.opens_in.as_secs() > 3000 && gate.pid == std::process::id());
}

#[test]
fn a_deleted_limiter_continues_with_its_breaker_and_effective_limits() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    limiter.record(&Outcome::http(429, &[])).unwrap();
    let before = limiter.snapshot().unwrap().condition;
    assert_eq!(before.state, BreakerState::Throttle);
    delete(&limiter, directory.path());
    // A newcomer checks that limits and state agree.
    for handle in [&limiter, &builder(directory.path()).open_existing().unwrap()] {
        let snapshot = handle.snapshot().unwrap();
        let after = snapshot.condition;
        assert_eq!((after.state, after.rate, snapshot.resets), (BreakerState::Throttle, before.rate, 0));
        assert_eq!((after.samples, after.outcomes, after.transitions.len()), (1, before.outcomes, 1));
    }
    limiter.force(BreakerCommand::Sleep).unwrap();
    delete(&limiter, directory.path());
    assert_eq!(refusal(&limiter), Reason::Sleep);
}

#[test]
fn replacing_starts_afresh() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    assert_eq!(drain(&limiter), 10);
    limiter.record(&Outcome::http(429, &RETRY_IN_AN_HOUR)).unwrap();
    let fresh = builder(directory.path()).policy(policy(Algorithm::SlidingLog, DAY)).replace().unwrap();
    for handle in [&limiter, &fresh] {
        let condition = handle.snapshot().unwrap().condition;
        assert!(condition.gate.is_none() && condition.transitions.is_empty());
        assert_eq!((condition.state, condition.samples), (BreakerState::Normal, 0));
    }
    assert_eq!(drain(&limiter), 10);
}

#[test]
fn p3_any_damage_of_the_effective_limits_is_noticed_by_the_next_attachment() {
    // The words of the effective limits: general (2), queueing, next check time; the limits of both rules.
    let words = (0..4).chain(8..24);
    for word in words {
        let directory = util::directory();
        let limiter = with_log(directory.path());
        assert!(take(&limiter));
        // Asleep, so that the next check time is now; a call that skips the check would be granted.
        limiter.force(BreakerCommand::Sleep).unwrap();
        drop(limiter);
        let path = segment_path(directory.path());
        let offset = layout::EFFECTIVE + word;
        // Bits that have a meaning in each of these words.
        raw::write_word(&path, offset, raw::read_word(&path, offset) ^ 0x0000_0003_0000_0003);
        let limiter = builder(directory.path()).open_existing().unwrap();
        let snapshot = limiter.snapshot().unwrap();
        assert_eq!((snapshot.resets, snapshot.in_flight), (1, 0), "word {word} of the effective limits");
        assert_eq!(drain(&limiter), 0, "word {word}: it starts empty");
        assert_eq!(builder(directory.path()).open_existing().unwrap().snapshot().unwrap().resets, 1);
    }
}

/// Makes the segment look as if another boot had left it, with the machine off for `off` ns by the wall clock.
fn reboot(directory: &Path, off: u64) {
    let path = segment_path(directory);
    let change =
        |word: usize, by: &dyn Fn(u64) -> u64| raw::write_word(&path, word, by(raw::read_word(&path, word)));
    change(layout::BOOT, &|boot| boot ^ 1);
    for wall in [layout::ANCHOR_WALL, layout::LATEST_WALL, layout::WALL_OFFSET] {
        change(wall, &|wall| wall.wrapping_sub(off));
    }
    // Put this boot's clock so far behind the other's that only the wall clock can tell how long the machine was off.
    change(layout::CLOCK_OFFSET, &|offset| offset.wrapping_sub(1000 * DAY));
}

#[test]
fn r134_gate_and_sleep_continue_after_a_reboot_for_their_remaining_time() {
    for (off, left) in [(0, 3600), (HOUR / 2, 1800), (HOUR + 1, 0)] {
        for gate in [true, false] {
            let directory = util::directory();
            let limiter = with_log(directory.path());
            match gate {
                true => drop(limiter.record(&Outcome::http(503, &RETRY_IN_AN_HOUR)).unwrap()),
                false => drop(limiter.force(BreakerCommand::Sleep).unwrap()),
            }
            drop(limiter);
            reboot(directory.path(), off);
            let limiter = builder(directory.path()).open_existing().unwrap();
            let snapshot = limiter.snapshot().unwrap();
            assert_eq!(snapshot.resets, 0, "off {off} ns: the state looked damaged");
            let condition = snapshot.condition;
            let wait = if gate { condition.gate.map(|gate| gate.opens_in) } else { condition.eta };
            let wait = wait.map_or(0, |wait| wait.as_secs());
            assert!(wait.abs_diff(left) <= 300, "off {off} ns, gate {gate}: {wait} s left instead of {left}");
            if left == 0 && !gate {
                assert_eq!(condition.state, BreakerState::HalfOpen);
            }
        }
    }
}

/// Pauses for an hour or until resumed.
fn pause(limiter: &Limiter, timed: bool) {
    let request = PauseRequest::new().reason("database migration");
    let request = if timed { request.duration(Duration::from_nanos(HOUR)) } else { request };
    limiter.pause(&request).unwrap();
}

#[test]
fn r148_a_pause_continues_after_a_reboot_for_its_remaining_time() {
    for (timed, off, left) in [(true, 0, 3600), (true, HOUR / 2, 1800), (true, HOUR + 1, 0), (false, DAY, 0)]
    {
        let directory = util::directory();
        let limiter = with_log(directory.path());
        pause(&limiter, timed);
        drop(limiter);
        reboot(directory.path(), off);
        let limiter = builder(directory.path()).open_existing().unwrap();
        let snapshot = limiter.snapshot().unwrap();
        assert_eq!(snapshot.resets, 0, "off {off} ns: the state looked damaged");
        if timed && left == 0 {
            assert!(snapshot.paused.is_none() && take(&limiter), "off {off} ns");
            continue;
        }
        assert_eq!(refusal(&limiter), Reason::Paused, "off {off} ns");
        let paused = snapshot.paused.unwrap();
        assert_eq!(paused.reason.as_deref(), Some("database migration"));
        assert_eq!(paused.ends_in.is_some(), timed);
        let left_now = paused.ends_in.map_or(0, |left| left.as_secs());
        assert!(left_now.abs_diff(left) <= 300, "off {off} ns: {left_now} s left instead of {left}");
    }
}

#[test]
fn r148_a_deleted_limiter_stays_paused_and_a_replaced_one_does_not() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    pause(&limiter, false);
    delete(&limiter, directory.path());
    for handle in [&limiter, &builder(directory.path()).open_existing().unwrap()] {
        assert_eq!(refusal(handle), Reason::Paused);
        assert_eq!(handle.snapshot().unwrap().paused.unwrap().pid, std::process::id());
    }
    let fresh = builder(directory.path()).policy(policy(Algorithm::SlidingLog, DAY)).replace().unwrap();
    for handle in [&limiter, &fresh] {
        assert!(handle.snapshot().unwrap().paused.is_none() && take(handle));
    }
}

#[test]
fn r148_another_policy_does_not_change_a_pause() {
    let directory = util::directory();
    let limiter = with_log(directory.path());
    pause(&limiter, true);
    let before = limiter.snapshot().unwrap().paused.unwrap();
    limiter.set("concurrency", "3").unwrap();
    assert_eq!(refusal(&limiter), Reason::Paused);
    let after = limiter.snapshot().unwrap().paused.unwrap();
    assert_eq!((after.pid, after.reason), (before.pid, before.reason));
    assert!(limiter.resume().unwrap().is_some() && take(&limiter));
}

#[test]
fn r148_a_reset_keeps_only_a_pause_whose_words_are_valid() {
    let pause_words = layout::health_state_word(shmlimit_kernel::health_state::PAUSE_AT);
    // The damaged word of the pause and its value: none; the time it began; its text.
    for damage in [None, Some((1, u64::MAX)), Some((5, u64::MAX))] {
        let directory = util::directory();
        let limiter = with_log(directory.path());
        pause(&limiter, false);
        drop(limiter);
        let path = segment_path(directory.path());
        if let Some((word, value)) = damage {
            raw::write_word(&path, pause_words + word, value);
        }
        // A count of permits without holders: the next process that attaches resets the state.
        raw::write_word(&path, layout::CORE + 1, 77);
        let limiter = builder(directory.path()).open_existing().unwrap();
        let snapshot = limiter.snapshot().unwrap();
        assert_eq!((snapshot.resets, snapshot.paused.is_some()), (1, damage.is_none()), "{damage:?}");
        // An operator can end the pause, whatever its words are.
        limiter.resume().unwrap();
        assert!(limiter.snapshot().unwrap().paused.is_none());
    }
}

#[test]
fn p3_r148_any_words_of_a_pause_are_shown_and_ended() {
    let pause_words = layout::health_state_word(shmlimit_kernel::health_state::PAUSE_AT);
    for word in 0..shmlimit_kernel::pause::PAUSE_WORDS {
        for value in [1, 0x1b5b_324a_0a0d_0907, u64::MAX - 1, u64::MAX] {
            let directory = util::directory();
            let limiter = with_log(directory.path());
            pause(&limiter, true);
            raw::write_word(&segment_path(directory.path()), pause_words + word, value);
            let shown = limiter.snapshot().unwrap().paused;
            let reason = shown.and_then(|pause| pause.reason).unwrap_or_default();
            assert!(!reason.chars().any(char::is_control), "word {word}: {reason:?}");
            limiter.resume().unwrap();
            assert!(take(&limiter), "word {word} = {value:#x}");
        }
    }
}

#[test]
fn r134_no_calendar_window_is_granted_twice_after_a_reboot() {
    // A window of 500 days, so that a test never meets its end.
    for (off, expected) in [(0, 0), (DAY, 0), (501 * DAY, 10)] {
        let directory = util::directory();
        let window = policy(Algorithm::FixedWindow, 500 * DAY);
        let limiter = builder(directory.path()).policy(window).create().unwrap();
        assert_eq!(drain(&limiter), 10);
        drop(limiter);
        reboot(directory.path(), off);
        let limiter = builder(directory.path()).open_existing().unwrap();
        assert_eq!(limiter.snapshot().unwrap().resets, 0, "off {off} ns");
        assert_eq!(drain(&limiter), expected, "off {off} ns");
    }
}

#[test]
fn r134_r135_setting_the_wall_clock_never_grants_a_window_twice() {
    let directory = util::directory();
    let limiter = builder(directory.path()).policy(policy(Algorithm::FixedWindow, HOUR)).create().unwrap();
    let path = segment_path(directory.path());
    assert_eq!(drain(&limiter), 10);
    // As if the clock had been two hours ahead and was then corrected.
    let file_of_words = raw::Raw::map(&path);
    let set = |word: usize, value: u64| {
        file_of_words.word(word).store(value, std::sync::atomic::Ordering::Relaxed);
    };
    set(layout::ANCHOR_WALL, raw::read_word(&path, layout::ANCHOR_WALL) + 2 * HOUR);
    // The bounds of this test make each call check the file's place, and thus the wall clock.
    assert_eq!(drain(&limiter), 0, "a charged window is not granted again");
    let error = limiter.try_acquire(&Request::new()).unwrap_err();
    let AcquireError::Refused(refusal) = error else { panic!("{error}") };
    let wait = refusal.retry_after().unwrap().as_nanos() as u64;
    assert!(wait <= HOUR, "the window still ends at its time: {wait} ns");
    let other = builder(directory.path()).open_existing().unwrap();
    assert_eq!((drain(&other), other.snapshot().unwrap().resets), (0, 0));
}
