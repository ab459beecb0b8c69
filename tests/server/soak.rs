//! A long run (R124): several real processes with mixed traffic, failures, forced states, changed settings, kills and
//! restarts. Memory, descriptors, threads and files do not grow, and calls are still granted.
//!
//! The run takes a few seconds here; `scripts/proofs/soak` runs it for any length of time.

use crate::util::crash::builder;
use crate::util::crash::child_process::ChildProcess;
use crate::util::server::Server;
use crate::util::server::client::start;
use crate::util::{directory, wait_until};
use nix::sys::signal::Signal;
use shmlimit::{Algorithm, BreakerCommand, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_kernel::policy::{Backoff, Breaker, BreakerKind, PerSecond};
use std::path::Path;
use std::time::{Duration, Instant};

/// Clients that live until the end and are measured.
const LASTING: usize = 4;
/// Clients that are killed and started again.
const KILLABLE: usize = 2;
/// How long a client works before it reports, in milliseconds.
const ROUND: u64 = 250;
/// How much an allocator may keep without a leak, in kilobytes.
const SLACK_KB: u64 = 1024;

fn policy(rate: u64, concurrency: u64) -> Policy {
    let rules = [
        RuleDraft::new(Algorithm::TokenBucket, rate, Duration::from_secs(1)),
        RuleDraft::new(Algorithm::Gcra, 40 * rate, Duration::from_secs(60)),
    ];
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.sleep_min, breaker.sleep_max) = (Duration::from_millis(50), Duration::from_millis(200));
    breaker.probe_rate = PerSecond::whole(rate);
    let mut backoff = Backoff::default();
    backoff.min_sleep = Duration::from_millis(20);
    let draft =
        PolicyDraft { concurrency: Some(concurrency), rules: &rules, breaker, backoff, ..Default::default() };
    Policy::new(&draft).unwrap()
}

/// The system resources that a process uses.
#[derive(Clone, Copy, Debug)]
struct Use {
    resident_kb: u64,
    descriptors: usize,
    threads: u64,
}

impl Use {
    fn of(child_process: &ChildProcess) -> Use {
        let proc = Path::new("/proc").join(child_process.pid.to_string());
        let status = std::fs::read_to_string(proc.join("status")).unwrap();
        let number = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Use {
            resident_kb: number("VmRSS:"),
            descriptors: std::fs::read_dir(proc.join("fd")).unwrap().count(),
            threads: number("Threads:"),
        }
    }
}

/// The bytes of all files in a directory, logs included.
fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// One round: all clients work, some are killed meanwhile, an operator interferes. Returns the number of granted
/// calls.
fn round(
    n: u64,
    directory: &Path,
    server: &Server,
    limiter: &Limiter,
    clients: &mut Vec<ChildProcess>,
) -> u64 {
    for (i, client) in clients.iter_mut().enumerate() {
        client.send(&format!("mix {ROUND} {}", n * 100 + i as u64));
    }
    match n % 8 {
        1 => drop(limiter.force(BreakerCommand::CacheOnly).unwrap()),
        2 | 6 => drop(limiter.force(BreakerCommand::Normal).unwrap()),
        3 => limiter.set_policy(&policy(300, 2)).unwrap(),
        4 => limiter.set_policy(&policy(500, 4)).unwrap(),
        5 => drop(limiter.force(BreakerCommand::Offline).unwrap()),
        7 => drop(limiter.force(BreakerCommand::ClearGate).unwrap()),
        _ => {}
    }
    if n.is_multiple_of(3) {
        let dead = clients.remove(LASTING);
        std::thread::sleep(Duration::from_millis(n % 97));
        dead.signal(Signal::SIGKILL);
        drop(dead);
    }
    let granted = |client: &mut ChildProcess| -> u64 {
        let said = client.receive();
        said.split(' ').next().and_then(|granted| granted.parse().ok()).expect(&said)
    };
    let granted = clients.iter_mut().map(granted).sum();
    while clients.len() < LASTING + KILLABLE {
        clients.push(start(directory, server));
    }
    granted
}

#[test]
fn r124_nothing_grows_and_calls_go_on() {
    let seconds = std::env::var("SHMLIMIT_SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let (length, directory, server) = (Duration::from_secs(seconds), directory(), Server::start());
    let limiter = builder(directory.path()).policy(policy(500, 4)).create().unwrap();
    let mut clients: Vec<ChildProcess> =
        (0..LASTING + KILLABLE).map(|_| start(directory.path(), &server)).collect();
    let started = Instant::now();
    let (mut rounds, mut calls, mut reported) = (0, 0, Duration::ZERO);
    let mut first = None;
    println!("soak  seconds  rounds    calls  resident kB  descriptors  threads  file bytes  state");
    while started.elapsed() < length || rounds < 16 {
        // Eight rounds run through everything that an operator does; in one of the eight no call is granted.
        let before = calls;
        for _ in 0..8 {
            calls += round(rounds, directory.path(), &server, &limiter, &mut clients);
            rounds += 1;
        }
        assert!(calls > before, "no call was granted in eight rounds");
        let uses: Vec<Use> = clients[..LASTING].iter().map(Use::of).collect();
        let bytes = size_of(directory.path());
        // The sizes after the first eight rounds, or after a tenth of the time, are the baseline. Nothing may grow
        // after that.
        if started.elapsed() < length / 10 || first.is_none() {
            first = Some((uses.clone(), bytes));
        }
        if started.elapsed() >= reported {
            let most = |number: fn(&Use) -> u64| uses.iter().map(number).max().unwrap();
            let condition = limiter.snapshot().unwrap().condition;
            println!(
                "soak  {:7.0}  {rounds:6}  {calls:7}  {:11}  {:11}  {:7}  {bytes:10}  {}",
                started.elapsed().as_secs_f64(),
                most(|one| one.resident_kb),
                most(|one| one.descriptors as u64),
                most(|one| one.threads),
                condition.state_name
            );
            reported = started.elapsed() + length / 20;
        }
        let (then, bytes_then) = first.as_ref().unwrap();
        for (now, then) in uses.iter().zip(then) {
            assert!(now.resident_kb <= then.resident_kb + SLACK_KB, "{then:?} became {now:?}");
            assert_eq!(
                (now.descriptors, now.threads),
                (then.descriptors, then.threads),
                "after {rounds} rounds"
            );
        }
        assert_eq!(bytes, *bytes_then, "files grow");
        assert_eq!(limiter.snapshot().unwrap().resets, 0, "a state was reset");
    }
    drop(clients);
    limiter.force(BreakerCommand::Normal).unwrap();
    limiter.force(BreakerCommand::ClearGate).unwrap();
    wait_until("all permits are back and no call waits", || {
        let _ = limiter.acquire(&Request::new().timeout(Duration::from_millis(50)));
        let now = limiter.snapshot().unwrap();
        (now.in_flight, now.queue.len(), now.participants.len()) == (0, 0, 1)
    });
    let outcomes = limiter.snapshot().unwrap().condition.outcomes;
    assert!(outcomes.ok > 0 && outcomes.throttled > 0 && outcomes.server > 0 && outcomes.net > 0);
}
