//! How a limiter's server is doing: for people, and as JSON.

use crate::output::{self, nanos};
use crate::pause;
use crate::rows::{self, Look, Part};
use crate::screen::{ago, printable, soon, wait};
use crate::warnings;
use serde::Serialize;
use shmlimit::{Cause, Condition, Counts, OutcomeCounts, Snapshot, State};
use shmlimit_kernel::policy::BreakerKind;
use std::time::Duration;

/// How many kinds of ends are told apart.
const CODES: usize = 6;

/// The pause, by which process and why; nothing without one.
pub fn write_pause(out: &mut String, snapshot: &Snapshot, width: usize, look: Look) {
    let Some(pause) = &snapshot.paused else { return };
    let until = match pause.ends_in {
        Some(left) => format!("ends in {}", soon(left)),
        None => "until it is resumed".to_owned(),
    };
    let parts = [
        Part::Level(0.0, until),
        Part::Plain(format!("by {}", pause::by(pause))),
        Part::Dim(output::placed(&format!(
            "end it with: shmlimit resume {}",
            output::operand(&snapshot.name)
        ))),
    ];
    rows::write(out, look, ("paused", width), &parts);
}

/// The breaker's state, since when and why; nothing while all is as it was made.
pub fn write_state(out: &mut String, snapshot: &Snapshot, width: usize, look: Look) {
    let now = &snapshot.condition;
    if now.breaker == BreakerKind::None || (now.cause.is_none() && now.state == State::Normal) {
        return;
    }
    let mut words = now.state_name.to_owned();
    if let Some(cause) = now.cause {
        words += &format!(" for {}: {} ({})", ago(now.state_for), why(cause), cause.as_str());
    }
    let left = match now.state {
        State::Normal => 1.0,
        State::Throttle | State::HalfOpen => 0.1,
        State::Sleep | State::CacheOnly | State::Open => 0.0,
    };
    let mut parts = vec![Part::Level(left, words)];
    if now.breaker == BreakerKind::Fsm && now.rate > 0.0 {
        parts.push(Part::Dim(format!("{}/s", (now.rate * 1000.0).round() / 1000.0)));
    }
    rows::write(out, look, ("state", width), &parts);
    for warning in warnings::of(&snapshot.name, now) {
        rows::write(out, look, ("warning", width), &[Part::Level(0.1, warning.message)]);
        rows::write(out, look, ("", width), &[Part::Dim(warning.advice)]);
    }
    // What does not end by itself needs somebody to end it.
    let way_out = match now.state {
        _ if now.offline => "online",
        State::CacheOnly => "online",
        State::Sleep => "normal",
        State::Open => "closed",
        _ => return,
    };
    if now.offline || now.eta.is_none() {
        let offline = if now.offline { "offline " } else { "" };
        let text = output::placed(&format!(
            "{offline}until: shmlimit force {} {way_out}",
            output::operand(&snapshot.name)
        ));
        rows::write(out, look, ("", width), &[Part::Dim(text)]);
    }
}

pub const fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Forced => "an operator said so",
        Cause::Consec429 => "too many 429 in a row",
        Cause::ErrorRatio => "too many errors",
        Cause::SustainedErrors => "too many errors for too long",
        Cause::SuccessWindowOk => "calls succeed again",
        Cause::SleepExpired => "slept long enough",
        Cause::ProbeOk => "probes succeeded",
        Cause::ProbeFailed => "a probe failed",
        Cause::AutoRecover => "tries to recover by itself",
        Cause::ConsecutiveFailures => "too many failures in a row",
        Cause::ResetTimeout => "was open long enough",
    }
}

/// The rows about the gate, outcomes and the pace; none where there is nothing to say.
pub fn write(out: &mut String, snapshot: &Snapshot, width: usize, look: Look) {
    let now = &snapshot.condition;
    if let Some(gate) = &now.gate {
        let closed = format!("closed for {}: Retry-After", soon(gate.opens_in));
        let by =
            format!("recorded by {} ({}) {} ago", printable(&gate.program), gate.pid, ago(gate.recorded));
        let way_out = output::placed(&format!(
            "open it with: shmlimit force {} clear-gate",
            output::operand(&snapshot.name)
        ));
        rows::write(
            out,
            look,
            ("gate", width),
            &[Part::Level(0.0, closed), Part::Plain(by), Part::Dim(way_out)],
        );
    }
    let codes = codes(&snapshot.counts);
    if !codes.is_empty() {
        let ratio = match now.samples {
            0 => Part::Dim("none lately".to_owned()),
            samples => {
                let text = format!("{:.1}% errors of the last {samples}", now.error_ratio * 100.0);
                // Half of them is as bad as it gets.
                if now.error_ratio > 0.0 {
                    Part::Level(0.5 - now.error_ratio, text)
                } else {
                    Part::Plain(text)
                }
            }
        };
        rows::write(out, look, ("outcomes", width), &[ratio, Part::Dim(format!("ever: {codes}"))]);
    }
    if let Some(pace) = now.pace.as_ref() {
        let known = pace.windows.iter().filter(|window| window.remaining < window.limit);
        let windows: Vec<String> = known
            .map(|window| format!("{} {} of {} left", window.name, window.remaining, window.limit))
            .collect();
        let gap = match pace.interval {
            // Headers that ask for nothing are not worth a line.
            Duration::ZERO if windows.is_empty() => return,
            Duration::ZERO => Part::Plain("free".to_owned()),
            gap => Part::Level(0.1, format!("one call each {}", wait(gap))),
        };
        let mut parts = vec![gap];
        parts.extend(pace.bottleneck.as_ref().map(|name| Part::Plain(format!("because of {name}"))));
        parts.extend((!windows.is_empty()).then(|| Part::Dim(windows.join(", "))));
        rows::write(out, look, ("pace", width), &parts);
    }
}

/// How calls ended, the most frequent first.
fn codes(counts: &Counts) -> String {
    let mut codes: Vec<_> = counts.codes.iter().collect();
    codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = if codes.len() > CODES { ", …" } else { "" };
    let parts: Vec<String> =
        codes.into_iter().take(CODES).map(|(code, count)| format!("{count} × {code}")).collect();
    format!("{}{more}", parts.join(", "))
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
