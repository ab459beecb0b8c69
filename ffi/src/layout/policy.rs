//! The configured policy.

use super::{SHMLIMIT_SEGMENT_RULES, SHMLIMIT_SEGMENT_UNITS, byte};
use ::shmlimit_segment::layout;
use shmlimit_kernel::policy::{
    MAX_WINDOWS, NAME_LEN, POLICY_WORDS, StoredBackoff, StoredBreaker, StoredWindow, encoding,
};
use std::mem::{offset_of, size_of};

/// The size of a name in bytes, zero-padded; a name of this length has no terminating zero.
pub const SHMLIMIT_SEGMENT_NAME_LENGTH: usize = 32;
/// The most windows that headers report about.
pub const SHMLIMIT_SEGMENT_WINDOWS: usize = 8;

/// How waiting calls are served.
#[repr(C)]
pub struct shmlimit_segment_queueing {
    /// SHMLIMIT_SEGMENT_QUEUEING_... flags.
    pub flags: u32,
    /// The share that background calls get in any case, in millionths.
    pub background_share: u32,
}

/// The outcomes that count.
#[repr(C)]
pub struct shmlimit_segment_outcome_window {
    /// The age at which an outcome no longer counts; nanoseconds.
    pub max_age: u64,
    /// The most outcomes that count; the newest ones do.
    pub max_count: u32,
    /// The least number of outcomes before a ratio can be too high.
    pub min_samples: u32,
}

/// The breaker's settings: nanoseconds, billionths a second for rates, millionths for ratios and factors.
#[repr(C)]
pub struct shmlimit_segment_breaker {
    /// The full rate; 0 = the rate of the first rule.
    pub rate_base: u64,
    /// The rate during probing.
    pub probe_rate: u64,
    /// How long a ratio of `p_sleep` must last.
    pub sleep_after: u64,
    /// The first cooldown.
    pub sleep_min: u64,
    /// The longest cooldown.
    pub sleep_max: u64,
    /// How often the rate rises after a recovery.
    pub ramp_every: u64,
    /// How long CacheOnly lasts before the limiter probes by itself; 0 = until an operator ends it.
    pub auto_recover: u64,
    /// A probe without an outcome after this time is written off.
    pub probe_timeout: u64,
    /// How long a consecutive breaker stays open.
    pub reset_timeout: u64,
    /// SHMLIMIT_SEGMENT_BREAKER_...
    pub kind: u32,
    /// Not 0: network errors do not count.
    pub net_ignored: u32,
    /// The ratio of errors that leads to Throttle.
    pub p_throttle: u32,
    /// The ratio below which the server is healthy again.
    pub p_recover: u32,
    /// The ratio that leads to Sleep, if it lasts.
    pub p_sleep: u32,
    /// The factor by which each cooldown is longer than the one before.
    pub cooldown_factor: u32,
    /// The factor by which the rate rises each time.
    pub ramp_factor: u32,
    /// The number of successive 429 that leads to Throttle.
    pub n_throttle: u32,
    /// The number of successive 429 that leads to Sleep.
    pub n_cacheonly: u32,
    /// Successes needed to leave Throttle.
    pub s_recover: u32,
    /// Successful probes needed to leave HalfOpen.
    pub s_probe_ok: u32,
    /// The number of successive evaluations that must agree.
    pub hysteresis: u32,
    /// The most probes in flight.
    pub probe_concurrency: u32,
    /// The number of Sleeps without Normal after which the next one is CacheOnly; 0 = never.
    pub cache_only_after: u32,
    /// The number of successive failures that opens a consecutive breaker.
    pub failure_threshold: u32,
    /// The number of successes that closes it.
    pub required_successes: u32,
}

/// How long to wait after a failed call; nanoseconds.
#[repr(C)]
pub struct shmlimit_segment_backoff {
    /// The upper bound of the first wait.
    pub base: u64,
    /// The upper bound of all waits.
    pub cap: u64,
    /// The shortest time that a Retry-After counts as.
    pub min_sleep: u64,
    /// The longest time that a Retry-After counts as.
    pub retry_after_max: u64,
    /// The factor by which each bound is higher than the one before, in millionths.
    pub factor: u32,
    /// Not 0: waits have no jitter.
    pub steady: u32,
    /// How often a user call is retried.
    pub retries_user: u32,
    /// How often a background call is retried.
    pub retries_background: u32,
}

/// How response headers set the pace.
#[repr(C)]
pub struct shmlimit_segment_adaptive {
    /// 1 if they set the pace; otherwise all other fields are zero.
    pub on: u8,
    /// SHMLIMIT_SEGMENT_HEADERS_...
    pub parser: u8,
    /// The number of windows.
    pub window_count: u8,
    /// Zero.
    pub unused: u8,
    /// The usage of a window from which on the pace is slowed, in millionths.
    pub threshold: u32,
    /// The number of gaps between calls that are averaged.
    pub history: u32,
    /// The least number of gaps before their average counts.
    pub min_samples: u32,
    /// Windows up to this length use the simple rule; nanoseconds.
    pub short_window: u64,
}

