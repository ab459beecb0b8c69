//! The table of all keys of the format.

use super::Mode;
use crate::quantity;
use shmlimit_kernel::policy::{
    Algorithm, BreakerKind, BurstMode, Fairness, HeaderFormat, Jitter, MAX_AMOUNT, MAX_HISTORY, MAX_OUTCOMES,
    NAME_LEN, PerSecond, WindowKind,
};
use shmlimit_kernel::{MAX_PERMITS, Nanos};

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A name in quotes.
    Name,
    /// One of these words, in quotes.
    Choice(&'static [&'static str]),
    /// True or false.
    Truth,
    /// A whole number.
    Whole {
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
    },
    /// A number of calls in flight, or no bound.
    Permits {
        /// Largest allowed.
        most: u64,
    },
    /// A part of the whole, in millionths.
    Part {
        /// Smallest allowed.
        least: u64,
    },
    /// A factor, in millionths.
    Factor {
        /// Smallest allowed.
        least: u64,
        /// Largest allowed.
        most: u64,
    },
    /// Units per second.
    Rate {
        /// Whether it may be left to the first rule.
        auto: bool,
    },
    /// A duration.
    Length {
        /// Shortest allowed.
        least: Nanos,
    },
}

impl Kind {
    /// What is allowed, in the user's own terms.
    pub fn range(&self) -> String {
        let parts = |parts| quantity::written(parts, 6);
        match *self {
            Kind::Name => format!("1 to {NAME_LEN} characters of A-Z a-z 0-9 . _ : -"),
            Kind::Choice(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
                match words.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => words.concat(),
                }
            }
            Kind::Truth => "true or false".to_owned(),
            Kind::Whole { least, most } => format!("from {least} to {most}"),
            Kind::Permits { most } => format!("from 1 to {most}, or \"unlimited\""),
            Kind::Part { least: 0 } => "a number from 0 to 1".to_owned(),
            Kind::Part { .. } => "a number above 0, at most 1".to_owned(),
            Kind::Factor { least, most } => format!("a number from {} to {}", parts(least), parts(most)),
            Kind::Rate { auto } => {
                let most = PerSecond::FASTEST.0 / PerSecond::ONE.0;
                let auto = if auto { ", or \"auto\"" } else { "" };
                format!("a number above 0, up to {most} a second{auto}")
            }
            Kind::Length { least: Nanos::ZERO } => "a duration".to_owned(),
            Kind::Length { least } => format!("a duration of at least {}", quantity::span(least)),
        }
    }
}

/// One key of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    /// Its dotted name; `N` stands for the number of an element, from 0.
    pub key: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds without it, as it would be written; in words where that depends.
    pub default: &'static str,
    /// Whether it can be changed in a limiter that is in use (R110).
    pub changeable: bool,
    /// What it means, in one line.
    pub meaning: &'static str,
}

impl KeyInfo {
    /// The list whose elements have this key, if it is of a list.
    pub(crate) fn list(&self) -> Option<&'static str> {
        self.key.split_once(".N.").map(|(list, _)| list)
    }

    /// The key for element `i`, as messages name it.
    pub(crate) fn named(&self, i: usize) -> String {
        self.key.replacen(".N.", &format!(".{i}."), 1)
    }
}

/// All keys, in the order in which they are documented.
pub fn keys() -> &'static [KeyInfo] {
    &KEYS
}

const PERMITS: Kind = Kind::Permits { most: MAX_PERMITS as u64 };
const COUNT: Kind = Kind::Whole { least: 1, most: 1_000_000 };
const COUNT_OR_NONE: Kind = Kind::Whole { least: 0, most: 1_000_000 };
const AMOUNT: Kind = Kind::Whole { least: 1, most: MAX_AMOUNT };
const PART: Kind = Kind::Part { least: 0 };
const FACTOR: Kind = Kind::Factor { least: 1_000_000, most: 1_000_000_000 };
const LENGTH: Kind = Kind::Length { least: Nanos(1) };
const LENGTH_OR_NONE: Kind = Kind::Length { least: Nanos::ZERO };

