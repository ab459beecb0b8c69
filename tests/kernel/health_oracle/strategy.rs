//! Random limiters with small numbers, so that many events happen, and random operations on them.

use super::policy::{BucketNumbers, Numbers, PaceNumbers, SECOND};
use proptest::prelude::*;
use shmlimit_kernel::breaker::BreakerCommand;
use shmlimit_kernel::outcome::OutcomeClass;
use shmlimit_kernel::policy::{self, BreakerKind, PerSecond, StoredBackoff, StoredBreaker, StoredWindow};
use shmlimit_kernel::{Nanos, Priority};

/// About a millisecond. A multiple of a high power of two, so that factors of 1.5 give whole numbers.
pub const TICK: u64 = 1 << 20;

/// How the clock moves before an operation.
#[derive(Clone, Debug)]
pub enum Step {
    Stay,
    On(u64),
    Back(u64),
    /// To the next end of something that the oracle knows, plus this many nanoseconds.
    ToTimer(i64),
}

#[derive(Clone, Debug)]
pub enum Patch {
    Concurrency(Option<u32>),
    Burst(u64),
    MinSamples(u32),
    RateBase(u64),
    ProbeRate(u64),
    ProbeConcurrency(u32),
    Ratios(u32, u32),
    Counts(u32, u32),
    AutoRecover(u64),
    CacheOnlyAfter(u32),
    Sleep(u64),
}

#[derive(Clone, Debug)]
pub enum Op {
    Acquire {
        cost: u64,
        priority: Priority,
    },
    Record {
        call: Option<usize>,
        class: OutcomeClass,
        retry_after: Option<u64>,
        attempt: Option<u32>,
        known: bool,
        actual: Option<u64>,
    },
    Release(usize),
    Cancel(usize),
    Force(BreakerCommand),
    /// For this long, or until resumed.
    Pause(Option<u64>),
    Resume,
    Patch(Patch),
    Observe {
        window: usize,
        limit: Option<u64>,
        remaining: u64,
        reset: Option<u64>,
    },
    Tick,
}

pub fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![2 => Just(Priority::Background), 2 => Just(Priority::User), 1 => Just(Priority::Webhook)]
}

fn class() -> impl Strategy<Value = OutcomeClass> {
    prop_oneof![
        6 => Just(OutcomeClass::Ok),
        3 => Just(OutcomeClass::Throttled),
        2 => Just(OutcomeClass::Server),
        2 => Just(OutcomeClass::Net),
        1 => Just(OutcomeClass::Ignored),
    ]
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Stay),
        2 => (1u64..4).prop_map(Step::On),
        6 => (1u64..600_000_000).prop_map(Step::On),
        3 => (1u64..12).prop_map(|n| Step::On(n * SECOND)),
        1 => (1u64..4).prop_map(|n| Step::On(n * 3600 * SECOND)),
        1 => (1u64..5 * SECOND).prop_map(Step::Back),
        3 => (-1i64..2).prop_map(Step::ToTimer),
    ]
}

/// Growth factors in millionths: at least `least`, often barely above it.
fn factor(least: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(least),
        (1u32..3000).prop_map(move |more| least + more),
        prop::sample::select(vec![1_100_000u32, 1_250_000, 1_500_000, 2_000_000, 3_000_000]),
        1_010_000u32..4_000_000,
    ]
}

fn ends() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..3 * SECOND, (1u64..6).prop_map(|n| n * SECOND), (1u64..4000).prop_map(|n| n * TICK)]
}

/// When a window resets: soon, at its end, or at a time beyond the length of any window.
fn reset() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => ends(),
        1 => Just(0),
        1 => 1u64..4,
        2 => prop_oneof![Just(86_400 * SECOND), Just(86_401 * SECOND), Just(u64::MAX), Just(500 * 365 * 86_400 * SECOND)],
    ]
}

prop_compose! {
    fn record()(call in prop::option::weighted(0.8, 0usize..8), class in class(),
        retry_after in prop::option::weighted(0.1, prop_oneof![Just(0), 1u64..8 * SECOND, Just(u64::MAX >> 3)]),
        attempt in prop::option::weighted(0.3, prop_oneof![1u32..8, Just(0), Just(u32::MAX)]),
        known: bool, actual in prop::option::weighted(0.15, 0u64..12)) -> Op {
        Op::Record { call, class, retry_after, attempt, known, actual }
    }
}

