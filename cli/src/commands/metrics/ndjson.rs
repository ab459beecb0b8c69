//! `--format ndjson`: one JSON object per limiter and observation, with the names of R116.
//!
//! The keys are a contract: docs/metrics.md.

use super::collect::{Observed, by_code, rule_names};
use super::family::cumulative;
use crate::ui::failure::Failure;
use crate::ui::{output, time};
use serde::Serialize;
use shmlimit::Snapshot;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

pub fn write(seen: &[Observed], now: SystemTime) -> Result<String, Failure> {
    let mut out = String::new();
    for one in seen {
        let line = match &one.snapshot {
            Ok(snapshot) => output::to_json(&Line::new(snapshot, now)),
            Err(failure) => {
                let (ts, limiter, error) = (time::format_utc(now), one.name.as_str(), failure.to_string());
                output::to_json(&Down { ts, limiter, up: 0, error })
            }
        };
        out += &line?;
        out.push('\n');
    }
    Ok(out)
}

#[derive(Serialize)]
struct Down<'s> {
    ts: String,
    limiter: &'s str,
    up: u8,
    error: String,
}

#[derive(Serialize)]
struct Line<'s> {
    ts: String,
    limiter: &'s str,
    up: u8,
    requests_total: BTreeMap<String, u64>,
    granted_total: u64,
    refused_total: u64,
    looks_total: u64,
    cache_hits_total: u64,
    cache_miss_total: u64,
    transitions_total: u64,
    resets_total: u64,
    rate_current: f64,
    concurrency_current: Option<u32>,
    err_rate_30s: f64,
    samples: u32,
    consec429: u32,
    failures: u32,
    in_flight: u32,
    in_flight_background: u32,
    held_by_exited: u32,
    participants: usize,
    queue_length: usize,
    state: &'static str,
    state_ms: f64,
    state_left_ms: Option<f64>,
    offline: bool,
    gate_ms: f64,
    paused: bool,
    pause_left_ms: Option<f64>,
    pace_interval_ms: Option<f64>,
    rules: BTreeMap<String, Rule<'s>>,
    latency_ms: Histogram,
    sleep_ms: Histogram,
}

#[derive(Serialize)]
struct Rule<'s> {
    unit: &'s str,
    remaining: u64,
    remaining_background: u64,
    capacity: u64,
    limit: u64,
    period_ms: f64,
}

#[derive(Serialize)]
struct Histogram {
    count: u64,
    sum: f64,
    /// How many up to each bound, all smaller ones included; in order, so no map of texts.
    buckets: Vec<(Bound, u64)>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Bound {
    Millis(u64),
    All(&'static str),
}

impl Histogram {
    fn new(counts: &[u64; 16], sum: u64) -> Histogram {
        let bound = |bound: Option<u64>| bound.map_or(Bound::All("+Inf"), Bound::Millis);
        let buckets: Vec<_> = cumulative(counts).map(|(most, count)| (bound(most), count)).collect();
        Histogram { count: buckets.last().map_or(0, |(_, all)| *all), sum: sum as f64 / 1e6, buckets }
    }
}

impl<'s> Line<'s> {
    fn new(snapshot: &'s Snapshot, now: SystemTime) -> Line<'s> {
        let (counts, condition) = (&snapshot.counts, &snapshot.condition);
        let rules = snapshot.rules.iter().zip(rule_names(&snapshot.rules)).map(|(rule, name)| {
            let rule = Rule {
                unit: &rule.unit,
                remaining: rule.remaining,
                remaining_background: rule.remaining_background,
                capacity: rule.capacity,
                limit: rule.limit,
                period_ms: millis(rule.period),
            };
            (name, rule)
        });
        Line {
            ts: time::format_utc(now),
            limiter: &snapshot.name,
            up: 1,
            requests_total: by_code(snapshot),
            granted_total: counts.granted,
            refused_total: counts.refused,
            looks_total: counts.looked,
            cache_hits_total: counts.cache_hits,
            cache_miss_total: counts.cache_misses,
            transitions_total: condition.transition_count,
            resets_total: snapshot.resets,
            rate_current: condition.rate,
            concurrency_current: condition.concurrency,
            err_rate_30s: condition.error_ratio,
            samples: condition.samples,
            consec429: condition.consec429,
            failures: condition.failures,
            in_flight: snapshot.in_flight,
            in_flight_background: snapshot.in_flight_background,
            held_by_exited: snapshot.held_by_exited,
            participants: snapshot.participants.len(),
            queue_length: snapshot.queue.len(),
            state: condition.state_name,
            state_ms: millis(condition.state_for),
            state_left_ms: condition.eta.map(millis),
            offline: condition.offline,
            gate_ms: condition.gate.as_ref().map_or(0.0, |gate| millis(gate.opens_in)),
            paused: snapshot.paused.is_some(),
            pause_left_ms: snapshot.paused.as_ref().and_then(|pause| pause.ends_in).map(millis),
            pace_interval_ms: condition.pace.as_ref().map(|pace| millis(pace.interval)),
            rules: rules.collect(),
            latency_ms: Histogram::new(&condition.outcomes.latency, condition.outcomes.latency_sum),
            sleep_ms: Histogram::new(&counts.sleep, counts.sleep_sum),
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