const fn fixed(key: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> KeyInfo {
    KeyInfo { key, kind, default, changeable: false, meaning }
}

const fn changeable(key: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> KeyInfo {
    KeyInfo { key, kind, default, changeable: true, meaning }
}

#[rustfmt::skip]
static KEYS: [KeyInfo; 63] = [
    fixed("preset", Kind::Name, "none", "start from this preset; own keys go on top: tables merge key by key, `[[rules]]` and `[[adaptive.windows]]` replace all of its own"),
    fixed("epoch_ns", Kind::Whole { least: 0, most: u64::MAX }, "0", "the wall clock at the zero of a simulation, in nanoseconds since 1970; a limiter on a real clock has no use for it"),
    fixed("provider", Kind::Name, "default", "whose limits these are; named in errors"),
    fixed("mode", Kind::Choice(&Mode::NAMES), "enforce", "`\"passthrough\"` never refuses and never waits, but counts and reports"),
    changeable("concurrency", PERMITS, "unlimited", "most calls in flight"),
    changeable("concurrency_background", PERMITS, "unlimited", "most of them for the background; `\"unlimited\"` = as many as any"),
    changeable("fairness", Kind::Choice(&Fairness::NAMES), "process", "whose turn it is among waiting calls of one priority: each process (or group) gets the same, or first come, first served"),
    changeable("background_share", PART, "0", "what the background gets of the budget in any case, while higher priorities want all of it"),
    changeable("count_network_errors", Kind::Truth, "true", "whether time-outs, DNS and connection errors count for ratio and breaker; `false` where the own link is shaky"),
    fixed("priority.enabled", Kind::Truth, "true", "`false`: no priorities, every `reserve` is ignored"),
    fixed("rules.N.name", Kind::Name, "the algorithm's", "for messages and `status`"),
    fixed("rules.N.algorithm", Kind::Choice(&Algorithm::NAMES), "sliding_counter", "how it counts"),
    fixed("rules.N.unit", Kind::Name, "requests", "what it counts; up to four units per limiter. A call costs 1 of `requests` and 0 of the others, unless it says otherwise"),
    changeable("rules.N.limit", AMOUNT, "10, of buckets 1", "units per period; of a `sliding_log` at most 100000"),
    changeable("rules.N.period", LENGTH, "1m, of buckets 1s", "the period"),
    changeable("rules.N.burst", AMOUNT, "limit; 10 where that is not given", "`token_bucket`, `gcra` and `leaky_bucket` only: most units at once. 1 spaces calls evenly"),
    changeable("rules.N.tau", LENGTH, "none", "`gcra` only, in place of `burst`: the same as a time, burst · period / limit"),
    fixed("rules.N.burst_mode", Kind::Choice(&BurstMode::NAMES), "gcra_tau", "`gcra` only; `\"fixed_window\"`, for comparison with older systems: `burst` free passes in each period of the UTC clock, then one per period / limit"),
    changeable("rules.N.reserve", Kind::Whole { least: 0, most: MAX_AMOUNT }, "0", "units of the burst (of the limit, for windows) that background calls must leave to `user` and `webhook`; at most all of it"),
    changeable("window.max_age", LENGTH, "30s", "outcomes of this age and older do not count"),
    changeable("window.max_count", Kind::Whole { least: 1, most: MAX_OUTCOMES as u64 }, "300", "so many of the newest outcomes count"),
    changeable("window.min_samples", Kind::Whole { least: 0, most: MAX_OUTCOMES as u64 }, "10", "so many are needed before a ratio can be called too high"),
    fixed("breaker.kind", Kind::Choice(&BreakerKind::NAMES), "none", "`\"fsm\"`: Normal, Throttle, Sleep, HalfOpen, CacheOnly; `\"consecutive\"`: closed, open, half open"),
    changeable("breaker.rate_base", Kind::Rate { auto: true }, "auto", "fsm: the full rate, which drives the first rule if that is a token bucket; `\"auto\"` = that rule's own, or 35"),
    changeable("breaker.p_throttle", PART, "0.2", "fsm: the ratio of errors from which on it throttles"),
    changeable("breaker.p_recover", Kind::Part { least: 1 }, "0.1", "fsm: the ratio below which it recovers; 0 is refused, because no ratio is below 0"),
    changeable("breaker.p_sleep", PART, "0.6", "fsm: the ratio from which on it sleeps, if that lasts"),
    changeable("breaker.sleep_after", LENGTH_OR_NONE, "5m", "fsm: how long `p_sleep` must last"),
    changeable("breaker.n_throttle", COUNT, "3", "fsm: so many 429 in a row throttle"),
    changeable("breaker.n_cacheonly", COUNT, "5", "fsm: so many 429 in a row lead to Sleep (the name is historical)"),
    changeable("breaker.s_recover", COUNT, "10", "fsm: successes needed to leave Throttle"),
    changeable("breaker.s_probe_ok", COUNT, "5", "fsm: successful probes needed to leave HalfOpen"),
    changeable("breaker.hysteresis", COUNT, "2", "fsm: so many evaluations in a row must agree before a ratio moves anything"),
    changeable("breaker.sleep_min", LENGTH, "2s", "fsm: the first cooldown"),
    changeable("breaker.sleep_max", LENGTH, "5m", "fsm: the longest cooldown; not below `sleep_min`"),
    changeable("breaker.cooldown_factor", FACTOR, "2", "fsm: how much longer each cooldown is than the one before"),
    changeable("breaker.probe_rate", Kind::Rate { auto: false }, "3", "fsm: the rate in HalfOpen"),
    changeable("breaker.probe_concurrency", Kind::Whole { least: 1, most: MAX_PERMITS as u64 }, "1", "fsm: probes in flight at a time"),
    changeable("breaker.probe_timeout", LENGTH, "1m", "a probe that has not reported back after this is written off"),
    changeable("breaker.ramp_every", Kind::Length { least: Nanos::from_millis(1) }, "5m", "fsm: how often the rate rises after a recovery"),
    changeable("breaker.ramp_factor", Kind::Factor { least: 1_001_000, most: 1_000_000_000 }, "1.1", "fsm: how much it rises each time"),
    changeable("breaker.auto_recover", LENGTH_OR_NONE, "0s", "fsm: CacheOnly tries to recover by itself after this; 0 = not before an operator says so"),
    changeable("breaker.cache_only_after", COUNT_OR_NONE, "0", "fsm: after so many Sleeps in a row without Normal comes CacheOnly; 0 = never"),
    changeable("breaker.failure_threshold", COUNT, "5", "consecutive: failures in a row that open it"),
    changeable("breaker.reset_timeout", LENGTH, "5m", "consecutive: how long it stays open"),
    changeable("breaker.required_successes", COUNT, "2", "consecutive: successes that close it"),
    changeable("backoff.base", LENGTH_OR_NONE, "1500ms", "the ceiling of the first wait after a failed call"),
    changeable("backoff.factor", FACTOR, "2", "how much higher each next ceiling is"),
    changeable("backoff.cap", LENGTH_OR_NONE, "30s", "the highest ceiling"),
    changeable("backoff.jitter", Kind::Choice(&Jitter::NAMES), "full", "a wait is anywhere from 0 to the ceiling, or the ceiling itself"),
    changeable("backoff.min_sleep", LENGTH_OR_NONE, "1s", "the least that a Retry-After counts"),
    changeable("backoff.retry_after_max", LENGTH_OR_NONE, "1d", "the most that a Retry-After counts; not below `min_sleep`"),
    changeable("backoff.retries_user", COUNT_OR_NONE, "2", "how often a `user` or `webhook` call is tried again"),
    changeable("backoff.retries_background", COUNT_OR_NONE, "5", "how often a background call is"),
    fixed("adaptive.parser", Kind::Choice(&HeaderFormat::NAMES), "none", "whose response headers set the pace; without it none are read (in `simulate` an operation may name one)"),
    changeable("adaptive.threshold", Kind::Part { least: 1 }, "0.5", "from this use of a window on calls are spaced"),
    changeable("adaptive.history", Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "100", "how many gaps between calls are averaged"),
    changeable("adaptive.min_samples", Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "10", "gaps needed before their average counts; at most `history`"),
    changeable("adaptive.short_window", LENGTH_OR_NONE, "10s", "windows up to this length use the simple rule"),
    fixed("adaptive.windows.N.name", Kind::Name, "must be given", "the name that the parser gives it; windows that are not listed are ignored"),
    changeable("adaptive.windows.N.limit", AMOUNT, "must be given", "its limit, unless the headers say another"),
    fixed("adaptive.windows.N.interval", LENGTH, "must be given", "its length"),
    fixed("adaptive.windows.N.type", Kind::Choice(&WindowKind::NAMES), "fixed", "whether it starts anew at its end or moves with time"),
];
