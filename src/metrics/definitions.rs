//! Defines every metric and collects its samples.
//!
//! Most metrics show one field of a snapshot. The field's description declares them (`src/limiter/fields.rs`), and
//! they need no code here. Any other metric is a line of [`definitions`] and an `add` below.

use super::data_model::{Family, Kind, Sample, Value};
use crate::schema::{self, Field, Part, STRUCTS};
use crate::{OutcomeCounts, Priority, RuleSnapshot, Snapshot};
use shmlimit_kernel::policy::BreakerKind;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Every family, in order. Families without a sample are included, so that a dashboard can be checked.
pub fn families<'s>(limiters: impl IntoIterator<Item = (&'s str, Option<&'s Snapshot>)>) -> Vec<Family> {
    let mut collector = Collector { families: definitions(), limiter: String::new() };
    collector.add("build", vec![("version", env!("CARGO_PKG_VERSION").to_owned())], Value::Whole(1));
    for (name, snapshot) in limiters {
        name.clone_into(&mut collector.limiter);
        collector.add("up", Vec::new(), Value::Whole(u64::from(snapshot.is_some())));
        if let Some(snapshot) = snapshot {
            outcomes(&mut collector, snapshot);
            usage(&mut collector, snapshot);
            breaker(&mut collector, snapshot);
            all_fields(&mut collector, snapshot);
        }
    }
    collector.families
}

/// Every family: first those of several fields, then those of one.
fn definitions() -> Vec<Family> {
    use Kind::{Counter, Gauge, Histogram, Info};
    let derived = [
        ("build", Info, "The program that made these measurements."),
        ("up", Gauge, "1 if the limiter could be read, 0 if it is damaged or not accessible."),
        ("requests", Counter, "Recorded outcomes, by HTTP status or error."),
        ("outcomes", Counter, "Recorded outcomes, by their class for the breaker."),
        ("latency_seconds", Histogram, "Recorded durations of calls."),
        ("sleep_seconds", Histogram, "How long callers were advised to wait before the next attempt."),
        ("participants", Gauge, "Attached processes."),
        ("queue_length", Gauge, "Waiting calls, by priority."),
        ("queue_oldest_seconds", Gauge, "Longest time that a call has been waiting; 0 if no call waits."),
        ("breaker_state", Gauge, "1 for the breaker's current state, 0 for its other states."),
        ("breaker_since_timestamp_seconds", Gauge, "When the current state began."),
        ("breaker_left_seconds", Gauge, "Time until the breaker's timer is due; absent without a timer."),
        ("breaker_offline", Gauge, "1 if an operator has put the limiter offline."),
        ("paused", Gauge, "1 if an operator has paused the limiter."),
        ("pause_left_seconds", Gauge, "Time until the pause ends; absent without a known end."),
        ("gate_seconds", Gauge, "Time until the pause by Retry-After ends; 0 without such a pause."),
    ];
    let derived = derived.into_iter().map(|(name, kind, help)| Family::new(name, kind, help));
    derived
        .chain(STRUCTS.iter().flat_map(|part| part.fields.iter().filter_map(|field| family(part, field))))
        .collect()
}

/// The family that shows one field.
fn family(part: &schema::Struct, field: &Field) -> Option<Family> {
    let kind = if field.metric?.is_counter { Kind::Counter } else { Kind::Gauge };
    Some(Family::new(family_name(part, field)?, kind, field.meaning("absent")))
}

fn family_name(part: &schema::Struct, field: &Field) -> Option<String> {
    let unit = if matches!(field.kind, schema::Kind::Time) { "_seconds" } else { "" };
    Some(field.metric_name(part)? + unit)
}

