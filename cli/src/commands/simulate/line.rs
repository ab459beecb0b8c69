//! The output: one line for each operation. The names are a contract (docs/simulate.md).

use serde::Serialize;
use serde_json::{Map, Value};
use shmlimit::Nanos;
use shmlimit::headers::Reading;
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::health_state;
use shmlimit_kernel::policy::BreakerKind;

/// The answer to an operation.
#[derive(Debug, Serialize)]
pub struct Line {
    pub i: u64,
    pub t: u64,
    pub op: &'static str,
    pub state: &'static str,
    pub transitions: Vec<Transition>,
    #[serde(flatten)]
    pub fsm: Option<Fsm>,
    #[serde(flatten)]
    pub answer: Answer,
}

#[derive(Debug, Serialize)]
pub struct Transition {
    pub t: u64,
    pub from: &'static str,
    pub to: &'static str,
    pub reason: &'static str,
    /// For the summary and the plot.
    #[serde(skip)]
    pub state: BreakerState,
}

impl Transition {
    pub fn of(it: &health_state::Transition, kind: BreakerKind) -> Transition {
        Transition {
            t: it.at.0,
            from: it.from.as_str(kind),
            to: it.to.as_str(kind),
            reason: it.cause.as_str(),
            state: it.to,
        }
    }
}

/// What a breaker of five states says on every line.
#[derive(Debug, Serialize)]
pub struct Fsm {
    pub rate: f64,
    pub concurrency: Option<u32>,
    pub eta_ns: u64,
}

/// What is special to the operation.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Acquired(Acquired),
    Advice(Advice),
    InFlight { in_flight: u32 },
    Set { key: String },
    HeaderAnswer(HeaderAnswer),
    Nothing {},
}

#[derive(Debug, Serialize)]
pub struct Acquired {
    pub allowed: bool,
    pub remaining: Option<u64>,
    pub retry_after_ns: Option<u64>,
    pub reason: Option<&'static str>,
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Unavailable>,
}

/// What a call is told that meets an open breaker (R80).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unavailable {
    pub error: &'static str,
    pub message: String,
    pub provider: String,
    pub state: &'static str,
    pub failure_count: u32,
    /// In milliseconds, rounded up; nothing if no timer runs.
    pub reset_in: Option<u64>,
}

impl Unavailable {
    pub fn new(provider: &str, failures: u32, reset_in: Option<Nanos>) -> Unavailable {
        Unavailable {
            error: "ProviderUnavailableError",
            message: format!("Circuit breaker is open for {provider}"),
            provider: provider.to_owned(),
            state: "open",
            failure_count: failures,
            reset_in: reset_in.map(|left| left.0.div_ceil(1_000_000)),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Advice {
    pub class: &'static str,
    pub samples: u32,
    pub err_rate: f64,
    pub consec429: u32,
    pub sleep_source: Option<&'static str>,
    pub sleep_max_ns: u64,
    pub sleep_ns: u64,
    pub retry: bool,
}

#[derive(Debug, Serialize)]
pub struct HeaderAnswer {
    pub parsed: Map<String, Value>,
    #[serde(flatten)]
    pub pace: Option<Pace>,
}

#[derive(Debug, Serialize)]
pub struct Pace {
    pub interval_ns: u64,
    pub bottleneck: Option<String>,
    pub windows: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub struct Window {
    pub limit: u64,
    pub remaining: u64,
    pub usage: f64,
}

impl Window {
    pub fn new(limit: u64, remaining: u64) -> Window {
        let used = limit.saturating_sub(remaining);
        Window { limit, remaining, usage: if limit == 0 { 0.0 } else { used as f64 / limit as f64 } }
    }
}

/// What headers said about a window, and nothing else.
pub fn reading_json(reading: &Reading) -> Value {
    let Reading { limit, remaining, used, reset_after, window } = *reading;
    let numbers = [("limit", limit), ("remaining", remaining), ("used", used)];
    let times = [("reset_after_s", reset_after), ("window_s", window)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.into())));
    let times = times.into_iter().filter_map(|(name, time)| Some((name, seconds(time?))));
    numbers.chain(times).map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

/// Seconds: a whole number where it is one.
fn seconds(time: Nanos) -> Value {
    const SECOND: u64 = 1_000_000_000;
    if time.0.is_multiple_of(SECOND) {
        (time.0 / SECOND).into()
    } else {
        (time.0 as f64 / SECOND as f64).into()
    }
}

/// What a line is answered that is no operation.
#[derive(Debug, Serialize)]
pub struct BadLine<'a> {
    pub i: u64,
    pub op: Option<&'a str>,
    pub error: BadOp<'a>,
}

#[derive(Debug, Serialize)]
pub struct BadOp<'a> {
    pub error: &'static str,
    pub message: &'a str,
}

impl<'a> BadLine<'a> {
    pub fn new(i: u64, op: Option<&'a str>, message: &'a str) -> BadLine<'a> {
        BadLine { i, op, error: BadOp { error: "bad_op", message } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_is_left_out_and_whole_seconds_are_whole() {
        let reading = Reading {
            used: Some(3),
            reset_after: Some(Nanos::from_millis(1500)),
            window: Some(Nanos::from_secs(60)),
            ..Reading::default()
        };
        assert_eq!(reading_json(&reading).to_string(), r#"{"reset_after_s":1.5,"used":3,"window_s":60}"#);
    }

    #[test]
    fn r80_the_time_to_the_reset_is_rounded_up_to_milliseconds() {
        let left = |nanos| Unavailable::new("p", 5, Some(Nanos(nanos))).reset_in;
        assert_eq!((left(240_000_000_000), left(1), left(0)), (Some(240_000), Some(1), Some(0)));
    }
}
