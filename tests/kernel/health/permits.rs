//! General rules and permits while the breaker or the gate blocks calls (R1 to R8, R40, R41, R106 to R108, R128 to
//! R130, R133).

use super::*;

#[test]
fn r4_refusals_name_each_layer_in_turn_and_it_passes_at_its_time() {
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    breaker.probe_rate = policy::PerSecond::whole(1);
    let mut rig = Rig::new(&PolicyDraft { rules: &[bucket(1, 1)], breaker, ..PolicyDraft::default() });
    let call = rig.acquire().expect("free");
    assert_eq!(rig.refused(), (Reason::Rate, Some(SECOND)));
    rig.retry_after(OutcomeClass::Throttled, 3 * SECOND);
    assert_eq!(rig.refused(), (Reason::RetryAfter, Some(3 * SECOND)));
    rig.force(BreakerCommand::Sleep);
    assert_eq!(rig.refused(), (Reason::Sleep, Some(2 * SECOND)));
    rig.now = 2 * SECOND;
    assert_eq!(rig.refused(), (Reason::RetryAfter, Some(SECOND)));
    rig.now = 3 * SECOND;
    assert_eq!(rig.refused(), (Reason::Concurrency, None));
    decide::release(&mut rig.m, 0, &call);
    assert!(rig.acquire().is_ok());
}

#[test]
fn r5_a_refusal_takes_nothing_and_delays_nothing() {
    let mut rig = Rig::tmdb(|_| {});
    rig.request(35, Priority::User).expect("full");
    let before = rig.m.clone();
    for now in 0..100 {
        rig.now = now;
        assert!(rig.acquire().is_err());
    }
    assert_eq!(rig.m, before);
}

#[test]
fn r6_a_cost_above_the_capacity_of_the_state_waits_until_the_bucket_is_full() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Throttle);
    rig.request(1, Priority::User).expect("full");
    let later = rig.request(18, Priority::User).expect_err("17 fit");
    let full = SECOND.div_ceil(17);
    assert_eq!(
        (later.reason, later.retry_at, later.ready_at),
        (Reason::Rate, Some(Time(full)), Some(Time(full)))
    );
    rig.now = full;
    rig.request(18, Priority::User).expect("full again");
    let never = rig.request(36, Priority::User).expect_err("35 fit");
    assert_eq!((never.reason, never.retry_at), (Reason::CostExceedsLimit, None));
}

#[test]
fn r7_remaining_is_whole_units_for_the_priority() {
    let mut rig = Rig::new(&PolicyDraft {
        rules: &[RuleDraft { reserve: 3, ..bucket(2, 10) }],
        ..PolicyDraft::default()
    });
    rig.request(4, Priority::User).expect("full");
    rig.now = 3 * SECOND / 4;
    let left = |priority| decide::remaining(&rig.m, priority, [true; MAX_UNITS], Time(rig.now));
    assert_eq!((left(Priority::User), left(Priority::Background)), (Some(7), Some(4)));
}

#[test]
fn r8_an_idle_hour_does_not_fill_a_bucket_of_one_a_day() {
    let rule = RuleDraft::new(Algorithm::TokenBucket, 1, Duration::from_secs(86_400));
    let mut rig = Rig::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    rig.acquire().expect("full");
    rig.now = 3601 * SECOND;
    assert_eq!(rig.refused(), (Reason::Rate, Some((86_400 - 3601) * SECOND)));
}

#[test]
fn r40_a_refusal_states_the_wait_after_which_the_call_passes() {
    let mut rig = Rig::tmdb(|_| {});
    rig.request(35, Priority::User).map(|call| decide::release(&mut rig.m, 0, &call)).expect("full");
    for _ in 0..100 {
        let (_, wait) = rig.refused();
        rig.now += wait.expect("a wait, not a loss");
        rig.acquire().map(|call| decide::release(&mut rig.m, 0, &call)).expect("after the wait");
    }
}

