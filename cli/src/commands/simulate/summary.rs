//! The summary of a run, for people.

use super::human::time;
use super::run::Step;
use shmlimit_kernel::breaker::BreakerState;
use shmlimit_kernel::policy::BreakerKind;
use std::collections::BTreeMap;
use std::fmt;

/// Collects counts while a script runs.
pub struct Summary {
    kind: BreakerKind,
    ops: u64,
    granted: u64,
    refused: BTreeMap<&'static str, u64>,
    transitions: u64,
    first: Option<u64>,
    last: u64,
    spans: StateSpans,
    /// The time spent in each state, in the order in which the states first occurred.
    states: Vec<(BreakerState, u64)>,
}

impl Summary {
    pub fn new(kind: BreakerKind) -> Summary {
        Summary {
            kind,
            ops: 0,
            granted: 0,
            refused: BTreeMap::new(),
            transitions: 0,
            first: None,
            last: 0,
            spans: StateSpans::default(),
            states: Vec::new(),
        }
    }

    pub fn add(&mut self, step: &Step) {
        self.ops += 1;
        self.granted += step.granted;
        if let Some(reason) = step.refused {
            *self.refused.entry(reason).or_default() += 1;
        }
        self.transitions += step.line.transitions.len() as u64;
        self.first.get_or_insert(step.line.t);
        self.last = step.line.t;
        let states = &mut self.states;
        self.spans.add(step, |state, from, to| match states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, length)) => *length += to - from,
            None => states.push((state, to - from)),
        });
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.last - self.first.unwrap_or(0).min(self.last);
        writeln!(f, "operations   {}, in {} of virtual time", self.ops, time(length))?;
        writeln!(f, "granted      {}", self.granted)?;
        let reasons: Vec<_> =
            self.refused.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let refused: u64 = self.refused.values().sum();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        writeln!(f, "refused      {refused}{reasons}")?;
        writeln!(f, "transitions  {}", self.transitions)?;
        for (state, length) in &self.states {
            writeln!(f, "{:<12} {}", state.as_str(self.kind), time(*length))?;
        }
        Ok(())
    }
}

/// The state of the current stretch, and when it began.
#[derive(Default)]
pub struct StateSpans {
    state: BreakerState,
    since: Option<u64>,
}

impl StateSpans {
    /// Passes the stretches that the step adds to `each`: state, from, to. Time starts with the first step.
    pub fn add(&mut self, step: &Step, mut each: impl FnMut(BreakerState, u64, u64)) {
        let mut since = self.since.unwrap_or(step.line.t);
        for transition in &step.line.transitions {
            // A timer may have been due before the last operation, but the change was not visible then.
            let at = transition.at.0.max(since);
            each(self.state, since, at);
            (self.state, since) = (transition.to, at);
        }
        self.state = step.line.state;
        each(self.state, since, step.line.t);
        self.since = Some(step.line.t);
    }
}
