//! How a limiter is doing, in the few words of a log line (R114).

use super::breaker::{self, State};
use super::outcome;
use super::policy::{BreakerKind, PerSecond};
use super::sheet::SheetView;
use super::state::View;
use super::time::{Nanos, Time};

/// A limiter at one moment, for a log line.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The kind of breaker, which names its states.
    pub kind: BreakerKind,
    /// Its state.
    pub state: State,
    /// How long until it ends by itself; of a Sleep, until calls are made again. Nothing if it does not.
    pub timer: Option<Nanos>,
    /// Successive 429.
    pub consec429: u32,
    /// Outcomes that count.
    pub samples: u32,
    /// Errors among them.
    pub errors: u64,
    /// The rate in force; nothing while every call is blocked.
    pub rate: PerSecond,
    /// Most calls in flight in this state; nothing = any number.
    pub concurrency: Option<u32>,
    /// How long until the gate opens; nothing if it is open.
    pub gate: Option<Nanos>,
}

impl Scene {
    /// What there is to see.
    pub fn of<V: View>(v: &V, now: Time) -> Scene {
        let now = now.max(v.core().latest);
        let (health, policy) = (v.health(), v.breaker_policy());
        let (samples, errors) = outcome::counted(v, now);
        Scene {
            kind: policy.kind(),
            state: health.state(),
            timer: breaker::eta(&health, &policy).map(|due| due.since(now)),
            consec429: health.consec429,
            samples,
            errors,
            rate: breaker::rate(v),
            concurrency: breaker::concurrency(v),
            gate: (health.gate_until > now).then(|| health.gate_until.since(now)),
        }
    }
}
