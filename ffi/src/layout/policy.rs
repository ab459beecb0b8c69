//! The configured policy.

use super::{SHMLIMIT_SEGMENT_RULES, SHMLIMIT_SEGMENT_UNITS, byte};
use ::shmlimit_segment::layout;
use shmlimit_kernel::policy::{
    MAX_WINDOWS, NAME_LEN, POLICY_WORDS, StoredBackoff, StoredBreaker, StoredWindow, encoding,
};
use std::mem::{offset_of, size_of};

/// Bytes of a name, zero-padded; without a zero if it is that long.
pub const SHMLIMIT_SEGMENT_NAME_LENGTH: usize = 32;
/// Most windows that headers tell about.
pub const SHMLIMIT_SEGMENT_WINDOWS: usize = 8;

/// How those who wait are served.
#[repr(C)]
pub struct shmlimit_segment_queueing {
    /// SHMLIMIT_SEGMENT_QUEUEING_... flags.
    pub flags: u32,
    /// What the background gets in any case, in millionths.
    pub background_share: u32,
}

/// Which outcomes count.
#[repr(C)]
pub struct shmlimit_segment_outcome_window {
    /// An outcome of exactly this age is out; nanoseconds.
    pub max_age: u64,
    /// How many of the newest count.
    pub max_count: u32,
    /// So many are needed before a ratio can be called too high.
    pub min_samples: u32,
}

/// The breaker's numbers: nanoseconds, billionths a second for rates, millionths for parts and factors.
#[repr(C)]
pub struct shmlimit_segment_breaker {
    /// The full rate; 0 = what the first rule allows.
    pub rate_base: u64,
    /// The rate while probing.
    pub probe_rate: u64,
    /// How long a ratio of `p_sleep` must last.
    pub sleep_after: u64,
    /// The first cooldown.
    pub sleep_min: u64,
    /// The longest cooldown.
    pub sleep_max: u64,
    /// How often the rate rises after a recovery.
    pub ramp_every: u64,
    /// How long CacheOnly lasts before it tries by itself; 0 = until an operator says so.
    pub auto_recover: u64,
    /// A probe that has not reported back after this is written off.
    pub probe_timeout: u64,
    /// How long a consecutive breaker stays open.
    pub reset_timeout: u64,
    /// SHMLIMIT_SEGMENT_BREAKER_...
    pub kind: u32,
    /// Not 0: network errors do not count.
    pub net_ignored: u32,
    /// The ratio of errors at which to throttle.
    pub p_throttle: u32,
    /// The ratio below which it is healthy again.
    pub p_recover: u32,
    /// The ratio at which to sleep, if it lasts.
    pub p_sleep: u32,
    /// How much longer each cooldown is than the one before.
    pub cooldown_factor: u32,
    /// How much the rate rises each time.
    pub ramp_factor: u32,
    /// So many 429 in a row throttle.
    pub n_throttle: u32,
    /// So many 429 in a row lead to Sleep.
    pub n_cacheonly: u32,
    /// Successes needed to leave Throttle.
    pub s_recover: u32,
    /// Successful probes needed to leave HalfOpen.
    pub s_probe_ok: u32,
    /// So many evaluations in a row must agree.
    pub hysteresis: u32,
    /// Probes in flight at a time.
    pub probe_concurrency: u32,
    /// After so many Sleeps without Normal the next one is CacheOnly; 0 = never.
    pub cache_only_after: u32,
    /// Failures in a row that open a consecutive breaker.
    pub failure_threshold: u32,
    /// Successes that close it.
    pub required_successes: u32,
}

/// How long to wait after a failed call; nanoseconds.
#[repr(C)]
pub struct shmlimit_segment_backoff {
    /// The ceiling of the first wait.
    pub base: u64,
    /// The ceiling of all waits.
    pub cap: u64,
    /// The least that a Retry-After counts.
    pub min_sleep: u64,
    /// The most that a Retry-After counts.
    pub retry_after_max: u64,
    /// How much higher each ceiling is, in millionths.
    pub factor: u32,
    /// Not 0: no jitter.
    pub steady: u32,
    /// How often a call somebody waits for is tried again.
    pub retries_user: u32,
    /// How often a background call is.
    pub retries_background: u32,
}

/// How response headers set the pace.
#[repr(C)]
pub struct shmlimit_segment_adaptive {
    /// 1 if they do; else all of this is zero.
    pub on: u8,
    /// SHMLIMIT_SEGMENT_HEADERS_...
    pub parser: u8,
    /// How many windows there are.
    pub window_count: u8,
    /// Zero.
    pub unused: u8,
    /// From this use on the pace is slowed, in millionths.
    pub threshold: u32,
    /// How many gaps between calls are averaged.
    pub history: u32,
    /// So many gaps are needed before their average counts.
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
    /// What it counts: an index of `units`.
    pub unit: u8,
    /// 1: free passes in each calendar period, then pacing.
    pub window_bursts: u8,
    /// Who chose the burst. 0: somebody did. 1: it is the limit. 2: it is a part of a rate that no one period exceeds.
    pub burst_from: u8,
    /// Of a sliding log: the largest limit for which its log has room; 0 for all others.
    pub log_room: u32,
    /// Units per period.
    pub limit: u64,
    /// The period; nanoseconds.
    pub period: u64,
    /// Most units at once: the capacity.
    pub burst: u64,
    /// Tolerance that was set instead of a burst, in nanoseconds; 0 = none was.
    pub tau: u64,
    /// Units that only high priorities may use.
    pub reserve: u64,
}

/// One window of the provider's, that headers tell about.
#[repr(C)]
pub struct shmlimit_segment_window {
    /// Its name.
    pub name: [u8; SHMLIMIT_SEGMENT_NAME_LENGTH],
    /// Its limit, unless the headers say another.
    pub limit: u64,
    /// Its length; nanoseconds.
    pub interval: u64,
    /// 0: starts anew at its end. 1: moves with time.
    pub sliding: u64,
}

/// The policy as it was configured. Transactions only.
#[repr(C)]
pub struct shmlimit_segment_policy {
    /// Rules in use.
    pub rule_count: u8,
    /// Units in use.
    pub unit_count: u8,
    /// 1: nothing is ever refused.
    pub passthrough: u8,
    /// Zero.
    pub unused_counts: [u8; 5],
    /// Most calls in flight; 0 = no bound.
    pub concurrency: u32,
    /// Most calls in flight for the background; 0 = as many as any.
    pub concurrency_background: u32,
    /// How those who wait are served.
    pub queueing: shmlimit_segment_queueing,
    /// Zero.
    pub unused: u64,
    /// Which outcomes count.
    pub outcome_window: shmlimit_segment_outcome_window,
    /// The breaker.
    pub breaker: shmlimit_segment_breaker,
    /// The backoff.
    pub backoff: shmlimit_segment_backoff,
    /// How headers set the pace.
    pub adaptive: shmlimit_segment_adaptive,
    /// Whose limits these are.
    pub provider: [u8; SHMLIMIT_SEGMENT_NAME_LENGTH],
    /// Names of the units.
    pub units: [[u8; SHMLIMIT_SEGMENT_NAME_LENGTH]; SHMLIMIT_SEGMENT_UNITS],
    /// The rules.
    pub rules: [shmlimit_segment_rule; SHMLIMIT_SEGMENT_RULES],
    /// The windows that headers tell about.
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
