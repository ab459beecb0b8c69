//! The kernel against slow, exact implementations of the requirements.

use crate::rational::{DAY, Oracle, Step, advance, op, policy, priority, request, rule};
use proptest::prelude::*;
use shmlimit_kernel::breaker::EFFECTIVE_WORDS;
use shmlimit_kernel::policy::POLICY_WORDS;
use shmlimit_kernel::*;
use std::time::Duration;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// R1 to R7, R12 to R18, R38, R39, R107, R128.
    #[test]
    fn every_decision_agrees_with_the_oracle(rules in prop::collection::vec(rule(), 1..=4), ops in prop::collection::vec(op(), 1..80)) {
        let policy = policy(&rules);
        let units: Vec<usize> = policy.rules().iter().map(|rule| rule.unit.into()).collect();
        let mut oracles: Vec<Oracle> = rules.iter().map(Oracle::new).collect();
        let mut m = LocalMemory::new(&policy);
        let (mut clock, mut latest) = (0u64, 0u64);
        for op in &ops {
            clock = advance(clock, op.step, &rules[0]);
            let now = clock.max(latest);
            let request = request(&policy, op);
            let background = op.priority == Priority::Background;
            let mut expected: Option<(usize, Option<i128>)> = None;
            for (i, oracle) in oracles.iter().enumerate() {
                let cost = request.cost[units[i]];
                if cost == 0 { continue; }
                if let Err(wait) = oracle.check(now.into(), cost.into(), background) {
                    let longer = match (&expected, wait) {
                        (None, _) => true,
                        (Some((_, None)), _) => false,
                        (Some(_), None) => true,
                        (Some((_, Some(longest))), Some(wait)) => wait > *longest,
                    };
                    if longer { expected = Some((i, wait)); }
                }
            }
            let before = m.clone();
            let judged = decide::check(&m, &request, Time(clock));
            match (decide::acquire(&mut m, 0, &request, Time(clock)), expected) {
                (Ok(ticket), None) => {
                    prop_assert_eq!(judged, None);
                    prop_assert_eq!(ticket.granted_at, Time(now));
                    if request.cost == [0; MAX_UNITS] {
                        prop_assert_eq!(&m, &before);
                    } else {
                        latest = now;
                    }
                    for (i, oracle) in oracles.iter_mut().enumerate() {
                        if request.cost[units[i]] > 0 { oracle.charge(now.into(), request.cost[units[i]].into()); }
                    }
                    decide::release(&mut m, 0, &ticket);
                }
                (Err(refusal), Some((rule, wait))) => {
                    prop_assert_eq!(&m, &before, "a refusal leaves no trace (R5)");
                    prop_assert_eq!(judged, Some(refusal));
                    prop_assert_eq!(refusal.rule, Some(rule as u8));
                    prop_assert_eq!(refusal.retry_after().map(|wait| i128::from(wait.0)), wait);
                    prop_assert_eq!(refusal.ready_at, refusal.retry_at);
                    let reason = if wait.is_some() { Reason::Rate } else { Reason::CostExceedsLimit };
                    prop_assert_eq!(refusal.reason, reason);
                    if let Some(at) = refusal.retry_at {
                        // The longest wait of all rules: all of them pass at that time, and not 1 ns before (R4).
                        prop_assert_eq!(decide::check(&m, &request, at), None);
                        let early = decide::check(&m, &request, at.minus(Nanos(1)));
                        prop_assert_eq!(early.and_then(|early| early.retry_at), Some(at));
                    }
                }
                (got, expected) => prop_assert!(false, "got {:?}, expected {:?}", got, expected),
            }
            for priority in [Priority::Background, Priority::User] {
                let least = oracles.iter().map(|o| o.remaining(now.into(), priority == Priority::Background)).min();
                let got = decide::remaining(&m, priority, [true; MAX_UNITS], Time(clock));
                prop_assert_eq!(got.map(i128::from), least);
            }
            prop_assert!(decide::sane(&m));
        }
    }

    /// R129: for any cancellations at any times, what remains is never more than if the cancelled calls had not
    /// been made. The calls that were made never exceed burst + rate * t in any interval.
    #[test]
    fn cancelling_never_gives_more_than_was_taken(
        rule in rule(),
        ops in prop::collection::vec((op(), prop::option::weighted(0.45, any::<prop::sample::Index>())), 1..60),
    ) {
        let rule = RuleDraft { unit: None, reserve: 0, ..rule };
        let policy = policy(&[rule]);
        let mut m = LocalMemory::new(&policy);
        let mut live: Vec<Ticket> = Vec::new();
        let mut clock = 0u64;
        for (op, cancel) in &ops {
            clock = advance(clock, op.step, &rule);
            match cancel {
                Some(which) if !live.is_empty() => {
                    let ticket = live.remove(which.index(live.len()));
                    decide::cancel(&mut m, 0, &ticket, Time(clock));
                }
                _ => {
                    let request = AcquireRequest::requests(op.cost[0].max(1), op.priority);
                    live.extend(decide::acquire(&mut m, 0, &request, Time(clock)));
                }
            }
            let now = clock.max(m.core().latest.0);
            let mut without = Oracle::new(&rule);
            for ticket in &live {
                without.charge(ticket.granted_at.0.into(), ticket.cost[0].into());
            }
            let got = decide::remaining(&m, Priority::User, [true; MAX_UNITS], Time(now)).unwrap_or(0);
            prop_assert!(i128::from(got) <= without.remaining(now.into(), false));
            prop_assert_eq!(m.core().in_flight as usize, live.len());
        }
        let numbers = Oracle::new(&rule).numbers();
        let tau = rule.tau.map_or(numbers.burst * numbers.period, |tau| i128::from(tau.as_nanos() as u64) * numbers.limit);
        for (i, first) in live.iter().enumerate() {
            let mut sum = 0;
            for last in &live[i..] {
                sum += i128::from(last.cost[0]);
                let elapsed = i128::from(last.granted_at.0 - first.granted_at.0);
                prop_assert!(sum * numbers.period <= tau + elapsed * numbers.limit);
            }
        }
    }

    /// R129: calls cancelled at one instant give everything back, in either order.
    #[test]
    fn cancelling_all_calls_in_either_order_gives_everything_back(rule in rule(), costs in prop::collection::vec(1u64..4, 1..12), first_to_last: bool, start in 0u64..DAY) {
        let rule = RuleDraft { unit: None, reserve: 0, ..rule };
        let mut m = LocalMemory::new(&policy(&[rule]));
        let left = |m: &LocalMemory| decide::remaining(m, Priority::User, [true; MAX_UNITS], Time(start));
        let full = left(&m);
        let mut tickets: Vec<Ticket> = Vec::new();
        for cost in costs {
            tickets.extend(decide::acquire(&mut m, 0, &AcquireRequest::requests(cost, Priority::User), Time(start)));
        }
        if !first_to_last { tickets.reverse(); }
        for ticket in &tickets {
            decide::cancel(&mut m, 0, ticket, Time(start));
        }
        prop_assert_eq!(left(&m), full);
        prop_assert_eq!(m.core().in_flight, 0);
    }

    /// R110: the remaining units are kept and clipped to the capacity, never raised. For GCRA, the used units are
    /// kept.
    #[test]
    fn r110_a_policy_changed_in_use_keeps_the_remaining_units(old in rule(), new in rule(), taken in 0u64..40, wait in 0u64..2_000) {
        let (old, new) = (RuleDraft { unit: None, reserve: 0, name: Some("r"), ..old }, RuleDraft { unit: None, reserve: 0, name: Some("r"), ..new });
        let (was, will) = (policy(&[old]), policy(&[new]));
        let mut m = LocalMemory::new(&was);
        let mut tickets = Vec::new();
        for _ in 0..taken {
            tickets.extend(decide::acquire(&mut m, 0, &AcquireRequest::one(Priority::User), Time(0)));
        }
        let now = Time(advance(0, Step::Part(wait), &old));
        let left = |m: &LocalMemory| decide::remaining(m, Priority::User, [true; MAX_UNITS], now).unwrap_or(0);
        let before = left(&m);
        m.change_policy(&was, &will, now);
        let capacity = will.rules()[0].burst;
        let after = left(&m);
        if (old.algorithm, new.algorithm) == (Algorithm::Gcra, Algorithm::Gcra) {
            // The state of GCRA is what was used. tau need not be a whole number of units.
            let wanted = (before + capacity).saturating_sub(was.rules()[0].burst);
            prop_assert!(after.abs_diff(wanted) <= 1, "{} not {}", after, wanted);
        } else {
            prop_assert!(after <= before.min(capacity));
            // Rounding may cost a unit that was only just complete.
            prop_assert!(after + 1 >= before.min(capacity));
        }
        prop_assert!(decide::sane(&m));
        // A token bucket and a GCRA with the same numbers are the same rule, and tickets stay valid.
        let (was, will) = (Terms::all(&was).next().unwrap(), Terms::all(&will).next().unwrap());
        let same = (was.step(), was.den(), was.tau()) == (will.step(), will.den(), will.tau());
        for ticket in &tickets {
            decide::cancel(&mut m, 0, ticket, now);
        }
        prop_assert!(same || left(&m) == after, "old tickets mean nothing to new terms");
    }

    /// The encoding is canonical. Damaged words are an error or another valid policy, never a panic.
    #[test]
    fn policies_survive_encoding_and_damage_never_panics(rules in prop::collection::vec(rule(), 0..=8), concurrency in prop::option::of(1u64..=4096), word in 0..POLICY_WORDS, bits: u64) {
        let policy = Policy::new(&PolicyDraft { rules: &rules, concurrency, ..PolicyDraft::default() }).expect("valid");
        let mut words = policy.encode();
        prop_assert_eq!(Policy::decode(&words), Ok(policy));
        words[word] ^= bits;
        if let Ok(other) = Policy::decode(&words) {
            prop_assert_eq!(other.encode(), words);
        }
    }

    /// For arbitrary words, every decision returns an answer and does not panic. Tests have checked arithmetic.
    #[test]
    fn garbage_is_decided_without_panic(effective in prop::collection::vec(extreme(), 16), state in prop::collection::vec(extreme(), 4), core in [extreme(), extreme()], now in extreme(), cost in extreme(), priority in priority()) {
        let mut words = [0; EFFECTIVE_WORDS];
        words[..16].copy_from_slice(&effective);
        words[0] = 1 + words[0] % 9;
        words[8] = (words[8] & 0x3ff) | 1;
        let mut m = LocalMemory::from_words([0; POLICY_WORDS], words);
        m.set_rule(0, RuleState([state[0], state[1], state[2], state[3]]));
        m.set_core(Core::from_words(core));
        decide::sane(&m);
        let request = AcquireRequest { cost: [cost; 4], priority };
        decide::check(&m, &request, Time(now));
        decide::remaining(&m, priority, [true; 4], Time(now));
        if let Ok(ticket) = decide::acquire(&mut m, 0, &request, Time(now)) {
            m.set_rule(0, RuleState([state[3], state[2], state[1], state[0]]));
            decide::settle(&mut m, &ticket, [now; 4], Time(now));
            decide::cancel(&mut m, 0, &ticket, Time(now));
        }
        let (a, b) = (m.terms(0), Terms::from_words(std::array::from_fn(|i| effective[15 - i])));
        for (from, to) in [(a, b), (b, a)] {
            let state = m.rule(0);
            rule::rescale(&mut m, &rule::RuleContext { rule: 0, terms: to, now: Time(now) }, &from, state);
        }
        m.set_held(0, Held::from_word(state[0]));
        decide::reclaim(&mut m, 0);
        decide::reset(&mut m, None, Time(now));
    }
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..4,
        Just(u64::MAX),
        Just(u64::MAX - 1),
        Just(1 << 62),
        Just(1 << 63),
        0u64..1 << 33
    ]
}