/// The fields of one struct that metrics show, with their values.
pub fn shown_fields<P: Part>(part: &P) -> impl Iterator<Item = (&'static Field, crate::Value)> + '_ {
    let fields = const { P::STRUCT }.fields.iter().zip(part.values());
    fields.filter(|(field, _)| field.metric.is_some()).map(|(field, value)| (field, value.to_value()))
}

/// Collects samples into families.
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

    /// Adds a sample for each field of a struct that metrics show. An absent value adds no sample.
    fn fields<P: Part>(&mut self, part: &P, labels: &[(&'static str, &str)]) {
        for (field, value) in shown_fields(part) {
            let value = match (value, field.kind) {
                (crate::Value::Integer(nanos), schema::Kind::Time) => Value::Real(nanos as f64 / 1e9),
                (crate::Value::Integer(whole), _) => Value::Whole(whole),
                (crate::Value::Float(real), _) => Value::Real(real),
                (crate::Value::Bool(flag), _) => Value::Whole(u64::from(flag)),
                _ => continue,
            };
            if let Some(name) = family_name(&P::STRUCT, field) {
                let labels = labels.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
                self.add(&name, labels, value);
            }
        }
    }

    fn time(&mut self, name: &str, time: Duration) {
        self.add(name, Vec::new(), Value::Real(time.as_secs_f64()));
    }
}

fn all_fields(collector: &mut Collector, snapshot: &Snapshot) {
    collector.fields(snapshot, &[]);
    collector.fields(&snapshot.counts, &[]);
    collector.fields(&snapshot.condition, &[]);
    for (rule, name) in snapshot.rules.iter().zip(rule_names(&snapshot.rules)) {
        collector.fields(rule, &[("rule", &name), ("unit", &rule.unit)]);
    }
    if let Some(pace) = &snapshot.condition.pace {
        collector.fields(pace, &[]);
        for window in &pace.windows {
            collector.fields(window, &[("window", &window.name)]);
        }
    }
}

fn outcomes(collector: &mut Collector, snapshot: &Snapshot) {
    let counts = &snapshot.counts;
    for (code, count) in by_code(snapshot) {
        collector.add("requests", vec![("code", code)], Value::Whole(count));
    }
    let OutcomeCounts { ok, throttled, server, net, ignored, latency, latency_sum, .. } =
        snapshot.condition.outcomes;
    for (class, count) in
        [("ok", ok), ("429", throttled), ("5xx", server), ("net", net), ("ignored", ignored)]
    {
        collector.add("outcomes", vec![("class", class.to_owned())], Value::Whole(count));
    }
    collector.add("latency_seconds", Vec::new(), Value::Times { counts: latency, sum: latency_sum });
    collector.add("sleep_seconds", Vec::new(), Value::Times { counts: counts.sleep, sum: counts.sleep_sum });
}

/// Counts by outcome code, each code once.
pub fn by_code(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for (code, count) in &snapshot.counts.codes {
        let sum: &mut u64 = codes.entry(code.to_string()).or_default();
        *sum = sum.wrapping_add(*count);
    }
    codes
}

fn usage(collector: &mut Collector, snapshot: &Snapshot) {
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
}

/// The names of the rules, made unique. Rules may share a name, but samples must differ.
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

fn breaker(collector: &mut Collector, snapshot: &Snapshot) {
    let condition = &snapshot.condition;
    for state in states(condition.breaker) {
        let is_in = *state == condition.state_name;
        collector.add("breaker_state", vec![("state", (*state).to_owned())], Value::Whole(u64::from(is_in)));
    }
    let began = snapshot.taken_at.checked_sub(condition.state_for);
    let began = began.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    collector.time("breaker_since_timestamp_seconds", began.unwrap_or_default());
    if let Some(left) = condition.eta {
        collector.time("breaker_left_seconds", left);
    }
    collector.whole("breaker_offline", condition.offline);
    collector.whole("paused", snapshot.paused.is_some());
    if let Some(left) = snapshot.paused.as_ref().and_then(|pause| pause.ends_in) {
        collector.time("pause_left_seconds", left);
    }
    collector.time("gate_seconds", condition.gate.as_ref().map(|gate| gate.opens_in).unwrap_or_default());
}

/// The states of a breaker of this kind.
fn states(kind: BreakerKind) -> &'static [&'static str] {
    match kind {
        BreakerKind::None => &["normal"],
        BreakerKind::Fsm => &["normal", "throttle", "sleep", "half_open", "cache_only"],
        BreakerKind::Consecutive => &["closed", "open", "half_open"],
    }
}
