//! The five states (R49 to R66, R140, R141).

use super::*;

fn probing() -> Rig {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::HalfOpen);
    rig.news();
    rig
}

#[test]
fn r49_r50_it_starts_normal_with_the_defaults() {
    let rig = Rig::tmdb(|_| {});
    assert_eq!(
        (rig.state(), rig.rate(), rig.concurrency(), rig.left()),
        (State::Normal, 35_000, Some(4), Some(35))
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
        [b.sleep_min, b.sleep_max, b.sleep_after, b.ramp_every].map(|n| n.0 / SECOND),
        [2, 300, 300, 300]
    );
    assert_eq!(b.probe_rate.0, 3 * SECOND);
}

#[test]
fn r51_r52_r120_eleven_of_fifty_throttle() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Ok, 39);
    rig.records(Class::Server, 10);
    assert_eq!(rig.state(), State::Normal, "20.4 % once");
    rig.record(Class::Server);
    assert_eq!(rig.news(), [(0, State::Throttle, Cause::ErrorRatio)]);
    let mut equal = Rig::tmdb(|_| {});
    equal.records(Class::Ok, 8);
    equal.records(Class::Net, 2);
    assert_eq!(equal.state(), State::Normal);
    equal.record(Class::Net);
    assert_eq!(equal.state(), State::Throttle, "exactly 20 % counted as the first");
}

#[test]
fn r52_a_success_may_confirm_throttle_and_an_error_half_open() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Ok, 7);
    rig.records(Class::Server, 3);
    rig.record(Class::Ok);
    assert_eq!(rig.state(), State::Throttle, "3 of 10, then 3 of 11");
    rig.records(Class::Ok, 20);
    assert_eq!(rig.state(), State::Throttle, "3 of 31 is the first below 10 %");
    rig.after(30 * SECOND).records(Class::Ok, 1);
    assert_eq!(rig.state(), State::HalfOpen);
}

#[test]
fn r53_a_failed_evaluation_starts_the_count_anew() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Ok, 8);
    rig.records(Class::Server, 2);
    rig.record(Class::Ok);
    rig.record(Class::Server);
    assert_eq!(rig.state(), State::Normal, "20 %, 18 %, 25 %");
    rig.record(Class::Server);
    assert_eq!(rig.state(), State::Throttle);
}

#[test]
fn r54_throttle_halves_rate_permits_and_capacity() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::Throttle);
    assert_eq!((rig.rate(), rig.concurrency(), rig.left()), (17_000, Some(2), Some(17)));
    for (base, throttled) in [(4, 4), (8, 5), (10, 5), (11, 5), (12, 6)] {
        let mut small = Rig::tmdb(|breaker| breaker.rate_base = policy::PerSecond::whole(base));
        small.force(Force::Throttle);
        assert_eq!(small.rate(), throttled * 1000, "rate_base {base}");
    }
}

#[test]
fn r55_ten_successes_and_a_low_ratio_twice_lead_to_half_open() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::Throttle);
    rig.records(Class::Ok, 9);
    rig.record(Class::Server);
    rig.record(Class::Ok);
    assert_eq!(rig.state(), State::Throttle, "ten successes, 1 of 11: below 10 % for the first time");
    rig.record(Class::Ok);
    assert_eq!(rig.news().last(), Some(&(0, State::HalfOpen, Cause::SuccessWindowOk)));
}

#[test]
fn r51_r56_the_third_429_throttles_and_the_fifth_sleeps() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Throttled, 5);
    assert_eq!(rig.news(), [(0, State::Throttle, Cause::Consec429), (0, State::Sleep, Cause::Consec429)]);
}

#[test]
fn r56_five_minutes_of_sixty_percent_sleep() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Server, 11);
    for second in (1..300).chain([300]) {
        assert_eq!(rig.state(), State::Throttle, "{second}");
        rig.at(second * SECOND).record(Class::Server);
    }
    assert_eq!(rig.news().last(), Some(&(300 * SECOND, State::Sleep, Cause::SustainedErrors)));
}

