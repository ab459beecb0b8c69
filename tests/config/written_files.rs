//! Limiter files that the library writes read back as the same policy.

use proptest::prelude::*;
use shmlimit::config::{self, Config};
use shmlimit::headers::HeaderFormat;
use shmlimit::{Algorithm, Fairness, Policy, PolicyDraft, RuleDraft, describe, presets};
use shmlimit_kernel::BurstMode;
use shmlimit_kernel::policy::{
    AdaptiveDraft, Backoff, Breaker, BreakerKind, Jitter, OutcomeWindow, PaceWindowDraft, PerSecond,
    WindowKind,
};
use std::time::Duration;

#[test]
fn the_file_of_every_preset_reads_back() {
    for preset in presets::all() {
        let policy = preset.policy().unwrap();
        let text = config::to_toml(&policy);
        assert_eq!(*Config::from_toml(&text).unwrap().policy(), policy, "{text}");
    }
}

fn length(least: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![least..least + 1000, (1..100_000u64).prop_map(|s| s * 1_000_000_000), least..(1 << 62)]
        .prop_map(Duration::from_nanos)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z0-9._:-]{1,32}", Just("auto".to_owned()), Just("unlimited".to_owned())]
}

prop_compose! {
    fn breaker()(
        kind in prop::sample::select(BreakerKind::ALL.to_vec()),
        network: bool,
        rates in (0..=1u64 << 62, 1..=1u64 << 62),
        times in (length(0), length(1), length(1), length(1_000_000), length(0), length(1), length(1)),
        parts in [0..=1_000_000u32, 0..=1_000_000, 0..=1_000_000],
        factors in (1_000_000..=1_000_000_000u32, 1_001_000..=1_000_000_000u32),
        counts in prop::array::uniform8(1..=1_000_000u32),
        few in (1..=4096u32, 0..=1_000_000u32),
    ) -> Breaker {
        let mut it = Breaker::of(kind).with_network_errors(network);
        (it.rate_base, it.probe_rate) = (PerSecond(rates.0), PerSecond(rates.1));
        (it.sleep_min, it.sleep_max) = (times.1.min(times.2), times.1.max(times.2));
        (it.sleep_after, it.ramp_every, it.auto_recover) = (times.0, times.3, times.4);
        (it.probe_timeout, it.reset_timeout) = (times.5, times.6);
        [it.p_throttle, it.p_recover, it.p_sleep] = parts;
        (it.cooldown_factor, it.ramp_factor) = factors;
        [it.n_throttle, it.n_cacheonly, it.s_recover, it.s_probe_ok, it.hysteresis, it.failure_threshold,
            it.required_successes, _] = counts;
        (it.probe_concurrency, it.cache_only_after) = few;
        it
    }
}

prop_compose! {
    fn backoff()(
        times in (length(0), length(0), length(0), length(0)),
        factor in 1_000_000..=1_000_000_000u32,
        retries in (0..=1_000_000u32, 0..=1_000_000u32),
        jitter in prop::sample::select(vec![Jitter::Full, Jitter::None]),
    ) -> Backoff {
        let mut it = Backoff::DEFAULT.with_jitter(jitter);
        (it.base, it.cap, it.factor) = (times.0, times.1, factor);
        (it.min_sleep, it.retry_after_max) = (times.2.min(times.3), times.2.max(times.3));
        (it.retries_user, it.retries_background) = retries;
        it
    }
}

type Rule = (Option<String>, usize, Option<String>, u64, Duration, Option<u64>, Option<Duration>, bool, u64);

fn rule() -> impl Strategy<Value = Rule> {
    (
        prop::option::of(name()),
        0..6usize,
        prop::option::of(prop::sample::select(vec!["tokens".to_owned(), "weight".into(), "orders".into()])),
        prop_oneof![1..50u64, 1..=1u64 << 48],
        length(1),
        prop::option::of(1..=1u64 << 40),
        prop::option::of(length(1)),
        any::<bool>(),
        0..20u64,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_valid_policy_is_written_so_that_it_reads_back(
        provider in name(),
        permits in (prop::option::of(1..=4096u64), prop::option::of(1..=4096u64)),
        fifo: bool, share in 0..=1_000_000u64, priorities: bool, passthrough: bool,
        rules in prop::collection::vec(rule(), 0..4),
        window in (length(1), 1..=1024u32, 0..=1024u32),
        breaker in breaker(), backoff in backoff(),
        adaptive in prop::option::of((0..8usize, 1..=1_000_000u32, 1..=1000u32, 1..=1000u32, length(0))),
        paces in prop::collection::vec((name(), 1..=1u64 << 48, length(1), any::<bool>()), 0..4),
    ) {
        let rules: Vec<RuleDraft<'_>> = rules.iter().map(|it| {
            let algorithm = Algorithm::ALL[it.1];
            let legacy = it.7 && algorithm == Algorithm::Gcra;
            let tau = it.6.filter(|_| algorithm == Algorithm::Gcra && !legacy);
            let burst = it.5.filter(|_| algorithm.has_burst() && tau.is_none());
            RuleDraft {
                name: it.0.as_deref(), algorithm, unit: it.2.as_deref(), limit: it.3, period: it.4, burst, tau,
                burst_mode: if legacy { BurstMode::FixedWindow } else { BurstMode::GcraTau }, reserve: it.8,
                ..RuleDraft::new(algorithm, it.3, it.4)
            }
        }).collect();
        let kind = |sliding| if sliding { WindowKind::Sliding } else { WindowKind::Fixed };
        let windows: Vec<_> = paces.iter().map(|(name, limit, interval, sliding)| PaceWindowDraft {
            name, limit: *limit, interval: *interval, kind: kind(*sliding),
        }).collect();
        let drafted = Policy::new(&PolicyDraft {
            provider: &provider, concurrency: permits.0, concurrency_background: permits.1,
            fairness: if fifo { Fairness::Fifo } else { Fairness::Process },
            background_share: share, rules: &rules, priorities, passthrough,
            window: OutcomeWindow { max_age: window.0, max_count: window.1, min_samples: window.2 },
            breaker, backoff,
            adaptive: adaptive.map(|(parser, threshold, history, samples, short_window)| AdaptiveDraft {
                parser: HeaderFormat::ALL.get(parser).map(|format| format.code()), threshold, history,
                min_samples: samples.min(history), short_window, windows: &windows,
            }),
        });
        // Random rules may contradict themselves; enough of them are valid.
        prop_assume!(drafted.is_ok());
        let policy = drafted.unwrap();
        let text = config::to_toml(&policy);
        let read = Config::from_toml(&text);
        prop_assert_eq!(read.as_ref().map(|config| *config.policy()), Ok(policy), "{}", text);
        prop_assert_eq!(describe::differences(&policy, &policy), "");
    }
}
