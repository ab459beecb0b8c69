//! Draws a run: calls granted and refused, the breaker's state, calls in flight, and the effective rate.

mod axis;
mod buckets;
mod draw;

use super::run::Step;
use super::summary::StateSpans;
use buckets::Buckets;
use shmlimit_kernel::policy::BreakerKind;

/// Collects the data of a run for its plot.
pub struct Plot {
    kind: BreakerKind,
    title: String,
    buckets: Option<Buckets>,
    spans: StateSpans,
}

impl Plot {
    pub fn new(kind: BreakerKind, title: String) -> Plot {
        Plot { kind, title, buckets: None, spans: StateSpans::default() }
    }

    pub fn add(&mut self, step: &Step) {
        let at = step.line.t;
        let buckets = self.buckets.get_or_insert_with(|| Buckets::new(at));
        self.spans.add(step, |state, from, to| buckets.stay(state, from, to));
        let bucket = buckets.at(at);
        bucket.granted += step.granted;
        bucket.refused += u64::from(step.refused.is_some());
        let most = bucket.in_flight.map_or(0, |(most, _)| most).max(step.in_flight);
        bucket.in_flight = Some((most, step.in_flight));
        bucket.rate = step.line.fsm.as_ref().map(|fsm| fsm.rate);
    }

    /// Returns the plot as SVG.
    pub fn svg(&self) -> String {
        draw::svg(&self.title, self.kind, self.buckets.as_ref().unwrap_or(&Buckets::new(0)))
    }
}
