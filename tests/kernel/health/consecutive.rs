//! The breaker that counts consecutive failures: closed, open, half open (R78 to R81).

use super::*;

fn open() -> Rig {
    let mut rig = Rig::consecutive();
    rig.records(OutcomeClass::Server, 5);
    rig
}

#[test]
fn r78_five_failures_in_a_row_open_for_five_minutes() {
    let mut rig = Rig::consecutive();
    rig.records(OutcomeClass::Server, 4);
    rig.record(OutcomeClass::Ok);
    rig.records(OutcomeClass::Net, 4);
    rig.records(OutcomeClass::Ignored, 9);
    assert_eq!(rig.new_transitions(), []);
    rig.record(OutcomeClass::Throttled);
    assert_eq!(rig.new_transitions(), [(0, BreakerState::Open, TransitionCause::ConsecutiveFailures)]);
    rig.now = 5 * MINUTE - 1;
    assert_eq!(rig.refused(), (Reason::Open, Some(1)));
    rig.at(9 * MINUTE);
    assert_eq!(rig.new_transitions(), [(5 * MINUTE, BreakerState::HalfOpen, TransitionCause::ResetTimeout)]);
}

#[test]
fn r42_probing_does_not_empty_the_window_of_a_breaker_that_counts_failures() {
    let mut breaker = Breaker::of(BreakerKind::Consecutive);
    breaker.reset_timeout = Duration::from_secs(10);
    let mut rig = Rig::new(&PolicyDraft { breaker, ..PolicyDraft::default() });
    rig.records(OutcomeClass::Ok, 3);
    rig.records(OutcomeClass::Throttled, 5);
    rig.at(10 * SECOND);
    assert_eq!((rig.state(), rig.window()), (BreakerState::HalfOpen, (8, 5)));
    assert_eq!(rig.record(OutcomeClass::Throttled).consec429, 6, "the run goes on, too (R48)");
    rig.force(BreakerCommand::HalfOpen);
    assert_eq!(rig.window(), (9, 6));
    rig.at(30 * SECOND);
    assert_eq!(rig.window(), (1, 1), "entries of 30 s are out");
}

#[test]
fn r79_two_successes_close_and_one_failure_reopens_for_the_whole_time() {
    let mut rig = open();
    rig.at(5 * MINUTE).acquire().expect("one test request");
    assert_eq!(rig.refused(), (Reason::Concurrency, None));
    rig.record(OutcomeClass::Ok);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    rig.after(SECOND).record(OutcomeClass::Server);
    rig.new_transitions();
    assert_eq!(rig.refused(), (Reason::Open, Some(5 * MINUTE)));
    rig.after(5 * MINUTE).records(OutcomeClass::Ok, 2);
    let now = rig.now;
    assert_eq!(
        rig.new_transitions(),
        [
            (now, BreakerState::HalfOpen, TransitionCause::ResetTimeout),
            (now, BreakerState::Normal, TransitionCause::ProbeOk)
        ]
    );
}

#[test]
fn r80_one_minute_after_opening_four_minutes_are_left() {
    let mut rig = open();
    rig.now = MINUTE;
    assert_eq!(rig.refused(), (Reason::Open, Some(240_000 * 1_000_000)));
    assert_eq!((rig.health().failures, rig.state().as_str(BreakerKind::Consecutive)), (5, "open"));
}

#[test]
fn r81_providers_do_not_share_a_breaker() {
    let (mut one, mut other) = (open(), Rig::consecutive());
    assert!(one.acquire().is_err() && other.acquire().is_ok());
}
