//! Bugs that the oracle found, each with the operations that first showed it.

use super::*;

#[test]
fn r44_an_ignored_outcome_reports_the_current_window() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Server, 3);
    rig.now = 30 * SECOND;
    let verdict = rig.record(OutcomeClass::Ignored);
    assert_eq!((verdict.samples, verdict.errors), (0, 0), "an age of 30 s is out");
}

#[test]
fn r3_a_clock_that_goes_back_stays_after_the_last_timer_and_operator_command() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Sleep);
    rig.at(10 * SECOND);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    rig.now = SECOND;
    let probe = rig.acquire().expect("a probe");
    assert_eq!(probe.granted_at, Time(10 * SECOND), "before the state began it would count as late");
    rig.now = 20 * SECOND;
    rig.force(BreakerCommand::Offline);
    rig.now = 0;
    assert_eq!(rig.acquire().expect_err("offline").checked_at, Time(20 * SECOND));
}

#[test]
fn r65_an_operator_command_ends_an_automatic_recovery_attempt() {
    let mut rig = Rig::tmdb(|breaker| breaker.auto_recover = Duration::from_secs(900));
    rig.force(BreakerCommand::CacheOnly);
    rig.at(900 * SECOND);
    assert_eq!(rig.state(), BreakerState::Sleep);
    rig.force(BreakerCommand::HalfOpen);
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Sleep, "the operator's probe failed, not that of the attempt");
}

#[test]
fn r79_a_consecutive_breaker_ignores_probe_concurrency_and_sends_one_probe_at_a_time() {
    let mut breaker = Breaker::of(BreakerKind::Consecutive);
    breaker.probe_concurrency = 3;
    let mut rig = Rig::new(&PolicyDraft { breaker, ..PolicyDraft::default() });
    rig.force(BreakerCommand::HalfOpen);
    assert_eq!(rig.concurrency(), Some(1));
    assert!(rig.acquire().is_ok());
    assert_eq!(rig.refused(), (Reason::Concurrency, None));
}

#[test]
fn r133_a_lost_background_probe_does_not_block_background_calls() {
    let breaker = Breaker::of(BreakerKind::Fsm);
    let draft = PolicyDraft { concurrency_background: Some(1), breaker, ..PolicyDraft::default() };
    let mut rig = Rig::new(&draft);
    rig.force(BreakerCommand::HalfOpen);
    let lost = rig.request(1, Priority::Background).expect("a probe");
    rig.now = 60 * SECOND - 1;
    assert!(rig.request(1, Priority::Background).is_err());
    rig.now = 60 * SECOND;
    assert!(rig.request(1, Priority::Background).is_ok(), "the lost one is written off");
    assert_eq!(rig.refused(), (Reason::Concurrency, None));
    decide::release(&mut rig.m, 0, &lost);
    assert_eq!(rig.refused(), (Reason::Concurrency, None), "and gives no room when it comes back after all");
}

#[test]
fn r74_a_factor_near_one_and_a_huge_attempt_are_computed_quickly() {
    let mut backoff = policy::Backoff::default();
    (backoff.factor, backoff.cap) = (1_000_001, Duration::from_nanos(u64::MAX >> 3));
    let mut rig = Rig::new(&PolicyDraft { backoff, ..PolicyDraft::default() });
    let report = Report { attempt: Some(u32::MAX), ..Report::new(OutcomeClass::Net) };
    let started = std::time::Instant::now();
    assert!(rig.report(None, &report).advice.ceiling > Nanos::of(backoff.base));
    assert!(started.elapsed().as_secs() < 5, "four thousand million steps would take a minute");
}

/// Regression: a recovery that rose above the full rate, and then fell back to the Throttle rate, lost fractions of
/// a token twice.
#[test]
fn r62_r1_a_recovery_to_the_probe_rate_loses_nothing() {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.probe_rate, breaker.s_probe_ok) = (policy::PerSecond::whole(5), 1);
    let mut rig = Rig::new(&PolicyDraft { rules: &[bucket(10, 10)], breaker, ..PolicyDraft::default() });
    rig.force(BreakerCommand::HalfOpen);
    rig.request(5, Priority::User).map(|probe| decide::release(&mut rig.m, 0, &probe)).expect("a probe");
    rig.now = 1;
    rig.record(OutcomeClass::Ok);
    assert_eq!((rig.state(), rig.rate()), (BreakerState::Normal, 5000));
    assert_eq!(rig.refused(), (Reason::Rate, Some(SECOND / 5 - 1)));
}

/// A transaction has room for 512 changed words. An hour of a slow ramp has hundreds of steps.
#[test]
fn r62_many_ramp_steps_at_once_change_as_many_words_as_one_step() {
    let mut rig = Rig::tmdb(|breaker| {
        (breaker.ramp_factor, breaker.ramp_every, breaker.s_probe_ok) =
            (1_001_000, Duration::from_nanos(SECOND), 1);
    });
    rig.force(BreakerCommand::HalfOpen);
    rig.record(OutcomeClass::Ok);
    rig.at(700 * SECOND);
    let steps = (0..700).fold(17_000_000_000_u128, |rate, _| rate * 1001 / 1000);
    assert_eq!(u128::from(rig.rate()), steps / 1_000_000);
    rig.at(3600 * SECOND);
    assert_eq!((rig.rate(), rig.left()), (35_000, Some(35)));
}

#[test]
fn r110_a_changed_rate_is_effective_at_once_in_every_state() {
    let mut rig = Rig::tmdb(|_| {});
    let patched = |rate_base: u64, probe_rate: u64| {
        let mut breaker = Breaker::of(BreakerKind::Fsm);
        breaker.rate_base = policy::PerSecond::whole(rate_base);
        breaker.probe_rate = policy::PerSecond::whole(probe_rate);
        breaker
    };
    let rules = [bucket(35, 35)];
    let draft =
        |breaker| PolicyDraft { concurrency: Some(4), rules: &rules, breaker, ..PolicyDraft::default() };
    rig.force(BreakerCommand::HalfOpen);
    assert_eq!(rig.rate(), 3000);
    rig.change(&draft(patched(35, 2)));
    assert_eq!(rig.rate(), 2000);
    rig.force(BreakerCommand::Throttle);
    rig.force(BreakerCommand::Offline);
    rig.change(&draft(patched(2, 3)));
    rig.force(BreakerCommand::Online);
    assert_eq!(rig.rate(), 2000, "never above the full rate");
}

#[test]
fn r3_r73_a_grant_after_the_gate_opened_is_never_dated_before_the_opening() {
    let mut rig = Rig::tmdb(|_| {});
    rig.retry_after(OutcomeClass::Throttled, 2 * SECOND);
    rig.at(3 * SECOND);
    rig.now = SECOND;
    assert_eq!(rig.acquire().expect("open").granted_at, Time(3 * SECOND));
}

#[test]
fn r56_evicting_the_oldest_outcome_does_not_count_as_an_empty_window() {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    breaker.sleep_after = Duration::from_nanos(SECOND);
    let window = policy::OutcomeWindow { max_count: 1, min_samples: 1, ..policy::OutcomeWindow::default() };
    let mut rig = Rig::new(&PolicyDraft { window, breaker, ..PolicyDraft::default() });
    rig.records(OutcomeClass::Server, 2);
    rig.after(SECOND).record(OutcomeClass::Server);
    assert_eq!(
        rig.new_transitions().last(),
        Some(&(SECOND, BreakerState::Sleep, TransitionCause::SustainedErrors))
    );
}
