//! What decisions cost when real processes contend for one limiter, beside the same load on simpler designs.
//!
//! `cargo bench --bench contention [-- --json] [-- --check]`. Workers are this very program, started again.

mod common;

use common::baselines::{FileLock, Rate, SharedWord};
use common::{Bound, Budget, Options, Target, clock, limiter, median};
use shmlimit::{Grant, Limiter, Request};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// Each kind of load has so many turns, one after the other, and the middle one counts.
const TURNS: usize = 3;
const TURN: Duration = Duration::from_millis(330);
const SMOKE_TURN: Duration = Duration::from_millis(5);
/// Operations between two looks at the clock, and grants a worker holds at once.
const CHUNK: usize = 64;
const WORKER: &str = "--worker";

/// What all processes do at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// `try_acquire` alone: grants are given back in bulk between the timed stretches.
    Acquire,
    /// A whole call: `try_acquire` and release.
    Call,
    /// `try_acquire` that is refused for the rate.
    Denied,
    /// One lock-free word.
    Cas,
    /// flock around one mapped word.
    Flock,
}

impl Load {
    const ALL: [Load; 5] = [Load::Acquire, Load::Call, Load::Denied, Load::Cas, Load::Flock];

    fn name(self) -> &'static str {
        match self {
            Load::Acquire => "acquire",
            Load::Call => "acquire+release",
            Load::Denied => "denied",
            Load::Cas => "lock-free CAS",
            Load::Flock => "flock+mmap",
        }
    }

    fn parse(text: &str) -> Option<Load> {
        Load::ALL.into_iter().find(|load| load.name() == text)
    }
}

/// Counts of nanoseconds, 16 steps to each doubling: errors below 7 %.
struct Histogram(Vec<u64>);

impl Histogram {
    fn new() -> Histogram {
        Histogram(vec![0; 64 * 16])
    }

    #[inline(always)]
    fn bucket(ns: u64) -> usize {
        let top = (ns | 16).ilog2();
        (top as usize) * 16 + (ns >> (top - 4) & 15) as usize
    }

    fn ns(bucket: usize) -> f64 {
        let (top, part) = (bucket / 16, bucket % 16);
        (16 + part) as f64 / 16.0 * 2f64.powi(top as i32)
    }

    fn quantile(&self, part: f64) -> f64 {
        let total: u64 = self.0.iter().sum();
        let mut left = (total as f64 * part) as u64;
        for (bucket, count) in self.0.iter().enumerate() {
            if left < *count {
                return Histogram::ns(bucket);
            }
            left -= count;
        }
        0.0
    }
}

/// Everything a worker may work on.
struct Workplace {
    plenty: Limiter,
    scarce: Limiter,
    word: SharedWord,
}

impl Workplace {
    fn open(directory: &Path) -> Workplace {
        Workplace {
            plenty: limiter(directory, "plenty", Budget::Plenty.policy(1, None)),
            scarce: limiter(directory, "scarce", Budget::Scarce.policy(1, None)),
            word: SharedWord::open(&directory.join("word")),
        }
    }
}

/// Operations a second of this process.
fn rate(load: Load, place: &Workplace, turn_ns: u64) -> f64 {
    let request = Request::new();
    let chunk = |mut operation: Box<dyn FnMut() + '_>| {
        let start = clock();
        let mut count = 0;
        loop {
            operation();
            count += CHUNK;
            let spent = clock() - start;
            if spent >= turn_ns {
                return count as f64 * 1e9 / spent as f64;
            }
        }
    };
    match load {
        Load::Acquire => acquire_rate(place, &request, turn_ns),
        Load::Call => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                drop(place.plenty.try_acquire(black_box(&request)).expect("granted"));
            }
        })),
        Load::Denied => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(place.scarce.try_acquire(black_box(&request)).is_err());
            }
        })),
        Load::Cas => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(place.word.decide_lock_free(Rate::PLENTY));
            }
        })),
        Load::Flock => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(place.word.decide_under(FileLock::Flock, Rate::PLENTY));
            }
        })),
    }
}