#[test]
fn r1_a_million_grants_at_35_per_second_lose_nothing_to_rounding() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::Gcra] {
        let draft = RuleDraft { burst: Some(1), ..RuleDraft::new(algorithm, 35, Duration::from_secs(1)) };
        let mut m = LocalMemory::new(&policy(&[draft]));
        let mut now = Time(0);
        let request = AcquireRequest::one(Priority::User);
        for n in 0..1_000_000u64 {
            let ticket = decide::acquire(&mut m, 0, &request, now).expect("due");
            decide::release(&mut m, 0, &ticket);
            // Each retry waits until a rounded-up time. Without its stored fraction, the bucket would drift by up
            // to 1 ns per grant.
            let due = ((u128::from(n) + 1) * 1_000_000_000).div_ceil(35) as u64;
            let next =
                decide::check(&m, &request, now).and_then(|refusal| refusal.retry_at).expect("one at a time");
            assert!(next.0 >= due && next.0 - due <= n + 1);
            now = next;
        }
        // A busy bucket (burst 35, never idle) loses nothing to rounding: it is exact after a million grants.
        let mut m = LocalMemory::new(&policy(&[RuleDraft { burst: Some(35), ..draft }]));
        let mut now = Time(0);
        for n in 0..1_000_000u64 {
            match decide::acquire(&mut m, 0, &request, now) {
                Ok(ticket) => decide::release(&mut m, 0, &ticket),
                Err(refusal) => {
                    now = refusal.retry_at.expect("rate");
                    let ticket = decide::acquire(&mut m, 0, &request, now).expect("due");
                    decide::release(&mut m, 0, &ticket);
                }
            }
            let due = (u128::from(n).saturating_sub(34) * 1_000_000_000).div_ceil(35) as u64;
            assert_eq!(now.0, due, "grant {n}");
        }
    }
}
