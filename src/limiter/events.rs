//! Log events through `tracing`: one line for each event, with the condition of the limiter (R114, R115). Without a
//! subscriber, an event costs one load.

use super::ratio;
use crate::describe;
use shmlimit_kernel::breaker::{BreakerCommand, BreakerState, TransitionCause};
use shmlimit_kernel::decide::Verdict;
use shmlimit_kernel::health_state::Transition as StoredTransition;
use shmlimit_kernel::log_context::LogContext;
use shmlimit_kernel::log_context::RecentEvents;
use shmlimit_kernel::outcome::OutcomeClass;
use shmlimit_kernel::pause::Pause;
use shmlimit_kernel::policy::PerSecond;
use shmlimit_kernel::state::View;
use shmlimit_kernel::{Nanos, Refusal, Time};
use shmlimit_segment::{Changed, program_name};
use std::fmt;
use tracing::Level;

/// The target of the events, for filters.
const TARGET: &str = "shmlimit";

/// Logs one line with all keys of R114, and further keys of the event. `sleep` is how long the caller, or every
/// caller, will wait.
macro_rules! log_event {
    ($level:ident, $name:expr, $log_context:expr, $sleep:expr, $event:literal $(, $($more:tt)+)?) => {{
        let log_context: &LogContext = $log_context;
        tracing::$level!(
            target: TARGET,
            limiter = $name,
            state = log_context.state.as_str(log_context.kind),
            event = $event,
            sleep = %Seconds($sleep),
            consec429 = log_context.consec429,
            err_rate_30s = rounded(ratio(log_context.errors, log_context.samples)),
            rate = %Rate(log_context.rate),
            sem = %OrNone(log_context.concurrency),
            retry_after = %Seconds(log_context.gate),
            $($($more)+)?
        )
    }};
}

/// Logs the side effects of an operation, each once, by the process that caused them (R115).
pub(super) fn log_recent(name: &str, recent: &RecentEvents) {
    if let Some(log_context) = &recent.log_context {
        each_transition(name, recent, log_context);
        each_end(name, recent, log_context);
    }
}

/// Logs the end of a pause whose time was over.
fn each_end(name: &str, recent: &RecentEvents, log_context: &LogContext) {
    if let Some(pause) = &recent.ended {
        resumed(name, pause, None, log_context);
    }
}

/// An operator has paused the limiter (R148).
pub(super) fn paused(name: &str, pause: &Pause, now: Time, log_context: &LogContext) {
    let length = pause.ends_at().map(|end| end.since(now));
    let (by, pid, reason) = (program_name(&pause.program), pause.pid as u32, reason_of(pause));
    log_event!(info, name, log_context, length, "paused", by, pid, reason);
}

/// A pause is over. Either an operator resumed the limiter, or the pause expired (`who` is `None`). `reason` is
/// that of the pause.
pub(super) fn resumed(name: &str, pause: &Pause, who: Option<(u32, &str)>, log_context: &LogContext) {
    let pauser = program_name(&pause.program);
    let (pid, by, cause) = match who {
        Some((pid, program)) => (pid, program, "operator"),
        None => (pause.pid as u32, &*pauser, "expired"),
    };
    log_event!(info, name, log_context, None, "resumed", by, pid, reason = reason_of(pause), cause);
}

fn reason_of(pause: &Pause) -> String {
    Some(pause.reason_text()).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())
}

fn each_transition(name: &str, recent: &RecentEvents, log_context: &LogContext) {
    for StoredTransition { from, to, cause, .. } in recent.iter() {
        let log_context = LogContext { state: *to, ..*log_context };
        let (from, to) = (from.as_str(log_context.kind), to.as_str(log_context.kind));
        log_event!(
            info,
            name,
            &log_context,
            log_context.timer,
            "state_transition",
            from,
            to,
            reason = cause.as_str()
        );
    }
}

/// The same after an outcome, with the values that decided it. The outcome's effects may have reset these values in
/// the state.
pub(super) fn transitions_after(name: &str, recent: &RecentEvents, verdict: &Verdict) {
    if let Some(log_context) = &recent.log_context {
        each_transition(name, recent, &checked(log_context, verdict));
        each_end(name, recent, log_context);
    }
}

/// The condition of the limiter after an outcome, if the outcome is worth a line and a subscriber wants it.
pub(super) fn log_context_of<V: View>(v: &V, class: OutcomeClass, now: Time) -> Option<LogContext> {
    let wanted = class.is_backoff_target() && tracing::enabled!(target: TARGET, Level::WARN);
    wanted.then(|| LogContext::of(v, now))
}