#[test]
fn r56_an_empty_window_starts_the_five_minutes_anew() {
    let mut rig = Rig::tmdb(|_| {});
    rig.records(Class::Server, 11);
    rig.at(200 * SECOND).records(Class::Server, 10);
    for second in 201..500 {
        rig.at(second * SECOND).record(Class::Server);
    }
    assert_eq!(rig.state(), State::Throttle, "the first ten after the silence were at 200 s");
    rig.at(500 * SECOND).record(Class::Server);
    assert_eq!(rig.state(), State::Sleep);
}

#[test]
fn r57_cooldowns_double_up_to_the_longest() {
    let mut rig = probing();
    for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        rig.record(Class::Server);
        assert_eq!(rig.refused(), (Reason::Sleep, Some(seconds * SECOND)));
        rig.after(seconds * SECOND);
    }
    rig.records(Class::Ok, 5);
    rig.force(Force::HalfOpen);
    rig.record(Class::Server);
    assert_eq!(rig.refused().1, Some(2 * SECOND), "Normal forgets");
    rig.after(2 * SECOND).retry_after(Class::Throttled, 400 * SECOND);
    assert_eq!(
        rig.refused(),
        (Reason::Sleep, Some(400 * SECOND)),
        "a server's word is not capped by sleep_max"
    );
}

#[test]
fn r58_sleep_ends_at_its_time_whenever_that_is_seen() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::Sleep);
    rig.news();
    rig.at(2 * SECOND - 1);
    assert_eq!(rig.state(), State::Sleep);
    rig.at(3600 * SECOND);
    assert_eq!(rig.news(), [(2 * SECOND, State::HalfOpen, Cause::SleepExpired)]);
}

#[test]
fn r59_late_outcomes_only_put_the_end_off() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::Sleep);
    rig.records(Class::Throttled, 20);
    rig.retry_after(Class::Throttled, SECOND);
    assert_eq!(rig.refused(), (Reason::Sleep, Some(2 * SECOND)));
    rig.retry_after(Class::Throttled, 9 * SECOND);
    assert_eq!(rig.refused(), (Reason::Sleep, Some(9 * SECOND)));
    assert_eq!((rig.health().sleeps, rig.m.tallies().throttled), (1, 22));
}

#[test]
fn r60_half_open_starts_clean_with_one_slow_request() {
    let mut rig = Rig::tmdb(|_| {});
    let old = rig.acquire().expect("Normal");
    rig.records(Class::Throttled, 5);
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
    rig.records(Class::Ok, 4);
    rig.records(Class::Ignored, 3);
    assert_eq!(rig.state(), State::HalfOpen);
    rig.record(Class::Ok);
    assert_eq!(rig.news(), [(0, State::Normal, Cause::ProbeOk)]);
    for class in [Class::Throttled, Class::Server, Class::Net] {
        let mut rig = probing();
        rig.records(Class::Ok, 2);
        rig.record(class);
        assert_eq!(rig.news(), [(0, State::Sleep, Cause::ProbeFailed)]);
    }
}

#[test]
fn r62_the_rate_ramps_up_in_eight_steps() {
    let mut rig = probing();
    rig.records(Class::Ok, 5);
    assert_eq!(rig.concurrency(), Some(4));
    for rate in [17_000, 18_700, 20_570, 22_627, 24_889, 27_378, 30_116, 33_128, 35_000, 35_000] {
        assert_eq!(rig.rate(), rate);
        rig.after(300 * SECOND - 1);
        assert_eq!(rig.rate(), rate);
        rig.after(1);
    }
    let mut ended = probing();
    ended.records(Class::Ok, 5);
    ended.force(Force::Throttle);
    assert_eq!(ended.at(3600 * SECOND).rate(), 17_000);
}

#[test]
fn r63_offline_has_no_end_but_online() {
    let mut rig = Rig::tmdb(|_| {});
    rig.force(Force::Offline);
    rig.now = 1 << 60;
    assert_eq!((rig.state(), rig.refused()), (State::Sleep, (Reason::Sleep, None)));
    rig.force(Force::Online);
    assert_eq!(rig.state(), State::HalfOpen);
}

#[test]
fn r64_r141_so_many_sleeps_without_normal_lead_to_cache_only() {
    let mut rig = Rig::tmdb(|breaker| breaker.cache_only_after = 2);
    rig.force(Force::HalfOpen);
    for state in [State::Sleep, State::Sleep, State::CacheOnly] {
        rig.record(Class::Server);
        assert_eq!(rig.state(), state);
        rig.after(300 * SECOND);
    }
    assert_eq!(rig.refused(), (Reason::CacheOnly, None));
    let mut never = probing();
    for _ in 0..50 {
        never.record(Class::Server);
        never.after(300 * SECOND);
    }
    assert_eq!(never.state(), State::HalfOpen, "off by default");
}

