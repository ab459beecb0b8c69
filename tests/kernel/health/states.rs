//! The five breaker states (R49 to R66, R140, R141).

use super::*;

fn probing() -> Rig {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::HalfOpen);
    rig.new_transitions();
    rig
}

#[test]
fn r49_r50_it_starts_normal_with_the_defaults() {
    let rig = Rig::tmdb(|_| {});
    assert_eq!(
        (rig.state(), rig.rate(), rig.concurrency(), rig.left()),
        (BreakerState::Normal, 35_000, Some(4), Some(35))
    );
    let b = Breaker::default();
    assert_eq!(
        [b.p_throttle, b.p_recover, b.p_sleep, b.cooldown_factor, b.ramp_factor],
        [200_000, 100_000, 600_000, 2_000_000, 1_100_000]
    );
    assert_eq!(
        [b.n_throttle, b.n_cacheonly, b.s_recover, b.s_probe_ok, b.probe_concurrency],
        [3, 5, 10, 5, 1]
    );
    assert_eq!(
        [b.sleep_min, b.sleep_max, b.sleep_after, b.ramp_every].map(|n| n.as_secs()),
        [2, 300, 300, 300]
    );
    assert_eq!(b.probe_rate.0, 3 * SECOND);
}

#[test]
fn r51_r52_r120_eleven_errors_of_fifty_outcomes_throttle() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Ok, 39);
    rig.records(OutcomeClass::Server, 10);
    assert_eq!(rig.state(), BreakerState::Normal, "20.4 % once");
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.new_transitions(), [(0, BreakerState::Throttle, TransitionCause::ErrorRatio)]);
    let mut equal = Rig::tmdb(|_| {});
    equal.records(OutcomeClass::Ok, 8);
    equal.records(OutcomeClass::Net, 2);
    assert_eq!(equal.state(), BreakerState::Normal);
    equal.record(OutcomeClass::Net);
    assert_eq!(equal.state(), BreakerState::Throttle, "exactly 20 % counted as the first");
}

#[test]
fn r52_a_success_may_confirm_throttle_and_an_error_half_open() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Ok, 7);
    rig.records(OutcomeClass::Server, 3);
    rig.record(OutcomeClass::Ok);
    assert_eq!(rig.state(), BreakerState::Throttle, "3 of 10, then 3 of 11");
    rig.records(OutcomeClass::Ok, 20);
    assert_eq!(rig.state(), BreakerState::Throttle, "3 of 31 is the first below 10 %");
    rig.after(30 * SECOND).records(OutcomeClass::Ok, 1);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
}

#[test]
fn r53_a_failed_evaluation_restarts_the_count() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Ok, 8);
    rig.records(OutcomeClass::Server, 2);
    rig.record(OutcomeClass::Ok);
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Normal, "20 %, 18 %, 25 %");
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Throttle);
}

#[test]
fn r54_throttle_halves_rate_permits_and_capacity() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Throttle);
    assert_eq!((rig.rate(), rig.concurrency(), rig.left()), (17_000, Some(2), Some(17)));
    for (base, throttled) in [(4, 4), (8, 5), (10, 5), (11, 5), (12, 6)] {
        let mut small = Rig::tmdb(|breaker| breaker.rate_base = policy::PerSecond::whole(base));
        small.force(BreakerCommand::Throttle);
        assert_eq!(small.rate(), throttled * 1000, "rate_base {base}");
    }
}

#[test]
fn r55_ten_successes_and_a_low_ratio_twice_lead_to_half_open() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Throttle);
    rig.records(OutcomeClass::Ok, 9);
    rig.record(OutcomeClass::Server);
    rig.record(OutcomeClass::Ok);
    assert_eq!(rig.state(), BreakerState::Throttle, "ten successes, 1 of 11: below 10 % for the first time");
    rig.record(OutcomeClass::Ok);
    assert_eq!(
        rig.new_transitions().last(),
        Some(&(0, BreakerState::HalfOpen, TransitionCause::SuccessWindowOk))
    );
}

#[test]
fn r51_r56_the_third_429_throttles_and_the_fifth_sleeps() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Throttled, 5);
    assert_eq!(
        rig.new_transitions(),
        [
            (0, BreakerState::Throttle, TransitionCause::Consec429),
            (0, BreakerState::Sleep, TransitionCause::Consec429)
        ]
    );
}

#[test]
fn r56_five_minutes_of_sixty_percent_sleep() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Server, 11);
    for second in (1..300).chain([300]) {
        assert_eq!(rig.state(), BreakerState::Throttle, "{second}");
        rig.at(second * SECOND).record(OutcomeClass::Server);
    }
    assert_eq!(
        rig.new_transitions().last(),
        Some(&(300 * SECOND, BreakerState::Sleep, TransitionCause::SustainedErrors))
    );
}

