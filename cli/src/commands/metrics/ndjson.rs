//! `--format ndjson`: one JSON object per limiter and observation, with the names of R116.
//!
//! The keys are a contract: docs/metrics.md.

use super::data_model::cumulative;
use super::definitions::{Observed, by_code, rule_names};
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::{output, time};
use shmlimit::{RuleSnapshot, Snapshot, Value};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

pub fn write(seen: &[Observed], now: SystemTime) -> Result<String, Failure> {
    let mut out = String::new();
    for Observed { name, snapshot } in seen {
        let head =
            object! { "ts": time::format_utc(now), "limiter": name, "up": u32::from(snapshot.is_ok()) };
        let rest = match snapshot {
            Ok(snapshot) => figures(snapshot),
            Err(failure) => object! { "error": failure.to_string() },
        };
        out += &output::to_json(&head.and(rest.0))?;
        out.push('\n');
    }
    Ok(out)
}

fn figures(snapshot: &Snapshot) -> Json {
    let (counts, condition) = (&snapshot.counts, &snapshot.condition);
    let rules: BTreeMap<_, _> =
        rule_names(&snapshot.rules).into_iter().zip(snapshot.rules.iter().map(rule)).collect();
    object! {
        "requests_total": json::map(by_code(snapshot)),
        "granted_total": counts.granted,
        "refused_total": counts.refused,
        "looks_total": counts.looked,
        "cache_hits_total": counts.cache_hits,
        "cache_miss_total": counts.cache_misses,
        "transitions_total": condition.transition_count,
        "resets_total": snapshot.resets,
        "rate_current": condition.rate,
        "concurrency_current": condition.concurrency,
        "err_rate_30s": condition.error_ratio,
        "samples": condition.samples,
        "consec429": condition.consec429,
        "failures": condition.failures,
        "in_flight": snapshot.in_flight,
        "in_flight_background": snapshot.in_flight_background,
        "held_by_exited": snapshot.held_by_exited,
        "participants": snapshot.participants.len() as u64,
        "queue_length": snapshot.queue.len() as u64,
        "state": condition.state_name,
        "state_ms": millis(condition.state_for),
        "state_left_ms": condition.eta.map(millis),
        "offline": condition.offline,
        "gate_ms": condition.gate.as_ref().map_or(0.0, |gate| millis(gate.opens_in)),
        "paused": snapshot.paused.is_some(),
        "pause_left_ms": snapshot.paused.as_ref().and_then(|pause| pause.ends_in).map(millis),
        "pace_interval_ms": condition.pace.as_ref().map(|pace| millis(pace.interval)),
        "rules": json::map(rules),
        "latency_ms": histogram(&condition.outcomes.latency, condition.outcomes.latency_sum),
        "sleep_ms": histogram(&counts.sleep, counts.sleep_sum),
    }
}

fn rule(rule: &RuleSnapshot) -> Json {
    object! {
        "unit": &rule.unit,
        "remaining": rule.remaining,
        "remaining_background": rule.remaining_background,
        "capacity": rule.capacity,
        "limit": rule.limit,
        "period_ms": millis(rule.period),
    }
}

/// How many up to each bound, all smaller ones included; in order, so no map of texts.
fn histogram(counts: &[u64; 16], sum: u64) -> Json {
    let bound = |bound: Option<u64>| bound.map_or(Value::from("+Inf"), Value::from);
    let buckets = cumulative(counts).map(|(most, count)| json::list([bound(most), count.into()]));
    let count = cumulative(counts).last().map_or(0, |(_, all)| all);
    object! { "count": count, "sum": sum as f64 / 1e6, "buckets": json::list(buckets) }
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