/// One rule.
#[repr(C)]
pub struct shmlimit_segment_rule {
    /// Its name.
    pub name: [u8; SHMLIMIT_SEGMENT_NAME_LENGTH],
    /// SHMLIMIT_SEGMENT_ALGORITHM_...
    pub algorithm: u8,
    /// The unit that it counts: an index of `units`.
    pub unit: u8,
    /// 1: calls pass freely at the start of each calendar period, then they are paced.
    pub window_bursts: u8,
    /// The origin of the burst. 0: it was configured. 1: it is the limit. 2: it is a part of a rate that no one
    /// period exceeds.
    pub burst_from: u8,
    /// For a sliding log: the largest limit for which the log has room; 0 for all other algorithms.
    pub log_room: u32,
    /// Units per period.
    pub limit: u64,
    /// The period; nanoseconds.
    pub period: u64,
    /// The capacity: most units at once.
    pub burst: u64,
    /// The tolerance that was configured instead of a burst, in nanoseconds; 0 = none.
    pub tau: u64,
    /// Units that only high priorities may use.
    pub reserve: u64,
}

/// One of the provider's windows that headers report about.
#[repr(C)]
pub struct shmlimit_segment_window {
    /// Its name.
    pub name: [u8; SHMLIMIT_SEGMENT_NAME_LENGTH],
    /// Its limit, unless headers report another.
    pub limit: u64,
    /// Its length; nanoseconds.
    pub interval: u64,
    /// 0: the window starts again at its end. 1: it moves with time.
    pub sliding: u64,
}

/// The configured policy. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_policy {
    /// Rules in use.
    pub rule_count: u8,
    /// Units in use.
    pub unit_count: u8,
    /// 1: no call is ever refused.
    pub passthrough: u8,
    /// Zero.
    pub unused_counts: [u8; 5],
    /// Most calls in flight; 0 = no limit.
    pub concurrency: u32,
    /// Most background calls in flight; 0 = as many as of any priority.
    pub concurrency_background: u32,
    /// How waiting calls are served.
    pub queueing: shmlimit_segment_queueing,
    /// Zero.
    pub unused: u64,
    /// The outcomes that count.
    pub outcome_window: shmlimit_segment_outcome_window,
    /// The breaker.
    pub breaker: shmlimit_segment_breaker,
    /// The backoff.
    pub backoff: shmlimit_segment_backoff,
    /// How headers set the pace.
    pub adaptive: shmlimit_segment_adaptive,
    /// The provider whose limits these are.
    pub provider: [u8; SHMLIMIT_SEGMENT_NAME_LENGTH],
    /// Names of the units.
    pub units: [[u8; SHMLIMIT_SEGMENT_NAME_LENGTH]; SHMLIMIT_SEGMENT_UNITS],
    /// The rules.
    pub rules: [shmlimit_segment_rule; SHMLIMIT_SEGMENT_RULES],
    /// The windows that headers report about.
    pub windows: [shmlimit_segment_window; SHMLIMIT_SEGMENT_WINDOWS],
    /// Zero.
    pub unused_words: [u64; 67],
    /// Checksum of all words before `unused_words`.
    pub checksum: u64,
}

const _: () = {
    assert!(SHMLIMIT_SEGMENT_NAME_LENGTH == NAME_LEN && SHMLIMIT_SEGMENT_WINDOWS == MAX_WINDOWS);
    same!(shmlimit_segment_outcome_window, StoredWindow: max_age max_count min_samples);
    same!(shmlimit_segment_breaker, StoredBreaker: rate_base probe_rate sleep_after sleep_min sleep_max ramp_every
        auto_recover probe_timeout reset_timeout p_throttle p_recover p_sleep cooldown_factor ramp_factor n_throttle
        n_cacheonly s_recover s_probe_ok hysteresis probe_concurrency cache_only_after failure_threshold
        required_successes);
    same!(shmlimit_segment_backoff, StoredBackoff: base cap min_sleep retry_after_max factor retries_user
        retries_background);

    assert!(size_of::<shmlimit_segment_rule>() == byte(encoding::RULE_POLICY_WORDS));
    at_words!(shmlimit_segment_policy, from 0; concurrency 1, queueing encoding::QUEUEING_AT, outcome_window encoding::WINDOW_AT,
        breaker encoding::BREAKER_AT, backoff encoding::BACKOFF_AT, adaptive encoding::ADAPTIVE_AT, provider encoding::PROVIDER_AT,
        units encoding::UNITS_AT, rules encoding::RULES_AT, windows encoding::PACE_WINDOWS_AT, unused_words POLICY_WORDS,);
    at_words!(shmlimit_segment_policy, from layout::POLICY; checksum layout::POLICY_CHECKSUM,);
    assert!(size_of::<shmlimit_segment_policy>() == byte(layout::HEALTH_STATE - layout::POLICY));
};
