//! Every algorithm against an oracle: a slow, direct implementation of its requirement.

use crate::rule_oracle::{Now, Oracle};
use proptest::prelude::*;
use shmlimit_kernel::*;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

#[derive(Clone, Debug)]
enum Op {
    Acquire {
        cost: [u64; 2],
        priority: Priority,
    },
    Cancel(prop::sample::Index),
    /// Settles a call at exactly this many of its units, or above its cost.
    Settle(prop::sample::Index, u64),
    Step(Step),
    /// Sets the wall clock, by thousandths of the first rule's period.
    Wall(i64),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Back(u64),
    /// Thousandths of the first rule's T, or of its period.
    Part(u64),
    Period(u64),
    Nanos(u64),
    Days(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let step = prop_oneof![
        1 => (1u64..5 * SECOND).prop_map(Step::Back),
        6 => (0u64..4_000).prop_map(Step::Part),
        6 => (0u64..2_500).prop_map(Step::Period),
        2 => (0u64..3).prop_map(Step::Nanos),
        1 => (0u64..4).prop_map(Step::Days),
    ];
    let priority = prop_oneof![Just(Priority::Background), Just(Priority::User), Just(Priority::Webhook)];
    let requests = prop_oneof![4 => Just(1u64), 1 => Just(0), 3 => 2u64..9];
    let tokens = prop_oneof![2 => Just(0u64), 1 => 1u64..40];
    prop_oneof![
        8 => (requests, tokens, priority)
            .prop_map(|(requests, tokens, priority)| Op::Acquire { cost: [requests, tokens], priority }),
        2 => any::<prop::sample::Index>().prop_map(Op::Cancel),
        1 => (any::<prop::sample::Index>(), 0u64..6).prop_map(|(which, units)| Op::Settle(which, units)),
        6 => step.prop_map(Op::Step),
        1 => (-3_000i64..3_000).prop_map(Op::Wall),
    ]
}

/// Rates from 1 per day to a million per second, and windows with fewer nanoseconds than units.
fn rate() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        Just((1, DAY)),
        Just((10, 60 * SECOND)),
        Just((4, 8 * SECOND)),
        Just((100_000, SECOND / 10)),
        Just((7, 3)),
        Just((30, 5)),
        (1u64..60, 1u64..DAY),
        (1u64..60, 1u64..100),
    ]
}

fn rule(algorithm: Algorithm) -> impl Strategy<Value = RuleDraft<'static>> {
    (rate(), 1u64..40, 0u64..10, any::<bool>()).prop_map(move |((limit, period), burst, reserve, tokens)| {
        let has_burst = algorithm.has_burst();
        RuleDraft {
            burst: has_burst.then_some(burst),
            burst_mode: if algorithm == Algorithm::Gcra {
                BurstMode::FixedWindow
            } else {
                BurstMode::GcraTau
            },
            reserve: reserve.min(if has_burst { burst } else { limit }),
            unit: tokens.then_some("tokens"),
            ..RuleDraft::new(algorithm, limit, Duration::from_nanos(period))
        }
    })
}

/// GCRA stands for its older burst mode here. The newer mode and token buckets have their own oracle.
fn any_rule() -> impl Strategy<Value = RuleDraft<'static>> {
    prop_oneof![
        rule(Algorithm::FixedWindow),
        rule(Algorithm::SlidingLog),
        rule(Algorithm::SlidingCounter),
        rule(Algorithm::Gcra),
        rule(Algorithm::LeakyBucket),
    ]
}