fn acquire_rate(place: &Workplace, request: &Request<'_>, turn_ns: u64) -> f64 {
    let mut held: Vec<Grant<'_>> = Vec::with_capacity(CHUNK);
    let (begin, mut count, mut timed) = (clock(), 0, 0);
    loop {
        let start = clock();
        for _ in 0..CHUNK {
            held.push(place.plenty.try_acquire(black_box(request)).expect("granted"));
        }
        let end = clock();
        held.clear();
        count += CHUNK;
        timed += end - start;
        if end - begin >= turn_ns {
            return count as f64 * 1e9 / timed as f64;
        }
    }
}

/// How long each operation takes; the reading of the clock is in it once.
fn latencies(load: Load, place: &Workplace, turn_ns: u64) -> Histogram {
    let request = Request::new();
    let mut histogram = Histogram::new();
    let begin = clock();
    loop {
        let start = clock();
        let grant = match load {
            Load::Acquire | Load::Call => Some(place.plenty.try_acquire(&request).expect("granted")),
            Load::Denied => place.scarce.try_acquire(&request).ok(),
            Load::Cas => {
                place.word.decide_lock_free(Rate::PLENTY);
                None
            }
            Load::Flock => {
                place.word.decide_under(FileLock::Flock, Rate::PLENTY);
                None
            }
        };
        let end = if load == Load::Acquire {
            let end = clock();
            drop(grant);
            end
        } else {
            drop(grant);
            clock()
        };
        histogram.0[Histogram::bucket(end - start)] += 1;
        if end - begin >= turn_ns {
            return histogram;
        }
    }
}

/// A worker: gets ready, waits for the word, works, tells.
fn work(load: Load, timing: bool, turn_ns: u64, directory: &Path) {
    let place = Workplace::open(directory);
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the word to start");
    if timing {
        let counts: Vec<String> = latencies(load, &place, turn_ns).0.iter().map(u64::to_string).collect();
        println!("{}", counts.join(" "));
    } else {
        let (wall, processor) = (clock(), processor_time());
        let rate = rate(load, &place, turn_ns);
        println!("{rate} {}", (processor_time() - processor) as f64 / (clock() - wall) as f64);
    }
}

/// Nanoseconds that this process was on a processor.
fn processor_time() -> u64 {
    let time =
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a processor clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Starts the workers, lets them loose together, and returns what each said.
fn turn(load: Load, timing: bool, processes: usize, length: Duration, directory: &Path) -> Vec<String> {
    let start = |_| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([WORKER, load.name(), if timing { "timing" } else { "counting" }]);
        command.arg(length.as_nanos().to_string()).arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a worker")
    };
    let mut workers: Vec<Child> = (0..processes).map(start).collect();
    let mut outputs: Vec<_> =
        workers.iter_mut().map(|worker| BufReader::new(worker.stdout.take().expect("piped"))).collect();
    for output in &mut outputs {
        read_line(output);
    }
    for worker in &mut workers {
        worker.stdin.take().expect("piped").write_all(b"go\n").expect("a listening worker");
    }
    let said = outputs.iter_mut().map(read_line).collect();
    for mut worker in workers {
        assert!(worker.wait().expect("an ended worker").success(), "a worker failed");
    }
    said
}

fn read_line(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line from a worker");
    line.trim().to_owned()
}

struct Figure {
    load: Load,
    processes: usize,
    per_second: f64,
    /// The part of the machine's processors that the workers could use and had.
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
                let said = turn(load, false, processes, length, directory);
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
            for text in turn(load, true, processes, length, directory) {
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

/// Whether others had the processors. The lock-free load tells: its workers never sleep by themselves.
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
        target("2 processes: time / lock-free CAS", floor, Bound::AtMost(2.5), require),
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
    if let [flag, load, timing, nanoseconds, directory] = &options.rest[..]
        && flag == WORKER
    {
        let load = Load::parse(load).expect("a load");
        let turn_ns = nanoseconds.parse().expect("nanoseconds");
        work(load, timing == "timing", turn_ns, Path::new(directory));
        return ExitCode::SUCCESS;
    }
    let directory = common::directory();
    // Held open so that the files outlive every worker, and the scarce budget is spent.
    let place = Workplace::open(directory.path());
    drop(place.scarce.try_acquire(&Request::new()));
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
