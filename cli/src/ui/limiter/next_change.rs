//! The next change that a limiter makes by itself.

use crate::ui;
use crate::ui::json::{Json, object};
use crate::ui::time::format_remaining;
use shmlimit::{BreakerState, RuleSnapshot, Snapshot};
use std::time::Duration;

/// The next change, and the time until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub what: What,
    pub within: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The pause ends.
    PauseEnds,
    /// The gate that a Retry-After closed opens.
    GateOpens,
    /// The breaker's state ends and becomes half-open.
    HalfOpen,
    /// The breaker tries to recover: a short sleep, then half open.
    Sleep,
    /// The rate rises after a recovery.
    RateRises,
    /// A rule that is used up has room again: the rule's name, and its unit.
    NextUnit(String, String),
    /// A rule is full again.
    Full(String),
}

impl Change {
    /// Returns the most relevant change: first one that unblocks all calls, then one that lets the next call pass,
    /// then others.
    pub fn of(snapshot: &Snapshot) -> Option<Change> {
        if let Some(pause) = snapshot.paused.as_ref().filter(|_| !snapshot.policy.is_passthrough()) {
            // Until the pause ends, no other change matters. A pause without an end needs an operator.
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
            // While the end of the state is unknown, an opening gate changes nothing.
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

    /// Returns whether the change is worth showing. A rule that is full again within a second is not.
    pub fn is_news(&self) -> bool {
        !matches!(self.what, What::Full(_)) || self.within > Duration::from_secs(1)
    }

    /// Returns `next_change` of `status --json`.
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

    /// Returns text such as `half_open in 12s`.
    pub fn to_text(&self) -> String {
        let within = format_remaining(self.within);
        match &self.what {
            What::PauseEnds => format!("pause ends in {within}"),
            What::GateOpens => format!("Retry-After ends in {within}"),
            What::HalfOpen => format!("probes (half_open) in {within}"),
            What::Sleep => format!("tries to recover in {within}"),
            What::RateRises => format!("rate rises in {within}"),
            What::NextUnit(rule, unit) => {
                let unit = ui::noun(1, unit);
                format!("one more {unit} in {within} ({rule})")
            }
            What::Full(rule) => format!("{rule} full again in {within}"),
        }
    }
}

fn sooner(one: Change, other: Change) -> Change {
    if other.within < one.within { other } else { one }
}