#[test]
fn r65_auto_recover_tries_every_period() {
    let mut rig = Rig::tmdb(|breaker| breaker.auto_recover = Nanos::from_secs(900));
    rig.force(Force::CacheOnly);
    rig.news();
    for round in 0..3 {
        let start = round * 902 * SECOND;
        rig.now = start + 900 * SECOND - 1;
        assert_eq!(rig.refused(), (Reason::CacheOnly, Some(1)));
        rig.at(start + 902 * SECOND);
        assert_eq!(
            rig.news(),
            [
                (start + 900 * SECOND, State::Sleep, Cause::AutoRecover),
                (start + 902 * SECOND, State::HalfOpen, Cause::SleepExpired),
            ]
        );
        rig.record(Class::Server);
        assert_eq!(rig.news(), [(rig.now, State::CacheOnly, Cause::ProbeFailed)]);
    }
    rig.after(902 * SECOND).records(Class::Ok, 5);
    assert_eq!(rig.state(), State::Normal);
    let mut manual = Rig::tmdb(|_| {});
    manual.force(Force::CacheOnly);
    assert_eq!(manual.at(1 << 60).state(), State::CacheOnly);
    manual.force(Force::HalfOpen);
    assert_eq!(manual.state(), State::HalfOpen);
}

#[test]
fn r66_forced_normal_is_the_full_rate_and_forgets() {
    let mut rig = probing();
    rig.record(Class::Server);
    rig.force(Force::Normal);
    assert_eq!(rig.news().last(), Some(&(0, State::Normal, Cause::Forced)));
    assert_eq!(
        (rig.rate(), rig.window(), rig.health().sleeps, rig.health().consec429),
        (35_000, (0, 0), 0, 0)
    );
}

#[test]
fn r140_a_late_outcome_is_no_probe() {
    let mut rig = Rig::tmdb(|_| {});
    let old = rig.acquire().expect("Normal");
    rig.now = 1;
    rig.force(Force::HalfOpen);
    let late = Report {
        granted_at: Some(old.granted_at),
        retry_after: Some(Nanos(SECOND)),
        ..Report::new(Class::Server)
    };
    rig.report(Some(&old), &late);
    assert_eq!((rig.state(), rig.m.tallies().server), (State::HalfOpen, 1));
    assert_eq!(rig.refused(), (Reason::RetryAfter, Some(SECOND)), "but its Retry-After counts");
    rig.record(Class::Server);
    assert_eq!(rig.state(), State::Sleep, "without a grant it is a probe's");
}

#[test]
fn r146_a_probe_is_unanswered_until_an_outcome_counts() {
    let mut rig = Rig::tmdb(|breaker| breaker.probe_concurrency = 4);
    rig.now = 5;
    let normal = rig.acquire().expect("Normal");
    assert_eq!(rig.health().unanswered, 0, "nobody asks while all is well");
    rig.now = 6;
    rig.force(Force::HalfOpen);
    assert_eq!(rig.health().unanswered, 0, "no call was made since");
    let probe = rig.after(SECOND).acquire().expect("a probe");
    decide::release(&mut rig.m, 0, &probe);
    assert_eq!(rig.health().unanswered, SECOND + 7);
    let second = rig.after(SECOND).acquire().expect("another");
    assert_eq!(rig.health().unanswered, SECOND + 7, "since the first");
    let late = Report { granted_at: Some(normal.granted_at), ..Report::new(Class::Ok) };
    rig.report(Some(&normal), &late);
    rig.record(Class::Ignored);
    assert_eq!(rig.health().unanswered, SECOND + 7, "neither a late outcome nor another 4xx is an answer");
    rig.report(Some(&second), &Report { granted_at: Some(second.granted_at), ..Report::new(Class::Ok) });
    assert_eq!((rig.state(), rig.health().unanswered), (State::HalfOpen, 0));
    rig.after(SECOND).acquire().expect("one more");
    rig.force(Force::Normal);
    assert_eq!(rig.health().unanswered, 0);
}
