//! The table of all configuration keys, and the field of the settings that each key sets.

use super::field::{Field, Kept};
use super::kind::Kind;
use super::{Mode, Settings};
use crate::headers::HeaderFormat;
use shmlimit_kernel::MAX_PERMITS;
use shmlimit_kernel::policy::{
    Algorithm, BreakerKind, BurstMode, Fairness, Jitter, MAX_AMOUNT, MAX_HISTORY, MAX_OUTCOMES, WindowKind,
};
use std::time::Duration;

/// Finds the field of a key, for element `i` of its list; `None` if the field does not exist.
pub(crate) type FieldOf = fn(&mut Settings, usize) -> Option<Field<'_>>;

/// One configuration key.
///
/// ```
/// let key = shmlimit::config::keys().iter().find(|key| key.key == "concurrency").unwrap();
/// println!("{}: {} (default {})", key.key, key.meaning, key.default);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KeyInfo {
    /// Its dotted name. `N` stands for the number of an element, from 0.
    pub key: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The default as a file would contain it, or in words if it depends on other settings.
    pub default: &'static str,
    /// Whether it can be changed in a limiter that is in use (R110).
    pub changeable: bool,
    /// Its meaning, in one line.
    pub meaning: &'static str,
    /// The field that it sets.
    pub(crate) field: FieldOf,
}

impl PartialEq for KeyInfo {
    fn eq(&self, other: &KeyInfo) -> bool {
        self.key == other.key
    }
}

impl Eq for KeyInfo {}

impl KeyInfo {
    /// The list whose elements have this key, if it belongs to a list.
    pub(crate) fn list(&self) -> Option<&'static str> {
        self.key.split_once(".N.").map(|(list, _)| list)
    }

    /// The key for element `i`, as messages name it.
    pub(crate) fn named(&self, i: usize) -> String {
        self.key.replacen(".N.", &format!(".{i}."), 1)
    }
}

/// All keys, in the order of the documentation.
///
/// ```
/// assert!(shmlimit::config::keys().iter().any(|key| key.key == "rules.N.limit" && key.changeable));
/// ```
pub fn keys() -> &'static [KeyInfo] {
    &KEYS
}

const PERMITS: Kind = Kind::Permits { most: MAX_PERMITS as u64 };
const COUNT: Kind = Kind::Whole { least: 1, most: 1_000_000 };
const COUNT_OR_NONE: Kind = Kind::Whole { least: 0, most: 1_000_000 };
const AMOUNT: Kind = Kind::Whole { least: 1, most: MAX_AMOUNT };
const PART: Kind = Kind::Part { least: 0 };
const FACTOR: Kind = Kind::Factor { least: 1_000_000, most: 1_000_000_000 };
const LENGTH: Kind = Kind::Length { least: Duration::from_nanos(1) };
const LENGTH_OR_NONE: Kind = Kind::Length { least: Duration::ZERO };

const fn fixed(
    key: &'static str,
    field: FieldOf,
    kind: Kind,
    default: &'static str,
    meaning: &'static str,
) -> KeyInfo {
    KeyInfo { key, field, kind, default, changeable: false, meaning }
}

const fn changeable(
    key: &'static str,
    field: FieldOf,
    kind: Kind,
    default: &'static str,
    meaning: &'static str,
) -> KeyInfo {
    KeyInfo { changeable: true, ..fixed(key, field, kind, default, meaning) }
}

/// A field of the settings themselves.
macro_rules! top {
    ($($field:ident).+) => { |settings, _| Some(settings.$($field).+.field()) };
}
/// A field of `[adaptive]`.
macro_rules! adaptive {
    ($($field:ident).+) => { |settings, _| Some(settings.adaptive.as_mut()?.$($field).+.field()) };
}
/// A field of one of `[[adaptive.windows]]`.
macro_rules! window {
    ($field:ident) => {
        |settings, i| Some(settings.adaptive.as_mut()?.windows.get_mut(i)?.$field.field())
    };
}
/// A field of one of `[[rules]]`.
macro_rules! rule {
    ($($field:ident).+) => { |settings, i| Some(settings.rules.get_mut(i)?.$($field).+.field()) };
}

