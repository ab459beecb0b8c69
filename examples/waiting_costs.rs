//! Measures the cost of waiting on this machine: how long a released permit takes to reach another process, and how
//! late a waiting call wakes, compared with a plain sleep in the same run: `cargo run --release --example
//! waiting_costs`.

use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const HANDOVERS: usize = 500;
/// The polling interval for the state of the other process.
const LOOK: Duration = Duration::from_micros(100);
const ROUNDS: usize = 10;
const WAITS: usize = 20;
const GAP: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args_os().nth(1) {
        Some(directory) => answer(Path::new(&directory)),
        None => measure(),
    }
}

/// Two limiters of one permit each, which two processes pass back and forth.
fn permits(directory: &Path) -> Result<[Limiter; 2], Box<dyn Error>> {
    let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    let open = |name| Limiter::builder(name).directory(directory).policy(policy).open();
    Ok([open("ping")?, open("pong")?])
}

/// The other process: waits for one permit, and then releases the other.
fn answer(directory: &Path) -> Result<(), Box<dyn Error>> {
    let permits = permits(directory)?;
    let mut held = permits[1].acquire(&Request::new())?;
    for turn in 0..HANDOVERS {
        // The other process must take a released permit before this process requests it again.
        while permits[turn % 2].snapshot()?.in_flight == 0 {
            std::thread::sleep(LOOK);
        }
        let got = permits[turn % 2].acquire(&Request::new())?;
        std::mem::replace(&mut held, got).release()?;
    }
    Ok(())
}

fn measure() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let permits = permits(directory.path())?;
    let mut held = permits[0].acquire(&Request::new())?;
    let mut other = Command::new(std::env::current_exe()?).arg(directory.path()).spawn()?;
    let mut passed = Vec::new();
    for turn in 0..HANDOVERS {
        while permits[turn % 2].snapshot()?.queue.is_empty() {
            std::thread::sleep(LOOK);
        }
        let started = Instant::now();
        held.release()?;
        held = permits[(turn + 1) % 2].acquire(&Request::new())?;
        // The time is for both directions.
        passed.push(started.elapsed() / 2);
    }
    other.wait()?;
    tell("hand-over to a process that waits", passed);

    let rule = RuleDraft {
        burst: Some(1),
        ..RuleDraft::new(Algorithm::Gcra, 1, Duration::from_nanos(GAP.as_nanos() as u64))
    };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() })?;
    let timed = Limiter::builder("timed").directory(directory.path()).policy(policy).create()?;
    timed.acquire(&Request::new())?.release()?;
    let (mut waited, mut slept) = (Vec::new(), Vec::new());
    // In turns, so that other load on the machine affects both.
    for _ in 0..ROUNDS {
        timed.acquire(&Request::new())?.release()?;
        for _ in 0..WAITS {
            let last = Instant::now();
            timed.acquire(&Request::new())?.release()?;
            waited.push(last.elapsed().saturating_sub(GAP));
        }
        for _ in 0..WAITS {
            let started = Instant::now();
            std::thread::sleep(GAP);
            slept.push(started.elapsed().saturating_sub(GAP));
        }
    }
    let (waited, slept) = (tell("a waiting call, late by", waited), tell("a plain sleep, late by", slept));
    println!("ratio of the medians: {:.2}", waited.as_secs_f64() / slept.as_secs_f64());
    Ok(())
}

fn tell(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!("{what}: median {:?}, 99 % {:?}, most {:?}", at(0.5), at(0.99), at(1.0));
    at(0.5)
}
