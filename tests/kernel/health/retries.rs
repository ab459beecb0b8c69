//! Retry-After, the gate, and backoff (R67 to R77, R142).

use super::*;
use shmlimit_kernel::backoff::Random;
use shmlimit_kernel::backoff::{BackoffAdvice, WaitSource};
use shmlimit_kernel::policy::{Backoff, Jitter};

fn ceilings(backoff: Backoff) -> Vec<u64> {
    let mut rig = Rig::new(&PolicyDraft { backoff, ..PolicyDraft::default() });
    (1..=7)
        .map(|n| {
            rig.report(None, &Report { attempt: Some(n), ..Report::new(OutcomeClass::Server) })
                .advice
                .ceiling
                .0
        })
        .collect()
}

#[test]
fn r67_a_refusal_of_a_blocked_call_names_the_state_and_its_end() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Sleep);
    rig.now = SECOND / 2;
    assert_eq!(rig.refused(), (Reason::Sleep, Some(3 * SECOND / 2)));
    rig.force(BreakerCommand::CacheOnly);
    assert_eq!(rig.refused(), (Reason::CacheOnly, None));
}

#[test]
fn r68_backoff_is_for_429_5xx_and_net() {
    let mut rig = Rig::tmdb(|_| {});
    for (class, target) in [
        (OutcomeClass::Throttled, true),
        (OutcomeClass::Server, true),
        (OutcomeClass::Net, true),
        (OutcomeClass::Ok, false),
        (OutcomeClass::Ignored, false),
    ] {
        assert_eq!(rig.record(class).advice.source.is_some(), target);
    }
}

#[test]
fn r69_r70_r71_retry_after_goes_before_backoff_with_a_floor_and_a_cap() {
    for (said, waits) in
        [(0, SECOND), (SECOND - 1, SECOND), (7 * SECOND, 7 * SECOND), (u64::MAX, 86_400 * SECOND)]
    {
        let mut rig = Rig::tmdb(|_| {});
        let advice = rig.retry_after(OutcomeClass::Throttled, said).advice;
        assert_eq!(
            (advice.source, advice.ceiling.0, advice.drawn),
            (Some(WaitSource::RetryAfter), waits, false)
        );
        assert_eq!(rig.refused(), (Reason::RetryAfter, Some(waits)));
    }
}

#[test]
fn r73_r118_retry_after_closes_the_gate_for_all_and_keeps_the_state() {
    let mut rig = Rig::tmdb(|_| {});
    rig.retry_after(OutcomeClass::Throttled, 2 * SECOND);
    assert_eq!((rig.state(), rig.refused()), (BreakerState::Normal, (Reason::RetryAfter, Some(2 * SECOND))));
    rig.retry_after(OutcomeClass::Server, SECOND);
    assert_eq!(rig.refused().1, Some(2 * SECOND), "the later of two");
    rig.retry_after(OutcomeClass::Ignored, 9 * SECOND);
    rig.retry_after(OutcomeClass::Ok, 9 * SECOND);
    rig.now = 2 * SECOND - 1;
    assert_eq!(rig.refused(), (Reason::RetryAfter, Some(1)));
    rig.now += 1;
    assert!(rig.acquire().is_ok());
}

#[test]
fn r74_ceilings_double_up_to_thirty_seconds() {
    let seconds: Vec<f64> = ceilings(Backoff::default()).iter().map(|n| *n as f64 / SECOND as f64).collect();
    assert_eq!(seconds, [1.5, 3.0, 6.0, 12.0, 24.0, 30.0, 30.0]);
    let mut rig = Rig::tmdb(|_| {});
    let huge = Report { attempt: Some(u32::MAX), ..Report::new(OutcomeClass::Net) };
    assert_eq!(rig.report(None, &huge).advice.ceiling, Nanos::from_secs(30));
    assert!(rig.acquire().is_ok(), "it concerns the caller alone");
}

#[test]
fn r74_r119_jitter_is_uniform() {
    let advice = BackoffAdvice {
        source: Some(WaitSource::Backoff),
        ceiling: Nanos(1_000_000),
        drawn: true,
        retry: true,
    };
    assert_eq!((advice.wait(0), advice.wait(u64::MAX)), (Nanos(0), Nanos(1_000_000)));
    let mut random = Random::new(7);
    let waits: Vec<f64> = (0..100_000).map(|_| advice.wait(random.bits()).0 as f64).collect();
    let mean = waits.iter().sum::<f64>() / 1e5;
    let deviation = (waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
    assert!((mean - 5e5).abs() < 5e3 && (deviation - 1e6 / 12f64.sqrt()).abs() < 5e3, "{mean} {deviation}");
}

#[test]
fn r75_without_jitter_the_ceiling_is_the_wait() {
    let mut backoff = Backoff::default().with_jitter(Jitter::None);
    backoff.base = Duration::from_secs(1);
    assert_eq!(ceilings(backoff), [1, 2, 4, 8, 16, 30, 30].map(|n| n * SECOND));
    let mut rig = Rig::new(&PolicyDraft { backoff, ..PolicyDraft::default() });
    assert_eq!(rig.record(OutcomeClass::Net).advice.wait(u64::MAX / 3), Nanos::from_secs(1));
}

#[test]
fn r76_user_calls_retry_twice_and_background_calls_five_times() {
    let mut rig = Rig::tmdb(|_| {});
    for (priority, most) in [(Priority::User, 2), (Priority::Webhook, 2), (Priority::Background, 5)] {
        for n in 1..8 {
            let report = Report { attempt: Some(n), priority, ..Report::new(OutcomeClass::Net) };
            assert_eq!(rig.report(None, &report).advice.retry, n <= most, "{priority:?} {n}");
        }
    }
}

#[test]
fn r77_the_attempt_number_defaults_to_the_run_of_failures() {
    let mut rig = Rig::new(&PolicyDraft::default());
    rig.records(OutcomeClass::Server, 2);
    rig.record(OutcomeClass::Ignored);
    assert_eq!(rig.record(OutcomeClass::Throttled).advice.ceiling, Nanos::from_secs(6));
    rig.record(OutcomeClass::Ok);
    assert_eq!(rig.record(OutcomeClass::Net).advice.ceiling, Nanos::from_millis(1500));
}

#[test]
fn r142_an_operator_can_open_the_gate() {
    let mut rig = Rig::tmdb(|_| {});
    assert!(rig.retry_after(OutcomeClass::Throttled, u64::MAX).closed_gate);
    rig.force(BreakerCommand::ClearGate);
    assert!(rig.acquire().is_ok());
    assert_eq!(rig.new_transitions(), []);
}
