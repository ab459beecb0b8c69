//! Defines every metric and collects its samples. A metric is a line of [`definitions`] and an `add` below.

use super::data_model::{Family, Kind, Sample, Value};
use crate::open;
use crate::options::Place;
use crate::poller::without_observer;
use crate::ui::failure::Failure;
use shmlimit::{Limiter, OutcomeCounts, PaceSnapshot, Priority, RuleSnapshot, Snapshot};
use shmlimit_kernel::policy::BreakerKind;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// A limiter, or why it cannot be looked at.
pub struct Observed {
    pub name: String,
    pub snapshot: Result<Snapshot, Failure>,
}

/// All limiters there are, or the one of that name. One that vanishes meanwhile is left out.
pub fn observe(place: &Place, name: Option<&str>) -> Result<Vec<Observed>, Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => match Limiter::list(place.dir.as_deref()) {
            Ok(listing) => listing.names,
            Err(error) if open::is_missing(&error) => Vec::new(),
            Err(error) => return Err(error.into()),
        },
    };
    let mut seen = Vec::new();
    for name in names {
        let snapshot = match open::observer(place, &name) {
            Ok(None) => continue,
            Ok(Some(limiter)) => limiter.snapshot().map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        seen.push(Observed { name, snapshot: snapshot.map(without_observer) });
    }
    Ok(seen)
}

/// Every family, in order; those without a sample too, so that a dashboard can be checked.
pub fn families(seen: &[Observed], now: SystemTime) -> Vec<Family> {
    let mut collector = Collector { families: definitions(), limiter: String::new() };
    collector.add("build", vec![("version", env!("CARGO_PKG_VERSION").to_owned())], Value::Whole(1));
    for one in seen {
        collector.limiter.clone_from(&one.name);
        collector.add("up", Vec::new(), Value::Whole(u64::from(one.snapshot.is_ok())));
        if let Ok(snapshot) = &one.snapshot {
            counts(&mut collector, snapshot);
            budget(&mut collector, snapshot);
            breaker(&mut collector, snapshot, now);
            if let Some(pace) = &snapshot.condition.pace {
                learned_pace(&mut collector, pace);
            }
        }
    }
    collector.families
}

/// Every family there is.
fn definitions() -> Vec<Family> {
    use Kind::{Counter, Gauge, Histogram, Info};
    let families = [
        ("build", Info, "The program that measured."),
        ("up", Gauge, "1 if the limiter could be looked at, 0 if it is damaged or not accessible."),
        ("requests", Counter, "Outcomes that were recorded, by HTTP status or error."),
        ("outcomes", Counter, "Outcomes that were recorded, by what they mean to the breaker."),
        ("granted", Counter, "Calls granted."),
        ("refused", Counter, "Calls refused; one that waited counts once, if it gave up."),
        ("looks", Counter, "Looks of waiting calls whether it was their turn."),
        ("cache_hits", Counter, "Answers that were found in a cache."),
        ("cache_miss", Counter, "Answers that were not found in a cache."),
        ("latency_seconds", Histogram, "How long calls took, where that was recorded."),
        ("sleep_seconds", Histogram, "How long callers were told to wait before they try again."),
        ("rate_current", Gauge, "Units a second that the breaker allows now; 0 while every call is blocked."),
        ("concurrency_current", Gauge, "Most calls in flight in the present state; absent without a bound."),
        ("err_rate_30s", Gauge, "The ratio of errors among the outcomes that count now."),
        ("samples", Gauge, "Outcomes that count now."),
        ("in_flight", Gauge, "Permits that are out."),
        ("in_flight_background", Gauge, "Permits that are out to background calls."),
        ("held_by_exited", Gauge, "Permits whose holder has died: free for whoever asks."),
        ("participants", Gauge, "Processes that are attached, without the one that measures."),
        ("queue_length", Gauge, "Calls that wait, by priority."),
        ("queue_oldest_seconds", Gauge, "How long the call has waited that waits longest; 0 if none does."),
        ("rule_remaining", Gauge, "Whole units left of a rule, for those who may use its reserve."),
        ("rule_remaining_background", Gauge, "Whole units left of a rule for the background."),
        ("rule_capacity", Gauge, "Most units a rule allows at once."),
        ("rule_limit", Gauge, "Units a rule allows per period."),
        ("rule_period_seconds", Gauge, "The period of a rule."),
        ("breaker_state", Gauge, "1 for the state the breaker is in, 0 for the others it has."),
        ("breaker_since_timestamp_seconds", Gauge, "When that state began."),
        ("breaker_left_seconds", Gauge, "In how long its timer is due; absent without one."),
        ("breaker_offline", Gauge, "1 if an operator has put it offline."),
        ("transitions", Counter, "Changes of the breaker's state."),
        ("consec429", Gauge, "Successive 429."),
        ("failures", Gauge, "Successive failures, of a consecutive breaker."),
        ("paused", Gauge, "1 if an operator has paused the limiter."),
        ("pause_left_seconds", Gauge, "In how long the pause ends; absent without a known end."),
        ("gate_seconds", Gauge, "In how long the gate opens that a Retry-After closed; 0 if it is open."),
        ("pace_interval_seconds", Gauge, "The smallest gap between calls that response headers taught."),
        ("pace_window_limit", Gauge, "The limit of a provider's window, as headers said."),
        ("pace_window_remaining", Gauge, "What is left of a provider's window, as headers said."),
        ("resets", Counter, "How often a damaged state had to be started afresh."),
    ];
    families.into_iter().map(|(name, kind, help)| Family::new(name, kind, help)).collect()
}

