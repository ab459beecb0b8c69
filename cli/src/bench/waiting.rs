//! Measures eight processes that wait for one budget: how much of it they use, how fairly they share it, and their
//! wake-ups.

use super::load::start_together;
use super::measure::{Bound, open};
use super::report::Row;
use super::{BenchDirectory, Effort, no_workers};
use crate::ui::failure::{Failure, REFUSED};
use crate::ui::limiter::refusal::{self, Needs};
use crate::ui::output;
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_segment::sys::baselines::clock;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const NAME: &str = "waited-for";
const RATE: u64 = 1000;
const CALLERS: usize = 8;
/// After this time in nanoseconds the burst is used up and all callers are in the queue.
const WARM_UP: u64 = 300_000_000;

pub fn measure(effort: Effort, bench: &BenchDirectory) -> Result<Vec<Row>, Failure> {
    let rule =
        RuleDraft { burst: Some(RATE / 10), ..RuleDraft::new(Algorithm::Gcra, RATE, Duration::from_secs(1)) };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    let _limiter = open(bench.directory(), NAME, policy.map_err(shmlimit::Error::from)?)?;
    let caller = |_| {
        let mut command = bench.worker("caller");
        command.arg(bench.directory()).arg(effort.waiting.as_nanos().to_string());
        command
    };
    let output = start_together((0..CALLERS).map(caller)).map_err(no_workers)?;
    let numbers = |line: &String| line.split(' ').filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
    let counts: Vec<Vec<f64>> = output.iter().map(numbers).filter(|numbers| numbers.len() == 3).collect();
    let sum = |column: usize| counts.iter().map(|numbers| numbers[column]).sum::<f64>();
    let squares: f64 = counts.iter().map(|numbers| numbers[0] * numbers[0]).sum();
    let reached = 100.0 * sum(0) / (RATE as f64 * effort.waiting.as_secs_f64());
    let jain = sum(0) * sum(0) / (counts.len() as f64 * squares);
    Ok(vec![
        Row::new("rate_reached", "part of the rate that is used", reached, "%"),
        Row::new("rate_off", "off the rate", (reached - 100.0).abs(), "%").bounded(Bound::AtMost(0.5)),
        Row::new("jain", "fair shares (Jain's index)", jain, "").bounded(Bound::AtLeast(0.999)),
        Row::new("looks", "wake-ups for each grant", sum(2) / sum(1), "").bounded(Bound::AtMost(1.1)),
    ])
}

/// Runs a caller: it calls as fast as it may, and counts the calls in a window that begins after the start signal.
pub fn work(words: &[String]) -> Result<ExitCode, Failure> {
    let [directory, length] = words else { return Err(misused()) };
    let length: u64 = length.parse().map_err(|_| misused())?;
    let limiter =
        Limiter::builder(NAME).directory(Path::new(directory)).ignore_environment().open_existing()?;
    output::line("ready")?;
    if io::stdin().read_line(&mut String::new())? == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let from = clock() + WARM_UP;
    let (mut counted, mut granted) = (0, 0);
    loop {
        let grant = limiter
            .acquire(&Request::new())
            .map_err(|error| refusal::failure(&limiter, error, Needs::ONE_CALL, REFUSED))?;
        grant.release()?;
        granted += 1;
        let now = clock();
        if now >= from + length {
            break;
        }
        counted += u64::from(now >= from);
    }
    let snapshot = limiter.snapshot()?;
    let mine = snapshot.participants.iter().find(|process| process.pid == std::process::id());
    output::line(&format!("{counted} {granted} {}", mine.map_or(0, |mine| mine.looked)))?;
    Ok(ExitCode::SUCCESS)
}

fn misused() -> Failure {
    Failure::Usage("--act-as is for the tool's own processes".to_owned())
}
