//! The three ways to one decision agree: the short form, the general form, and the check that charges nothing.

use proptest::prelude::*;
use shmlimit::policy::BurstMode;
use shmlimit::{Algorithm, Policy, PolicyDraft, Priority, Reason, RuleDraft};
use shmlimit_kernel::breaker::effective_words;
use shmlimit_kernel::decide;
use shmlimit_kernel::state::Checked;
use shmlimit_kernel::{AcquireRequest, LocalMemory, Memory, Refusal, RuleState, Ticket, Time, View};
use std::time::Duration;

/// The units of the policies below, by index.
const UNITS: [&str; 4] = ["requests", "tokens", "images", "seconds"];

/// Numbers at both ends of the allowed range, and between.
fn amount(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1..=10_u64,
        1 => 1..=most,
        1 => (most - 3)..=most,
        1 => (0..48_u32).prop_map(move |n| (1 << n).min(most))
    ]
}

/// A rule of any algorithm. The settings that its algorithm does not have are left out.
#[derive(Clone, Copy, Debug)]
struct AnyRule {
    algorithm: Algorithm,
    unit: usize,
    limit: u64,
    period: u64,
    burst: Option<u64>,
    tau: Option<u64>,
    passes: bool,
    reserve: u64,
}

impl AnyRule {
    fn draft(self) -> RuleDraft<'static> {
        let limit = match self.algorithm {
            Algorithm::SlidingLog => self.limit.min(1000),
            _ => self.limit,
        };
        let burst = self.burst.filter(|_| {
            matches!(self.algorithm, Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket)
        });
        let tau = self.tau.filter(|_| self.algorithm == Algorithm::Gcra && burst.is_none() && !self.passes);
        let passes = self.passes && self.algorithm == Algorithm::Gcra;
        RuleDraft {
            unit: Some(UNITS[self.unit]),
            burst,
            tau: tau.map(Duration::from_nanos),
            burst_mode: if passes { BurstMode::FixedWindow } else { BurstMode::GcraTau },
            reserve: self.reserve.min(burst.unwrap_or(limit)),
            ..RuleDraft::new(self.algorithm, limit, Duration::from_nanos(self.period))
        }
    }
}

prop_compose! {
    fn rule(algorithm: impl Strategy<Value = Algorithm>)(
        algorithm in algorithm,
        unit in prop_oneof![3 => Just(0), 1 => 0..UNITS.len()],
        limit in amount(1 << 48),
        period in prop_oneof![amount((1 << 62) - 1), 1..10_000_u64],
        burst in prop::option::of(amount(1 << 48)),
        tau in prop::option::of(amount((1 << 62) - 1)),
        passes in any::<bool>(),
        reserve in prop_oneof![3 => Just(0), 1 => amount(1 << 48)],
    ) -> AnyRule {
        AnyRule { algorithm, unit, limit, period, burst, tau, passes, reserve }
    }
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::ALL.to_vec())
}

prop_compose! {
    fn policy(most: usize)(
        rules in prop::collection::vec(rule(any_algorithm()), 1..=most),
        concurrency in prop::option::of(1..4_u64),
        background in prop::option::of(1..4_u64),
    ) -> Option<Policy> {
        let rules: Vec<_> = rules.into_iter().map(AnyRule::draft).collect();
        let draft = PolicyDraft {
            concurrency,
            concurrency_background: background,
            rules: &rules,
            priorities: true,
            ..PolicyDraft::default()
        };
        Policy::new(&draft).ok()
    }
}

fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Background), Just(Priority::User)]
}

/// A cost in each unit: mostly small, sometimes anything.
fn cost() -> impl Strategy<Value = [u64; 4]> {
    let one = prop_oneof![4 => Just(0), 6 => Just(1_u64), 3 => 1..4_u64, 1 => any::<u64>(), 1 => (u64::MAX - 3)..=u64::MAX];
    prop_oneof![2 => Just([1, 0, 0, 0]), 3 => prop::array::uniform4(one)]
}

/// What happens between two requests.
#[derive(Clone, Copy, Debug)]
enum Op {
    Acquire([u64; 4], Priority),
    /// Returns the oldest permit.
    Release,
    /// Takes the newest call back.
    Cancel,
    /// Replaces the cost of the newest call.
    Settle([u64; 4]),
    /// Time passes.
    Step(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (cost(), priority()).prop_map(|(cost, priority)| Op::Acquire(cost, priority)),
        2 => Just(Op::Release),
        1 => Just(Op::Cancel),
        1 => cost().prop_map(Op::Settle),
        4 => prop_oneof![0..10_u64, 0..10_000_u64, any::<u64>().prop_map(|n| n >> 4)].prop_map(Op::Step),
    ]
}

/// The short form as its caller uses it: if it does not grant the call, its changes are undone.
fn acquire_by_rules(m: &mut LocalMemory, request: &AcquireRequest, now: Time) -> Option<Ticket> {
    let before = m.clone();
    let checked = Checked { core: m.core(), held: m.held(0) };
    let granted = decide::acquire_by_rules(m, 0, request, &checked, now);
    if granted.is_none() {
        *m = before;
    }
    granted.map(|granted| granted.ticket(request))
}

fn check_by_rules(m: &LocalMemory, request: &AcquireRequest, now: Time) -> Option<Refusal> {
    decide::check_by_rules(m, request, now).map(|refusal| refusal.refusal())
}

