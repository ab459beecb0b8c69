//! How well programs wait together: rate reached, fairness, wake-ups per grant, beside sleep-and-retry in the same run.
//!
//! `cargo bench --bench waiting`. Workers are this very program, started again.

use shmlimit::{AcquireError, Algorithm, Limiter, Nanos, Policy, PolicyDraft, Request, RuleDraft};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const THREADS: [usize; 8] = [1, 1, 1, 1, 16, 16, 16, 16];

fn worker(dir: &str, threads: usize, seconds: f64, queued: bool) {
    let limiter = Limiter::builder("api").directory(dir).open_existing().unwrap();
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let counted = AtomicU64::new(0);
    let tries = AtomicU64::new(0);
    let start = Instant::now();
    let from = start + Duration::from_secs_f64(0.5);
    let end = from + Duration::from_secs_f64(seconds);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    if queued {
                        limiter.acquire(&Request::new()).unwrap().release().unwrap();
                    } else {
                        loop {
                            tries.fetch_add(1, Ordering::Relaxed);
                            match limiter.try_acquire(&Request::new()) {
                                Ok(grant) => break grant.release().unwrap(),
                                Err(AcquireError::Refused(refusal)) => {
                                    std::thread::sleep(refusal.retry_after().unwrap_or_default())
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                    let now = Instant::now();
                    if now >= end {
                        break;
                    }
                    if now >= from {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let me = std::process::id();
    let snapshot = limiter.snapshot().unwrap();
    let mine = snapshot.participants.iter().find(|p| p.pid == me).unwrap();
    let tries = if queued { mine.looked } else { tries.into_inner() };
    println!("{} {} {}", counted.into_inner(), mine.granted, tries);
}

fn run(rate: u64, burst: u64, threads: &[usize], seconds: f64, queued: bool) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let rule = RuleDraft { burst: Some(burst), ..RuleDraft::new(Algorithm::Gcra, rate, Nanos::from_secs(1)) };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() }).unwrap();
    let limiter = Limiter::builder("api").directory(dir.path()).policy(policy).open().unwrap();
    let mut workers: Vec<(Child, BufReader<_>)> = threads
        .iter()
        .map(|threads| {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--worker", dir.path().to_str().unwrap(), &threads.to_string(), &seconds.to_string()])
                .arg(if queued { "queue" } else { "retry" })
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let out = BufReader::new(child.stdout.take().unwrap());
            (child, out)
        })
        .collect();
    let mut line = String::new();
    for (_, out) in &mut workers {
        out.read_line(&mut line).unwrap();
    }
    for (child, _) in &mut workers {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let (mut counts, mut granted, mut looked) = (Vec::new(), 0.0, 0.0);
    for (child, out) in &mut workers {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let n: Vec<f64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        counts.push(n[0]);
        granted += n[1];
        looked += n[2];
        child.wait().unwrap();
    }
    let sum: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|n| n * n).sum();
    println!(
        "{} {rate}/s burst {burst} {threads:?}: {:.2} % of the rate, Jain {:.5}, {:.3} looks a grant, {counts:?}",
        if queued { "queue" } else { "retry" },
        100.0 * sum / (rate as f64 * seconds),
        sum * sum / (counts.len() as f64 * squares),
        looked / granted
    );
    drop(limiter);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "--worker") {
        return worker(&args[2], args[3].parse().unwrap(), args[4].parse().unwrap(), args[5] == "queue");
    }
    let _ = Path::new("");
    for queued in [true, false] {
        run(1000, 100, &THREADS, 4.0, queued);
        run(1000, 100, &[1; 8], 4.0, queued);
    }
    run(100, 1, &THREADS, 4.0, true);
    run(1000, 100, &[16], 4.0, true);
}
