//! The next change that a limiter makes by itself.

use crate::ui::json::{Json, object};
use crate::ui::plural;
use crate::ui::time::format_remaining;
use shmlimit::{BreakerState, RuleSnapshot, Snapshot};
use std::time::Duration;

/// What changes next, and in how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    pub within: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The pause ends.
    PauseEnds,
    /// The gate that a Retry-After closed.
    GateOpens,
    /// The breaker's state ends.
    HalfOpen,
    /// The breaker tries to recover: a short sleep, then half open.
    Sleep,
    /// After a recovery.
    RateRises,
    /// A rule that is used up has room again: its name, and what it counts.
    NextUnit(String, String),
    /// A rule has all it can have.
    Full(String),
}

impl Change {
    /// The most relevant change: first one that unblocks all calls, then one that lets the next call pass, then the rest.
    pub fn of(snapshot: &Snapshot) -> Option<Change> {
        if let Some(pause) = snapshot.paused.as_ref().filter(|_| !snapshot.policy.is_passthrough()) {
            // Nothing else matters before that; one without an end does not end by itself.
            return pause.ends_in.map(|within| Change { what: What::PauseEnds, within });
        }
        let now = &snapshot.condition;
        let gate = now.gate.as_ref().map(|gate| Change { what: What::GateOpens, within: gate.opens_in });
        let state = now.timer.map(|within| Change {
            what: match now.state {
                BreakerState::Normal => What::RateRises,
                BreakerState::CacheOnly => What::Sleep,
                _ => What::HalfOpen,
            },
            within,
        });
        if now.state.blocks().is_some() {
            // A gate that opens changes nothing while the end of the state is unknown.
            return state.map(|state| gate.into_iter().fold(state, sooner));
        }
        let used_up = snapshot.rules.iter().filter(|rule| rule.remaining == 0);
        let refills =
            used_up.filter_map(|rule| Some((rule.next_in?, rule))).max_by_key(|(within, _)| *within);
        let next = |(within, rule): (Duration, &RuleSnapshot)| Change {
            what: What::NextUnit(rule.name.clone(), rule.unit.clone()),
            within,
        };
        let fills = snapshot.rules.iter().filter_map(|rule| Some((rule.full_in?, rule)));
        let full = |(within, rule): (Duration, &RuleSnapshot)| Change {
            what: What::Full(rule.name.clone()),
            within,
        };
        gate.or_else(|| refills.map(next))
            .or(state)
            .or_else(|| fills.max_by_key(|(within, _)| *within).map(full))
    }

    /// Whether it is worth showing: a rule that is full again within a second is not.
    pub fn is_news(&self) -> bool {
        !matches!(self.what, What::Full(_)) || self.within > Duration::from_secs(1)
    }

    /// `next_change` of `status --json`.
    pub fn to_json(&self) -> Json {
        let (what, rule) = match &self.what {
            What::PauseEnds => ("pause_ends", None),
            What::GateOpens => ("gate_opens", None),
            What::HalfOpen => ("half_open", None),
            What::Sleep => ("sleep", None),
            What::RateRises => ("rate_rises", None),
            What::NextUnit(rule, _) => ("next_unit", Some(rule)),
            What::Full(rule) => ("full", Some(rule)),
        };
        object! { "what": what, "in_ns": self.within, "rule": rule }
    }

    /// Such as `half_open in 12s`.
    pub fn to_text(&self) -> String {
        let within = format_remaining(self.within);
        match &self.what {
            What::PauseEnds => format!("pause ends in {within}"),
            What::GateOpens => format!("Retry-After ends in {within}"),
            What::HalfOpen => format!("probes (half_open) in {within}"),
            What::Sleep => format!("tries to recover in {within}"),
            What::RateRises => format!("rate rises in {within}"),
            What::NextUnit(rule, unit) => {
                let unit = plural::noun(1, unit);
                format!("one more {unit} in {within} ({rule})")
            }
            What::Full(rule) => format!("{rule} full again in {within}"),
        }
    }
}

fn sooner(one: Change, other: Change) -> Change {
    if other.within < one.within { other } else { one }
}
