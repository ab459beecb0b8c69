//! `--format ndjson`: one JSON object per limiter and observation, with the names of R116.
//!
//! The keys are a contract: docs/metrics.md.

use super::observation::Observed;
use crate::ui::failure::Failure;
use crate::ui::json::{self, Json, object};
use crate::ui::{output, time};
use shmlimit::metrics::{by_code, cumulative, rule_names, shown_fields};
use shmlimit::schema::{Kind, Part};
use shmlimit::{RuleSnapshot, Snapshot, Value};
use std::borrow::Cow;
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
    let mut line = object! { "requests_total": json::map(by_code(snapshot)) };
    line.0.extend(fields(counts));
    line.0.extend(fields(snapshot));
    line.0.extend(fields(condition));
    line.and(
        object! {
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
        .0,
    )
}

fn rule(rule: &RuleSnapshot) -> Json {
    object! { "unit": &rule.unit }.and(fields(rule).collect())
}

/// Returns the fields of one struct that metrics show, by the names of their metrics. Inside an object, the name of
/// the struct is left out.
fn fields<P: Part>(part: &P) -> impl Iterator<Item = (Cow<'static, str>, Value)> + '_ {
    shown_fields(part).filter_map(|(field, value)| {
        let prefix = P::STRUCT.word() + "_";
        let name = field.metric_name(&P::STRUCT)?;
        let name = name.strip_prefix(&prefix).unwrap_or(&name);
        Some(match (value, field.kind, field.metric?.is_counter) {
            (Value::Integer(nanos), Kind::Time, _) => {
                (format!("{name}_ms").into(), Value::Float(nanos as f64 / 1e6))
            }
            (value, _, true) => (format!("{name}_total").into(), value),
            (value, _, false) => (name.to_owned().into(), value),
        })
    })
}

/// Returns the cumulative count for each bound, as a list of pairs to keep the order.
fn histogram(counts: &[u64; 16], sum: Duration) -> Json {
    let bound = |bound: Option<u64>| bound.map_or(Value::from("+Inf"), Value::from);
    let buckets = cumulative(counts).map(|(most, count)| json::list([bound(most), count.into()]));
    let count = cumulative(counts).last().map_or(0, |(_, all)| all);
    object! { "count": count, "sum": millis(sum), "buckets": json::list(buckets) }
}

fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
