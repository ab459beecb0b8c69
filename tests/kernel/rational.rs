//! Slow, exact implementations of the token bucket and of GCRA, and the operations that run on them and on the
//! kernel.

use proptest::prelude::*;
use shmlimit_kernel::*;
use std::time::Duration;

pub const DAY: u64 = 86_400_000_000_000;

/// `Bucket` follows R12 and R13 literally: tokens with their fraction, counted in 1/period of a token. `Gcra`
/// follows R15, R16 and R18 literally: TAT in 1/limit of a nanosecond.
#[derive(Clone, Debug)]
pub enum Oracle {
    Bucket { rule: Numbers, tokens: i128, last: i128 },
    Gcra { rule: Numbers, tau: i128, tat: i128 },
}

#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub limit: i128,
    pub period: i128,
    pub burst: i128,
    pub reserve: i128,
}

impl Oracle {
    pub fn new(draft: &RuleDraft<'_>) -> Oracle {
        let rule = Numbers {
            limit: draft.limit.into(),
            period: draft.period.as_nanos() as i128,
            burst: draft.burst.unwrap_or(draft.limit).into(),
            reserve: draft.reserve.into(),
        };
        match draft.algorithm {
            Algorithm::TokenBucket => Oracle::Bucket { rule, tokens: rule.burst * rule.period, last: 0 },
            _ => {
                let tau =
                    draft.tau.map_or(rule.burst * rule.period, |tau| tau.as_nanos() as i128 * rule.limit);
                Oracle::Gcra { rule, tau, tat: 0 }
            }
        }
    }

    pub fn numbers(&self) -> Numbers {
        match self {
            Oracle::Bucket { rule, .. } | Oracle::Gcra { rule, .. } => *rule,
        }
    }

    pub fn tokens_at(&self, now: i128) -> i128 {
        match self {
            Oracle::Bucket { rule, tokens, last } => {
                (tokens + (now - last).max(0) * rule.limit).min(rule.burst * rule.period)
            }
            Oracle::Gcra { rule, tau, tat } => tau - (tat - now * rule.limit).max(0),
        }
    }

    /// `Ok(())` or the wait; `None` means never.
    pub fn check(&self, now: i128, cost: i128, background: bool) -> Result<(), Option<i128>> {
        let rule = self.numbers();
        let c = cost + if background { rule.reserve } else { 0 };
        let (capacity, excess) = match self {
            Oracle::Bucket { .. } => (rule.burst * rule.period, c * rule.period - self.tokens_at(now)),
            Oracle::Gcra { tau, tat, .. } => {
                let now = now * rule.limit;
                (*tau, now.max(*tat) + c * rule.period - now - tau)
            }
        };
        if c * rule.period > capacity {
            return Err(None);
        }
        if excess <= 0 { Ok(()) } else { Err(Some((excess + rule.limit - 1) / rule.limit)) }
    }

    pub fn charge(&mut self, now: i128, cost: i128) {
        let refilled = self.tokens_at(now);
        match self {
            Oracle::Bucket { rule, tokens, last } => {
                *tokens = refilled - cost * rule.period;
                *last = now;
            }
            Oracle::Gcra { rule, tat, .. } => *tat = (now * rule.limit).max(*tat) + cost * rule.period,
        }
    }

    pub fn remaining(&self, now: i128, background: bool) -> i128 {
        let rule = self.numbers();
        let reserve = if background { rule.reserve } else { 0 };
        (self.tokens_at(now).max(0) / rule.period - reserve).max(0)
    }
}

#[derive(Clone, Debug)]
pub struct Op {
    pub step: Step,
    pub cost: [u64; 2],
    pub priority: Priority,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Stay,
    Back(u64),
    /// Thousandths of the first rule's T.
    Part(u64),
    Nanos(u64),
    Days(u64),
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Stay),
        1 => (1u64..5_000_000_000).prop_map(Step::Back),
        6 => (0u64..4_000).prop_map(Step::Part),
        1 => (0u64..3).prop_map(Step::Nanos),
        1 => (0u64..4).prop_map(Step::Days),
    ]
}

pub fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![Just(Priority::Background), Just(Priority::User), Just(Priority::Webhook)]
}

pub fn op() -> impl Strategy<Value = Op> {
    (
        step(),
        prop_oneof![4 => Just(1u64), 1 => Just(0), 3 => 2u64..9],
        prop_oneof![2 => Just(0u64), 1 => 1u64..40],
        priority(),
    )
        .prop_map(|(step, requests, tokens, priority)| Op { step, cost: [requests, tokens], priority })
}

/// Rates from 1 per day to a million per second.
pub fn rate() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![
        Just((1, DAY)),
        Just((35, 1_000_000_000)),
        Just((4, 8_000_000_000)),
        Just((1_000_000, 1_000_000_000)),
        Just((999_983, 1_000_000_000)),
        Just((7, 3)),
        (1u64..2000, 1u64..DAY),
        (1u64..1_000_000, Just(1_000_000_000)),
    ]
}

pub fn rule() -> impl Strategy<Value = RuleDraft<'static>> {
    (rate(), any::<bool>(), 1u64..40, 0u64..10, prop::option::of(1_000u64..40_000), any::<bool>()).prop_map(
        |((limit, period), bucket, burst, reserve, tau, tokens)| {
            let algorithm = if bucket { Algorithm::TokenBucket } else { Algorithm::Gcra };
            let tau =
                tau.filter(|_| !bucket).map(|thousandths| {
                    Duration::from_nanos(period.div_ceil(limit).max(
                        (u128::from(period) * u128::from(thousandths) / u128::from(limit) / 1000) as u64,
                    ))
                });
            let units =
                tau.map_or(burst, |tau| (tau.as_nanos() * u128::from(limit) / u128::from(period)) as u64);
            RuleDraft {
                burst: tau.is_none().then_some(burst),
                tau,
                reserve: reserve.min(units),
                unit: tokens.then_some("tokens"),
                ..RuleDraft::new(algorithm, limit, Duration::from_nanos(period))
            }
        },
    )
}

pub fn policy(rules: &[RuleDraft<'_>]) -> Policy {
    Policy::new(&PolicyDraft { rules, ..PolicyDraft::default() }).expect("valid")
}

pub fn advance(now: u64, step: Step, first: &RuleDraft<'_>) -> u64 {
    match step {
        Step::Stay => now,
        Step::Back(by) => now.saturating_sub(by),
        Step::Part(thousandths) => {
            now + (u128::from(shmlimit_kernel::Nanos::of(first.period).0) * u128::from(thousandths)
                / u128::from(first.limit)
                / 1000) as u64
        }
        Step::Nanos(by) => now + by,
        Step::Days(by) => now + by * DAY,
    }
}

/// The request for an operation: its costs by unit, and its priority.
pub fn request(policy: &Policy, op: &Op) -> AcquireRequest {
    let mut cost = [0; MAX_UNITS];
    cost[0] = op.cost[0];
    if let Some(tokens) = policy.unit("tokens") {
        cost[tokens] = op.cost[1];
    }
    AcquireRequest { cost, priority: op.priority }
}
