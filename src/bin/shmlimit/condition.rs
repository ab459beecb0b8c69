//! How a limiter's server is doing: for people, and as JSON.

use crate::output::Paint;
use crate::screen::{ago, printable, wait};
use serde::Serialize;
use shmlimit::kernel::policy::BreakerKind;
use shmlimit::{Condition, OutcomeCounts, State};
use std::fmt::Write;
use std::time::Duration;

/// The lines about the breaker, the gate, outcomes and the pace; none where there is nothing to say.
pub fn write(out: &mut String, name: &str, now: &Condition, width: usize, paint: Paint) -> std::fmt::Result {
    if now.breaker != BreakerKind::None {
        writeln!(out, "  {:width$}  {}", "state", state(name, now, paint))?;
    }
    if let Some(gate) = &now.gate {
        writeln!(
            out,
            "  {:width$}  closed for {}: Retry-After, recorded by {} ({}) {} ago  {}",
            "gate",
            wait(gate.opens_in),
            printable(&gate.program),
            gate.pid,
            ago(gate.recorded),
            paint.dim(&format!("open it with: shmlimit force {name} clear-gate")),
        )?;
    }
    let OutcomeCounts { ok, throttled, server, net, other, .. } = now.outcomes;
    if ok + throttled + server + net + other > 0 {
        let ratio = format!("{:.1}% errors of the last {}", now.error_ratio * 100.0, now.samples);
        let ever = format!("ever: {ok} ok, {throttled} 429, {server} 5xx, {net} net, {other} other 4xx");
        writeln!(out, "  {:width$}  {ratio}  {}", "outcomes", paint.dim(&ever))?;
    }
    if let Some(pace) = &now.pace {
        let gap = match pace.interval {
            Duration::ZERO => "free".to_owned(),
            gap => format!("one call each {}", wait(gap)),
        };
        let windows: Vec<String> = pace
            .windows
            .iter()
            .map(|window| format!("{} {} of {} left", window.name, window.remaining, window.limit))
            .collect();
        writeln!(out, "  {:width$}  {gap}  {}", "pace", paint.dim(&windows.join(", ")))?;
    }
    Ok(())
}

fn state(name: &str, now: &Condition, paint: Paint) -> String {
    let level = match now.state {
        State::Normal => 1.0,
        State::Throttle | State::HalfOpen => 0.1,
        State::Sleep | State::CacheOnly | State::Open => 0.0,
    };
    let mut words = paint.level(level, now.state_name);
    if let Some(cause) = now.cause {
        words += &format!(" for {} ({})", ago(now.state_for), cause.as_str());
    }
    if now.offline {
        words += &format!(", offline until: shmlimit force {name} online");
    }
    match (now.state, now.eta) {
        (State::Normal, Some(eta)) => words += &format!(", rate rises in {}", wait(eta)),
        (_, Some(eta)) => words += &format!(", ends in {}", wait(eta)),
        _ => {}
    }
    if now.breaker == BreakerKind::Fsm && now.rate > 0.0 {
        words += &format!(", {}/s", (now.rate * 1000.0).round() / 1000.0);
    }
    words
}

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

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
