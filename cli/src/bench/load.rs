//! Runs the same load in several processes at once, on a limiter and on simpler designs. The benchmarks in `benches/`
//! use this file too.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use super::measure::{Budget, open};
use shmlimit::{Error, Grant, Limiter, Request};
use shmlimit_segment::sys::baselines::{FileLock, Rate, SharedWord, clock};
use shmlimit_segment::sys::tool::processor_time;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The number of operations between two clock reads, and of grants that a worker holds at once.
const CHUNK: usize = 64;
/// The operation that all processes run at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// `try_acquire` alone: the worker releases grants in bulk between the timed stretches.
    Acquire,
    /// A whole call: `try_acquire` and release.
    Call,
    /// `try_acquire` that the rate refuses.
    Denied,
    /// A compare-and-swap on one lock-free word.
    Cas,
    /// `flock` around one mapped word.
    Flock,
}

impl Load {
    pub const ALL: [Load; 5] = [Load::Acquire, Load::Call, Load::Denied, Load::Cas, Load::Flock];

    pub fn name(self) -> &'static str {
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

/// A histogram of nanoseconds with 16 buckets per power of two, so errors are below 7 %.
pub struct Histogram(pub Vec<u64>);

impl Histogram {
    pub fn new() -> Histogram {
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

    pub fn quantile(&self, part: f64) -> f64 {
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

/// The limiters and the shared word that the loads use.
pub struct Targets {
    plenty: Limiter,
    /// The caller spends its budget before the first turn.
    pub scarce: Limiter,
    word: SharedWord,
}

impl Targets {
    /// Opens all targets and creates those that do not exist.
    pub fn open(directory: &Path) -> Result<Targets, Error> {
        let path = directory.join("word");
        let word = SharedWord::open(&path).map_err(|source| Error::Io { action: "map", path, source });
        Ok(Targets {
            plenty: open(directory, "plenty", Budget::Plenty.policy(1, None))?,
            scarce: open(directory, "scarce", Budget::Scarce.policy(1, None))?,
            word: word?,
        })
    }
}

/// Returns the operations per second of this process.
fn rate(load: Load, targets: &Targets, turn_ns: u64) -> f64 {
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
        Load::Acquire => acquire_rate(targets, &request, turn_ns),
        Load::Call => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                drop(targets.plenty.try_acquire(black_box(&request)).expect("granted"));
            }
        })),
        Load::Denied => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(targets.scarce.try_acquire(black_box(&request)).is_err());
            }
        })),
        Load::Cas => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(targets.word.decide_lock_free(Rate::PLENTY));
            }
        })),
        Load::Flock => chunk(Box::new(|| {
            for _ in 0..CHUNK {
                assert!(targets.word.decide_under(FileLock::Flock, Rate::PLENTY));
            }
        })),
    }
}

fn acquire_rate(targets: &Targets, request: &Request<'_>, turn_ns: u64) -> f64 {
    let mut held: Vec<Grant<'_>> = Vec::with_capacity(CHUNK);
    let (begin, mut count, mut timed) = (clock(), 0, 0);
    loop {
        let start = clock();
        for _ in 0..CHUNK {
            held.push(targets.plenty.try_acquire(black_box(request)).expect("granted"));
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

/// Returns how long each operation takes, including one clock read.
fn latencies(load: Load, targets: &Targets, turn_ns: u64) -> Histogram {
    let request = Request::new();
    let mut histogram = Histogram::new();
    let begin = clock();
    loop {
        let start = clock();
        let grant = match load {
            Load::Acquire | Load::Call => Some(targets.plenty.try_acquire(&request).expect("granted")),
            Load::Denied => targets.scarce.try_acquire(&request).ok(),
            Load::Cas => {
                targets.word.decide_lock_free(Rate::PLENTY);
                None
            }
            Load::Flock => {
                targets.word.decide_under(FileLock::Flock, Rate::PLENTY);
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

/// Runs a worker: it prepares, waits for the start signal, works and prints its result. `turn` passes its arguments.
pub fn work(words: &[String]) -> Result<(), Error> {
    let [load, timing, turn_ns, directory] = words else { return Ok(()) };
    let (Some(load), Ok(turn_ns)) = (Load::parse(load), turn_ns.parse()) else { return Ok(()) };
    let targets = Targets::open(Path::new(directory))?;
    println!("ready");
    let mut line = String::new();
    if io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
        return Ok(());
    }
    if timing == TIMING {
        let counts: Vec<String> = latencies(load, &targets, turn_ns).0.iter().map(u64::to_string).collect();
        println!("{}", counts.join(" "));
    } else {
        let (wall, processor) = (clock(), on_processor());
        let rate = rate(load, &targets, turn_ns);
        println!("{rate} {}", (on_processor() - processor) as f64 / (clock() - wall) as f64);
    }
    Ok(())
}

/// Returns how many nanoseconds this process has run on a processor.
fn on_processor() -> u64 {
    processor_time().expect("a processor clock")
}

const TIMING: &str = "timing";

/// Starts the workers together and returns the output of each.
pub fn turn(
    worker: impl Fn() -> Command,
    load: Load,
    timing: bool,
    processes: usize,
    length: Duration,
    directory: &Path,
) -> io::Result<Vec<String>> {
    let start = |_| {
        let mut command = worker();
        command.args([load.name(), if timing { TIMING } else { "counting" }]);
        command.arg(length.as_nanos().to_string()).arg(directory);
        command
    };
    start_together((0..processes).map(start))
}

/// Starts these programs, releases all of them once each is ready, and returns the output of each.
pub fn start_together(commands: impl Iterator<Item = Command>) -> io::Result<Vec<String>> {
    let mut workers = Vec::new();
    for mut command in commands {
        workers.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    }
    let output = collect_output(&mut workers);
    for mut worker in workers {
        if output.is_err() {
            let _ = worker.kill();
        }
        let ended = worker.wait()?;
        if output.is_ok() && !ended.success() {
            return Err(io::Error::other("a worker failed"));
        }
    }
    output
}

fn collect_output(workers: &mut [Child]) -> io::Result<Vec<String>> {
    let mut outputs: Vec<_> =
        workers.iter_mut().filter_map(|worker| worker.stdout.take()).map(BufReader::new).collect();
    for output in &mut outputs {
        read_line(output)?;
    }
    for input in workers.iter_mut().filter_map(|worker| worker.stdin.as_mut()) {
        input.write_all(b"go\n")?;
    }
    outputs.iter_mut().map(read_line).collect()
}

fn read_line(output: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match output.read_line(&mut line)? {
        0 => Err(io::Error::other("a worker ended too early")),
        _ => Ok(line.trim().to_owned()),
    }
}
