//! The table of all keys of the format, and which field of the settings each of them sets.

use super::field::{Field, Kept};
use super::kind::Kind;
use super::{Mode, Settings};
use crate::headers::HeaderFormat;
use shmlimit_kernel::MAX_PERMITS;
use shmlimit_kernel::policy::{
    Algorithm, BreakerKind, BurstMode, Fairness, Jitter, MAX_AMOUNT, MAX_HISTORY, MAX_OUTCOMES, WindowKind,
};
use std::time::Duration;

/// Finds the field that a key means, for element `i` of its list; nothing if there is none.
pub(crate) type FieldOf = fn(&mut Settings, usize) -> Option<Field<'_>>;

/// One key of the format.
#[derive(Clone, Copy, Debug)]
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
    /// What it sets.
    pub(crate) field: FieldOf,
}

impl PartialEq for KeyInfo {
    fn eq(&self, other: &KeyInfo) -> bool {
        self.key == other.key
    }
}

impl Eq for KeyInfo {}

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
    fixed("preset", |_, _| None, Kind::Name, "none", "start from this preset; own keys go on top: tables merge key by key, `[[rules]]` and `[[adaptive.windows]]` replace all of its own"),
    fixed("epoch_ns", top!(epoch_ns), Kind::Whole { least: 0, most: u64::MAX }, "0", "the wall clock at the zero of a simulation, in nanoseconds since 1970; a limiter on a real clock has no use for it"),
    fixed("provider", top!(provider), Kind::Name, "default", "whose limits these are; named in errors"),
    fixed("mode", top!(mode), Kind::Choice(&Mode::NAMES), "enforce", "`\"passthrough\"` never refuses and never waits, but counts and reports"),
    changeable("concurrency", top!(draft.concurrency), PERMITS, "unlimited", "most calls in flight"),
    changeable("concurrency_background", top!(draft.concurrency_background), PERMITS, "unlimited", "most of them for the background; `\"unlimited\"` = as many as any"),
    changeable("fairness", top!(draft.fairness), Kind::Choice(&Fairness::NAMES), "process", "whose turn it is among waiting calls of one priority: each process (or group) gets the same, or first come, first served"),
    changeable("background_share", top!(draft.background_share), PART, "0", "what the background gets of the budget in any case, while higher priorities want all of it"),
    changeable("count_network_errors", top!(count_network_errors), Kind::Truth, "true", "whether time-outs, DNS and connection errors count for ratio and breaker; `false` where the own link is shaky"),
    fixed("priority.enabled", top!(draft.priorities), Kind::Truth, "true", "`false`: no priorities, every `reserve` is ignored"),
    fixed("rules.N.name", rule!(name), Kind::Name, "the algorithm's", "for messages and `status`"),
    fixed("rules.N.algorithm", rule!(draft.algorithm), Kind::Choice(&Algorithm::NAMES), "sliding_counter", "how it counts"),
    fixed("rules.N.unit", rule!(unit), Kind::Name, "requests", "what it counts; up to four units per limiter. A call costs 1 of `requests` and 0 of the others, unless it says otherwise"),
    changeable("rules.N.limit", rule!(limit), AMOUNT, "10, of buckets 1", "units per period; of a `sliding_log` at most 100000"),
    changeable("rules.N.period", rule!(period), LENGTH, "1m, of buckets 1s", "the period"),
    changeable("rules.N.burst", rule!(draft.burst), AMOUNT, "limit; 10 where that is not given", "`token_bucket`, `gcra` and `leaky_bucket` only: most units at once. 1 spaces calls evenly"),
    changeable("rules.N.tau", rule!(draft.tau), LENGTH, "none", "`gcra` only, in place of `burst`: the same as a time, burst · period / limit"),
    fixed("rules.N.burst_mode", rule!(burst_mode), Kind::Choice(&BurstMode::NAMES), "gcra_tau", "`gcra` only; `\"fixed_window\"`, for comparison with older systems: `burst` free passes in each period of the UTC clock, then one per period / limit"),
    changeable("rules.N.reserve", rule!(draft.reserve), Kind::Whole { least: 0, most: MAX_AMOUNT }, "0", "units of the burst (of the limit, for windows) that background calls must leave to `user` and `webhook`; at most all of it"),
    changeable("window.max_age", top!(draft.window.max_age), LENGTH, "30s", "outcomes of this age and older do not count"),
    changeable("window.max_count", top!(draft.window.max_count), Kind::Whole { least: 1, most: MAX_OUTCOMES as u64 }, "300", "so many of the newest outcomes count"),
    changeable("window.min_samples", top!(draft.window.min_samples), Kind::Whole { least: 0, most: MAX_OUTCOMES as u64 }, "10", "so many are needed before a ratio can be called too high"),
    fixed("breaker.kind", top!(kind), Kind::Choice(&BreakerKind::NAMES), "none", "`\"fsm\"`: Normal, Throttle, Sleep, HalfOpen, CacheOnly; `\"consecutive\"`: closed, open, half open"),
    changeable("breaker.rate_base", top!(draft.breaker.rate_base), Kind::Rate { auto: true }, "auto", "fsm: the full rate, which drives the first rule if that is a token bucket; `\"auto\"` = that rule's own, or 35"),
    changeable("breaker.p_throttle", top!(draft.breaker.p_throttle), PART, "0.2", "fsm: the ratio of errors from which on it throttles"),
    changeable("breaker.p_recover", top!(draft.breaker.p_recover), Kind::Part { least: 1 }, "0.1", "fsm: the ratio below which it recovers; 0 is refused, because no ratio is below 0"),
    changeable("breaker.p_sleep", top!(draft.breaker.p_sleep), PART, "0.6", "fsm: the ratio from which on it sleeps, if that lasts"),
    changeable("breaker.sleep_after", top!(draft.breaker.sleep_after), LENGTH_OR_NONE, "5m", "fsm: how long `p_sleep` must last"),
    changeable("breaker.n_throttle", top!(draft.breaker.n_throttle), COUNT, "3", "fsm: so many 429 in a row throttle"),
    changeable("breaker.n_cacheonly", top!(draft.breaker.n_cacheonly), COUNT, "5", "fsm: so many 429 in a row lead to Sleep (the name is historical)"),
    changeable("breaker.s_recover", top!(draft.breaker.s_recover), COUNT, "10", "fsm: successes needed to leave Throttle"),
    changeable("breaker.s_probe_ok", top!(draft.breaker.s_probe_ok), COUNT, "5", "fsm: successful probes needed to leave HalfOpen"),
    changeable("breaker.hysteresis", top!(draft.breaker.hysteresis), COUNT, "2", "fsm: so many evaluations in a row must agree before a ratio moves anything"),
    changeable("breaker.sleep_min", top!(draft.breaker.sleep_min), LENGTH, "2s", "fsm: the first cooldown"),
    changeable("breaker.sleep_max", top!(draft.breaker.sleep_max), LENGTH, "5m", "fsm: the longest cooldown; not below `sleep_min`"),
    changeable("breaker.cooldown_factor", top!(draft.breaker.cooldown_factor), FACTOR, "2", "fsm: how much longer each cooldown is than the one before"),
    changeable("breaker.probe_rate", top!(draft.breaker.probe_rate), Kind::Rate { auto: false }, "3", "fsm: the rate in HalfOpen"),
    changeable("breaker.probe_concurrency", top!(draft.breaker.probe_concurrency), Kind::Whole { least: 1, most: MAX_PERMITS as u64 }, "1", "fsm: probes in flight at a time"),
    changeable("breaker.probe_timeout", top!(draft.breaker.probe_timeout), LENGTH, "1m", "a probe that has not reported back after this is written off"),
    changeable("breaker.ramp_every", top!(draft.breaker.ramp_every), Kind::Length { least: Duration::from_millis(1) }, "5m", "fsm: how often the rate rises after a recovery"),
    changeable("breaker.ramp_factor", top!(draft.breaker.ramp_factor), Kind::Factor { least: 1_001_000, most: 1_000_000_000 }, "1.1", "fsm: how much it rises each time"),
    changeable("breaker.auto_recover", top!(draft.breaker.auto_recover), LENGTH_OR_NONE, "0s", "fsm: CacheOnly tries to recover by itself after this; 0 = not before an operator says so"),
    changeable("breaker.cache_only_after", top!(draft.breaker.cache_only_after), COUNT_OR_NONE, "0", "fsm: after so many Sleeps in a row without Normal comes CacheOnly; 0 = never"),
    changeable("breaker.failure_threshold", top!(draft.breaker.failure_threshold), COUNT, "5", "consecutive: failures in a row that open it"),
    changeable("breaker.reset_timeout", top!(draft.breaker.reset_timeout), LENGTH, "5m", "consecutive: how long it stays open"),
    changeable("breaker.required_successes", top!(draft.breaker.required_successes), COUNT, "2", "consecutive: successes that close it"),
    changeable("backoff.base", top!(draft.backoff.base), LENGTH_OR_NONE, "1500ms", "the ceiling of the first wait after a failed call"),
    changeable("backoff.factor", top!(draft.backoff.factor), FACTOR, "2", "how much higher each next ceiling is"),
    changeable("backoff.cap", top!(draft.backoff.cap), LENGTH_OR_NONE, "30s", "the highest ceiling"),
    changeable("backoff.jitter", top!(jitter), Kind::Choice(&Jitter::NAMES), "full", "a wait is anywhere from 0 to the ceiling, or the ceiling itself"),
    changeable("backoff.min_sleep", top!(draft.backoff.min_sleep), LENGTH_OR_NONE, "1s", "the least that a Retry-After counts"),
    changeable("backoff.retry_after_max", top!(draft.backoff.retry_after_max), LENGTH_OR_NONE, "1d", "the most that a Retry-After counts; not below `min_sleep`"),
    changeable("backoff.retries_user", top!(draft.backoff.retries_user), COUNT_OR_NONE, "2", "how often a `user` or `webhook` call is tried again"),
    changeable("backoff.retries_background", top!(draft.backoff.retries_background), COUNT_OR_NONE, "5", "how often a background call is"),
    fixed("adaptive.parser", adaptive!(draft.parser), Kind::Choice(&HeaderFormat::NAMES), "none", "whose response headers set the pace; without it none are read (in `simulate` an operation may name one)"),
    changeable("adaptive.threshold", adaptive!(draft.threshold), Kind::Part { least: 1 }, "0.5", "from this use of a window on calls are spaced"),
    changeable("adaptive.history", adaptive!(draft.history), Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "100", "how many gaps between calls are averaged"),
    changeable("adaptive.min_samples", adaptive!(draft.min_samples), Kind::Whole { least: 1, most: MAX_HISTORY as u64 }, "10", "gaps needed before their average counts; at most `history`"),
    changeable("adaptive.short_window", adaptive!(draft.short_window), LENGTH_OR_NONE, "10s", "windows up to this length use the simple rule"),
    fixed("adaptive.windows.N.name", window!(name), Kind::Name, "must be given", "the name that the parser gives it; windows that are not listed are ignored"),
    changeable("adaptive.windows.N.limit", window!(limit), AMOUNT, "must be given", "its limit, unless the headers say another"),
    fixed("adaptive.windows.N.interval", window!(interval), LENGTH, "must be given", "its length"),
    fixed("adaptive.windows.N.type", window!(kind), Kind::Choice(&WindowKind::NAMES), "fixed", "whether it starts anew at its end or moves with time"),
];