#[rustfmt::skip]
static KEYS: [KeyInfo; 63] = [
    fixed("preset", |_, _| None, Kind::Name, "none", "start from this preset; keys of the file override it: tables merge key by key, `[[rules]]` and `[[adaptive.windows]]` replace all rules and windows of the preset"),
    fixed("epoch_ns", top!(epoch_ns), Kind::Whole { least: 0, most: u64::MAX }, "0", "wall-clock time at the zero of a simulation, in nanoseconds since 1970; not used by a limiter on a real clock"),
    fixed("provider", top!(provider), Kind::Name, "default", "the provider that sets these limits; named in errors"),
    fixed("mode", top!(mode), Kind::Choice(&Mode::NAMES), "enforce", "`\"passthrough\"` never refuses and never waits, but counts and reports"),
    changeable("concurrency", top!(draft.concurrency), PERMITS, "unlimited", "maximum number of calls in flight"),
    changeable("concurrency_background", top!(draft.concurrency_background), PERMITS, "unlimited", "maximum number of background calls in flight; `\"unlimited\"` = no separate limit"),
    changeable("fairness", top!(draft.fairness), Kind::Choice(&Fairness::NAMES), "process", "which waiting call of one priority is next: `\"process\"` gives each process (or group) an equal share, `\"fifo\"` is first come, first served"),
    changeable("background_share", top!(draft.background_share), PART, "0", "share of the budget that background calls always get, even while higher priorities want all of it"),
    changeable("count_network_errors", top!(count_network_errors), Kind::Truth, "true", "whether timeouts, DNS and connection errors count for the error ratio and the breaker; `false` if your own network is unreliable"),
    fixed("priority.enabled", top!(draft.priorities), Kind::Truth, "true", "`false`: no priorities, and every `reserve` is ignored"),
    fixed("rules.N.name", rule!(name), Kind::Name, "the algorithm's", "name in messages and in `status`"),
    fixed("rules.N.algorithm", rule!(draft.algorithm), Kind::Choice(&Algorithm::NAMES), "sliding_counter", "algorithm of the rule"),
    fixed("rules.N.unit", rule!(unit), Kind::Name, "requests", "the unit that the rule counts; up to four units per limiter. A call costs 1 of `requests` and 0 of the others by default"),
    changeable("rules.N.limit", rule!(limit), AMOUNT, "10; 1 for buckets", "units per period; for `sliding_log` at most 100000"),
    changeable("rules.N.period", rule!(period), LENGTH, "1m; 1s for buckets", "the period"),
    changeable("rules.N.burst", rule!(draft.burst), AMOUNT, "the limit; 10 if no limit is given", "`token_bucket`, `gcra` and `leaky_bucket` only: maximum number of units at once. 1 spaces calls evenly"),
    changeable("rules.N.tau", rule!(draft.tau), LENGTH, "none", "`gcra` only, instead of `burst`: the burst as a time, burst · period / limit"),
    fixed("rules.N.burst_mode", rule!(burst_mode), Kind::Choice(&BurstMode::NAMES), "gcra_tau", "`gcra` only; `\"fixed_window\"` is for comparison with older systems: `burst` free passes in each period of the UTC clock, then one per period / limit"),
    changeable("rules.N.reserve", rule!(draft.reserve), Kind::Whole { least: 0, most: MAX_AMOUNT }, "0", "units of the burst (for windows, of the limit) that background calls must leave to `user` and `webhook`; at most all of it"),
    changeable("window.max_age", top!(draft.window.max_age), LENGTH, "30s", "outcomes of this age or older do not \
                                                                             count"),
    changeable("window.max_count", top!(draft.window.max_count), Kind::Whole { least: 1, most: MAX_OUTCOMES as u64 }, "300", "how many of the newest outcomes count"),
    changeable("window.min_samples", top!(draft.window.min_samples), Kind::Whole { least: 0, most: MAX_OUTCOMES as u64 }, "10", "minimum number of outcomes before an error ratio can be too high"),
    fixed("breaker.kind", top!(kind), Kind::Choice(&BreakerKind::NAMES), "none", "`\"fsm\"`: Normal, Throttle, Sleep, HalfOpen, CacheOnly; `\"consecutive\"`: closed, open, half open"),
    changeable("breaker.rate_base", top!(draft.breaker.rate_base), Kind::Rate { auto: true }, "auto", "fsm: the full rate, which controls the first rule if that is a token bucket; `\"auto\"` = the rate of that rule, or 35"),
    changeable("breaker.p_throttle", top!(draft.breaker.p_throttle), PART, "0.2", "fsm: error ratio from which the breaker throttles"),
    changeable("breaker.p_recover", top!(draft.breaker.p_recover), Kind::Part { least: 1 }, "0.1", "fsm: error ratio below which the breaker recovers; 0 is an error, because no ratio is below 0"),
    changeable("breaker.p_sleep", top!(draft.breaker.p_sleep), PART, "0.6", "fsm: error ratio from which the breaker sleeps, if it lasts for `sleep_after`"),
    changeable("breaker.sleep_after", top!(draft.breaker.sleep_after), LENGTH_OR_NONE, "5m", "fsm: how long `p_sleep` must last"),
    changeable("breaker.n_throttle", top!(draft.breaker.n_throttle), COUNT, "3", "fsm: number of consecutive 429s \
                                                                                  that leads to Throttle"),
    changeable("breaker.n_cacheonly", top!(draft.breaker.n_cacheonly), COUNT, "5", "fsm: number of consecutive 429s \
                                                                                    that leads to Sleep (the name is \
                                                                                    historical)"),
    changeable("breaker.s_recover", top!(draft.breaker.s_recover), COUNT, "10", "fsm: successes needed to leave Throttle"),
    changeable("breaker.s_probe_ok", top!(draft.breaker.s_probe_ok), COUNT, "5", "fsm: successful probes needed to leave HalfOpen"),
    changeable("breaker.hysteresis", top!(draft.breaker.hysteresis), COUNT, "2", "fsm: number of consecutive evaluations that must agree before a ratio changes the state"),
    changeable("breaker.sleep_min", top!(draft.breaker.sleep_min), LENGTH, "2s", "fsm: the first cooldown"),
    changeable("breaker.sleep_max", top!(draft.breaker.sleep_max), LENGTH, "5m", "fsm: the longest cooldown; not below `sleep_min`"),
    changeable("breaker.cooldown_factor", top!(draft.breaker.cooldown_factor), FACTOR, "2", "fsm: factor by which each cooldown is longer than the previous one"),
    changeable("breaker.probe_rate", top!(draft.breaker.probe_rate), Kind::Rate { auto: false }, "3", "fsm: the rate in HalfOpen"),
    changeable("breaker.probe_concurrency", top!(draft.breaker.probe_concurrency), Kind::Whole { least: 1, most: MAX_PERMITS as u64 }, "1", "fsm: maximum number of probes in flight"),
    changeable("breaker.probe_timeout", top!(draft.breaker.probe_timeout), LENGTH, "1m", "time after which a probe without an outcome is given up"),
    changeable("breaker.ramp_every", top!(draft.breaker.ramp_every), Kind::Length { least: Duration::from_millis(1) }, "5m", "fsm: interval at which the rate rises after a recovery"),
    changeable("breaker.ramp_factor", top!(draft.breaker.ramp_factor), Kind::Factor { least: 1_001_000, most: 1_000_000_000 }, "1.1", "fsm: factor of each rise"),
    changeable("breaker.auto_recover", top!(draft.breaker.auto_recover), LENGTH_OR_NONE, "0s", "fsm: time after which CacheOnly tries to recover by itself; 0 = only an operator ends it"),
    changeable("breaker.cache_only_after", top!(draft.breaker.cache_only_after), COUNT_OR_NONE, "0", "fsm: number of consecutive Sleeps without Normal that leads to CacheOnly; 0 = never"),
    changeable("breaker.failure_threshold", top!(draft.breaker.failure_threshold), COUNT, "5", "consecutive: number of consecutive failures that opens the breaker"),
    changeable("breaker.reset_timeout", top!(draft.breaker.reset_timeout), LENGTH, "5m", "consecutive: how long the breaker stays open"),
    changeable("breaker.required_successes", top!(draft.breaker.required_successes), COUNT, "2", "consecutive: number of successes that closes the breaker"),
    changeable("backoff.base", top!(draft.backoff.base), LENGTH_OR_NONE, "1500ms", "upper bound of the first wait after a failed call"),
    changeable("backoff.factor", top!(draft.backoff.factor), FACTOR, "2", "factor by which each upper bound is higher than the previous one"),
    changeable("backoff.cap", top!(draft.backoff.cap), LENGTH_OR_NONE, "30s", "maximum of the upper bound"),
    changeable("backoff.jitter", top!(jitter), Kind::Choice(&Jitter::NAMES), "full", "`\"full\"`: a random wait from 0 to the upper bound; `\"none\"`: the upper bound itself"),
    changeable("backoff.min_sleep", top!(draft.backoff.min_sleep), LENGTH_OR_NONE, "1s", "minimum wait for a Retry-After"),
    changeable("backoff.retry_after_max", top!(draft.backoff.retry_after_max), LENGTH_OR_NONE, "1d", "maximum wait for a Retry-After; not below `min_sleep`"),
    changeable("backoff.retries_user", top!(draft.backoff.retries_user), COUNT_OR_NONE, "2", "maximum number of retries of a `user` or `webhook` call"),
    changeable("backoff.retries_background", top!(draft.backoff.retries_background), COUNT_OR_NONE, "5", "maximum number of retries of a background call"),
    fixed("adaptive.parser", adaptive!(draft.parser), Kind::Choice(&HeaderFormat::NAMES), "none", "the format of the response headers that set the pace; without it no headers are read (in `simulate`, an operation may name a format)"),
    changeable("adaptive.threshold", adaptive!(draft.threshold), Kind::Part { least: 1 }, "0.5", "used part of a window from which calls are spaced"),
    changeable("adaptive.history", adaptive!(draft.history), Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "100", "number of gaps between calls that are averaged"),
    changeable("adaptive.min_samples", adaptive!(draft.min_samples), Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "10", "minimum number of gaps for an average; at most `history`"),
    changeable("adaptive.short_window", adaptive!(draft.short_window), LENGTH_OR_NONE, "10s", "windows up to this length use the simple rule"),
    fixed("adaptive.windows.N.name", window!(name), Kind::Name, "must be given", "the name that the parser gives the window; windows that are not listed are ignored"),
    changeable("adaptive.windows.N.limit", window!(limit), AMOUNT, "must be given", "limit of the window, unless the headers give another"),
    fixed("adaptive.windows.N.interval", window!(interval), LENGTH, "must be given", "length of the window"),
    fixed("adaptive.windows.N.type", window!(kind), Kind::Choice(&WindowKind::NAMES), "fixed", "`\"fixed\"`: the window restarts at its end; `\"sliding\"`: it moves with time"),
];
