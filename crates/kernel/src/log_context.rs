//! The condition of a limiter in a few fields, for a log line (R114).

use super::breaker;
use super::gate;
use super::health_state::{HealthStateView, PAUSE_AT, TRANSITIONS};
use super::outcome;
use super::policy::{BreakerKind, PerSecond};
use super::state::{BreakerState, Pause, Transition, TransitionCause, View};
use super::time::{Nanos, Time};

/// The condition of a limiter at one moment, for a log line.
#[derive(Clone, Copy, Debug)]
pub struct LogContext {
    /// The kind of breaker. It determines the names of the states.
    pub kind: BreakerKind,
    /// The breaker's state.
    pub state: BreakerState,
    /// How long until the state ends by itself. For a Sleep, how long until calls are made again. `None` if it
    /// does not end by itself.
    pub timer: Option<Nanos>,
    /// Successive 429 responses.
    pub consec429: u32,
    /// Outcomes in the window.
    pub samples: u32,
    /// The errors among them.
    pub errors: u64,
    /// The effective rate. Zero while every call is blocked.
    pub rate: PerSecond,
    /// The number of calls that may be in flight in this state. `None` means any number.
    pub concurrency: Option<u32>,
    /// How long until the gate opens. `None` if it is open.
    pub gate: Option<Nanos>,
}

impl LogContext {
    /// Reads the condition of a limiter.
    pub fn of<V: View>(v: &V, now: Time) -> LogContext {
        let now = now.max(v.core().latest);
        let (health, policy) = (v.health(), v.breaker_policy());
        let (samples, errors) = outcome::counted(v, now);
        LogContext {
            kind: policy.kind(),
            state: health.state(),
            timer: breaker::eta(&health, &policy).map(|due| due.since(now)),
            consec429: health.consec429,
            samples,
            errors,
            rate: breaker::rate(v),
            concurrency: breaker::concurrency(v),
            gate: gate::is_closed(&health, now).then(|| health.gate_until.since(now)),
        }
    }
}

/// The state before an operation, to find out afterwards what has changed.
#[derive(Clone, Copy, Debug)]
pub struct LogBaseline {
    /// The number of transitions before the operation.
    pub transitions: u64,
    /// Whether a pause was in effect, or was over but not yet marked so.
    pub paused: bool,
}

impl LogBaseline {
    /// Reads the state before the operation.
    pub fn of<V: View>(v: &V) -> LogBaseline {
        let [paused_until] = v.health_state(PAUSE_AT);
        LogBaseline { transitions: v.health().transitions, paused: paused_until != 0 }
    }
}

/// The changes of one operation that are logged: transitions, and a pause that expired.
#[derive(Clone, Copy, Debug)]
pub struct RecentEvents {
    /// The condition of the limiter after these changes. `None` if nothing changed.
    pub log_context: Option<LogContext>,
    /// The pause that ended.
    pub ended: Option<Pause>,
    list: [Transition; TRANSITIONS as usize],
    count: usize,
}

impl RecentEvents {
    /// The transitions since `known`. If there are more than are remembered, only the newest.
    pub fn since<V: View>(v: &V, known: LogBaseline) -> RecentEvents {
        let nothing = Transition {
            at: Time::ZERO,
            from: BreakerState::Normal,
            to: BreakerState::Normal,
            cause: TransitionCause::Forced,
        };
        let mut recent =
            RecentEvents { log_context: None, ended: None, list: [nothing; TRANSITIONS as usize], count: 0 };
        let all = v.health().transitions;
        recent.ended = known.paused.then(|| v.pause()).filter(|pause| pause.until == Time::ZERO);
        if all != known.transitions || recent.ended.is_some() {
            recent.log_context = Some(LogContext::of(v, v.core().latest));
            let first = all.saturating_sub(TRANSITIONS).max(known.transitions.min(all));
            for number in first..all {
                recent.list[recent.count] = v.transition(number);
                recent.count += 1;
            }
        }
        recent
    }

    /// The transitions, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Transition> {
        self.list[..self.count].iter()
    }
}
