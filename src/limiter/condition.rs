//! How a limiter's server is doing, at one moment, in plain values.

use super::document::{Document, Value, document};
use shmlimit_kernel::breaker::{self, BreakerState, TransitionCause};
use shmlimit_kernel::health_state::{HealthStateView, LATENCY_BOUNDS, TRANSITIONS, Tallies, Transition};
use shmlimit_kernel::outcome;
use shmlimit_kernel::pace;
use shmlimit_kernel::policy::BreakerKind;
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Nanos, Time};
use shmlimit_segment::program_name;
use std::time::Duration;

/// Breaker, gate, outcomes and pace at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Condition {
    /// What kind of breaker there is.
    pub breaker: BreakerKind,
    /// Its state.
    pub state: BreakerState,
    /// The state's name.
    pub state_name: &'static str,
    /// How long it has lasted.
    pub state_for: Duration,
    /// Why it began; `None` if it has never changed.
    pub cause: Option<TransitionCause>,
    /// In how long it ends by itself; `None` if it does not. A Sleep is not over before the gate opens (R57).
    pub eta: Option<Duration>,
    /// In how long its timer is due, which may be before `eta`; `None` if it has none.
    pub timer: Option<Duration>,
    /// Whether an operator has put it offline.
    pub offline: bool,
    /// Units a second that the breaker allows now; 0 while every call is blocked. Without a five-state breaker, what the
    /// first rule says.
    pub rate: f64,
    /// Most calls in flight in this state; `None` = any number.
    pub concurrency: Option<u32>,
    /// The gate that a Retry-After closed, if it is.
    pub gate: Option<GateSnapshot>,
    /// Outcomes that count now.
    pub samples: u32,
    /// The ratio of errors among them.
    pub error_ratio: f64,
    /// Successive 429.
    pub consec429: u32,
    /// Successive failures, of a consecutive breaker.
    pub failures: u32,
    /// How calls ended, ever.
    pub outcomes: OutcomeCounts,
    /// The pace that response headers taught, if the limiter listens to them.
    pub pace: Option<PaceSnapshot>,
    /// The newest changes of state, the newest last, and how long ago each was.
    pub transitions: Vec<(Transition, Duration)>,
    /// How many changes of state there were, ever.
    pub transition_count: u64,
    /// While half open: for how long calls have been granted without any success or failure reported. `None` in every
    /// other state, and while every probe is answered (R146).
    pub unanswered_for: Option<Duration>,
}

/// A gate that a Retry-After closed (R142).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GateSnapshot {
    /// In how long it opens.
    pub opens_in: Duration,
    /// Who recorded it: process id.
    pub pid: u32,
    /// Its program name.
    pub program: String,
    /// How long ago.
    pub recorded: Duration,
}

/// How calls ended, since the limiter was made (R46).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeCounts {
    /// Well.
    pub ok: u64,
    /// With 429.
    pub throttled: u64,
    /// With 5xx.
    pub server: u64,
    /// Without an answer.
    pub net: u64,
    /// With any other 4xx.
    pub other: u64,
    /// How many took up to so many milliseconds, each ([`OutcomeCounts::LATENCY_BOUNDS`]); the last: longer.
    pub latency: [u64; 16],
    /// Nanoseconds all of them took together.
    pub latency_sum: u64,
}

impl OutcomeCounts {
    /// Upper bounds of the latencies that are counted together, in milliseconds.
    pub const LATENCY_BOUNDS: [u64; 15] = LATENCY_BOUNDS;
}

/// The pace that response headers taught (R93).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PaceSnapshot {
    /// The smallest gap between calls.
    pub interval: Duration,
    /// The window it is for.
    pub bottleneck: Option<String>,
    /// What the headers said of each window.
    pub windows: Vec<PaceWindowSnapshot>,
}

/// One window of the provider's at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PaceWindowSnapshot {
    /// Its name.
    pub name: String,
    /// Its limit.
    pub limit: u64,
    /// What is left of it.
    pub remaining: u64,
    /// In how long it starts anew, if that is known.
    pub resets_in: Option<Duration>,
}

impl PaceWindowSnapshot {
    /// How much of it is used, from 0 to 1.
    pub fn usage(&self) -> f64 {
        let used = self.limit.saturating_sub(self.remaining);
        if self.limit == 0 { 0.0 } else { used as f64 / self.limit as f64 }
    }
}

