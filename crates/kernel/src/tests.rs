//! The examples of the requirements, by number.

use super::policy::MAX_AMOUNT;
use super::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn bucket(limit: u64, period: Duration) -> RuleDraft<'static> {
    RuleDraft::new(Algorithm::TokenBucket, limit, period)
}

fn gcra(limit: u64, period: Duration) -> RuleDraft<'static> {
    RuleDraft::new(Algorithm::Gcra, limit, period)
}

fn policy(rules: &[RuleDraft<'_>]) -> Policy {
    Policy::new(&PolicyDraft { rules, ..PolicyDraft::default() }).expect("valid")
}

fn memory(rules: &[RuleDraft<'_>]) -> LocalMemory {
    LocalMemory::new(&policy(rules))
}

fn user(m: &mut LocalMemory, cost: u64, now: u64) -> Result<Ticket, Refusal> {
    decide::acquire(m, 0, &AcquireRequest::requests(cost, Priority::User), Time(now))
}

fn background(m: &mut LocalMemory, cost: u64, now: u64) -> Result<Ticket, Refusal> {
    decide::acquire(m, 0, &AcquireRequest::requests(cost, Priority::Background), Time(now))
}

fn left(m: &LocalMemory, now: u64) -> Option<u64> {
    decide::remaining(m, Priority::User, [true; MAX_UNITS], Time(now))
}

#[test]
fn r3_a_clock_that_goes_back_does_not_refill_twice() {
    let mut m = memory(&[bucket(1, SECOND)]);
    assert!(user(&mut m, 1, 5_000_000_000).is_ok());
    let refusal = user(&mut m, 1, 1_000_000_000).unwrap_err();
    assert_eq!(refusal.checked_at, Time(5_000_000_000));
    assert_eq!(refusal.retry_at, Some(Time(6_000_000_000)));
}

#[test]
fn r6_a_cost_above_the_capacity_is_never_admitted_and_says_so() {
    let mut m = memory(&[RuleDraft { reserve: 3, ..bucket(10, SECOND) }]);
    let refusal = user(&mut m, 11, 0).unwrap_err();
    assert_eq!(
        (refusal.reason, refusal.rule, refusal.retry_at, refusal.ready_at),
        (Reason::CostExceedsLimit, Some(0), None, None)
    );
    assert_eq!(background(&mut m, 8, 0).unwrap_err().reason, Reason::CostExceedsLimit);
    assert!(background(&mut m, 7, 0).is_ok());
    assert_eq!(user(&mut m, u64::MAX, 0).unwrap_err().reason, Reason::CostExceedsLimit);
}

#[test]
fn r6_a_peek_takes_nothing_even_from_an_empty_limiter() {
    let mut m = memory(&[bucket(1, SECOND)]);
    user(&mut m, 1, 0).unwrap();
    let before = m.clone();
    let ticket = user(&mut m, 0, 0).unwrap();
    assert_eq!(ticket.permit.total, 0);
    decide::release(&mut m, 0, &ticket);
    decide::cancel(&mut m, 0, &ticket, Time(0));
    assert_eq!(m, before);
}

#[test]
fn r12_a_bucket_starts_full_and_equality_admits() {
    let mut m = memory(&[bucket(10, SECOND)]);
    assert!(user(&mut m, 10, 0).is_ok());
    assert_eq!(left(&m, 99_999_999), Some(0));
    assert!(user(&mut m, 1, 99_999_999).is_err());
    assert!(user(&mut m, 1, 100_000_000).is_ok());
    assert_eq!(left(&m, 3_600_000_000_000), Some(10));
}

#[test]
fn r13_the_wait_is_the_time_for_the_missing_tokens_rounded_up() {
    let mut m = memory(&[bucket(35, SECOND)]);
    user(&mut m, 35, 0).unwrap();
    assert_eq!(user(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos(28_571_429)));
    assert_eq!(user(&mut m, 7, 0).unwrap_err().retry_after(), Some(Nanos(200_000_000)));
}

#[test]
fn r14_polling_loses_no_refill() {
    let mut m = memory(&[bucket(1, SECOND)]);
    user(&mut m, 1, 0).unwrap();
    for now in (0..1_000_000_000).step_by(333_333) {
        assert!(user(&mut m, 1, now).is_err());
    }
    assert!(user(&mut m, 1, 1_000_000_000).is_ok());
}

#[test]
fn r16_four_per_eight_seconds_allows_four_at_once_then_one_every_two_seconds() {
    let mut m = memory(&[gcra(4, Duration::from_secs(8))]);
    for _ in 0..4 {
        user(&mut m, 1, 0).unwrap();
    }
    assert!(user(&mut m, 1, 1).is_err());
    for second in [2, 4, 6] {
        assert!(user(&mut m, 1, second * 1_000_000_000 - 1).is_err());
        assert!(user(&mut m, 1, second * 1_000_000_000).is_ok());
    }
}

#[test]
fn r17_a_tau_of_one_step_paces_strictly_and_a_shorter_tau_is_an_error() {
    let mut m =
        memory(&[RuleDraft { tau: Some(Duration::from_millis(600)), ..gcra(100, Duration::from_secs(60)) }]);
    user(&mut m, 1, 0).unwrap();
    assert_eq!(user(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos::from_millis(600)));
    let short =
        RuleDraft { tau: Some(Duration::from_nanos(599_999_999)), ..gcra(100, Duration::from_secs(60)) };
    let error = Policy::new(&PolicyDraft { rules: &[short], ..PolicyDraft::default() }).unwrap_err();
    assert_eq!(error.to_string(), "rules.0.tau = 599999999ns: must be from 600ms to 53375d");
}

#[test]
fn r18_remaining_is_rounded_down() {
    let mut m = memory(&[RuleDraft { tau: Some(Duration::from_nanos(2_500_000_000)), ..gcra(1, SECOND) }]);
    assert_eq!(left(&m, 0), Some(2));
    user(&mut m, 1, 0).unwrap();
    assert_eq!(left(&m, 0), Some(1));
    assert_eq!(left(&m, 500_000_000), Some(2));
}

#[test]
fn r20_r38_if_one_rule_refuses_no_rule_is_charged() {
    let mut m = memory(&[gcra(10, SECOND), gcra(2, Duration::from_secs(60))]);
    user(&mut m, 2, 0).unwrap();
    let before = m.clone();
    assert_eq!(user(&mut m, 1, 0).unwrap_err().rule, Some(1));
    assert_eq!(m, before);
}

#[test]
fn r39_a_refusal_names_the_rule_with_the_longest_wait_and_the_first_of_equals() {
    let mut m =
        memory(&[bucket(1, SECOND), bucket(1, Duration::from_secs(9)), gcra(1, Duration::from_secs(9))]);
    user(&mut m, 1, 0).unwrap();
    let refusal = user(&mut m, 1, 0).unwrap_err();
    assert_eq!((refusal.rule, refusal.retry_at), (Some(1), Some(Time(9_000_000_000))));
}

#[test]
fn r107_background_calls_do_not_use_the_reserve() {
    let mut m = memory(&[RuleDraft { reserve: 4, ..bucket(10, SECOND) }]);
    background(&mut m, 6, 0).unwrap();
    assert_eq!(background(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos(100_000_000)));
    assert_eq!(decide::remaining(&m, Priority::Background, [true; MAX_UNITS], Time(0)), Some(0));
    assert_eq!(left(&m, 0), Some(4));
    assert!(user(&mut m, 4, 0).is_ok());
}

#[test]
fn r108_r145_background_calls_have_their_own_permit_limit() {
    let draft =
        PolicyDraft { concurrency: Some(3), concurrency_background: Some(1), ..PolicyDraft::default() };
    let mut m = LocalMemory::new(&Policy::new(&draft).expect("valid"));
    let ticket = background(&mut m, 1, 0).unwrap();
    let refusal = background(&mut m, 1, 7).unwrap_err();
    assert_eq!((refusal.reason, refusal.rule, refusal.retry_at), (Reason::Concurrency, None, None));
    assert_eq!(refusal.ready_at, Some(Time(7)));
    user(&mut m, 1, 0).unwrap();
    user(&mut m, 1, 0).unwrap();
    assert_eq!(user(&mut m, 1, 0).unwrap_err().reason, Reason::Concurrency);
    decide::release(&mut m, 0, &ticket);
    assert!(background(&mut m, 1, 0).is_ok());
}

#[test]
fn r113_the_permits_of_an_exited_process_are_returned_once() {
    let draft = PolicyDraft { concurrency: Some(2), ..PolicyDraft::default() };
    let mut m = LocalMemory::new(&Policy::new(&draft).expect("valid"));
    let request = AcquireRequest::one(Priority::Background);
    let ticket = decide::acquire(&mut m, 1, &request, Time(0)).unwrap();
    decide::acquire(&mut m, 2, &request, Time(0)).unwrap();
    assert_eq!(decide::reclaim(&mut m, 1).held, Held { total: 1, background: 1 });
    decide::release(&mut m, 1, &ticket);
    assert!(decide::reclaim(&mut m, 1).is_nothing());
    assert_eq!((m.core().in_flight, m.core().in_flight_background), (1, 1));
}

#[test]
fn r128_units_are_charged_together_and_rules_on_other_units_do_not_block() {
    let tokens = RuleDraft { unit: Some("tokens"), ..bucket(900, Duration::from_secs(60)) };
    let rules = [bucket(2, SECOND), tokens];
    let mut m = memory(&rules);
    let request =
        |requests, tokens| AcquireRequest { cost: [requests, tokens, 0, 0], priority: Priority::User };
    decide::acquire(&mut m, 0, &request(1, 900), Time(0)).unwrap();
    assert_eq!(decide::acquire(&mut m, 0, &request(1, 1), Time(0)).unwrap_err().rule, Some(1));
    assert_eq!(decide::remaining(&m, Priority::User, [true, false, false, false], Time(0)), Some(1));
    assert!(decide::acquire(&mut m, 0, &request(1, 0), Time(0)).is_ok());
}

#[test]
fn r129_a_cancel_refunds_the_units_that_have_not_been_refilled() {
    let mut m = memory(&[RuleDraft { burst: Some(2), ..bucket(1, SECOND) }]);
    let first = user(&mut m, 1, 0).unwrap();
    let second = user(&mut m, 1, 0).unwrap();
    decide::cancel(&mut m, 0, &second, Time(400_000_000));
    assert_eq!(left(&m, 400_000_000), Some(1));
    decide::cancel(&mut m, 0, &first, Time(400_000_000));
    assert_eq!(left(&m, 400_000_000), Some(2));
}

#[test]
fn r129_cancelling_an_earlier_call_lowers_the_refund_of_a_later_one() {
    let mut m = memory(&[RuleDraft { burst: Some(2), ..bucket(1, Duration::from_nanos(10)) }]);
    let first = user(&mut m, 1, 0).unwrap();
    let second = user(&mut m, 1, 0).unwrap();
    decide::cancel(&mut m, 0, &first, Time(0));
    user(&mut m, 1, 10).unwrap();
    // The units of the second call are refilled by now. Only those of the third are owed.
    decide::cancel(&mut m, 0, &second, Time(12));
    assert_eq!(left(&m, 12), Some(1));
}

#[test]
fn r129_settling_charges_below_zero_and_refunds_the_rest() {
    let mut m = memory(&[bucket(10, SECOND)]);
    let ticket = user(&mut m, 5, 0).unwrap();
    decide::settle(&mut m, &ticket, [25, 0, 0, 0], Time(0));
    assert_eq!(user(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos(1_600_000_000)));
    let mut m = memory(&[bucket(10, SECOND)]);
    let ticket = user(&mut m, 5, 0).unwrap();
    decide::settle(&mut m, &ticket, [2, 0, 0, 0], Time(0));
    assert_eq!(left(&m, 0), Some(8));
}

#[test]
fn r129_a_cancel_refunds_even_after_a_settlement_far_below_zero() {
    let mut m = memory(&[bucket(10, SECOND)]);
    let first = user(&mut m, 9, 0).unwrap();
    let second = user(&mut m, 1, 0).unwrap();
    // 40 tokens below zero, four times the capacity.
    decide::settle(&mut m, &first, [49, 0, 0, 0], Time(0));
    assert_eq!(user(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos(4_100_000_000)));
    decide::cancel(&mut m, 0, &second, Time(0));
    assert_eq!(user(&mut m, 1, 0).unwrap_err().retry_after(), Some(Nanos(4_000_000_000)));
}

#[test]
fn r110_a_larger_burst_adds_no_tokens_and_a_smaller_one_clips_them() {
    for (burst, expected) in [(20, 7), (5, 5)] {
        let (old, new) = (
            policy(&[bucket(10, SECOND)]),
            policy(&[RuleDraft { burst: Some(burst), ..bucket(10, SECOND) }]),
        );
        let mut m = LocalMemory::new(&old);
        user(&mut m, 3, 0).unwrap();
        m.change_policy(&old, &new, Time(0));
        assert_eq!(left(&m, 0), Some(expected));
    }
}

#[test]
fn a_patch_finds_rules_by_name_and_starts_new_ones_empty() {
    let (a, b) = (
        RuleDraft { name: Some("a"), ..bucket(10, SECOND) },
        RuleDraft { name: Some("b"), ..gcra(5, SECOND) },
    );
    let new_rule = RuleDraft { name: Some("c"), ..gcra(5, SECOND) };
    let (old, new) = (policy(&[a, b]), policy(&[new_rule, b, a]));
    let mut m = LocalMemory::new(&old);
    let ticket = user(&mut m, 4, 0).unwrap();
    m.change_policy(&old, &new, Time(0));
    let each = |m: &LocalMemory| {
        [0, 1, 2].map(|i| rule::available(m, &rule::RuleContext::of(m, i, Time(0)), m.rule(i), false))
    };
    assert_eq!(each(&m), [0, 1, 6]);
    // Rule b kept its index and its terms, so it is the only rule that can refund.
    decide::cancel(&mut m, 0, &ticket, Time(0));
    assert_eq!(each(&m), [0, 5, 6]);
}

#[test]
fn a_reset_limiter_has_empty_rules_and_no_permits_in_use() {
    let mut m = memory(&[bucket(10, SECOND), gcra(5, SECOND)]);
    user(&mut m, 1, 0).unwrap();
    decide::reset(&mut m, None, Time(50));
    assert_eq!((left(&m, 50), m.core().in_flight), (Some(0), 0));
    assert!(decide::sane(&m));
}

#[test]
fn r137_each_bound_is_an_error_that_names_the_key() {
    let errors = |draft: RuleDraft<'_>| {
        Policy::new(&PolicyDraft { rules: &[bucket(1, SECOND), draft], ..PolicyDraft::default() })
            .unwrap_err()
            .to_string()
    };
    let fine = bucket(10, SECOND);
    for (draft, start) in [
        (RuleDraft { limit: 0, ..fine }, "rules.1.limit = 0: must be from 1 to"),
        (RuleDraft { limit: MAX_AMOUNT + 1, ..fine }, "rules.1.limit = 281474976710657: must"),
        (RuleDraft { period: Duration::from_nanos(0), ..fine }, "rules.1.period = 0s: must be from 1ns to"),
        (RuleDraft { burst: Some(0), ..fine }, "rules.1.burst = 0: must be from 1 to"),
        (
            RuleDraft { period: Duration::from_nanos((1 << 62) - 1), burst: Some(11), ..fine },
            "rules.1.burst = 11: must be from 1 to 10",
        ),
        (RuleDraft { reserve: 11, ..fine }, "rules.1.reserve = 11: must be from 0 to 10"),
        (RuleDraft { tau: Some(SECOND), ..fine }, "rules.1.tau: only gcra takes tau"),
        (RuleDraft { name: Some("a b"), ..fine }, "rules.1.name = \"a b\": must be 1 to 32"),
        (RuleDraft { unit: Some(""), ..fine }, "rules.1.unit = \"\": must"),
    ] {
        assert!(errors(draft).starts_with(start), "{}", errors(draft));
    }
    let units = ["a", "b", "c", "d"].map(|unit| RuleDraft { unit: Some(unit), ..fine });
    for (draft, text) in [
        (PolicyDraft { rules: &[fine; 9], ..PolicyDraft::default() }, "rules: 9 given, at most 8 allowed"),
        (PolicyDraft { rules: &units, ..PolicyDraft::default() }, "rules.3.unit: 5 given, at most 4 allowed"),
        (
            PolicyDraft { concurrency: Some(0), ..PolicyDraft::default() },
            "concurrency = 0: must be from 1 to 4096",
        ),
    ] {
        assert_eq!(Policy::new(&draft).unwrap_err().to_string(), text);
    }
    assert!("magic".parse::<Algorithm>().is_err_and(|error| error.allowed() == Algorithm::NAMES));
}

#[test]
fn r108_a_background_call_that_lacks_a_background_permit_does_not_block_user_calls() {
    let rules = [bucket(1_000_000, SECOND)];
    let draft = PolicyDraft {
        concurrency: Some(3),
        concurrency_background: Some(1),
        background_share: 500_000,
        rules: &rules,
        ..PolicyDraft::default()
    };
    let mut m = LocalMemory::new(&Policy::new(&draft).expect("valid"));
    let mut enter = |slot: u64, priority| {
        let request = AcquireRequest::one(priority);
        let deadline = Time(u64::MAX);
        let who =
            queue::NewWaiter { owner: slot + 2, group: slot + 1, request, deadline, can_be_woken: true };
        matches!(queue::enter(&mut m, &who, Time(1_000_000_000)).0, queue::QueueOutcome::Granted(_))
    };
    assert!(enter(0, Priority::Background));
    assert!(!enter(1, Priority::Background), "the background has its one permit");
    assert!(enter(2, Priority::User), "and is owed its share from here on");
    assert!(enter(3, Priority::User), "two permits are for the users");
}

/// Two calls at the same time, each with half of the bucket as its estimate. Later the first turns out to be
/// small.
#[test]
fn r129_an_older_call_refunds_its_unused_estimate_after_time_has_passed() {
    let mut m = memory(&[bucket(1000, Duration::from_secs(60))]);
    let first = user(&mut m, 500, 0).unwrap();
    user(&mut m, 500, 0).unwrap();
    let now = 35_000_000_000;
    assert_eq!(left(&m, now), Some(583));
    decide::settle(&mut m, &first, [100, 0, 0, 0], Time(now));
    assert_eq!(left(&m, now), Some(983), "as if it had been asked for 100");
    // Units that were refilled meanwhile are not granted twice.
    let mut m = memory(&[bucket(1000, Duration::from_secs(60))]);
    let first = user(&mut m, 500, 0).unwrap();
    user(&mut m, 1000, 59_000_000_000).unwrap();
    decide::settle(&mut m, &first, [100, 0, 0, 0], Time(59_000_000_000));
    assert_eq!(left(&m, 59_000_000_000), Some(0));
}
