//! Operations that are measured in turns, so that a disturbance on the machine affects all of them. The benchmarks in
//! `benches/` use this file too.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use super::measure::{median, per_operation, quantile};
use super::shapes::{self, Call, Shape};
use shmlimit::{AcquireError, Grant, Limiter, Outcome, Request};
use shmlimit_segment::sys::baselines::clock;
use std::hint::black_box;

/// Short enough that most batches are not interrupted.
pub const BATCH: u32 = 1000;
/// Grants held at once: few enough to stay in the first-level cache.
const HELD: usize = 128;

/// One or more figures that are measured in one turn.
pub struct Operation<'a> {
    names: &'static [&'static str],
    turn: Box<dyn FnMut() -> Vec<f64> + 'a>,
}

/// The result for one figure.
pub struct Figure {
    pub name: &'static str,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// The ratio to the clock read of the same round.
    pub ratio: f64,
    /// The same ratio for the fastest 10 % of the batches: the cost without disturbance.
    pub quiet: f64,
}

/// Returns an operation with one figure.
pub fn one<'a>(name: &'static [&'static str], count: u32, mut operation: impl FnMut() + 'a) -> Operation<'a> {
    Operation { names: name, turn: Box::new(move || vec![per_operation(count, &mut operation)]) }
}

/// Acquires grants and releases them, and times each side separately.
pub fn take_and_give_back<'a>(
    names: &'static [&'static str],
    limiter: &'a Limiter,
    give_back: impl Fn(Grant<'a>) + 'a,
) -> Operation<'a> {
    let request = Request::new();
    // Stores the results without unwrapping them: that would move each grant once more, and only the caller needs it.
    let mut held: Vec<Result<Grant<'a>, AcquireError>> = Vec::with_capacity(HELD);
    let turn = move || {
        let (mut taking, mut giving) = (0, 0);
        for chunk in 0..8 {
            let start = clock();
            for _ in 0..HELD {
                held.push(limiter.try_acquire(black_box(&request)));
            }
            let between = clock();
            for decided in held.drain(..) {
                give_back(decided.expect("granted"));
            }
            let end = clock();
            // The first chunk only warms the caches.
            if chunk > 0 {
                taking += between - start;
                giving += end - between;
            }
        }
        let each = |total: u64| total as f64 / (7 * HELD) as f64;
        vec![each(taking), each(giving)]
    };
    Operation { names, turn: Box::new(turn) }
}

/// Measures a grant that stays where `try_acquire` put it, and its release. The first figure is the time of both
/// together minus the time of the release alone. Moving a grant is the caller's cost and has its own figure.
pub fn granted_in_place<'a>(names: &'static [&'static str], limiter: &'a Limiter) -> Operation<'a> {
    let request = Request::new();
    let mut held: Vec<Result<Grant<'a>, AcquireError>> = Vec::with_capacity(HELD);
    let turn = move || {
        let mut giving = 0;
        for chunk in 0..8 {
            held.extend((0..HELD).map(|_| limiter.try_acquire(black_box(&request))));
            assert!(held.iter().all(Result::is_ok));
            let start = clock();
            held.clear();
            if chunk > 0 {
                giving += clock() - start;
            }
        }
        let release = giving as f64 / (7 * HELD) as f64;
        let both = per_operation(BATCH, || drop(limiter.try_acquire(black_box(&request))));
        vec![both - release, release, both]
    };
    Operation { names, turn: Box::new(turn) }
}

/// Measures a shape. A grant is dropped where `try_acquire` put it, because moving it is the caller's cost.
pub fn of_shape<'a>(shape: &'static Shape, limiter: &'a Limiter) -> Operation<'a> {
    let name = std::slice::from_ref(&shape.key);
    let request = shape.request();
    let held = shape.prepare(limiter);
    shape.call_once(limiter, &request);
    match shape.call {
        Call::Acquire => granted_in_place(&["granted", "release", "granted + release"], limiter),
        Call::Release => one(name, BATCH, move || drop(limiter.try_acquire(black_box(&request)))),
        Call::Record => recorded(name, limiter, request, shapes::success()),
        Call::Settle => recorded(name, limiter, request, shapes::settled()),
        Call::Refused(_) => one(name, BATCH, move || {
            let _held = &held;
            assert!(limiter.try_acquire(black_box(&request)).is_err());
        }),
        Call::Snapshot => one(name, BATCH / 50, || drop(black_box(limiter.snapshot()))),
    }
}

fn recorded<'a>(
    name: &'static [&'static str],
    limiter: &'a Limiter,
    request: Request<'static>,
    outcome: Outcome<'static>,
) -> Operation<'a> {
    one(name, BATCH, move || {
        if let Ok(grant) = limiter.try_acquire(black_box(&request)) {
            drop(grant.record(black_box(&outcome)));
        }
    })
}

/// Measures all operations for the given number of rounds. The first operation must be the clock read.
pub fn measure(rounds: usize, mut operations: Vec<Operation<'_>>) -> Vec<Figure> {
    let mut samples: Vec<Vec<Vec<f64>>> =
        operations.iter().map(|s| vec![Vec::new(); s.names.len()]).collect();
    for _ in 0..rounds {
        for (operation, samples) in operations.iter_mut().zip(&mut samples) {
            for (value, samples) in (operation.turn)().into_iter().zip(samples) {
                samples.push(value);
            }
        }
    }
    // The first operation is the clock read. Ratios are computed per round, so a slow phase of the machine cancels
    // out.
    let clock = samples[0][0].clone();
    let figures = operations.iter().zip(&samples).flat_map(|(operation, samples)| {
        operation.names.iter().zip(samples).map(|(name, values)| {
            let ratios: Vec<f64> = values.iter().zip(&clock).map(|(value, clock)| value / clock).collect();
            Figure {
                name,
                median: median(values),
                low: quantile(values, 0.1),
                high: quantile(values, 0.9),
                ratio: median(&ratios),
                quiet: quantile(values, 0.1) / quantile(&clock, 0.1),
            }
        })
    });
    figures.collect()
}
