//! Measures several processes on one limiter, and the same load on one lock-free word and on a locked file.

use super::load::{self, Histogram, Load, Targets};
use super::measure::{Bound, median};
use super::report::Row;
use super::{BenchDirectory, Effort, no_workers};
use crate::ui::failure::Failure;

const LOADS: [Load; 3] = [Load::Acquire, Load::Cas, Load::Flock];
/// If the workers got less than this part of the processors, no target is required.
const BUSY: f64 = 0.8;
const PROCESSES: [usize; 3] = [1, 2, 8];

pub fn measure(effort: Effort, bench: &BenchDirectory) -> Result<Vec<Row>, Failure> {
    // Held open, so that the workers find all files already created.
    let _targets = Targets::open(bench.directory())?;
    let turn = |load, timing, processes| {
        let worker = || bench.worker("load");
        load::turn(worker, load, timing, processes, effort.turn, bench.directory()).map_err(no_workers)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut shares = Vec::new();
    let mut rates = vec![Vec::new(); LOADS.len() * PROCESSES.len()];
    for _ in 0..effort.turns {
        let all = PROCESSES.into_iter().flat_map(|processes| LOADS.map(|load| (processes, load)));
        for ((processes, load), rates) in all.zip(&mut rates) {
            let output = turn(load, false, processes)?;
            let numbers = output.iter().filter_map(|line| line.split_once(' '));
            let numbers = numbers.filter_map(|(rate, share)| Some((rate.parse().ok()?, share.parse().ok()?)));
            let (rate, share) =
                numbers.fold((0.0, 0.0), |sum, one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1));
            rates.push(rate);
            if load == Load::Cas {
                shares.push(share / processes.min(cores) as f64);
            }
        }
    }
    let of = |load: Load, processes: usize| {
        let first = PROCESSES.iter().position(|other| *other == processes).unwrap_or(0) * LOADS.len();
        let load = LOADS.iter().position(|other| *other == load).unwrap_or(0);
        median(&rates[first + load])
    };
    let mut latencies = Histogram::new();
    for line in turn(Load::Acquire, true, 8)? {
        for (sum, count) in latencies.0.iter_mut().zip(line.split(' ')) {
            *sum += count.parse::<u64>().unwrap_or(0);
        }
    }
    let million = |load, processes| of(load, processes) / 1e6;
    let over_flock = [2, 8].map(|processes| of(Load::Acquire, processes) / of(Load::Flock, processes));
    // The lock-free load shows whether other programs used the processors, because its workers never sleep.
    let share = shares.iter().copied().fold(1.0, f64::min);
    let rows = vec![
        Row::new("alone", "1 process, million a second", million(Load::Acquire, 1), "M/s"),
        Row::new("two", "2 processes, million a second", million(Load::Acquire, 2), "M/s")
            .against("CAS", of(Load::Cas, 2) / of(Load::Acquire, 2), Bound::AtMost(2.0))
            .with_goal(1.6),
        Row::new("eight", "8 processes, million a second", million(Load::Acquire, 8), "M/s").against(
            "alone",
            of(Load::Acquire, 8) / of(Load::Acquire, 1),
            Bound::AtLeast(0.4),
        ),
        Row::new("eight_p99", "8 processes, 99 of 100 within", latencies.quantile(0.99) / 1e3, "us")
            .bounded(Bound::AtMost(10.0)),
        Row::new("flock_contended", "flock(2), 8 processes", million(Load::Flock, 8), "M/s").against(
            "ours",
            over_flock[0].min(over_flock[1]),
            Bound::AtLeast(5.0),
        ),
        Row::new("processor_share", "processors the workers had", share * 100.0, "%"),
    ];
    // Workers that seldom run at the same time cannot measure contention.
    Ok(if share < BUSY { rows.into_iter().map(Row::not_required).collect() } else { rows })
}