/// The families as they are filled.
struct Collector {
    families: Vec<Family>,
    limiter: String,
}

impl Collector {
    fn add(&mut self, name: &str, mut labels: Vec<(&'static str, String)>, value: Value) {
        if !self.limiter.is_empty() {
            labels.insert(0, ("limiter", self.limiter.clone()));
        }
        let family = self.families.iter_mut().find(|family| family.name == name);
        debug_assert!(family.is_some(), "{name}");
        if let Some(family) = family {
            family.samples.push(Sample { labels, value });
        }
    }

    fn whole(&mut self, name: &str, value: impl Into<u64>) {
        self.add(name, Vec::new(), Value::Whole(value.into()));
    }

    fn time(&mut self, name: &str, time: Duration) {
        self.add(name, Vec::new(), Value::Real(time.as_secs_f64()));
    }
}

fn counts(collector: &mut Collector, snapshot: &Snapshot) {
    let counts = &snapshot.counts;
    for (code, count) in by_code(snapshot) {
        collector.add("requests", vec![("code", code)], Value::Whole(count));
    }
    let OutcomeCounts { ok, throttled, server, net, other, latency, latency_sum, .. } =
        snapshot.condition.outcomes;
    for (class, count) in [("ok", ok), ("429", throttled), ("5xx", server), ("net", net), ("other", other)] {
        collector.add("outcomes", vec![("class", class.to_owned())], Value::Whole(count));
    }
    collector.whole("granted", counts.granted);
    collector.whole("refused", counts.refused);
    collector.whole("looks", counts.looked);
    collector.whole("cache_hits", counts.cache_hits);
    collector.whole("cache_miss", counts.cache_misses);
    collector.add("latency_seconds", Vec::new(), Value::Times { counts: latency, sum: latency_sum });
    collector.add("sleep_seconds", Vec::new(), Value::Times { counts: counts.sleep, sum: counts.sleep_sum });
    collector.whole("transitions", snapshot.condition.transition_count);
    collector.whole("resets", snapshot.resets);
}

/// How often calls ended how, each code once.
pub fn by_code(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for (code, count) in &snapshot.counts.codes {
        let sum: &mut u64 = codes.entry(code.to_string()).or_default();
        *sum = sum.wrapping_add(*count);
    }
    codes
}

fn budget(collector: &mut Collector, snapshot: &Snapshot) {
    let condition = &snapshot.condition;
    collector.add("rate_current", Vec::new(), Value::Real(condition.rate));
    if let Some(most) = condition.concurrency {
        collector.whole("concurrency_current", most);
    }
    collector.whole("in_flight", snapshot.in_flight);
    collector.whole("in_flight_background", snapshot.in_flight_background);
    collector.whole("held_by_exited", snapshot.held_by_exited);
    collector.whole("participants", snapshot.participants.len() as u64);
    for priority in [Priority::Webhook, Priority::User, Priority::Background] {
        let waiting = snapshot.queue.iter().filter(|one| one.priority == priority).count();
        collector.add(
            "queue_length",
            vec![("priority", priority.as_str().to_owned())],
            Value::Whole(waiting as u64),
        );
    }
    let oldest = snapshot.queue.iter().map(|one| one.waited_for).max().unwrap_or_default();
    collector.time("queue_oldest_seconds", oldest);
    for (rule, name) in snapshot.rules.iter().zip(rule_names(&snapshot.rules)) {
        let labels = || vec![("rule", name.clone()), ("unit", rule.unit.clone())];
        collector.add("rule_remaining", labels(), Value::Whole(rule.remaining));
        collector.add("rule_remaining_background", labels(), Value::Whole(rule.remaining_background));
        collector.add("rule_capacity", labels(), Value::Whole(rule.capacity));
        collector.add("rule_limit", labels(), Value::Whole(rule.limit));
        collector.add("rule_period_seconds", labels(), Value::Real(rule.period.as_secs_f64()));
    }
}

/// The rules' names, each once: nothing says that they differ, but samples must.
pub fn rule_names(rules: &[RuleSnapshot]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for rule in rules {
        let mut name = rule.name.clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{}#{number}", rule.name);
            number += 1;
        }
        names.push(name);
    }
    names
}

