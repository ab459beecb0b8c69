//! Reads the condition of a limiter's server at one moment.

use super::document::Document;
use super::fields::{
    Condition, GateSnapshot, OutcomeCounts, PaceSnapshot, PaceWindowSnapshot, TransitionSnapshot,
};
use super::ratio;
use super::schema;
use shmlimit_kernel::breaker::{self, BreakerState};
use shmlimit_kernel::health_state::{HealthStateView, LATENCY_BOUNDS, TRANSITIONS, Tallies};
use shmlimit_kernel::outcome;
use shmlimit_kernel::pace;
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Nanos, Time};
use shmlimit_segment::program_name;
use std::time::Duration;

impl OutcomeCounts {
    /// Upper bounds of the latency histogram, in milliseconds.
    ///
    /// ```
    /// assert_eq!(shmlimit::OutcomeCounts::LATENCY_BOUNDS[0], 1);
    /// ```
    pub const LATENCY_BOUNDS: [u64; 15] = LATENCY_BOUNDS;
}

impl Condition {
    /// The condition as names and values, as in [`Snapshot::document`](crate::Snapshot::document).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let document = limiter.snapshot()?.condition.document();
    /// assert!(document.iter().any(|(name, _)| name == "error_ratio"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn document(&self) -> Document {
        schema::document(self)
    }

    /// Reads the condition. Due timers must have acted before.
    pub(super) fn of<V: View>(v: &V, now: Time) -> Condition {
        let (health, policy) = (v.health(), v.breaker_policy());
        let (samples, errors) = outcome::counted(v, now);
        let duration = |nanos: Nanos| Duration::from_nanos(nanos.0);
        let first = health.transitions.saturating_sub(TRANSITIONS);
        let transitions: Vec<TransitionSnapshot> = (first..health.transitions)
            .map(|number| v.transition(number))
            .map(|transition| TransitionSnapshot {
                ago: duration(now.since(transition.at)),
                from: transition.from.as_str(policy.kind()),
                to: transition.to.as_str(policy.kind()),
                reason: transition.cause,
            })
            .collect();
        let note = v.gate_note();
        let gate = (health.gate_until > now).then(|| GateSnapshot {
            opens_in: duration(health.gate_until.since(now)),
            pid: note.pid as u32,
            program: program_name(&note.program),
            recorded: duration(now.since(note.at)),
        });
        let Tallies { ok, throttled, server, net, other: ignored, latency_sum, latency, .. } = v.tallies();
        Condition {
            breaker: policy.kind(),
            state: health.state(),
            state_name: health.state().as_str(policy.kind()),
            state_for: duration(now.since(health.since)),
            reason: transitions.last().map(|transition| transition.reason),
            eta: breaker::eta(&health, &policy).map(|end| duration(end.since(now))),
            timer: breaker::due(&health, &policy).map(|due| duration(due.since(now))),
            offline: health.has(shmlimit_kernel::health_state::OFFLINE),
            rate: breaker::rate(v).0 as f64 / 1e9,
            concurrency_now: breaker::concurrency(v),
            gate,
            samples,
            error_ratio: ratio(errors, samples),
            consec429: health.consec429,
            failures: health.failures,
            outcomes: OutcomeCounts {
                ok,
                throttled,
                server,
                net,
                ignored,
                latency,
                latency_sum: Duration::from_nanos(latency_sum),
            },
            pace: pace(v, now),
            transitions,
            transitions_total: health.transitions,
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
            usage: usage(status.limit, status.remaining),
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

/// The used part of a window, from 0 to 1.
fn usage(limit: u64, remaining: u64) -> f64 {
    let used = limit.saturating_sub(remaining);
    if limit == 0 { 0.0 } else { used as f64 / limit as f64 }
}