/// A call failed in a way that makes the caller, or every caller, wait.
pub(super) fn backoff(name: &str, code: impl fmt::Display, verdict: &Verdict, log_context: &LogContext) {
    let log_context = checked(log_context, verdict);
    let retry = verdict.advice.retry;
    log_event!(info, name, &log_context, Some(verdict.wait), "backoff", code = %code, retry);
    if verdict.closed_gate {
        log_event!(warn, name, &log_context, log_context.gate, "gate_closed", code = %code);
    }
}

/// An operator forced the breaker.
pub(super) fn forced(name: &str, what: BreakerCommand, log_context: &LogContext) {
    match what {
        BreakerCommand::ClearGate => log_event!(info, name, log_context, None, "gate_cleared"),
        _ => log_event!(info, name, log_context, log_context.timer, "forced", what = what.as_str()),
    }
}

/// A new policy is effective.
pub(super) fn changed(name: &str, changed: &Changed) {
    log_recent(name, &changed.recent);
    if changed.before != changed.policy {
        log_event!(info, name, &changed.log_context, None, "policy_changed", changes = %Changes(changed));
    }
}

/// Environment variables made a new policy effective.
pub(super) fn patched(name: &str, changed: &Changed) {
    log_recent(name, &changed.recent);
    if changed.before != changed.policy {
        log_event!(warn, name, &changed.log_context, None, "environment", changes = %Changes(changed));
    }
}

/// A better directory was not used.
pub(super) fn passed_over(name: &str, note: &str) {
    tracing::warn!(target: TARGET, limiter = name, event = "directory", "{note}");
}

/// A limiter was created in a used-up state.
pub(super) fn made_used_up(name: &str) {
    tracing::warn!(
        target: TARGET,
        limiter = name,
        event = "made_used_up",
        "starts used up: its file was deleted while programs use it"
    );
}

/// Whether a subscriber wants refusals.
#[inline(always)]
pub(super) fn wants_refusals() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// A call was refused.
pub(super) fn refused(name: &str, refusal: &Refusal, log_context: &LogContext) {
    let wait = refusal.retry_at.map(|at| at.since(refusal.checked_at));
    log_event!(debug, name, log_context, wait, "refused", reason = refusal.reason.as_str());
}

fn checked(log_context: &LogContext, verdict: &Verdict) -> LogContext {
    let Verdict { samples, errors, consec429, .. } = *verdict;
    LogContext { samples, errors, consec429, ..*log_context }
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1e4).round() / 1e4
}

/// The changed settings, formatted only if a subscriber wants them.
struct Changes<'c>(&'c Changed);

impl fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe::changes(&self.0.before, &self.0.policy))
    }
}

/// `1.8s`, or `-` for `None`.
struct Seconds(Option<Nanos>);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(Nanos::ZERO) => f.write_str("-"),
            // Rounded up, so that a caller that waits this long does not come too early.
            Some(time) => write!(f, "{}s", time.0.div_ceil(1_000_000) as f64 / 1e3),
        }
    }
}

/// `17rps`.
struct Rate(PerSecond);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}rps", (self.0.0 as f64 / 1e3).round() / 1e6)
    }
}

/// A number, or `-` for `None`.
struct OrNone(Option<u32>);

impl fmt::Display for OrNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r114_values_are_written_as_in_the_sample() {
        let seconds = |nanos: u64| Seconds(Some(Nanos(nanos))).to_string();
        assert_eq!(seconds(1_800_000_000), "1.8s");
        assert_eq!((seconds(30_000_000_000), seconds(1)), ("30s".to_owned(), "0.001s".to_owned()));
        assert_eq!((seconds(0), Seconds(None).to_string()), ("-".to_owned(), "-".to_owned()));
        assert_eq!(Rate(PerSecond::whole(17)).to_string(), "17rps");
        assert_eq!(Rate(PerSecond(11_574_074)).to_string(), "0.011574rps");
        assert_eq!((OrNone(Some(2)).to_string(), OrNone(None).to_string()), ("2".to_owned(), "-".to_owned()));
        assert_eq!(rounded(1.0 / 3.0), 0.3333);
    }
}

/// A change of the breaker's state.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use shmlimit::{BreakerCommand, BreakerState, Limiter};
///
/// let limiter = Limiter::builder("tmdb").directory(directory.path()).open()?;
/// for transition in limiter.force(BreakerCommand::Sleep)? {
///     assert_eq!(transition.to, BreakerState::Sleep);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The previous state.
    pub from: BreakerState,
    /// The new state.
    pub to: BreakerState,
    /// The cause.
    pub cause: TransitionCause,
}

impl Transition {
    /// The state changes among recent events.
    pub(super) fn all(recent: &RecentEvents) -> Vec<Transition> {
        recent.iter().map(|it| Transition { from: it.from, to: it.to, cause: it.cause }).collect()
    }
}
