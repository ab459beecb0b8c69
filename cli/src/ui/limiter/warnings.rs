//! Warnings about a working limiter. `status`, `top` and `doctor` show the same texts.

use crate::ui::json::object;
use crate::ui::suggestion;
use crate::ui::time::format_age;
use shmlimit::{Condition, Value};
use shmlimit_kernel::policy::BreakerKind;
use std::time::Duration;

/// How long probes may go without a reported outcome before a warning (R146).
const UNANSWERED: Duration = Duration::from_secs(60);

/// A warning. The keys are a contract: docs/status-json.md.
#[derive(Debug, PartialEq, Eq)]
pub struct Warning {
    /// The kind of warning, for programs.
    pub warning: &'static str,
    /// How long the condition has lasted.
    pub lasted: Duration,
    /// The problem, as a sentence.
    pub message: String,
    /// The remedy.
    pub advice: String,
}

impl From<Warning> for Value {
    fn from(Warning { warning, lasted, message, advice }: Warning) -> Value {
        object! { "warning": warning, "for_ns": lasted, "message": message, "advice": advice }.into()
    }
}

/// Returns the warnings about a limiter with this name.
pub fn of(name: &str, now: &Condition) -> Vec<Warning> {
    unanswered(name, now.breaker, now.unanswered_for).into_iter().collect()
}

/// Warns if probes have no reported outcomes. Only reported outcomes end the half-open state. If no caller reports
/// any, the state never ends.
fn unanswered(name: &str, breaker: BreakerKind, time: Option<Duration>) -> Option<Warning> {
    let time = time.filter(|time| *time >= UNANSWERED)?;
    let state = if breaker == BreakerKind::Consecutive { "closed" } else { "normal" };
    Some(Warning {
        warning: "unanswered_probes",
        lasted: time,
        message: format!(
            "half_open, and no call has reported how it ended for {}: only reported outcomes end that state",
            format_age(time)
        ),
        advice: suggestion::with_directory(&format!(
            "report outcomes: shmlimit run {name} --exit curl -- …, or: shmlimit record {name} --status CODE; or end it: \
             shmlimit force {} {state}",
            suggestion::operand(name)
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r146_probes_without_an_outcome_for_a_minute_cause_a_warning() {
        let minute = Some(Duration::from_secs(60));
        let almost = Some(Duration::from_millis(59_999));
        assert_eq!(unanswered("a", BreakerKind::Fsm, None), None);
        assert_eq!(unanswered("a", BreakerKind::Fsm, almost), None);
        let warning = unanswered("a", BreakerKind::Fsm, minute).unwrap();
        assert!(warning.message.contains("how it ended for 1m"), "{}", warning.message);
        assert!(warning.advice.ends_with("shmlimit force a normal"), "{}", warning.advice);
        let warning = unanswered("a", BreakerKind::Consecutive, minute).unwrap();
        assert!(warning.advice.ends_with("shmlimit force a closed"), "{}", warning.advice);
    }
}
