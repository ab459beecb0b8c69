//! Measures one process: each operation as a multiple of one clock read.

use super::measure::{Bound, Budget, open};
use super::operations::{self, BATCH, Figure, granted_in_place, of_shape, one, take_and_give_back};
use super::report::Row;
use super::shapes::{Call, SHAPES, Shape};
use super::{BenchDirectory, Effort};
use crate::ui::failure::Failure;
use shmlimit::{Limiter, Outcome};
use shmlimit_segment::sys::baselines::{FileLock, Rate, SharedWord, clock};
use std::hint::black_box;

/// Fewer operations for a file lock, which takes much longer.
const FEW: u32 = BATCH / 10;

/// The rows of one process.
pub struct Rows {
    /// The clock, the parts of a decision, and the alternatives.
    pub parts: Vec<Row>,
    /// A whole call on each kind of limiter.
    pub limiters: Vec<Row>,
}

pub fn measure(effort: Effort, bench: &BenchDirectory) -> Result<Rows, Failure> {
    let path = bench.directory();
    let guarded = open(path, "all-on", Budget::Plenty.guarded())?;
    let limiters: Vec<Limiter> =
        SHAPES.iter().map(|shape| open(path, shape.key, shape.policy())).collect::<Result<_, _>>()?;
    let file = path.join("one-word");
    let word = SharedWord::open(&file).map_err(|source| shmlimit::Error::Io {
        action: "map",
        path: file,
        source,
    })?;
    let mut operations = vec![
        one(&["clock"], BATCH, || {
            black_box(clock());
        }),
        granted_in_place(&["granted, all on", "release, all on", "both, all on"], &guarded),
        take_and_give_back(&["granted, and moved", "record"], &guarded, |grant| {
            drop(grant.record(black_box(&Outcome::http(200, &[]))));
        }),
        one(&["cas"], BATCH, || {
            black_box(black_box(&word).decide_lock_free(Rate::PLENTY));
        }),
        one(&["flock"], FEW, || {
            black_box(word.decide_under(FileLock::Flock, Rate::PLENTY));
        }),
    ];
    operations.extend(SHAPES.iter().zip(&limiters).map(|(shape, limiter)| of_shape(shape, limiter)));
    let figures = operations::measure(effort.rounds, operations);
    let nothing = Figure { name: "", median: 0.0, low: 0.0, high: 0.0, ratio: 0.0, quiet: 0.0 };
    let find = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap_or(&nothing);
    let row = |key, what, name: &str| Row::new(key, what, find(name).median, "ns");
    let to_clock = |key, what, name: &str, most| {
        row(key, what, name).against("clock", find(name).ratio, Bound::AtMost(most))
    };
    let quotient = |over: &str, under: &str| find(over).median / find(under).median;
    let (whole, part): (Vec<&Shape>, Vec<&Shape>) = SHAPES.iter().partition(|shape| is_whole(shape.call));
    let mut parts = vec![row("clock", "one clock read", "clock")];
    parts.extend(part.into_iter().map(|shape| of_figure(shape, find(shape.key))));
    parts.extend([
        to_clock("granted_all_on", "granted, breaker and permits on", "granted, all on", 2.0),
        to_clock("release", "release", "release", 2.0),
        to_clock("record", "record of a success", "record", 2.5),
        row("cas", "lock-free CAS on one word", "cas").beside("clock", find("cas").ratio),
        row("flock", "flock(2) around one mapped word", "flock").against(
            "granted",
            quotient("flock", "granted"),
            Bound::AtLeast(10.0),
        ),
    ]);
    let limiters = whole.into_iter().map(|shape| of_figure(shape, find(shape.key))).collect();
    Ok(Rows { parts, limiters })
}

/// Returns whether the call is a whole one: a grant and its end.
fn is_whole(call: Call) -> bool {
    matches!(call, Call::Release | Call::Record | Call::Settle)
}

/// Returns the row of a shape, with its targets.
fn of_figure(shape: &'static Shape, figure: &Figure) -> Row {
    let snapshot = shape.call == Call::Snapshot;
    let (value, unit) = if snapshot { (figure.median / 1e3, "us") } else { (figure.median, "ns") };
    let row = Row::new(shape.key, shape.what, value, unit);
    match shape.targets {
        Some((most, goal)) if snapshot => row.bounded(Bound::AtMost(most)).with_goal(goal),
        Some((most, goal)) => row.against("clock", figure.ratio, Bound::AtMost(most)).with_goal(goal),
        None => row.beside("clock", figure.ratio),
    }
}
