//! Measures how late a waiting call is: after its wake time, and after a wake-up.

use crate::common::{Bound, Target, clock, directory, limiter, median, quantile};
use crate::workers::{self, Worker};
use crate::{Effort, Figure, Findings};
use nix::libc;
use shmlimit::{AcquireError, Algorithm, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

const SLEEP: Duration = Duration::from_millis(5);

/// A method of sleeping until a time of our clock.
struct Timer {
    name: &'static str,
    /// Nanoseconds of timer slack; `None` leaves it unchanged, usually 50 000.
    slack: Option<u32>,
    sleep: fn(Duration),
}

const TIMERS: [Timer; 4] = [
    Timer { name: "nanosleep", slack: None, sleep: std::thread::sleep },
    Timer { name: "nanosleep, slack 1 ns", slack: Some(1), sleep: std::thread::sleep },
    Timer { name: "futex", slack: None, sleep: futex_sleep },
    Timer { name: "futex, slack 1 ns", slack: Some(1), sleep: futex_sleep },
];

fn futex_sleep(time: Duration) {
    let word = AtomicU32::new(0);
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: `word` and `time` are live for the whole call, and no thread wakes it early.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, &raw const time) };
}

impl Timer {
    fn lateness(&self) -> u64 {
        let due = clock() + SLEEP.as_nanos() as u64;
        let left = Duration::from_nanos(due - clock());
        match self.slack {
            None => (self.sleep)(left),
            Some(slack) => {
                // SAFETY: these operations change one number of this thread; 0 restores the default.
                let set = |slack: u32| unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
                set(slack);
                (self.sleep)(left);
                set(0);
            }
        }
        clock().saturating_sub(due)
    }
}

/// How long after the time at which the rate allows it a call is granted, in nanoseconds.
fn lateness_at_wake_time(limiter: &Limiter) -> Option<u64> {
    let before = clock();
    let Err(AcquireError::Refused(refusal)) = limiter.try_acquire(&Request::new()) else { return None };
    let due = before + refusal.retry_after()?.as_nanos() as u64;
    limiter.acquire(&Request::new()).ok()?.release().ok()?;
    Some(clock().saturating_sub(due))
}

/// A worker. For each `acquire` it waits for the permit and prints when it was granted. For each `byte` it waits
/// for a line and prints when it arrived.
pub fn work(directory: &str) {
    let limiter =
        Limiter::builder("permit").directory(Path::new(directory)).open_existing().expect("a limiter");
    let mut command = workers::ready();
    while command == "acquire" || command == "byte" {
        let at = if command == "acquire" {
            let grant = limiter.acquire(&Request::new()).expect("a grant");
            let at = clock();
            grant.release().expect("given back");
            at
        } else {
            println!("listening");
            workers::receive();
            clock()
        };
        println!("{at}");
        command = workers::receive();
    }
}

/// The times from a release here to the grant in the worker, and from writing a byte here to reading it in the
/// worker.
fn wakes(rounds: usize) -> [Vec<f64>; 2] {
    let directory = directory();
    let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() });
    let limiter = limiter(directory.path(), "permit", policy.expect("a valid policy"));
    let mut worker = Worker::start(&["rung", directory.path().to_str().expect("a path that is text")]);
    worker.receive();
    let asleep = Duration::from_millis(1);
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let grant = limiter.acquire(&Request::new()).expect("a grant");
        worker.send("acquire");
        while limiter.snapshot().expect("a snapshot").queue.is_empty() {
            std::thread::yield_now();
        }
        std::thread::sleep(asleep);
        let released = clock();
        grant.release().expect("given back");
        found[0].push(worker.receive_numbers()[0] - released as f64);
        worker.send("byte");
        worker.receive();
        std::thread::sleep(asleep);
        let written = clock();
        worker.send("");
        found[1].push(worker.receive_numbers()[0] - written as f64);
    }
    worker.send("end");
    found
}

pub fn measure(effort: Effort) -> Findings {
    let rounds = if effort.smoke { 3 } else { 60 * effort.repeats };
    let directory = directory();
    let rule = RuleDraft {
        burst: Some(1),
        ..RuleDraft::new(Algorithm::Gcra, 1, Duration::from_nanos(SLEEP.as_nanos() as u64))
    };
    let policy = Policy::new(&PolicyDraft { rules: &[rule], ..PolicyDraft::default() });
    let limiter = limiter(directory.path(), "rate", policy.expect("a valid policy"));
    let mut late = [const { Vec::new() }; TIMERS.len() + 1];
    for _ in 0..rounds {
        for (timer, late) in TIMERS.iter().zip(&mut late) {
            late.push(timer.lateness() as f64);
        }
        // The timers took so long that a call is possible again: one call uses it up, the next one waits.
        drop(limiter.try_acquire(&Request::new()));
        late[TIMERS.len()].extend(lateness_at_wake_time(&limiter).map(|late| late as f64));
    }
    let [woken, byte] = wakes(rounds);
    let ratio = |ours: &[f64], theirs: &[f64]| median(ours) / median(theirs).max(1.0);
    let goal = |name, measured| Target { name, measured, bound: Bound::AtMost(1.5), required: false };
    let mut findings = Findings {
        targets: vec![
            goal(
                "late: acquire / futex with slack 1 ns",
                ratio(&late[TIMERS.len()], &late[TIMERS.len() - 1]),
            ),
            goal("release to grant / a byte through a pipe", ratio(&woken, &byte)),
        ],
        ..Findings::default()
    };
    let names = TIMERS.iter().map(|timer| timer.name).chain(["acquire at its appointment"]);
    let lines = names.zip(late).map(|(name, late)| (format!("{name}: late"), late)).chain([
        ("release in one process to grant in another".to_owned(), woken),
        ("a byte through a pipe to another process".to_owned(), byte),
    ]);
    for (name, values) in lines {
        for (part, label) in [(0.5, "p50"), (0.99, "p99")] {
            let microseconds = quantile(&values, part) / 1e3;
            findings.figures.push(Figure::new(format!("{name}, {label}"), microseconds, "us"));
        }
    }
    findings
}
