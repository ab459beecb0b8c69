//! The output: one line for each operation. The names are a contract (docs/simulate.md).

use crate::ui::json::{self, Json, object};
use shmlimit::Value;
use shmlimit::headers::Reading;
use shmlimit_kernel::Nanos;
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::health_state::Transition;
use shmlimit_kernel::policy::BreakerKind;
use std::borrow::Cow;

/// The result line of an operation.
pub struct Line {
    pub i: u64,
    pub t: u64,
    pub op: &'static str,
    pub state: BreakerState,
    pub kind: BreakerKind,
    pub transitions: Vec<Transition>,
    pub fsm: Option<Fsm>,
    /// The keys that are specific to the operation.
    pub answer: Json,
}

/// The values of a five-state breaker that every line has.
pub struct Fsm {
    pub rate: f64,
    pub concurrency: Option<u32>,
    pub eta_ns: u64,
}

impl Line {
    pub fn into_json(self) -> Json {
        let transition = |it: &Transition| {
            object! {
                "t": it.at.0,
                "from": it.from.as_str(self.kind),
                "to": it.to.as_str(self.kind),
                "reason": it.cause.as_str(),
            }
        };
        let mut line = object! {
            "i": self.i,
            "t": self.t,
            "op": self.op,
            "state": self.state.as_str(self.kind),
            "transitions": json::list(self.transitions.iter().map(transition)),
        };
        if let Some(Fsm { rate, concurrency, eta_ns }) = self.fsm {
            line = line.and(object! { "rate": rate, "concurrency": concurrency, "eta_ns": eta_ns }.0);
        }
        line.and(self.answer.0)
    }
}

/// Returns the error that a call gets from an open breaker (R80). `resetIn` is in milliseconds, rounded up, and is
/// absent if no timer runs.
pub fn unavailable(provider: &str, failures: u32, reset_in: Option<Nanos>) -> Json {
    object! {
        "error": "ProviderUnavailableError",
        "message": format!("Circuit breaker is open for {provider}"),
        "provider": provider,
        "state": "open",
        "failureCount": failures,
        "resetIn": reset_in.map(|left| left.0.div_ceil(1_000_000)),
    }
}

/// Returns one window of a provider.
pub fn window(limit: u64, remaining: u64) -> Json {
    let used = limit.saturating_sub(remaining);
    let usage = if limit == 0 { 0.0 } else { used as f64 / limit as f64 };
    object! { "limit": limit, "remaining": remaining, "usage": usage }
}

/// Returns only what headers said about a window.
pub fn reading(reading: &Reading) -> Json {
    let Reading { limit, remaining, used, reset_after, window } = *reading;
    let said: [(&'static str, Option<Value>); 5] = [
        ("limit", limit.map(Value::from)),
        ("remaining", remaining.map(Value::from)),
        ("reset_after_s", reset_after.map(seconds)),
        ("used", used.map(Value::from)),
        ("window_s", window.map(seconds)),
    ];
    Json(said.into_iter().filter_map(|(name, value)| Some((Cow::Borrowed(name), value?))).collect())
}

/// Returns a time in seconds, as a whole number if it is one.
fn seconds(time: Nanos) -> Value {
    const SECOND: u64 = 1_000_000_000;
    match time.0 % SECOND {
        0 => (time.0 / SECOND).into(),
        _ => (time.0 as f64 / SECOND as f64).into(),
    }
}

/// Returns the result for a line that is not an operation.
pub fn bad_op(i: u64, op: Option<String>, message: String) -> Json {
    object! { "i": i, "op": op, "error": object! { "error": "bad_op", "message": message } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::output;

    #[test]
    fn missing_values_are_left_out_and_whole_seconds_are_integers() {
        let reading = Reading {
            used: Some(3),
            reset_after: Some(Nanos::from_millis(1500)),
            window: Some(Nanos::from_secs(60)),
            ..Reading::default()
        };
        let json = output::to_json(&super::reading(&reading)).unwrap();
        assert_eq!(json, r#"{"reset_after_s":1.5,"used":3,"window_s":60}"#);
    }

    #[test]
    fn r80_time_until_the_reset_is_rounded_up_to_milliseconds() {
        let left = |nanos| unavailable("p", 5, Some(Nanos(nanos))).0.pop();
        let reset_in = |millis: u64| Some(("resetIn".into(), millis.into()));
        assert_eq!((left(240_000_000_000), left(1), left(0)), (reset_in(240_000), reset_in(1), reset_in(0)));
    }
}