fn policy(rules: &[RuleDraft<'_>]) -> Policy {
    Policy::new(&PolicyDraft { rules, ..PolicyDraft::default() }).expect("valid")
}

/// A limiter, its oracles, and the calls in flight.
struct Pair {
    m: LocalMemory,
    oracles: Vec<Oracle>,
    units: Vec<usize>,
    clock: u64,
    epoch: u64,
    /// Each call with its entry in each oracle that has one.
    live: Vec<(Ticket, Vec<Option<usize>>)>,
}

impl Pair {
    fn new(rules: &[RuleDraft<'static>], epoch: u64) -> Pair {
        let policy = policy(rules);
        Pair {
            m: LocalMemory::starting_at(&policy, epoch),
            oracles: rules.iter().copied().map(Oracle::new).collect(),
            units: policy.rules().iter().map(|rule| rule.unit.into()).collect(),
            clock: 0,
            epoch,
            live: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { time: self.clock.max(self.m.core().latest.0), epoch: self.epoch }
    }

    fn step(&mut self, step: Step) {
        let first = &self.oracles[0].rule;
        let part = |of: u64, thousandths: u64| {
            (u128::from(shmlimit_kernel::Nanos::of(first.period).0) * u128::from(thousandths)
                / u128::from(of)
                / 1000) as u64
        };
        self.clock = match step {
            Step::Back(by) => self.clock.saturating_sub(by),
            Step::Part(thousandths) => self.clock + part(first.limit, thousandths),
            Step::Period(thousandths) => self.clock + part(1, thousandths),
            Step::Nanos(by) => self.clock + by,
            Step::Days(by) => self.clock + by * DAY,
        };
    }

    /// Moves the wall clock, which buckets and logs do not read. This oracle does not model what windows do when
    /// the wall clock is set: see the tests of `wall_clock.rs`.
    fn set_wall(&mut self, thousandths: i64) {
        use Algorithm::{LeakyBucket, SlidingLog};
        if self.oracles.iter().any(|oracle| !matches!(oracle.rule.algorithm, LeakyBucket | SlidingLog)) {
            return;
        }
        let by = i128::from(shmlimit_kernel::Nanos::of(self.oracles[0].rule.period).0)
            * i128::from(thousandths)
            / 1000;
        self.epoch = (i128::from(self.epoch) + by).clamp(0, 1 << 62) as u64;
        self.m.set_epoch(self.epoch);
    }

    fn acquire(&mut self, cost: [u64; 2], priority: Priority) -> Result<(), TestCaseError> {
        let request = AcquireRequest { cost: [cost[0], cost[1], 0, 0], priority };
        // In a policy without a `requests` unit, `tokens` is the first unit.
        let now = self.now();
        let background = priority == Priority::Background;
        let mut expected: Option<(usize, Option<u64>)> = None;
        for (i, oracle) in self.oracles.iter().enumerate() {
            let cost = request.cost[self.units[i]];
            let wait = if cost == 0 { Some(0) } else { oracle.wait(now, cost, background) };
            let longest = expected.map_or(Some(0), |(_, wait)| wait);
            let longer = match (wait, longest) {
                (None, None) => false,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (Some(wait), Some(longest)) => wait > longest,
            };
            if longer {
                expected = Some((i, wait));
            }
        }
        let before = self.m.clone();
        let judged = decide::check(&self.m, &request, Time(self.clock));
        match (decide::acquire(&mut self.m, 0, &request, Time(self.clock)), expected) {
            (Ok(ticket), None) => {
                prop_assert_eq!(judged, None);
                let mut entries = vec![None; self.oracles.len()];
                let mut delay = 0;
                for (i, oracle) in self.oracles.iter_mut().enumerate() {
                    let cost = request.cost[self.units[i]];
                    if cost == 0 {
                        continue;
                    }
                    if oracle.rule.algorithm == Algorithm::LeakyBucket {
                        delay = delay.max(oracle.level(now.time).div_ceil(oracle.rule.limit.into()));
                    }
                    oracle.charge(now, cost, background);
                    entries[i] = Some(oracle.entries.len() - 1);
                }
                prop_assert_eq!(u128::from(ticket.delay.0), delay, "R25");
                if ticket.permit.total > 0 {
                    self.live.push((ticket, entries));
                } else {
                    prop_assert_eq!(&self.m, &before, "a peek leaves no trace (R6)");
                }
            }
            (Err(refusal), Some((rule, wait))) => {
                prop_assert_eq!(&self.m, &before, "a refusal leaves no trace (R5)");
                prop_assert_eq!(judged, Some(refusal));
                prop_assert_eq!(refusal.rule, Some(rule as u8));
                prop_assert_eq!(refusal.retry_after().map(|wait| wait.0), wait);
                let reason = if wait.is_some() { Reason::Rate } else { Reason::CostExceedsLimit };
                prop_assert_eq!(refusal.reason, reason);
                if let Some(at) = refusal.retry_at {
                    prop_assert_eq!(decide::check(&self.m, &request, at), None, "R4");
                    let early = decide::check(&self.m, &request, at.minus(Nanos(1)));
                    prop_assert_eq!(early.and_then(|early| early.retry_at), Some(at));
                }
            }
            (got, expected) => prop_assert!(false, "got {:?}, expected {:?}", got, expected),
        }
        Ok(())
    }

    /// Whether a refund gives back exactly what was taken. A leaky bucket may have drained it in the meantime;
    /// buckets have their own oracle.
    fn gives_back(&self) -> bool {
        self.oracles.iter().all(|oracle| oracle.rule.algorithm != Algorithm::LeakyBucket)
    }

    fn cancel(&mut self, which: &prop::sample::Index) {
        if self.live.is_empty() || !self.gives_back() {
            return;
        }
        let (ticket, entries) = self.live.remove(which.index(self.live.len()));
        decide::cancel(&mut self.m, 0, &ticket, Time(self.clock));
        for (oracle, entry) in self.oracles.iter_mut().zip(entries) {
            if let Some(entry) = entry {
                oracle.refund(entry, oracle.entries[entry].units);
            }
        }
    }

    fn settle(&mut self, which: &prop::sample::Index, units: u64) {
        let paced = self.oracles.iter().any(|oracle| oracle.rule.algorithm == Algorithm::Gcra);
        if self.live.is_empty() || !self.gives_back() || paced {
            return;
        }
        let (ticket, entries) = self.live.remove(which.index(self.live.len()));
        let now = self.now();
        let actual = ticket.cost.map(|cost| if cost == 0 { 0 } else { units });
        decide::settle(&mut self.m, &ticket, actual, Time(self.clock));
        decide::release(&mut self.m, 0, &ticket);
        for (oracle, entry) in self.oracles.iter_mut().zip(entries) {
            let Some(entry) = entry else { continue };
            match units.checked_sub(oracle.entries[entry].units) {
                Some(0) => {}
                Some(more) => oracle.charge(now, more, false),
                None => oracle.refund(entry, oracle.entries[entry].units - units),
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for background in [true, false] {
            let priority = if background { Priority::Background } else { Priority::User };
            let least = self.oracles.iter().map(|oracle| oracle.remaining(self.now(), background)).min();
            let got = decide::remaining(&self.m, priority, [true; MAX_UNITS], Time(self.clock));
            prop_assert_eq!(got, least);
        }
        Ok(())
    }

    fn run(&mut self, ops: &[Op]) -> Result<(), TestCaseError> {
        for op in ops {
            match op {
                Op::Acquire { cost, priority } => self.acquire(*cost, *priority)?,
                Op::Cancel(which) => self.cancel(which),
                Op::Settle(which, units) => self.settle(which, *units),
                Op::Step(step) => self.step(*step),
                Op::Wall(thousandths) => self.set_wall(*thousandths),
            }
            self.check()?;
        }
        Ok(())
    }
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..55)
}

fn epoch() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 0u64..1 << 61, (0u64..20_000).prop_map(|day| day * DAY)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// R28, R29, R4, R5, R129.
    #[test]
    fn r28_fixed_windows_agree_with_the_oracle(rule in rule(Algorithm::FixedWindow), epoch in epoch(), ops in ops()) {
        Pair::new(&[rule], epoch).run(&ops)?;
    }

    /// R31, R32.
    #[test]
    fn r31_sliding_logs_agree_with_the_oracle(rule in rule(Algorithm::SlidingLog), epoch in epoch(), ops in ops()) {
        Pair::new(&[rule], epoch).run(&ops)?;
    }

    /// R34, R35, R37.
    #[test]
    fn r34_sliding_counters_agree_with_the_oracle(rule in rule(Algorithm::SlidingCounter), epoch in epoch(), ops in ops()) {
        Pair::new(&[rule], epoch).run(&ops)?;
    }

    /// R22.
    #[test]
    fn r22_window_bursts_agree_with_the_oracle(rule in rule(Algorithm::Gcra), epoch in epoch(), ops in ops()) {
        Pair::new(&[rule], epoch).run(&ops)?;
    }

    /// R23 to R27.
    #[test]
    fn r23_leaky_buckets_agree_with_the_oracle(rule in rule(Algorithm::LeakyBucket), epoch in epoch(), ops in ops()) {
        Pair::new(&[rule], epoch).run(&ops)?;
    }

    /// R38, R39, R128: all rules are charged or none, and a refusal states the longest wait.
    #[test]
    fn r38_several_rules_of_all_kinds_agree_with_the_oracles(rules in prop::collection::vec(any_rule(), 2..=4), epoch in epoch(), ops in ops()) {
        Pair::new(&rules, epoch).run(&ops)?;
    }
}
