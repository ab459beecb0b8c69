//! JSON objects about a limiter that several commands write. The keys are a contract: docs/json.md.

use super::next_change::{Change, What};
use crate::ui::time::nanos;
use serde::Serialize;
use shmlimit::{Condition, OutcomeCounts, PauseSnapshot};

/// The keys of `--json` about it.
#[derive(Serialize)]
pub struct ConditionLine {
    state: &'static str,
    state_ns: u64,
    reason: Option<&'static str>,
    eta_ns: Option<u64>,
    offline: bool,
    rate: f64,
    concurrency_now: Option<u32>,
    gate: Option<GateLine>,
    samples: u32,
    err_rate: f64,
    consec429: u32,
    failures: u32,
    outcomes: CountsLine,
    pace: Option<PaceLine>,
    transitions: Vec<TransitionLine>,
}

#[derive(Serialize)]
struct GateLine {
    opens_in_ns: u64,
    pid: u32,
    program: String,
    recorded_ns: u64,
}

#[derive(Serialize)]
struct CountsLine {
    ok: u64,
    #[serde(rename = "429")]
    throttled: u64,
    #[serde(rename = "5xx")]
    server: u64,
    net: u64,
    other: u64,
}

#[derive(Serialize)]
struct PaceLine {
    interval_ns: u64,
    bottleneck: Option<String>,
    windows: Vec<WindowLine>,
}

#[derive(Serialize)]
struct WindowLine {
    name: String,
    limit: u64,
    remaining: u64,
    usage: f64,
    resets_in_ns: Option<u64>,
}

#[derive(Serialize)]
struct TransitionLine {
    ago_ns: u64,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

impl From<&Condition> for ConditionLine {
    fn from(now: &Condition) -> ConditionLine {
        let OutcomeCounts { ok, throttled, server, net, other, .. } = now.outcomes;
        ConditionLine {
            state: now.state_name,
            state_ns: nanos(now.state_for),
            reason: now.cause.map(|cause| cause.as_str()),
            eta_ns: now.eta.map(nanos),
            offline: now.offline,
            rate: now.rate,
            concurrency_now: now.concurrency,
            gate: now.gate.as_ref().map(|gate| GateLine {
                opens_in_ns: nanos(gate.opens_in),
                pid: gate.pid,
                program: gate.program.clone(),
                recorded_ns: nanos(gate.recorded),
            }),
            samples: now.samples,
            err_rate: now.error_ratio,
            consec429: now.consec429,
            failures: now.failures,
            outcomes: CountsLine { ok, throttled, server, net, other },
            pace: now.pace.as_ref().map(|pace| PaceLine {
                interval_ns: nanos(pace.interval),
                bottleneck: pace.bottleneck.clone(),
                windows: pace
                    .windows
                    .iter()
                    .map(|window| WindowLine {
                        name: window.name.clone(),
                        limit: window.limit,
                        remaining: window.remaining,
                        usage: window.usage(),
                        resets_in_ns: window.resets_in.map(nanos),
                    })
                    .collect(),
            }),
            transitions: now
                .transitions
                .iter()
                .map(|(transition, since)| TransitionLine {
                    ago_ns: nanos(*since),
                    from: transition.from.as_str(now.breaker),
                    to: transition.to.as_str(now.breaker),
                    reason: transition.cause.as_str(),
                })
                .collect(),
        }
    }
}

/// A pause in JSON. The keys are a contract: docs/json.md.
#[derive(Serialize)]
pub struct PauseLine {
    paused_ns: u64,
    ends_in_ns: Option<u64>,
    pid: u32,
    program: String,
    reason: Option<String>,
}

impl From<&PauseSnapshot> for PauseLine {
    fn from(pause: &PauseSnapshot) -> PauseLine {
        PauseLine {
            paused_ns: nanos(pause.paused_for),
            ends_in_ns: pause.ends_in.map(nanos),
            pid: pause.pid,
            program: pause.program.clone(),
            reason: pause.reason.clone(),
        }
    }
}

/// `next_change` of `--json`.
#[derive(Serialize)]
pub struct ChangeLine {
    what: &'static str,
    in_ns: u64,
    rule: Option<String>,
}

impl From<Change> for ChangeLine {
    fn from(change: Change) -> ChangeLine {
        let (what, rule) = match change.what {
            What::PauseEnds => ("pause_ends", None),
            What::GateOpens => ("gate_opens", None),
            What::HalfOpen => ("half_open", None),
            What::Sleep => ("sleep", None),
            What::RateRises => ("rate_rises", None),
            What::NextUnit(rule, _) => ("next_unit", Some(rule)),
            What::Full(rule) => ("full", Some(rule)),
        };
        ChangeLine { what, in_ns: nanos(change.within), rule }
    }
}
