//! The data model of metrics: families of samples with labels.

use crate::OutcomeCounts;
use std::borrow::Cow;
use std::time::Duration;

/// The prefix of every family's name.
pub const PREFIX: &str = "shmlimit_";

/// The meaning of a family's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts up to each bound, and the sum.
    Histogram,
    /// Always 1; the information is in the labels.
    Info,
}

/// Samples with one name. The name is without [`PREFIX`] and without the suffix of its kind (`_total`, `_bucket`,
/// `_info`).
#[derive(Debug)]
pub struct Family {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub help: Cow<'static, str>,
    pub samples: Vec<Sample>,
}

/// One number, or one histogram.
#[derive(Debug)]
pub struct Sample {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Whole(u64),
    Real(f64),
    /// Durations, counted by the bounds of [`OutcomeCounts::LATENCY_BOUNDS`]; the last count is for longer ones.
    Times {
        counts: [u64; 16],
        sum: Duration,
    },
}

impl Family {
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind, help: impl Into<Cow<'static, str>>) -> Family {
        Family { name: name.into(), kind, help: help.into(), samples: Vec::new() }
    }

    /// The unit, which is the suffix of the name.
    pub fn unit(&self) -> Option<&'static str> {
        self.name.ends_with("_seconds").then_some("seconds")
    }
}

/// The bounds in milliseconds, and the count up to each bound. There are sixteen, and the last one is the total.
pub fn cumulative(counts: &[u64; 16]) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
    let bounds = OutcomeCounts::LATENCY_BOUNDS.into_iter().map(Some).chain([None]);
    let so_far = counts.iter().scan(0u64, |sum, count| {
        *sum = sum.wrapping_add(*count);
        Some(*sum)
    });
    bounds.zip(so_far)
}
