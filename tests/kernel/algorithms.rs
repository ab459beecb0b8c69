//! Examples for requirements R9 to R37, named by number. The unit tests of the kernel have more examples for
//! buckets.

use shmlimit_kernel::rule::{self, RuleContext, Window};
use shmlimit_kernel::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

fn rule(algorithm: Algorithm, limit: u64, period: u64) -> RuleDraft<'static> {
    RuleDraft::new(algorithm, limit, Duration::from_nanos(period))
}

fn passes(burst: u64, limit: u64, period: u64) -> RuleDraft<'static> {
    RuleDraft {
        burst: Some(burst),
        burst_mode: BurstMode::FixedWindow,
        ..rule(Algorithm::Gcra, limit, period)
    }
}

fn policy(rules: &[RuleDraft<'_>]) -> Policy {
    Policy::new(&PolicyDraft { rules, ..PolicyDraft::default() }).expect("valid")
}

fn memory(rules: &[RuleDraft<'_>]) -> LocalMemory {
    LocalMemory::new(&policy(rules))
}

fn take(m: &mut LocalMemory, cost: u64, now: u64) -> Result<Ticket, Refusal> {
    decide::acquire(m, 0, &AcquireRequest::requests(cost, Priority::User), Time(now))
}

/// How many calls of one unit are granted at one instant.
fn burst(m: &mut LocalMemory, now: u64) -> u64 {
    (0..1_000).take_while(|_| take(m, 1, now).is_ok()).count() as u64
}

fn wait(m: &mut LocalMemory, cost: u64, now: u64) -> u64 {
    take(m, cost, now).expect_err("refused").retry_after().expect("not never").0
}

fn left(m: &LocalMemory, now: u64) -> u64 {
    decide::remaining(m, Priority::User, [true; MAX_UNITS], Time(now)).expect("rules")
}

fn window(m: &LocalMemory, now: u64) -> Option<Window> {
    rule::window(m, &RuleContext::of(m, 0, Time(now)), m.rule(0))
}

#[test]
fn r9_ten_calls_pass_at_once_and_the_next_one_when_there_is_room() {
    for (algorithm, limit, period, burst_of, next) in [
        (Algorithm::TokenBucket, 1, SECOND, Some(10), SECOND),
        (Algorithm::LeakyBucket, 1, SECOND, Some(10), SECOND),
        (Algorithm::FixedWindow, 10, MINUTE, None, MINUTE),
        (Algorithm::SlidingLog, 10, MINUTE, None, MINUTE),
        // In the next window, 10 * (60 - e) / 60 is below 10 from its second nanosecond on.
        (Algorithm::SlidingCounter, 10, MINUTE, None, MINUTE + 1),
    ] {
        let mut m = memory(&[RuleDraft { burst: burst_of, ..rule(algorithm, limit, period) }]);
        assert_eq!(burst(&mut m, 0), 10, "{algorithm:?}");
        assert_eq!(wait(&mut m, 1, 0), next, "{algorithm:?}");
    }
}

#[test]
fn r10_the_guide_names_every_algorithm() {
    let guide = include_str!("../../docs/algorithms.md");
    let table =
        guide.split("## Which one").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a guide");
    for algorithm in Algorithm::ALL {
        assert!(table.contains(&format!("`{}`", algorithm.as_str())), "{algorithm:?}");
    }
}

/// The claims of "Which one" in docs/algorithms.md. The limit is 10 in 10 s. The test takes everything just before
/// a boundary, and then everything that becomes available.
#[test]
fn r10_r30_r33_the_guide_states_the_true_maximum_of_any_period() {
    for (algorithm, behind_the_boundary, in_a_period) in [
        (Algorithm::TokenBucket, 0, 19),
        (Algorithm::Gcra, 0, 19),
        (Algorithm::LeakyBucket, 0, 19),
        (Algorithm::FixedWindow, 10, 20),
        (Algorithm::SlidingCounter, 1, 20),
        (Algorithm::SlidingLog, 0, 10),
    ] {
        let mut m = memory(&[rule(algorithm, 10, 10 * SECOND)]);
        let start = 10 * SECOND - SECOND / 10;
        assert_eq!(burst(&mut m, start), 10, "{algorithm:?}");
        let at_once = burst(&mut m, 10 * SECOND + 1);
        assert_eq!(at_once, behind_the_boundary, "{algorithm:?}");
        let later: u64 = (1..99).map(|i| burst(&mut m, 10 * SECOND + i * SECOND / 10)).sum();
        assert_eq!(10 + at_once + later, in_a_period, "{algorithm:?}");
    }
}

#[test]
fn r11_rules_never_interact() {
    for algorithm in Algorithm::ALL {
        let mut m = memory(&[
            RuleDraft { name: Some("a"), ..rule(algorithm, 5, MINUTE) },
            RuleDraft { name: Some("b"), unit: Some("tokens"), ..rule(algorithm, 5, MINUTE) },
        ]);
        assert_eq!(burst(&mut m, 0), 5);
        let of = |unit: usize| {
            let units = std::array::from_fn(|i| i == unit);
            decide::remaining(&m, Priority::User, units, Time(0))
        };
        assert_eq!((of(0), of(1)), (Some(0), Some(5)), "{algorithm:?}");
    }
}

#[test]
fn r15_each_grant_moves_the_arrival_time_by_its_cost() {
    let mut m = memory(&[RuleDraft { burst: Some(4), ..rule(Algorithm::Gcra, 1, SECOND) }]);
    take(&mut m, 1, 0).unwrap();
    take(&mut m, 3, SECOND / 2).unwrap();
    // TAT = 4 s, so a fifth call fits at 1 s.
    assert_eq!(wait(&mut m, 1, SECOND / 2), SECOND / 2);
}

#[test]
fn r19_gcra_ignores_calendar_minutes() {
    let mut m = LocalMemory::starting_at(&policy(&[rule(Algorithm::Gcra, 60, MINUTE)]), 0);
    assert_eq!(burst(&mut m, MINUTE - 1), 60);
    assert_eq!(burst(&mut m, MINUTE), 0);
    assert_eq!(burst(&mut m, MINUTE + SECOND), 1);
}

#[test]
fn r21_a_hundred_per_minute_is_one_every_600_ms() {
    let mut m = memory(&[RuleDraft { burst: Some(1), ..rule(Algorithm::Gcra, 100, MINUTE) }]);
    take(&mut m, 1, 0).unwrap();
    assert_eq!(wait(&mut m, 1, 0), 600_000_000);
}

#[test]
fn r22_the_window_burst_renews_each_minute_and_pacing_follows_it() {
    let mut m = memory(&[passes(3, 60, MINUTE)]);
    // 3 calls of the window burst, and one by pacing, which starts with room for one call.
    assert_eq!(left(&m, 30 * SECOND), 4);
    assert_eq!(burst(&mut m, 30 * SECOND), 4);
    assert_eq!(wait(&mut m, 1, 30 * SECOND), SECOND);
    assert_eq!(burst(&mut m, 31 * SECOND), 1);
    // The wait ends at the earlier of the next pacing slot and the next minute.
    assert_eq!(burst(&mut m, 59 * SECOND + SECOND / 2), 1);
    assert_eq!(wait(&mut m, 1, 59 * SECOND + SECOND / 2), SECOND / 2);
    assert_eq!(wait(&mut m, 3, 59 * SECOND + SECOND / 2), SECOND / 2);
    assert_eq!(take(&mut m, 4, 0).unwrap_err().reason, Reason::CostExceedsLimit);
    // The window burst did not move the pacing: pacing has room again half a second into the minute.
    assert_eq!(burst(&mut m, MINUTE), 3);
    assert_eq!(wait(&mut m, 1, MINUTE), SECOND / 2);
    assert_eq!(window(&m, MINUTE).map(|w| (w.used, w.resets_at)), Some((3, Time(2 * MINUTE))));
}

#[test]
fn r22_a_cost_is_charged_wholly_to_the_window_burst_or_wholly_to_pacing() {
    let mut m = memory(&[passes(3, 60, MINUTE)]);
    take(&mut m, 2, 0).unwrap();
    take(&mut m, 2, 0).unwrap();
    assert_eq!(left(&m, 0), 1, "one pass is left, and the pacing owes two seconds");
    take(&mut m, 1, 0).unwrap();
    assert_eq!(wait(&mut m, 1, 0), 2 * SECOND);
}

#[test]
fn r22_background_calls_leave_the_reserve_and_use_pacing() {
    let mut m = memory(&[RuleDraft { reserve: 2, ..passes(3, 60, MINUTE) }]);
    let request = AcquireRequest::one(Priority::Background);
    let mut taken = || decide::acquire(&mut m, 0, &request, Time(0)).is_ok();
    assert_eq!([taken(), taken(), taken()], [true, true, false]);
    assert_eq!(burst(&mut m, 0), 2);
}

#[test]
fn r23_a_leaky_bucket_starts_empty_and_is_full_at_its_capacity() {
    let mut m = memory(&[RuleDraft { burst: Some(5), ..rule(Algorithm::LeakyBucket, 2, SECOND) }]);
    take(&mut m, 2, 0).unwrap();
    assert_eq!(wait(&mut m, 4, 0), SECOND / 2);
    take(&mut m, 3, 0).unwrap();
    assert_eq!(wait(&mut m, 1, 0), SECOND / 2);
}

#[test]
fn r24_r125_half_a_unit_per_second_drains_three_units_in_six_seconds() {
    let mut m = memory(&[RuleDraft { burst: Some(10), ..rule(Algorithm::LeakyBucket, 1, 2 * SECOND) }]);
    take(&mut m, 10, 0).unwrap();
    take(&mut m, 1, 3 * SECOND).unwrap();
    // 10 - 1.5 + 1 - 1.5 = 8, so two calls fit.
    assert_eq!(left(&m, 6 * SECOND), 2);
    assert_eq!(burst(&mut m, 6 * SECOND), 2);
}

#[test]
fn r25_a_leaky_bucket_spaces_calls_evenly() {
    let mut m = memory(&[RuleDraft { burst: Some(4), ..rule(Algorithm::LeakyBucket, 3, SECOND) }]);
    let delays: Vec<u64> = (0..4).map(|_| take(&mut m, 1, 0).unwrap().delay.0).collect();
    assert_eq!(delays, [0, 333_333_334, 666_666_667, SECOND]);
    // The call starts at 4/3 s, a third of a second from now. The start is never before now.
    assert_eq!(take(&mut m, 1, SECOND).unwrap().delay.0, 333_333_334);
    assert_eq!(take(&mut m, 1, 100 * SECOND).unwrap().delay, Nanos::ZERO);
    let mut bucket = memory(&[rule(Algorithm::TokenBucket, 3, SECOND)]);
    take(&mut bucket, 2, 0).unwrap();
    assert_eq!(take(&mut bucket, 1, 0).unwrap().delay, Nanos::ZERO, "only a leaky bucket delays");
}

#[test]
fn r26_an_empty_bucket_keeps_no_phase() {
    let mut m = memory(&[RuleDraft { burst: Some(1), ..rule(Algorithm::LeakyBucket, 1, SECOND) }]);
    take(&mut m, 1, 0).unwrap();
    // The bucket is empty from 1 s on. The next leak comes one whole second after the next call, not at 2 s.
    take(&mut m, 1, SECOND + SECOND / 2).unwrap();
    assert_eq!(wait(&mut m, 1, 2 * SECOND), SECOND / 2);
}

#[test]
fn r27_remaining_is_what_fits_rounded_down() {
    let mut m = memory(&[RuleDraft { burst: Some(5), ..rule(Algorithm::LeakyBucket, 1, SECOND) }]);
    take(&mut m, 3, 0).unwrap();
    assert_eq!([0, SECOND - 1, SECOND].map(|now| left(&m, now)), [2, 2, 3]);
}

#[test]
fn r28_windows_begin_with_the_utc_minute() {
    // 20 s into a minute.
    let epoch = 1_000_000 * MINUTE + 20 * SECOND;
    let mut m = LocalMemory::starting_at(&policy(&[rule(Algorithm::FixedWindow, 2, MINUTE)]), epoch);
    take(&mut m, 2, 0).unwrap();
    assert!(take(&mut m, 1, 40 * SECOND - 1).is_err());
    assert_eq!(burst(&mut m, 40 * SECOND), 2, "the boundary itself is the new window");
}

#[test]
fn r28_days_begin_at_midnight_utc() {
    let (day, noon) = (24 * 60 * MINUTE, 12 * 60 * MINUTE);
    let mut m =
        LocalMemory::starting_at(&policy(&[rule(Algorithm::FixedWindow, 1, day)]), 20_000 * day + noon);
    take(&mut m, 1, 0).unwrap();
    assert_eq!(wait(&mut m, 1, 0), noon);
}

#[test]
fn r29_a_window_reports_its_usage_and_its_end() {
    let mut m = LocalMemory::starting_at(&policy(&[rule(Algorithm::FixedWindow, 5, MINUTE)]), 20 * SECOND);
    take(&mut m, 3, 0).unwrap();
    assert_eq!(wait(&mut m, 3, 10 * SECOND), 30 * SECOND);
    let resets_at = Time(40 * SECOND);
    assert_eq!(window(&m, 10 * SECOND), Some(Window { used: 3, before: 0, resets_at }));
    let resets_at = Time(100 * SECOND);
    assert_eq!(window(&m, 40 * SECOND), Some(Window { used: 0, before: 0, resets_at }));
}

#[test]
fn r30_r33_r125_twice_the_limit_passes_around_a_window_boundary_but_not_in_a_log() {
    let around = |algorithm| {
        let mut m = memory(&[rule(algorithm, 10, MINUTE)]);
        burst(&mut m, 59 * SECOND) + burst(&mut m, 61 * SECOND)
    };
    assert_eq!(around(Algorithm::FixedWindow), 20);
    assert_eq!(around(Algorithm::SlidingLog), 10);
    // 10 * 59/60 = 9.8 counts as 9.
    assert_eq!(around(Algorithm::SlidingCounter), 11);
}

#[test]
fn r31_r125_calls_at_one_instant_all_count_and_expire_together() {
    let mut m = memory(&[rule(Algorithm::SlidingLog, 10, MINUTE)]);
    assert_eq!(burst(&mut m, 7), 10);
    assert_eq!(left(&m, MINUTE + 6), 0);
    assert_eq!(left(&m, MINUTE + 7), 10);
}

#[test]
fn r32_the_wait_ends_when_the_kth_oldest_unit_expires() {
    let mut m = memory(&[rule(Algorithm::SlidingLog, 10, MINUTE)]);
    for second in 0..10 {
        take(&mut m, 1, second * SECOND).unwrap();
    }
    let waits = [1, 4, 10].map(|cost| wait(&mut m, cost, 10 * SECOND));
    assert_eq!(waits, [50 * SECOND, 53 * SECOND, 59 * SECOND]);
}

#[test]
fn r34_only_the_previous_window_counts() {
    let mut m = memory(&[rule(Algorithm::SlidingCounter, 10, MINUTE)]);
    take(&mut m, 10, 0).unwrap();
    assert_eq!(left(&m, MINUTE + MINUTE / 2), 5);
    assert_eq!(left(&m, 2 * MINUTE), 10);
}

#[test]
fn r35_a_weighted_count_equal_to_the_limit_refuses() {
    let mut m = memory(&[rule(Algorithm::SlidingCounter, 10, MINUTE)]);
    take(&mut m, 10, 0).unwrap();
    take(&mut m, 4, MINUTE + MINUTE * 4 / 10).unwrap();
    // 10 * 0.6 + 4 = 10 exactly.
    assert_eq!(wait(&mut m, 1, MINUTE + MINUTE * 4 / 10), 1);
}

#[test]
fn r36_seven_units_count_at_half_a_window_and_more_than_ten_at_a_tenth() {
    let mut half = memory(&[rule(Algorithm::SlidingCounter, 10, MINUTE)]);
    take(&mut half, 8, 0).unwrap();
    take(&mut half, 2, MINUTE).unwrap();
    let mut tenth = half.clone();
    // The third call of this window fits once the 8 units count for less than 8.
    take(&mut half, 1, MINUTE + MINUTE / 2 - 1).unwrap();
    assert_eq!(left(&half, MINUTE + MINUTE / 2), 3, "8 * 0.5 + 3 = 7");
    assert!(take(&mut half, 1, MINUTE + MINUTE / 2).is_ok());
    take(&mut tenth, 1, MINUTE + 1).unwrap();
    // 8 * 0.9 + 3 = 10.2.
    assert_eq!(left(&tenth, MINUTE + MINUTE / 10), 0);
    assert!(take(&mut tenth, 1, MINUTE + MINUTE / 10).is_err());
}

#[test]
fn r37_the_wait_may_end_in_the_next_window() {
    let mut m = memory(&[rule(Algorithm::SlidingCounter, 10, MINUTE)]);
    take(&mut m, 10, MINUTE / 2).unwrap();
    // For five units, 10 * left / 60 s must be below 6: less than 36 s of the next minute may be left.
    assert_eq!(wait(&mut m, 5, MINUTE / 2), MINUTE / 2 + 24 * SECOND + 1);
    let next = take(&mut m, 5, MINUTE + 24 * SECOND + 1);
    assert!(next.is_ok());
    let resets_at = Time(2 * MINUTE);
    assert_eq!(window(&m, MINUTE + 30 * SECOND), Some(Window { used: 5, before: 10, resets_at }));
}

#[test]
fn r126_the_two_burst_modes_differ_on_the_same_trace() {
    // Ten calls every half minute, at a limit of 10 per minute.
    let trace = |rule: RuleDraft<'static>| -> Vec<u64> {
        let mut m = memory(&[rule]);
        let mut granted = |now| (0..10).filter(|_| take(&mut m, 1, now).is_ok()).count() as u64;
        (0..6).map(|half| granted(half * MINUTE / 2)).collect()
    };
    assert_eq!(trace(rule(Algorithm::Gcra, 10, MINUTE)), [10, 5, 5, 5, 5, 5]);
    // The window burst renews each minute. After it, pacing admits one call.
    assert_eq!(trace(passes(10, 10, MINUTE)), [10, 1, 10, 1, 10, 1]);
}
