//! Measures the cost of decisions when several processes contend for one limiter, compared with the same load on
//! simpler designs.
//!
//! `cargo bench --bench contention [-- --json] [-- --check]`. The workers are this same program, started again.

mod common;

#[path = "../cli/src/bench/load.rs"]
mod load;

use common::measure;
use common::{Bound, Options, Target, median};
use load::{Histogram, Load, Targets};
use shmlimit::Request;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// How many turns each kind of load has, one after the other. The median counts.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_millis(330);
const SMOKE_TURN: Duration = Duration::from_millis(5);
const WORKER: &str = "--worker";

/// The command that starts this program again as a worker.
fn worker() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(WORKER);
    command
}

struct Figure {
    load: Load,
    processes: usize,
    per_second: f64,
    /// The part of the available processor time that the workers used.
    share: f64,
    p50: f64,
    p99: f64,
    p999: f64,
}

fn measure(options: &Options, directory: &Path) -> Vec<Figure> {
    let (turns, length) = if options.smoke { (1, SMOKE_TURN) } else { (TURNS, TURN) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut figures = Vec::new();
    for processes in PROCESSES {
        let mut rates = vec![Vec::new(); Load::ALL.len()];
        let mut shares = rates.clone();
        for _ in 0..turns {
            for ((load, rates), shares) in Load::ALL.into_iter().zip(&mut rates).zip(&mut shares) {
                let said = load::turn(worker, load, false, processes, length, directory).expect("workers");
                let numbers = |text: &String| text.split_once(' ').map(|(a, b)| (a.parse(), b.parse()));
                let (mut rate, mut share) = (0.0, 0.0);
                for text in &said {
                    let Some((Ok(one), Ok(part))) = numbers(text) else { panic!("a worker said {text:?}") };
                    let (one, part): (f64, f64) = (one, part);
                    (rate, share) = (rate + one, share + part);
                }
                rates.push(rate);
                shares.push(share / processes.min(cores) as f64);
            }
        }
        for ((load, rates), shares) in Load::ALL.into_iter().zip(rates).zip(shares) {
            let mut all = Histogram::new();
            for text in load::turn(worker, load, true, processes, length, directory).expect("workers") {
                for (sum, count) in all.0.iter_mut().zip(text.split(' ')) {
                    *sum += count.parse::<u64>().expect("a count");
                }
            }
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| all.quantile(part));
            figures.push(Figure {
                load,
                processes,
                per_second: median(&rates),
                share: median(&shares),
                p50,
                p99,
                p999,
            });
        }
    }
    figures
}

/// Whether other programs used the processors. The lock-free load shows it, because its workers never sleep.
fn was_busy(figures: &[Figure]) -> bool {
    figures.iter().any(|figure| figure.load == Load::Cas && figure.share < 0.8)
}

fn targets(figures: &[Figure], require: bool) -> Vec<Target> {
    let of = |load: Load, processes: usize| {
        let found = figures.iter().find(|f| f.load == load && f.processes == processes);
        found.expect("a figure of that load")
    };
    let rate = |load, processes| of(load, processes).per_second;
    let floor = rate(Load::Cas, 2) / rate(Load::Acquire, 2);
    let kept = rate(Load::Acquire, 8) / rate(Load::Acquire, 1);
    let over_flock =
        [2, 4, 8].map(|n| rate(Load::Acquire, n) / rate(Load::Flock, n)).into_iter().fold(f64::MAX, f64::min);
    let target = |name, measured, bound, required| Target { name, measured, bound, required };
    vec![
        target("2 processes: time / lock-free CAS", floor, Bound::AtMost(2.0), require),
        target("2 processes: time / lock-free CAS, goal", floor, Bound::AtMost(1.6), false),
        target("8 processes: throughput / 1 process", kept, Bound::AtLeast(0.4), require),
        target("8 processes: throughput / 1 process, goal", kept, Bound::AtLeast(0.6), false),
        target("contended: throughput / flock+mmap", over_flock, Bound::AtLeast(5.0), require),
        target(
            "8 processes: p99, microseconds",
            of(Load::Acquire, 8).p99 / 1e3,
            Bound::AtMost(10.0),
            require,
        ),
    ]
}

fn print_json(figures: &[Figure], targets: &[Target]) {
    let one = |f: &Figure| {
        serde_json::json!({
            "load": f.load.name(), "processes": f.processes, "per_second": f.per_second,
            "processor_share": f.share, "p50_ns": f.p50, "p99_ns": f.p99, "p999_ns": f.p999,
        })
    };
    let figures: Vec<_> = figures.iter().map(one).collect();
    let targets = common::targets_as_json(targets);
    println!("{}", serde_json::json!({ "bench": "contention", "figures": figures, "targets": targets }));
}

fn main() -> ExitCode {
    let options = Options::read();
    if let Some((flag, words)) = options.rest.split_first()
        && flag == WORKER
    {
        load::work(words).expect("work");
        return ExitCode::SUCCESS;
    }
    let directory = common::directory();
    // Held open so that the files outlive every worker, and the scarce budget is spent.
    let opened = Targets::open(directory.path()).expect("limiters");
    drop(opened.scarce.try_acquire(&Request::new()));
    let figures = measure(&options, directory.path());
    let busy = was_busy(&figures);
    let targets = targets(&figures, !busy);
    let met = if options.json {
        print_json(&figures, &targets);
        common::all_met(&targets)
    } else {
        println!(
            "{:<18} {:>9} {:>10} {:>8} {:>8} {:>9} {:>6}",
            "load", "processes", "million/s", "p50 ns", "p99 ns", "p99.9 ns", "cpu"
        );
        for Figure { load, processes, per_second, share, p50, p99, p999 } in &figures {
            let (name, millions, share) = (load.name(), per_second / 1e6, share * 100.0);
            println!(
                "{name:<18} {processes:>9} {millions:>10.2} {p50:>8.0} {p99:>8.0} {p999:>9.0} {share:>4.0} %"
            );
        }
        if busy {
            println!("the machine was busy with other work: the workers seldom met, so nothing is required");
        }
        common::report_targets(&targets)
    };
    options.verdict(met)
}
