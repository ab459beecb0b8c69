//! Measures many threads in eight processes on one budget: how much of it is used, by which process, and how often
//! they wake up for it.

use crate::common::{Bound, Target, clock, directory, limiter, median};
use crate::workers::{self, Worker};
use crate::{Effort, Figure, Findings};
use shmlimit::{AcquireError, Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const RATE: u64 = 1000;
/// Seconds in which the burst is used up and every thread enters the queue.
const WARM_UP: f64 = 0.5;
const QUEUED: &str = "queue";
const RETRYING: &str = "retry";
const UNEQUAL: [usize; 8] = [1, 1, 1, 1, 16, 16, 16, 16];
const EQUAL: [usize; 8] = [1; 8];
const UNEQUAL_TARGETS: [&str; 3] =
    ["unequal: % off the rate", "unequal: (1 - Jain) x 1000", "unequal: wake-ups a grant"];
const EQUAL_TARGETS: [&str; 3] =
    ["equal: % off the rate", "equal: (1 - Jain) x 1000", "equal: wake-ups a grant"];

/// A policy with that many calls per second, and a burst of a tenth of that.
pub fn policy(rate: u64) -> Policy {
    let rule = RuleDraft {
        burst: Some((rate / 10).max(1)),
        ..RuleDraft::new(Algorithm::Gcra, rate, Duration::from_secs(1))
    };
    Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).expect("a valid policy")
}

fn call(limiter: &Limiter, queued: bool, tries: &AtomicU64) {
    let request = Request::new();
    if queued {
        return limiter.acquire(&request).and_then(|grant| Ok(grant.release()?)).expect("a grant");
    }
    loop {
        tries.fetch_add(1, Ordering::Relaxed);
        match limiter.try_acquire(&request) {
            Ok(grant) => return grant.release().expect("given back"),
            Err(AcquireError::Refused(refusal)) => {
                std::thread::sleep(refusal.retry_after().unwrap_or_default());
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A worker: calls from the given start time, and counts within a window that is the same for all workers.
pub fn work(directory: &str, threads: &str, seconds: &str, way: &str) {
    let limiter = Limiter::builder("api").directory(Path::new(directory)).open_existing().expect("a limiter");
    let (threads, seconds): (usize, f64) =
        (threads.parse().expect("threads"), seconds.parse().expect("seconds"));
    let start: u64 = workers::ready().parse().expect("when to start");
    let from = start + (WARM_UP * 1e9) as u64;
    let end = from + (seconds * 1e9) as u64;
    let [counted, granted, tries] = [const { AtomicU64::new(0) }; 3];
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    call(&limiter, way == QUEUED, &tries);
                    granted.fetch_add(1, Ordering::Relaxed);
                    let now = clock();
                    if now >= end {
                        break;
                    }
                    counted.fetch_add(u64::from(now >= from), Ordering::Relaxed);
                }
            });
        }
    });
    let tries = if way == QUEUED { looks(&limiter) } else { tries.into_inner() };
    println!("{} {} {tries}", counted.into_inner(), granted.into_inner());
}

/// How often the calls of this process have checked whether it is their turn.
fn looks(limiter: &Limiter) -> u64 {
    let snapshot = limiter.snapshot().expect("a snapshot");
    let mine = snapshot.participants.iter().find(|process| process.pid == std::process::id());
    mine.expect("this process").looked
}

struct Outcome {
    percent: f64,
    jain: f64,
    attempts: f64,
}

fn round(threads: &[usize], way: &str, seconds: f64) -> Outcome {
    let directory = directory();
    let _limiter = limiter(directory.path(), "api", policy(RATE));
    let path = directory.path().to_str().expect("a path that is text");
    let start =
        |threads: &usize| Worker::start(&["caller", path, &threads.to_string(), &seconds.to_string(), way]);
    let mut workers: Vec<Worker> = threads.iter().map(start).collect();
    for worker in &mut workers {
        worker.receive();
    }
    let now = clock().to_string();
    for worker in &mut workers {
        worker.send(&now);
    }
    let results: Vec<Vec<f64>> = workers.iter_mut().map(Worker::receive_numbers).collect();
    let sum = |column: usize| results.iter().map(|numbers| numbers[column]).sum::<f64>();
    let squares: f64 = results.iter().map(|numbers| numbers[0] * numbers[0]).sum();
    Outcome {
        percent: 100.0 * sum(0) / (RATE as f64 * seconds),
        jain: sum(0) * sum(0) / (results.len() as f64 * squares),
        attempts: sum(2) / sum(1),
    }
}

/// Runs both methods in turns, so that a busy phase of the machine affects both.
pub fn measure(effort: Effort) -> Findings {
    let mut findings = Findings::default();
    for (who, threads, names) in
        [("4 x 1 + 4 x 16 threads", UNEQUAL, UNEQUAL_TARGETS), ("8 x 1 thread", EQUAL, EQUAL_TARGETS)]
    {
        let mut outcomes = [QUEUED, RETRYING].map(|way| (way, Vec::new()));
        for _ in 0..effort.repeats {
            for (way, outcomes) in &mut outcomes {
                outcomes.push(round(&threads, way, effort.seconds));
            }
        }
        for (way, outcomes) in outcomes {
            let of = |part: fn(&Outcome) -> f64| median(&outcomes.iter().map(part).collect::<Vec<_>>());
            let (percent, jain, attempts) = (of(|o| o.percent), of(|o| o.jain), of(|o| o.attempts));
            for (what, value, unit) in
                [("rate reached", percent, "%"), ("Jain", jain, ""), ("attempts a grant", attempts, "")]
            {
                findings.figures.push(Figure::new(format!("{who}, {way}: {what}"), value, unit));
            }
            if way == QUEUED {
                let off = [(percent - 100.0).abs(), (1.0 - jain) * 1000.0, attempts];
                let bounds = [0.5, 1.0, 1.1].map(Bound::AtMost);
                for ((name, measured), bound) in names.into_iter().zip(off).zip(bounds) {
                    findings.targets.push(Target { name, measured, bound, required: true });
                }
            }
        }
    }
    findings
}

/// Makes calls one after the other for that time, and returns how many there were.
#[cfg(unix)] // by the parties
pub fn call_for(limiter: &Limiter, length: std::time::Duration) -> u64 {
    let (tries, end) = (AtomicU64::new(0), clock() + length.as_nanos() as u64);
    let mut calls = 0;
    while clock() < end {
        call(limiter, true, &tries);
        calls += 1;
    }
    calls
}