/// Whether the short form may leave this request to the general one: it is a peek, a timer is due, or the cost is more
/// than a reduced bucket holds.
fn may_decline(m: &LocalMemory, request: &AcquireRequest, now: Time) -> bool {
    let reduced = (0..m.general().rules)
        .any(|rule| m.terms(rule).overdraft() > 0 && request.cost[m.terms(rule).unit()] > 1);
    request.cost == [0; 4] || now.max(m.core().latest) >= m.next_check() || reduced
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn r38_r130_the_short_form_the_general_form_and_the_check_agree(
        policy in policy(4).prop_filter_map("no such policy", |policy| policy),
        start in prop_oneof![0..1_000_000_u64, any::<u64>().prop_map(|n| n >> 2)],
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let mut m = LocalMemory::new(&policy);
        let mut now = start;
        let mut tickets: Vec<Ticket> = Vec::new();
        for op in ops {
            let at = Time(now);
            match op {
                Op::Step(by) => now = now.saturating_add(by),
                Op::Release if !tickets.is_empty() => decide::release(&mut m, 0, &tickets.remove(0)),
                Op::Cancel if !tickets.is_empty() => {
                    decide::cancel(&mut m, 0, &tickets.pop().unwrap(), at);
                }
                Op::Settle(cost) if !tickets.is_empty() => {
                    let ticket = tickets.pop().unwrap();
                    decide::settle(&mut m, &ticket, cost, at);
                    decide::release(&mut m, 0, &ticket);
                }
                Op::Release | Op::Cancel | Op::Settle(_) => {}
                Op::Acquire(cost, priority) => {
                    let request = AcquireRequest { cost, priority };
                    let mut short = m.clone();
                    let (checked, by_rules) =
                        (decide::check(&m, &request, at), check_by_rules(&m, &request, at));
                    let may_decline = may_decline(&m, &request, at);
                    let granted_short = acquire_by_rules(&mut short, &request, at);
                    let granted = decide::acquire(&mut m, 0, &request, at);
                    prop_assert_eq!(checked, granted.err());
                    match granted_short {
                        Some(ticket) => {
                            prop_assert_eq!(granted, Ok(ticket));
                            prop_assert_eq!(&short, &m);
                        }
                        None => prop_assert!(granted.is_err() || may_decline, "the short form declined"),
                    }
                    if by_rules.is_some() || !may_decline {
                        let usual = checked.filter(|refusal| refusal.reason != Reason::CostExceedsLimit);
                        prop_assert_eq!(by_rules, usual.filter(|refusal| refusal.ready_at.is_some()));
                    }
                    tickets.extend(granted.ok());
                }
            }
        }
    }

    /// A release by the short form leaves the state of the general form.
    #[test]
    fn r112_both_forms_of_a_release_agree(
        policy in policy(2).prop_filter_map("no such policy", |policy| policy),
        priority in priority(),
        calls in 1..4_usize,
    ) {
        let mut m = LocalMemory::new(&policy);
        let request = AcquireRequest::one(priority);
        let tickets: Vec<_> =
            (0..calls).filter_map(|_| decide::acquire(&mut m, 0, &request, Time(1)).ok()).collect();
        for ticket in tickets {
            let mut short = m.clone();
            prop_assert!(decide::release_at_once(&mut short, 0, &ticket));
            decide::release(&mut m, 0, &ticket);
            prop_assert_eq!(&short, &m);
        }
    }

    /// For arbitrary words, every form returns an answer, and a refusal charges nothing.
    #[test]
    fn p3_damaged_words_never_panic_and_never_charge_what_is_refused(
        policy in policy(3).prop_filter_map("no such policy", |policy| policy),
        damaged in 0..3_usize,
        terms in prop::array::uniform8(prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX]),
        keep in any::<bool>(),
        state in prop::array::uniform4(prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX]),
        now in prop_oneof![any::<u64>(), 0..4_u64, (u64::MAX - 3)..=u64::MAX],
        cost in cost(),
        priority in priority(),
    ) {
        let mut words = effective_words(&policy);
        let first = 8 + 8 * damaged;
        if !keep {
            let kind = words[first] & 0xff;
            words[first..first + 8].copy_from_slice(&terms);
            words[first] = words[first] & !0xff | kind;
        }
        let mut memory = LocalMemory::from_words(policy.encode(), words);
        memory.set_rule(damaged, RuleState(state));
        let request = AcquireRequest { cost, priority };
        let _ = (decide::check(&memory, &request, Time(now)), check_by_rules(&memory, &request, Time(now)));
        let (mut short, before) = (memory.clone(), memory.clone());
        let granted_short = acquire_by_rules(&mut short, &request, Time(now));
        let granted = decide::acquire(&mut memory, 0, &request, Time(now));
        if let Some(ticket) = granted_short {
            prop_assert_eq!(granted, Ok(ticket));
            prop_assert_eq!(&short, &memory);
        }
        match granted {
            Err(_) => prop_assert_eq!(&memory, &before),
            Ok(ticket) => {
                decide::settle(&mut memory, &ticket, [u64::MAX; 4], Time(now));
                decide::cancel(&mut memory, 0, &ticket, Time(now.wrapping_add(1)));
            }
        }
        let _ = (decide::sane(&memory), decide::remaining(&memory, priority, [true; 4], Time(now)));
    }
}