fn patch() -> impl Strategy<Value = Patch> {
    prop_oneof![
        prop::option::of(1u32..6).prop_map(Patch::Concurrency),
        (1u64..40).prop_map(Patch::Burst),
        (0u32..6).prop_map(Patch::MinSamples),
        prop_oneof![Just(0), 1u64..50].prop_map(Patch::RateBase),
        (1u64..30).prop_map(Patch::ProbeRate),
        (1u32..4).prop_map(Patch::ProbeConcurrency),
        (0u32..=10, 1u32..=10).prop_map(|(a, b)| Patch::Ratios(a * 100_000, b * 100_000)),
        (1u32..6, 1u32..8).prop_map(|(a, b)| Patch::Counts(a, b)),
        prop_oneof![Just(0), ends()].prop_map(Patch::AutoRecover),
        (0u32..4).prop_map(Patch::CacheOnlyAfter),
        (1u64..3000).prop_map(|n| Patch::Sleep(n * TICK)),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    let cost = prop_oneof![6 => Just(1u64), 1 => Just(0), 2 => 2u64..12, 1 => 12u64..50, 1 => Just(60)];
    prop_oneof![
        10 => (cost, priority()).prop_map(|(cost, priority)| Op::Acquire { cost, priority }),
        10 => record(),
        1 => (0usize..8).prop_map(Op::Release),
        1 => (0usize..8).prop_map(Op::Cancel),
        1 => prop::sample::select(&BreakerCommand::ALL[..]).prop_map(Op::Force),
        1 => prop::option::weighted(0.7, ends()).prop_map(Op::Pause),
        1 => Just(Op::Resume),
        1 => patch().prop_map(Op::Patch),
        2 => (0usize..3, prop::option::weighted(0.2, 0u64..30), prop_oneof![2 => Just(0), 3 => 0u64..30], prop::option::of(reset()))
            .prop_map(|(window, limit, remaining, reset)| Op::Observe { window, limit, remaining, reset }),
        1 => Just(Op::Tick),
    ]
}

prop_compose! {
    fn rule()(rate in 1u64..45, burst in 1u64..50, reserve in prop_oneof![2 => Just(0u64), 1 => 1u64..10, 2 => 0u64..50]) -> BucketNumbers {
        BucketNumbers { rate, burst, reserve: reserve.min(burst) }
    }
}

prop_compose! {
    fn breaker_times()(sleep_after in ends(), sleep_min in prop_oneof![3 => (1u64..2000).prop_map(|n| n * TICK), 1 => 1u64..9], longer in 0u64..20_000,
        ramp_every in (1u64..5).prop_map(|n| n * SECOND), auto_recover in prop_oneof![2 => Just(0), 1 => ends()],
        probe_timeout in ends(), reset_timeout in ends()) -> StoredBreaker {
        let mut times = StoredBreaker::from(policy::Breaker::default());
        times.sleep_after = Nanos(sleep_after);
        (times.sleep_min, times.sleep_max) = (Nanos(sleep_min), Nanos(sleep_min + longer * TICK));
        (times.ramp_every, times.auto_recover) = (Nanos(ramp_every), Nanos(auto_recover));
        (times.probe_timeout, times.reset_timeout) = (Nanos(probe_timeout), Nanos(reset_timeout));
        times
    }
}

prop_compose! {
    fn breaker()(times in breaker_times(), rate_base in prop_oneof![2 => Just(0), 1 => 1u64..50, 1 => Just(17)],
        half in any::<bool>(), probe_rate in 1u64..12, parts in [0u32..=10, 0u32..=10, 0u32..=10], factors in [factor(1_000_000), factor(1_010_000)],
        counts in [1u32..5, 1u32..7, 1u32..8, 1u32..6, 1u32..4, 1u32..4], cache_only_after in prop_oneof![2 => Just(0u32), 1 => 1u32..4],
        failure_threshold in 1u32..6, required_successes in 1u32..4) -> StoredBreaker {
        let [p_throttle, p_recover, p_sleep] = parts.map(|tenths| tenths * 100_000);
        let mut breaker = times;
        breaker.rate_base = PerSecond(rate_base * SECOND + if half && rate_base > 0 { SECOND / 2 } else { 0 });
        breaker.probe_rate = PerSecond(probe_rate * SECOND);
        (breaker.p_throttle, breaker.p_recover, breaker.p_sleep) = (p_throttle, p_recover.max(1), p_sleep);
        [breaker.cooldown_factor, breaker.ramp_factor] = factors;
        (breaker.n_throttle, breaker.n_cacheonly, breaker.s_recover) = (counts[0], counts[1], counts[2]);
        (breaker.s_probe_ok, breaker.hysteresis, breaker.probe_concurrency) = (counts[3], counts[4], counts[5]);
        (breaker.cache_only_after, breaker.failure_threshold) = (cache_only_after, failure_threshold);
        breaker.required_successes = required_successes;
        breaker
    }
}

prop_compose! {
    fn pace()(threshold in 1u32..=10, history in 1u32..6, min_samples in 1u32..6, short_window in 0u64..4,
        windows in prop::collection::vec((1u64..30, prop_oneof![(1u64..8).prop_map(|n| n * SECOND), 1u64..8 * SECOND], any::<bool>()), 1..=3)) -> PaceNumbers {
        PaceNumbers { threshold: threshold * 100_000, history, min_samples: min_samples.min(history), short_window: short_window * SECOND, windows }
    }
}

prop_compose! {
    fn backoff()(base in prop_oneof![2 => (0u64..3000).prop_map(|n| n * TICK), 1 => 0u64..9], cap in 0u64..40 * SECOND, min_sleep in 0u64..2 * SECOND,
        more in 0u64..20 * SECOND, factor in factor(1_000_000),
        retries in [0u32..4, 0u32..7]) -> StoredBackoff {
        let mut backoff = StoredBackoff::from(policy::Backoff::default());
        (backoff.base, backoff.cap, backoff.factor) = (Nanos(base), Nanos(cap), factor);
        (backoff.min_sleep, backoff.retry_after_max) = (Nanos(min_sleep), Nanos(min_sleep + more));
        (backoff.retries_user, backoff.retries_background) = (retries[0], retries[1]);
        backoff
    }
}

prop_compose! {
    pub fn numbers()(kind in prop_oneof![6 => Just(BreakerKind::Fsm), 2 => Just(BreakerKind::Consecutive), 1 => Just(BreakerKind::None)],
        rules in prop::collection::vec(rule(), 0..=2), concurrency in prop::option::of(1u32..7), background in prop::option::weighted(0.3, 1u32..4),
        max_age in ends(), max_count in 1u32..20, min_samples in 0u32..8, breaker in breaker(), count_net in prop::bool::weighted(0.8),
        backoff in backoff(), jitter: bool, pace in prop::option::weighted(0.3, pace())) -> Numbers {
        let window = StoredWindow { max_age: Nanos(max_age), max_count, min_samples };
        Numbers { kind, rules, concurrency, background, window, breaker, count_net, backoff, jitter, pace }
    }
}
