//! The three ways to one decision agree: the fast path for a single rule, the general path for any number of rules,
//! and the check that charges nothing.

use proptest::prelude::*;
use shmlimit::{Algorithm, Policy, PolicyDraft, Priority, RuleDraft};
use shmlimit_kernel::breaker::effective_words;
use shmlimit_kernel::decide;
use shmlimit_kernel::{AcquireRequest, Core, Held, LocalMemory, Memory, Reason, RuleState, Time, View};
use std::time::Duration;

/// Numbers at both ends of the allowed range, and between.
fn amount(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![1..=10_u64, 1..=most, (most - 3)..=most, (0..48_u32).prop_map(move |n| (1 << n).min(most))]
}

prop_compose! {
    fn policy()(
        gcra in any::<bool>(),
        limit in amount(1 << 48),
        period in amount((1 << 62) - 1),
        burst in prop::option::of(amount(1 << 48)),
        tau in prop::option::of(amount((1 << 62) - 1)),
        reserve in prop_oneof![Just(0), amount(1 << 48)],
        concurrency in prop::option::of(1..4_u64),
        background in prop::option::of(1..4_u64),
    ) -> Option<Policy> {
        let algorithm = if gcra { Algorithm::Gcra } else { Algorithm::TokenBucket };
        let tau = tau.filter(|_| gcra && burst.is_none()).map(Duration::from_nanos);
        let rule = RuleDraft { burst, tau, reserve, ..RuleDraft::new(algorithm, limit, Duration::from_nanos(period)) };
        let reserve = reserve.min(burst.unwrap_or(limit));
        let rule = RuleDraft { reserve, ..rule };
        let draft = PolicyDraft { concurrency, concurrency_background: background, rules: &[rule], ..PolicyDraft::default() };
        Policy::new(&draft).ok()
    }
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Background), Just(Priority::User)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn r130_the_fast_path_the_slow_path_and_the_check_agree(
        policy in policy().prop_filter_map("no such policy", |policy| policy),
        now in prop_oneof![0..1_000_000_u64, any::<u64>().prop_map(|n| n >> 2)],
        behind in 0..1_000_u64,
        ahead_of_tau in -3_i64..4,
        share in 0..=4_u64,
        in_flight in 0..5_u32,
        frac in any::<u64>(),
        cost in prop_oneof![Just(1), 1..4_u64, any::<u64>(), (u64::MAX - 3)..=u64::MAX],
        priority in priority(),
    ) {
        let mut long = LocalMemory::new(&policy);
        let terms = long.terms(0);
        let tau = terms.tau().whole;
        let ahead = (tau / 4 * share).saturating_add_signed(ahead_of_tau);
        let at = now.saturating_add(ahead);
        long.set_core(Core { latest: Time(now.saturating_sub(behind)), in_flight, in_flight_background: in_flight / 2 });
        long.set_held(0, Held { total: in_flight, background: in_flight / 2 });
        long.set_rule(0, RuleState([at, frac % terms.den(), 0, 0]));
        let (mut short, before) = (long.clone(), long.clone());
        let request = AcquireRequest::requests(cost, priority);
        let judged = decide::check(&long, &request, Time(now));
        let checked_fast = decide::check_single_bucket(&long, &request, Time(now));
        let by_long = decide::acquire(&mut long, 0, &request, Time(now));
        let by_short = decide::acquire_single_bucket(&mut short, 0, &request, Time(now));
        prop_assert_eq!(judged, by_long.err());
        let usual = judged.filter(|refusal| cost == 1 && refusal.reason != Reason::CostExceedsLimit);
        prop_assert_eq!(checked_fast, usual);
        // The fast path is only for calls that cost one. At the end of time it is closed, because the next check
        // time is due at last.
        if cost == 1 && now < u64::MAX {
            prop_assert_eq!(by_long.ok(), by_short.map(|taken| taken.ticket(&request)));
            prop_assert_eq!(long, short);
        } else {
            prop_assert_eq!((by_short, short), (None, before));
        }
    }

    /// For arbitrary words, every path returns the same answer.
    #[test]
    fn p3_damaged_words_never_panic_and_never_charge_what_is_refused(
        policy in policy().prop_filter_map("no such policy", |policy| policy),
        terms in prop::array::uniform8(prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX]),
        keep in any::<bool>(),
        rule in prop::array::uniform4(prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX]),
        now in prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX],
        cost in prop_oneof![Just(1), 1..4_u64, any::<u64>()],
        priority in priority(),
    ) {
        let mut words = effective_words(&policy);
        if !keep {
            let kind = words[8] & 0xff;
            words[8..16].copy_from_slice(&terms);
            words[8] = words[8] & !0xff | kind;
        }
        let mut memory = LocalMemory::from_words(policy.encode(), words);
        memory.set_rule(0, RuleState(rule));
        let request = AcquireRequest { cost: [cost; 4], priority };
        let judged = decide::check(&memory, &request, Time(now));
        let (mut short, before) = (memory.clone(), memory.clone());
        let by_long = decide::acquire(&mut memory, 0, &request, Time(now));
        let by_short = decide::acquire_single_bucket(&mut short, 0, &request, Time(now));
        // At the end of time the fast path is closed, because the next check time is due at last.
        if cost == 1 && now < u64::MAX {
            prop_assert_eq!(by_long.ok(), by_short.map(|taken| taken.ticket(&request)));
        } else {
            prop_assert_eq!((by_short, &short), (None, &before));
        }
        let _ = judged;
        match by_long {
            Err(_) => prop_assert_eq!(&memory, &before),
            Ok(ticket) => {
                decide::settle(&mut memory, &ticket, [u64::MAX; 4], Time(now));
                decide::cancel(&mut memory, 0, &ticket, Time(now.wrapping_add(1)));
            }
        }
        let _ = (decide::sane(&memory), decide::remaining(&memory, priority, [true; 4], Time(now)));
    }
}
