//! A Rust tool, a C program, a C++ program and Python (threads, asyncio, multiprocessing) use one limiter against a
//! real server. Together they never exceed the budget in any window, a 429 to one of them stops all, and their shares
//! are equal.
//!
//! How equal the shares are depends on the machine; `scripts/languages/one-limiter` checks that with longer, repeated
//! runs, and takes the median.

use crate::budget_check::{Budget, SECOND, jain, median, worst};
use crate::programs::{KINDS, METHODS, Program, setting, start};
use crate::util::server::{Answer, Seen, Server, limiter};
use crate::util::{boot_time, wait_until};
use shmlimit::Limiter;
use std::time::Duration;

const BUDGET: Budget = Budget { rate: 60, burst: 5, concurrency: 8 };

fn path(name: &str) -> String {
    format!("/{name}")
}

/// All programs on one limiter.
struct Run {
    directory: tempfile::TempDir,
    limiter: Limiter,
    server: Server,
    programs: Vec<Program>,
}

impl Run {
    fn start(method: &str) -> Run {
        let (directory, limiter) = limiter(BUDGET.policy());
        let server = Server::start();
        let programs =
            KINDS.iter().map(|kind| start(*kind, method, directory.path(), server.port(), "")).collect();
        Run { directory, limiter, server, programs }
    }

    /// Waits until each program has called after `moment`.
    fn all_call_after(&self, moment: u64) {
        for kind in KINDS {
            wait_until(kind.what, || {
                std::thread::sleep(Duration::from_millis(5));
                self.server.seen_at(&path(kind.name)).last().is_some_and(|seen| seen.at > moment)
            });
        }
    }

    /// Waits until all programs have ended with success. Returns what the server saw.
    fn end(mut self) -> Vec<Seen> {
        std::fs::write(self.directory.path().join("stop"), "").unwrap();
        for (kind, program) in KINDS.iter().zip(&mut self.programs) {
            let status = crate::programs::ends(kind, program);
            assert!(status.success(), "{}: {status}", kind.what);
        }
        let now = self.limiter.snapshot().unwrap();
        assert_eq!((now.in_flight, now.queue.len()), (0, 0), "something is left: {now:?}");
        assert_eq!(now.condition.outcomes.net, 0, "calls failed");
        self.server.seen()
    }
}

/// How many calls each party made within `seconds` seconds.
fn shares(method: &str, seconds: u64) -> Vec<f64> {
    let run = Run::start(method);
    run.all_call_after(0);
    // A program that starts late has its first turn before the others. Half a second later all of
    // them wait all the time.
    let begin = boot_time() + SECOND / 2;
    std::thread::sleep(Duration::from_secs(seconds) + Duration::from_millis(600));
    let seen = run.end();
    BUDGET.is_kept(&seen);
    let counted = |seen: &&Seen| seen.at >= begin && seen.at < begin + seconds * SECOND;
    let share = |name: &str| seen.iter().filter(counted).filter(|seen| seen.path == path(name)).count();
    KINDS.iter().map(|kind| share(kind.name) as f64).collect()
}

#[test]
fn r123_programs_in_every_language_keep_to_one_budget_in_equal_shares() {
    let (seconds, repeats) =
        (setting("SHMLIMIT_LANGUAGES_SECONDS", 2), setting("SHMLIMIT_LANGUAGES_REPEATS", 1));
    let runs: Vec<Vec<f64>> =
        METHODS.iter().cycle().take(repeats as usize).map(|method| shares(method, seconds)).collect();
    println!("languages: {} calls/s, {seconds} s, {repeats} times", BUDGET.rate);
    println!("{:<10} {:<42} calls (median, all)", "language", "kind");
    for (i, kind) in KINDS.iter().enumerate() {
        let calls: Vec<f64> = runs.iter().map(|run| run[i]).collect();
        println!("{:<10} {:<42} {} {calls:?}", kind.language, kind.what, median(calls.clone()));
        assert!(calls.iter().all(|calls| *calls > 0.0), "every program has its turn");
    }
    let all = (BUDGET.rate * seconds) as f64;
    let used = median(runs.iter().map(|run| run.iter().sum::<f64>() / all * 100.0));
    let fair = median(runs.iter().map(|run| jain(run)));
    let off = median(runs.iter().map(|run| worst(run)));
    println!("languages: {used:.2} % of the rate used, Jain {fair:.5}, worst share {off:.2} % from equal");
    if setting("SHMLIMIT_LANGUAGES_JUDGE", 0) == 1 {
        // A call is the smallest step of these figures.
        let call = 100.0 / all;
        assert!((used - 100.0).abs() <= 1.0 + call * BUDGET.burst as f64, "{used:.2} % of the rate");
        assert!(fair >= 0.999, "Jain {fair:.5}");
        assert!(off <= 2.0 + call * KINDS.len() as f64, "a share is {off:.2} % off");
    }
}

#[test]
fn r118_a_429_to_a_program_in_any_language_stops_all_programs() {
    let run = Run::start("fork");
    run.all_call_after(0);
    let mut held = Vec::new();
    for kind in KINDS {
        run.server.plan(&path(kind.name), [Answer::retry_after(429, "1")]);
        let mut gate = None;
        wait_until("the gate is closed", || {
            std::thread::sleep(Duration::from_millis(5));
            let now = boot_time();
            gate =
                run.limiter.snapshot().unwrap().condition.gate.map(|gate| {
                    (now - gate.recorded.as_nanos() as u64, now + gate.opens_in.as_nanos() as u64)
                });
            gate.is_some()
        });
        let (closed, opens) = gate.unwrap();
        run.all_call_after(opens);
        held.push((kind, closed, opens));
    }
    let seen = run.end();
    BUDGET.is_kept(&seen);
    println!("{:<10} {:<42} arrived while the gate was closed, the last after", "language", "429 given to");
    for (kind, closed, opens) in held {
        let refused = seen.iter().filter(|seen| seen.status == 429 && seen.path == path(kind.name)).count();
        assert_eq!(refused, 1);
        // Calls that were granted before may still arrive, but no more than may be in flight.
        let within: Vec<&Seen> = seen.iter().filter(|seen| seen.at > closed && seen.at < opens).collect();
        assert!((within.len() as u64) < BUDGET.concurrency, "{} after a 429 to {}", within.len(), kind.what);
        let last = within.last().map_or(0.0, |seen| (seen.at - closed) as f64 / 1e6);
        println!("{:<10} {:<42} {}, {last:.1} ms", kind.language, kind.what, within.len());
        if setting("SHMLIMIT_LANGUAGES_JUDGE", 0) == 1 {
            assert!(last < 250.0, "a call {last:.1} ms after the gate closed");
        }
    }
}