#[test]
fn r56_an_empty_window_restarts_the_five_minutes() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(OutcomeClass::Server, 11);
    rig.at(200 * SECOND).records(OutcomeClass::Server, 10);
    for second in 201..500 {
        rig.at(second * SECOND).record(OutcomeClass::Server);
    }
    assert_eq!(rig.state(), BreakerState::Throttle, "the first ten after the silence were at 200 s");
    rig.at(500 * SECOND).record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Sleep);
}

#[test]
fn r57_cooldowns_double_up_to_the_maximum() {
    let mut rig = probing();
    for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        rig.record(OutcomeClass::Server);
        assert_eq!(rig.refused(), (Reason::Sleep, Some(seconds * SECOND)));
        rig.after(seconds * SECOND);
    }
    rig.records(OutcomeClass::Ok, 5);
    rig.force(BreakerCommand::HalfOpen);
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.refused().1, Some(2 * SECOND), "Normal forgets");
    rig.after(2 * SECOND).retry_after(OutcomeClass::Throttled, 400 * SECOND);
    assert_eq!(
        rig.refused(),
        (Reason::Sleep, Some(400 * SECOND)),
        "a server's word is not capped by sleep_max"
    );
}

#[test]
fn r58_sleep_ends_at_its_time_however_late_that_is_noticed() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Sleep);
    rig.new_transitions();
    rig.at(2 * SECOND - 1);
    assert_eq!(rig.state(), BreakerState::Sleep);
    rig.at(3600 * SECOND);
    assert_eq!(rig.new_transitions(), [(2 * SECOND, BreakerState::HalfOpen, TransitionCause::SleepExpired)]);
}

#[test]
fn r59_late_outcomes_can_only_extend_a_sleep() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Sleep);
    rig.records(OutcomeClass::Throttled, 20);
    rig.retry_after(OutcomeClass::Throttled, SECOND);
    assert_eq!(rig.refused(), (Reason::Sleep, Some(2 * SECOND)));
    rig.retry_after(OutcomeClass::Throttled, 9 * SECOND);
    assert_eq!(rig.refused(), (Reason::Sleep, Some(9 * SECOND)));
    assert_eq!((rig.health().sleeps, rig.m.tallies().throttled), (1, 22));
}

#[test]
fn r60_half_open_starts_clean_with_one_slow_request() {
    let mut rig = Rig::tmdb(|_| {});
    let old = rig.acquire().expect("Normal");
    rig.records(OutcomeClass::Throttled, 5);
    rig.at(2 * SECOND);
    assert_eq!(
        (rig.rate(), rig.concurrency(), rig.window(), rig.health().consec429),
        (3000, Some(1), (0, 0), 0)
    );
    assert_eq!(rig.refused(), (Reason::Concurrency, None), "the old one has the slot");
    decide::release(&mut rig.m, 0, &old);
    assert!(rig.acquire().is_ok());
}

#[test]
fn r61_r121_five_probes_recover_and_one_failure_of_three_sleeps() {
    let mut rig = probing();
    rig.records(OutcomeClass::Ok, 4);
    rig.records(OutcomeClass::Ignored, 3);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
    rig.record(OutcomeClass::Ok);
    assert_eq!(rig.new_transitions(), [(0, BreakerState::Normal, TransitionCause::ProbeOk)]);
    for class in [OutcomeClass::Throttled, OutcomeClass::Server, OutcomeClass::Net] {
        let mut rig = probing();
        rig.records(OutcomeClass::Ok, 2);
        rig.record(class);
        assert_eq!(rig.new_transitions(), [(0, BreakerState::Sleep, TransitionCause::ProbeFailed)]);
    }
}

#[test]
fn r62_the_rate_ramps_up_in_eight_steps() {
    let mut rig = probing();
    rig.records(OutcomeClass::Ok, 5);
    assert_eq!(rig.concurrency(), Some(4));
    for rate in [17_000, 18_700, 20_570, 22_627, 24_889, 27_378, 30_116, 33_128, 35_000, 35_000] {
        assert_eq!(rig.rate(), rate);
        rig.after(300 * SECOND - 1);
        assert_eq!(rig.rate(), rate);
        rig.after(1);
    }
    let mut ended = probing();
    ended.records(OutcomeClass::Ok, 5);
    ended.force(BreakerCommand::Throttle);
    assert_eq!(ended.at(3600 * SECOND).rate(), 17_000);
}

#[test]
fn r63_offline_lasts_until_online() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(BreakerCommand::Offline);
    rig.now = 1 << 60;
    assert_eq!((rig.state(), rig.refused()), (BreakerState::Sleep, (Reason::Sleep, None)));
    rig.force(BreakerCommand::Online);
    assert_eq!(rig.state(), BreakerState::HalfOpen);
}