fn breaker(collector: &mut Collector, snapshot: &Snapshot, now: SystemTime) {
    let condition = &snapshot.condition;
    for state in states(condition.breaker) {
        let is_in = *state == condition.state_name;
        collector.add("breaker_state", vec![("state", (*state).to_owned())], Value::Whole(u64::from(is_in)));
    }
    let began =
        now.checked_sub(condition.state_for).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    collector.time("breaker_since_timestamp_seconds", began.unwrap_or_default());
    if let Some(left) = condition.eta {
        collector.time("breaker_left_seconds", left);
    }
    collector.whole("breaker_offline", condition.offline);
    collector.whole("paused", snapshot.paused.is_some());
    if let Some(left) = snapshot.paused.as_ref().and_then(|pause| pause.ends_in) {
        collector.time("pause_left_seconds", left);
    }
    collector.add("err_rate_30s", Vec::new(), Value::Real(condition.error_ratio));
    collector.whole("samples", condition.samples);
    collector.whole("consec429", condition.consec429);
    collector.whole("failures", condition.failures);
    collector.time("gate_seconds", condition.gate.as_ref().map(|gate| gate.opens_in).unwrap_or_default());
}

/// The states that a breaker of that kind has.
fn states(kind: BreakerKind) -> &'static [&'static str] {
    match kind {
        BreakerKind::None => &["normal"],
        BreakerKind::Fsm => &["normal", "throttle", "sleep", "half_open", "cache_only"],
        BreakerKind::Consecutive => &["closed", "open", "half_open"],
    }
}

fn learned_pace(collector: &mut Collector, pace: &PaceSnapshot) {
    collector.time("pace_interval_seconds", pace.interval);
    for window in &pace.windows {
        let labels = || vec![("window", window.name.clone())];
        collector.add("pace_window_limit", labels(), Value::Whole(window.limit));
        collector.add("pace_window_remaining", labels(), Value::Whole(window.remaining));
    }
}