impl Condition {
    /// The condition as names and values: its part of [`Snapshot::document`](crate::Snapshot::document).
    pub fn document(&self) -> Document {
        document! {
            "state": self.state_name,
            "state_ns": self.state_for,
            "reason": self.cause.map(|cause| cause.as_str()),
            "eta_ns": self.eta,
            "offline": self.offline,
            "rate": self.rate,
            "concurrency_now": self.concurrency,
            "gate": self.gate.as_ref().map(|gate| document! {
                "opens_in_ns": gate.opens_in,
                "pid": gate.pid,
                "program": &gate.program,
                "recorded_ns": gate.recorded,
            }),
            "samples": self.samples,
            "err_rate": self.error_ratio,
            "consec429": self.consec429,
            "failures": self.failures,
            "outcomes": document! {
                "ok": self.outcomes.ok,
                "429": self.outcomes.throttled,
                "5xx": self.outcomes.server,
                "net": self.outcomes.net,
                "other": self.outcomes.other,
            },
            "pace": self.pace.as_ref().map(|pace| document! {
                "interval_ns": pace.interval,
                "bottleneck": pace.bottleneck.as_ref(),
                "windows": Value::list(pace.windows.iter().map(|window| document! {
                    "name": &window.name,
                    "limit": window.limit,
                    "remaining": window.remaining,
                    "usage": window.usage(),
                    "resets_in_ns": window.resets_in,
                })),
            }),
            "transitions": Value::list(self.transitions.iter().map(|(transition, ago)| document! {
                "ago_ns": *ago,
                "from": transition.from.as_str(self.breaker),
                "to": transition.to.as_str(self.breaker),
                "reason": transition.cause.as_str(),
            })),
        }
    }

    /// Timers must have been let act.
    pub(super) fn of<V: View>(v: &V, now: Time) -> Condition {
        let (health, policy) = (v.health(), v.breaker_policy());
        let (samples, errors) = outcome::counted(v, now);
        let duration = |nanos: Nanos| Duration::from_nanos(nanos.0);
        let first = health.transitions.saturating_sub(TRANSITIONS);
        let transitions: Vec<(Transition, Duration)> = (first..health.transitions)
            .map(|number| v.transition(number))
            .map(|transition| (transition, duration(now.since(transition.at))))
            .collect();
        let note = v.gate_note();
        let gate = (health.gate_until > now).then(|| GateSnapshot {
            opens_in: duration(health.gate_until.since(now)),
            pid: note.pid as u32,
            program: program_name(&note.program),
            recorded: duration(now.since(note.at)),
        });
        let Tallies { ok, throttled, server, net, other, latency_sum, latency, .. } = v.tallies();
        Condition {
            breaker: policy.kind(),
            state: health.state(),
            state_name: health.state().as_str(policy.kind()),
            state_for: duration(now.since(health.since)),
            cause: transitions.last().map(|(transition, _)| transition.cause),
            eta: breaker::eta(&health, &policy).map(|end| duration(end.since(now))),
            timer: breaker::due(&health, &policy).map(|due| duration(due.since(now))),
            offline: health.has(shmlimit_kernel::health_state::OFFLINE),
            rate: breaker::rate(v).0 as f64 / 1e9,
            concurrency: breaker::concurrency(v),
            gate,
            samples,
            error_ratio: ratio(errors, samples),
            consec429: health.consec429,
            failures: health.failures,
            outcomes: OutcomeCounts { ok, throttled, server, net, other, latency, latency_sum },
            pace: pace(v, now),
            transitions,
            transition_count: health.transitions,
            unanswered_for: (health.state() == BreakerState::HalfOpen && health.unanswered > 0)
                .then(|| duration(now.since(Time(health.unanswered - 1)))),
        }
    }
}

fn pace<V: View>(v: &V, now: Time) -> Option<PaceSnapshot> {
    let adaptive = v.adaptive_policy()?;
    let pace = v.pace();
    let windows = adaptive.windows().enumerate().map(|(i, window)| {
        let status = pace::status(v, i, window, now);
        PaceWindowSnapshot {
            name: window.name.as_str().to_owned(),
            limit: status.limit,
            remaining: status.remaining,
            resets_in: status.reset_at.map(|at| Duration::from_nanos(at.since(now).0)),
        }
    });
    let bottleneck = pace.bottleneck.checked_sub(1).and_then(|i| adaptive.windows().nth(i as usize));
    Some(PaceSnapshot {
        interval: Duration::from_nanos(pace.interval.0),
        bottleneck: bottleneck.map(|window| window.name.as_str().to_owned()),
        windows: windows.collect(),
    })
}

/// The share of errors; 0 without samples.
pub(super) fn ratio(errors: u64, samples: u32) -> f64 {
    if samples == 0 { 0.0 } else { errors as f64 / f64::from(samples) }
}