#[test]
fn r64_r141_repeated_sleeps_without_normal_lead_to_cache_only() {
    let mut rig = Rig::tmdb(|breaker| breaker.cache_only_after = 2);
    rig.force(BreakerCommand::HalfOpen);
    for state in [BreakerState::Sleep, BreakerState::Sleep, BreakerState::CacheOnly] {
        rig.record(OutcomeClass::Server);
        assert_eq!(rig.state(), state);
        rig.after(300 * SECOND);
    }
    assert_eq!(rig.refused(), (Reason::CacheOnly, None));
    let mut never = probing();
    for _ in 0..50 {
        never.record(OutcomeClass::Server);
        never.after(300 * SECOND);
    }
    assert_eq!(never.state(), BreakerState::HalfOpen, "off by default");
}

#[test]
fn r65_auto_recover_tries_every_period() {
    let mut rig = Rig::tmdb(|breaker| breaker.auto_recover = Duration::from_secs(900));
    rig.force(BreakerCommand::CacheOnly);
    rig.new_transitions();
    for round in 0..3 {
        let start = round * 902 * SECOND;
        rig.now = start + 900 * SECOND - 1;
        assert_eq!(rig.refused(), (Reason::CacheOnly, Some(1)));
        rig.at(start + 902 * SECOND);
        assert_eq!(
            rig.new_transitions(),
            [
                (start + 900 * SECOND, BreakerState::Sleep, TransitionCause::AutoRecover),
                (start + 902 * SECOND, BreakerState::HalfOpen, TransitionCause::SleepExpired),
            ]
        );
        rig.record(OutcomeClass::Server);
        assert_eq!(rig.new_transitions(), [(rig.now, BreakerState::CacheOnly, TransitionCause::ProbeFailed)]);
    }
    rig.after(902 * SECOND).records(OutcomeClass::Ok, 5);
    assert_eq!(rig.state(), BreakerState::Normal);
    let mut manual = Rig::tmdb(|_| {});
    manual.force(BreakerCommand::CacheOnly);
    assert_eq!(manual.at(1 << 60).state(), BreakerState::CacheOnly);
    manual.force(BreakerCommand::HalfOpen);
    assert_eq!(manual.state(), BreakerState::HalfOpen);
}

#[test]
fn r66_forced_normal_is_the_full_rate_and_forgets() {
    let mut rig = probing();
    rig.record(OutcomeClass::Server);
    rig.force(BreakerCommand::Normal);
    assert_eq!(rig.new_transitions().last(), Some(&(0, BreakerState::Normal, TransitionCause::Forced)));
    assert_eq!(
        (rig.rate(), rig.window(), rig.health().sleeps, rig.health().consec429),
        (35_000, (0, 0), 0, 0)
    );
}

#[test]
fn r140_a_late_outcome_does_not_count_as_a_probe() {
    let mut rig = Rig::tmdb(|_| {});
    let old = rig.acquire().expect("Normal");
    rig.now = 1;
    rig.force(BreakerCommand::HalfOpen);
    let late = Report {
        granted_at: Some(old.granted_at),
        retry_after: Some(Nanos(SECOND)),
        ..Report::new(OutcomeClass::Server)
    };
    rig.report(Some(&old), &late);
    assert_eq!((rig.state(), rig.m.tallies().server), (BreakerState::HalfOpen, 1));
    assert_eq!(rig.refused(), (Reason::RetryAfter, Some(SECOND)), "but its Retry-After counts");
    rig.record(OutcomeClass::Server);
    assert_eq!(rig.state(), BreakerState::Sleep, "without a grant it is a probe's");
}

#[test]
fn r146_a_probe_stays_unanswered_until_an_outcome_counts() {
    let mut rig = Rig::tmdb(|breaker| breaker.probe_concurrency = 4);
    rig.now = 5;
    let normal = rig.acquire().expect("Normal");
    assert_eq!(rig.health().unanswered, 0, "nobody asks while all is well");
    rig.now = 6;
    rig.force(BreakerCommand::HalfOpen);
    assert_eq!(rig.health().unanswered, 0, "no call was made since");
    let probe = rig.after(SECOND).acquire().expect("a probe");
    decide::release(&mut rig.m, 0, &probe);
    assert_eq!(rig.health().unanswered, SECOND + 7);
    let second = rig.after(SECOND).acquire().expect("another");
    assert_eq!(rig.health().unanswered, SECOND + 7, "since the first");
    let late = Report { granted_at: Some(normal.granted_at), ..Report::new(OutcomeClass::Ok) };
    rig.report(Some(&normal), &late);
    rig.record(OutcomeClass::Ignored);
    assert_eq!(rig.health().unanswered, SECOND + 7, "neither a late outcome nor another 4xx is an answer");
    rig.report(
        Some(&second),
        &Report { granted_at: Some(second.granted_at), ..Report::new(OutcomeClass::Ok) },
    );
    assert_eq!((rig.state(), rig.health().unanswered), (BreakerState::HalfOpen, 0));
    rig.after(SECOND).acquire().expect("one more");
    rig.force(BreakerCommand::Normal);
    assert_eq!(rig.health().unanswered, 0);
}