#[test]
fn r41_passthrough_refuses_nothing_and_still_keeps_the_state() {
    let breaker = Breaker::of(BreakerKind::Fsm);
    let draft = PolicyDraft {
        concurrency: Some(1),
        rules: &[bucket(1, 1)],
        breaker,
        passthrough: true,
        ..PolicyDraft::default()
    };
    let mut rig = Rig::new(&draft);
    rig.retry_after(OutcomeClass::Throttled, SECOND);
    rig.records(OutcomeClass::Throttled, 4);
    assert_eq!(rig.state(), BreakerState::Sleep);
    for _ in 0..10 {
        assert!(rig.acquire().is_ok());
    }
}

#[test]
fn r106_r108_breaker_states_block_all_classes_alike() {
    for (what, reason) in
        [(BreakerCommand::Sleep, Reason::Sleep), (BreakerCommand::CacheOnly, Reason::CacheOnly)]
    {
        let mut rig = Rig::tmdb(|_| {});
        rig.force(what);
        for priority in Priority::ALL {
            assert_eq!(rig.request(1, priority).expect_err("blocked").reason, reason);
        }
    }
    assert_eq!(Priority::default(), Priority::Background);
}

#[test]
fn r128_r129_an_outcome_settles_what_the_call_really_cost() {
    let tokens = RuleDraft { unit: Some("tokens"), name: Some("tpm"), ..bucket(1, 100) };
    let mut rig = Rig::new(&PolicyDraft { rules: &[bucket(10, 10), tokens], ..PolicyDraft::default() });
    let request = AcquireRequest { cost: [1, 40, 0, 0], priority: Priority::User };
    let call = decide::acquire(&mut rig.m, 0, &request, Time(0)).expect("free");
    rig.report(Some(&call), &Report { actual: Some([1, 130, 0, 0]), ..Report::new(OutcomeClass::Ok) });
    let request = AcquireRequest { cost: [1, 1, 0, 0], priority: Priority::User };
    let refusal = decide::acquire(&mut rig.m, 0, &request, Time(0)).expect_err("30 below zero");
    assert_eq!((refusal.rule, refusal.retry_at), (Some(1), Some(Time(31 * SECOND))));
    assert_eq!(rig.m.core().in_flight, 0);
}

#[test]
fn r129_a_cancelled_probe_records_no_outcome_and_frees_the_permit() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::HalfOpen);
    let probe = rig.acquire().expect("a probe");
    decide::cancel(&mut rig.m, 0, &probe, Time(0));
    assert_eq!((rig.state(), rig.window(), rig.m.core().in_flight), (BreakerState::HalfOpen, (0, 0), 0));
    assert!(rig.acquire().is_ok());
}

#[test]
fn r130_a_refusal_by_any_layer_charges_no_other() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Sleep);
    let before = rig.m.clone();
    assert!(rig.acquire().is_err());
    assert_eq!(rig.m, before);
    assert_eq!(rig.left(), Some(35));
}

#[test]
fn r133_a_probe_that_never_reports_is_written_off() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::HalfOpen);
    let lost = rig.acquire().expect("a probe");
    rig.now = 60 * SECOND - 1;
    assert_eq!(rig.refused(), (Reason::Concurrency, None));
    rig.now += 1;
    let next = rig.acquire().expect("another probe");
    rig.report(Some(&lost), &Report { granted_at: Some(lost.granted_at), ..Report::new(OutcomeClass::Ok) });
    assert_eq!(rig.refused(), (Reason::Concurrency, None), "its return makes no more room");
    decide::release(&mut rig.m, 0, &next);
    assert!(rig.acquire().is_ok());
    assert_eq!(decide::reclaim(&mut rig.m, 0).held.total, 1, "and death gives a probe back at once");
    assert!(rig.acquire().is_ok());
}

#[test]
fn r145_the_background_permit_limit_holds_in_every_state() {
    let breaker = Breaker::of(BreakerKind::Fsm);
    let draft = PolicyDraft {
        concurrency: Some(4),
        concurrency_background: Some(1),
        breaker,
        ..PolicyDraft::default()
    };
    let mut rig = Rig::new(&draft);
    rig.force(BreakerCommand::Throttle);
    rig.request(1, Priority::Background).expect("one");
    assert!(rig.request(1, Priority::Background).is_err());
    assert!(rig.acquire().is_ok());
    assert!(rig.acquire().is_err(), "two in Throttle");
}
