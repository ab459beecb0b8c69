//! The results of the demo so far, and the conclusions from them.

use super::clients::{CLIENTS, Half, Kind, RetryStyle};
use super::server::{HalfCounts, Limit, RETRY_AFTER, RetryAfterProbe, Score};
use crate::ui;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// The progress of a half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    ToCome,
    Starting,
    Running(Duration),
    Done,
}

#[derive(Debug, Clone)]
pub struct Results {
    pub limit: Limit,
    pub server: SocketAddr,
    pub kinds: [Kind; CLIENTS],
    pub retry_style: RetryStyle,
    pub length: Duration,
    pub progress: [Progress; 2],
    pub counts: [HalfCounts; 2],
    pub probe: Option<RetryAfterProbe>,
    /// Whether the last part has begun, in which the server tells one client to wait.
    pub probing: bool,
}

impl Results {
    pub fn new(
        limit: Limit,
        server: SocketAddr,
        kinds: [Kind; CLIENTS],
        retry_style: RetryStyle,
        length: Duration,
    ) -> Results {
        Results {
            limit,
            server,
            kinds,
            retry_style,
            length,
            progress: [Progress::ToCome; 2],
            counts: Default::default(),
            probe: None,
            probing: false,
        }
    }

    pub fn total(&self, half: Half) -> Score {
        Score::sum(&self.counts[half as usize].programs)
    }

    /// Returns the names for a table. Kinds that occur twice get a number.
    pub fn names(&self) -> [String; CLIENTS] {
        std::array::from_fn(|client| {
            let kind = self.kinds[client];
            let same = |kinds: &[Kind]| kinds.iter().filter(|other| **other == kind).count();
            if same(&self.kinds) > 1 {
                format!("{} {}", kind.name(), same(&self.kinds[..=client]))
            } else {
                kind.name().to_owned()
            }
        })
    }

    /// Returns the calls of the other clients while one client was told to wait, and the usual number in that time.
    fn calls_during_probe(&self) -> (usize, usize) {
        let usual =
            u64::from(self.limit.rate) * RETRY_AFTER.as_secs() * (CLIENTS as u64 - 1) / CLIENTS as u64;
        (
            self.probe.as_ref().map_or(0, |probe| probe.others.len()),
            usize::try_from(usual).unwrap_or(usize::MAX),
        )
    }

    /// Describes the result of the last part, after its end.
    pub fn probe_text(&self) -> String {
        let Some(probe) = &self.probe else {
            return "no program called in time, so none could be told to wait".to_owned();
        };
        let client = &self.names()[probe.client];
        let (came, usual) = self.calls_during_probe();
        match probe.others.last() {
            None => {
                format!(
                    "{client} was told to wait. The others made no call in that second (usually {usual})."
                )
            }
            Some(last) => format!(
                "{client} was told to wait. The others made {} in that second (usually {usual}), the last after {} \
                 ms.",
                ui::count(came as u64, "calls"),
                last.as_millis()
            ),
        }
    }

    /// Returns which expectation failed, if any.
    pub fn failed_expectation(&self) -> Option<String> {
        let (without, with) = (self.total(Half::Without), self.total(Half::With));
        let (came, usual) = self.calls_during_probe();
        if with.throttled > 0 {
            Some(format!("{} got a 429 although shmlimit had granted it", ui::count(with.throttled, "calls")))
        } else if with.ok == 0 {
            Some("no program made a call with shmlimit".to_owned())
        } else if without.throttled == 0 {
            Some(
                "this machine was too busy for the programs to exceed the limit, so there was nothing to show"
                    .to_owned(),
            )
        } else if self.probe.is_none() || came > CLIENTS.max(usual / 2) {
            Some("the other programs did not stop when one program was told to wait".to_owned())
        } else {
            None
        }
    }

    /// Describes the result in two sentences.
    pub fn verdict(&self) -> [String; 2] {
        let (without, with) = (self.total(Half::Without), self.total(Half::With));
        let seconds = self.length.as_secs_f64();
        let line = |score: Score| {
            let throttled = if score.throttled == 0 { "no".to_owned() } else { score.throttled.to_string() };
            format!(
                "{} calls, {throttled} 429s, {:.1} a second went through",
                score.calls(),
                score.ok as f64 / seconds
            )
        };
        [format!("Without shmlimit: {}.", line(without)), format!("With shmlimit:    {}.", line(with))]
    }

    pub fn to_json(&self) -> Value {
        let score =
            |score: &Score| json!({"calls": score.calls(), "ok": score.ok, "throttled": score.throttled});
        let half = |half: Half| {
            let counts = &self.counts[half as usize];
            json!({
                "total": score(&self.total(half)),
                "programs": counts.programs.iter().map(score).collect::<Vec<_>>(),
                "seconds": counts.seconds.iter().map(score).collect::<Vec<_>>(),
            })
        };
        let programs: Vec<Value> = self
            .kinds
            .iter()
            .zip(self.names())
            .map(|(kind, name)| json!({"name": name, "what": kind.description()}))
            .collect();
        let probe = self.probe.as_ref().map(|probe| {
            json!({
                "program": probe.client,
                "retry_after_ns": RETRY_AFTER.as_nanos() as u64,
                "others_after_ns": probe.others.iter().map(|after| after.as_nanos() as u64).collect::<Vec<_>>(),
                "own_calls": probe.own,
            })
        });
        json!({
            "rate": self.limit.rate,
            "burst_of_server": self.limit.burst,
            "burst_of_limiter": self.limit.burst_of_limiter(),
            "manner": self.retry_style.as_str(),
            "half_ns": self.length.as_nanos() as u64,
            "programs": programs,
            "without": half(Half::Without),
            "with": half(Half::With),
            "probe": probe,
            "held": self.failed_expectation().is_none(),
        })
    }
}

/// Suggestions for the next step.
pub const WHAT_NOW: [(&str, &str); 2] = [
    ("shmlimit init myapi --rate 20/s", "make a limiter for an API of yours"),
    ("shmlimit run myapi -- curl URL", "call it, from any program"),
];
