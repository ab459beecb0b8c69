//! Measures the cost of waiting: processor time of sleepers whose turn does not come.

use crate::common::{Bound, Target, clock, directory, limiter};
use crate::workers::{self, Worker};
use crate::{Effort, Figure, Findings};
use shmlimit::{Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use std::path::Path;
use std::time::Duration;

/// The reason why the sleepers wait.
#[derive(Clone, Copy)]
enum Want {
    /// The rate. The next call is an hour away, and every waiter knows the time.
    Rate,
    /// A permit. No waiter knows when it is released.
    Permit,
}

impl Want {
    fn policy(self) -> Policy {
        let rule = [RuleDraft::new(Algorithm::Gcra, 1, Duration::from_secs(3600))];
        let draft = match self {
            Want::Rate => PolicyDraft { rules: &rule, ..PolicyDraft::default() },
            Want::Permit => PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() },
        };
        Policy::new(&draft).expect("a valid policy")
    }
}

/// A worker: starts that many threads, which wait forever.
pub fn work(directory: &str, threads: &str) {
    let limiter = Limiter::builder("api").directory(Path::new(directory)).open_existing().expect("a limiter");
    for _ in 0..threads.parse().expect("threads") {
        let limiter = limiter.clone();
        let wait = move || drop(limiter.acquire(&Request::new()));
        std::thread::Builder::new().stack_size(64 * 1024).spawn(wait).expect("a thread");
    }
    workers::ready();
}

/// The processor time of all threads of a process, in nanoseconds.
fn processor_time(id: u32) -> u64 {
    let of = |task: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    std::fs::read_dir(format!("/proc/{id}/task")).expect("a process").filter_map(of).sum()
}

/// Milliseconds of processor time per second that `processes` with `threads` each use, and how many threads were in
/// the queue.
fn cost(want: Want, processes: usize, threads: usize, length: Duration) -> (f64, usize) {
    let directory = directory();
    let limiter = limiter(directory.path(), "api", want.policy());
    let held = limiter.try_acquire(&Request::new()).expect("the first");
    let path = directory.path().to_str().expect("a path that is text");
    let start = |_| Worker::start(&["sleeper", path, &threads.to_string()]);
    let mut workers: Vec<Worker> = (0..processes).map(start).collect();
    for worker in &mut workers {
        worker.receive();
    }
    let waiting = || limiter.snapshot().expect("a snapshot").queue.len();
    let timeout = clock() + 20_000_000_000;
    while waiting() < processes * threads && clock() < timeout {
        std::thread::sleep(Duration::from_millis(20));
    }
    let spent = || workers.iter().map(|worker| processor_time(worker.id())).sum::<u64>();
    let (began, before) = (clock(), spent());
    std::thread::sleep(length);
    let (after, ended) = (spent(), clock());
    let found = waiting();
    drop((held, workers));
    ((after - before) as f64 / 1e6 / ((ended - began) as f64 / 1e9), found)
}

pub fn measure(effort: Effort) -> Findings {
    let (processes, threads) = if effort.smoke { (3, 5) } else { (500, 1000) };
    let length = Duration::from_secs_f64(effort.seconds);
    let mut findings = Findings::default();
    for (want, what) in [(Want::Rate, "the rate"), (Want::Permit, "a permit")] {
        for (processes, threads) in [(1, threads), (processes, 1)] {
            let (cost, found) = cost(want, processes, threads, length);
            let who =
                format!("{processes} processes of {threads} threads wait for {what} ({found} in the queue)");
            findings.figures.push(Figure::new(who, cost, "ms of CPU a second"));
            if processes == 1 && matches!(want, Want::Rate) {
                findings.targets.push(Target {
                    name: "1000 threads that wait: ms of CPU a second",
                    measured: cost,
                    bound: Bound::AtMost(50.0),
                    required: false,
                });
            }
        }
    }
    findings
}
