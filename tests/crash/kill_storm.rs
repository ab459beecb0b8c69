//! P1 and P2 in a storm: many processes on one limiter, killed, stopped and started again at random.
//!
//! Each worker writes every grant into its own log before it uses it, with the clock read before and after the call.
//! The check does not use the limiter's counts: according to the logs alone, no window may hold more grants than its
//! rules allow.

use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::image::{self, Image};
use crate::util::crash::ptrace::{Step, Tracee};
use crate::util::crash::storm::{self, Entry, Rule};
use crate::util::crash::{CONCURRENCY, NAME, WATCHDOG};
use crate::util::{Random, boot_time, directory, poll, queued, wait_until};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use shmlimit::{AcquireError, BreakerCommand, Error, Grant, Limiter, Outcome, Priority, Reason, Request};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use shmlimit_segment::AttachOptions;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::task::Poll;
use std::time::{Duration, Instant};

const WORKERS: usize = 8;
/// Shorter than the usual second, so that tests need not wait for it.
const LOCK_BOUND: Duration = Duration::from_millis(100);
/// Rates that the workers use up, with bursts so small that a few calls too many are noticed.
const BUCKET: Rule = Rule { limit: 1200, burst: 12, period: 1_000_000_000 };
const GCRA: Rule = Rule { limit: 1000, burst: 20, period: 1_000_000_000 };
/// The kills per second that the processes must survive: fewer would not make a storm.
const KILLS_A_SECOND: u64 = 2;

/// The test that serves as the entry point of worker processes.
const CHILD_PROCESS: &str = concat!(module_path!(), "::child_process");

/// The entry point of the storm's workers; checks nothing by itself.
#[test]
fn child_process() {
    let Some((role, directory)) = child_process::role() else { return };
    match role.as_str() {
        "worker" => {
            let path = directory.join(format!("log-{}", std::process::id()));
            let log = OpenOptions::new().append(true).create_new(true).open(path).unwrap();
            work(&open(&directory), log);
        }
        "holder" => {
            let limiter = open(&directory);
            let mut all: Vec<_> =
                (0..CONCURRENCY).map(|_| limiter.try_acquire(&Request::new()).unwrap()).collect();
            ready();
            mark();
            all.pop().unwrap().release().unwrap();
            mark();
            child_process::receive();
        }
        "permit holder" => {
            let limiter = open(&directory);
            let all: Vec<_> =
                (0..CONCURRENCY).map(|_| limiter.try_acquire(&Request::new()).unwrap()).collect();
            ready();
            drop(all);
            child_process::send("released");
            child_process::receive();
        }
        "asker" => request(&open(&directory)),
        other => panic!("no such role: {other}"),
    }
}

/// Makes a call when told to, and reports the result.
fn request(limiter: &Limiter) {
    ready();
    let timeout = Request::new().timeout(Duration::from_millis(50));
    loop {
        let answer = match child_process::receive().as_str() {
            "try" => limiter.try_acquire(&Request::new()),
            _ => limiter.acquire(&timeout),
        };
        let said = match answer {
            Ok(grant) => {
                // Return the permit before reporting: the next caller asks right after the report.
                drop(grant);
                "granted".to_owned()
            }
            Err(AcquireError::Refused(refusal)) => refusal.reason().as_str().to_owned(),
            Err(AcquireError::Failed(error)) => match *error {
                Error::Busy { pid, .. } => format!("busy {pid}"),
                error => error.to_string(),
            },
        };
        child_process::send(&said);
    }
}

fn open(directory: &Path) -> Limiter {
    let rules = [BUCKET.draft(shmlimit::Algorithm::TokenBucket), GCRA.draft(shmlimit::Algorithm::Gcra)];
    // A worker may force half the rate and half the permits, and the normal ones again. Each state lasts long enough
    // that the whole rate is used up. There are no probes: a stopped probe is written off in time, and then more
    // permits are held than exist.
    let mut breaker = Breaker::of(BreakerKind::Fsm);
    (breaker.p_throttle, breaker.p_sleep) = (1_000_000, 1_000_000);
    breaker.s_recover = 1_000_000;
    let policy = shmlimit::Policy::new(&shmlimit::PolicyDraft {
        provider: "storm",
        concurrency: Some(CONCURRENCY),
        background_share: 10,
        rules: &rules,
        breaker,
        ..Default::default()
    });
    // Logs are in another directory: the limiter's directory holds limiters.
    let bounds = AttachOptions { lock: LOCK_BOUND, stall: LOCK_BOUND, ..AttachOptions::default() };
    let builder = Limiter::builder(NAME).directory(directory.join("limiters")).bounds(bounds);
    let builder = builder.policy(policy.unwrap());
    loop {
        match builder.clone().open() {
            Ok(limiter) => return limiter,
            Err(error) => expect_busy_at_worst(Err(error.into())),
        }
    }
}

fn work(limiter: &Limiter, mut log: File) {
    let mut random = Random(u64::from(std::process::id()));
    loop {
        let before = boot_time();
        match wait_somehow(limiter, &mut random) {
            Ok(grant) => {
                let after = boot_time();
                log.write_all(&Entry::Granted { before, after }.to_bytes()).unwrap();
                if random.below(4) == 0 {
                    std::thread::sleep(Duration::from_micros(random.below(300)));
                }
                let cancel = random.below(3) == 0;
                log.write_all(&Entry::Ending { at: boot_time(), cancel }.to_bytes()).unwrap();
                let ended = match random.below(4) {
                    _ if cancel => grant.cancel(),
                    0 => grant.record(&Outcome::http(503, &[]).latency(Duration::from_millis(1))).map(drop),
                    1 => grant.record(&Outcome::http(200, &[])).map(drop),
                    _ => grant.release(),
                };
                expect_busy_at_worst(ended.map_err(AcquireError::from));
                if random.below(256) == 0 {
                    let force = [BreakerCommand::Throttle, BreakerCommand::Normal, BreakerCommand::ClearGate]
                        [random.below(3) as usize];
                    expect_busy_at_worst(limiter.force(force).map(drop).map_err(AcquireError::from));
                }
            }
            Err(error) => expect_busy_at_worst(Err(error)),
        }
    }
}

/// A call of any priority: with a timeout, without one, or entering the queue and leaving it early.
fn wait_somehow<'l>(limiter: &'l Limiter, random: &mut Random) -> Result<Grant<'l>, AcquireError> {
    let request = Request::new().priority(Priority::ALL[random.below(3) as usize]);
    let waiting_request = request.clone().timeout(Duration::from_millis(50));
    match random.below(8) {
        0 => limiter.acquire(&request),
        1 => limiter.acquire(&request.clone().timeout(Duration::from_micros(random.below(2000)))),
        2 => {
            let awake = Cell::new(false);
            let mut call = queued(limiter, &waiting_request, &awake);
            match poll(&mut call) {
                Poll::Ready(answer) => answer,
                Poll::Pending => {
                    std::thread::yield_now();
                    drop(call);
                    limiter.try_acquire(&request)
                }
            }
        }
        _ => limiter.acquire(&waiting_request),
    }
}

/// Fails on errors other than those that a stopped lock holder may cause.
fn expect_busy_at_worst(result: Result<(), AcquireError>) {
    match result {
        Ok(()) | Err(AcquireError::Refused(_)) => {}
        Err(AcquireError::Failed(error)) if matches!(*error, Error::Busy { .. }) => {}
        Err(error) => panic!("a worker failed: {error}"),
    }
}

/// The controller's actions, with times of the clock that the logs use.
#[derive(Default)]
struct Faults {
    kills: Vec<u64>,
    /// The spans from stopping to continuing.
    stops: Vec<(u64, u64)>,
}

fn kill_at_random(directory: &Path, duration: Duration, random: &mut Random) -> Faults {
    let start = || ChildProcess::launch(CHILD_PROCESS, "worker", directory);
    let mut workers: Vec<ChildProcess> = (0..WORKERS).map(|_| start()).collect();
    let mut stopped: Vec<(usize, u64)> = Vec::new();
    let mut faults = Faults::default();
    let (mut grants, mut progress) = (0, Instant::now());
    let started = Instant::now();
    while started.elapsed() < duration {
        // This sleep sets the pace of the storm; it synchronises nothing.
        std::thread::sleep(Duration::from_micros(1000 + random.below(30_000)));
        assert!(!workers.iter_mut().any(ChildProcess::has_ended), "a worker failed, see above");
        let victim = random.below(WORKERS as u64) as usize;
        match random.below(3) {
            // Never stop all at once: a stopped worker may keep a permit, and then no worker could go on.
            0 if stopped.len() < 3 && stopped.iter().all(|(i, _)| *i != victim) => {
                stopped.push((victim, boot_time()));
                workers[victim].signal(Signal::SIGSTOP);
            }
            0 | 1 => {
                // Continue the longest stopped worker first: if it holds the lock, no other worker is granted until
                // then.
                if !stopped.is_empty() {
                    let (i, since) = stopped.remove(0);
                    workers[i].signal(Signal::SIGCONT);
                    faults.stops.push((since, boot_time()));
                }
            }
            _ => {
                faults.kills.push(boot_time());
                workers[victim].kill();
                if let Some(at) = stopped.iter().position(|(i, _)| *i == victim) {
                    faults.stops.push((stopped.remove(at).1, boot_time()));
                }
                workers[victim] = start();
            }
        }
        let now = storm::bytes_in_logs(directory);
        if now > grants {
            (grants, progress) = (now, Instant::now());
        }
        // Three stopped permit holders leave one permit; a lock holder that is stopped continues within a few rounds.
        assert!(progress.elapsed() < Duration::from_secs(5), "no call was granted for five seconds");
    }
    // After the storm all remaining workers go on.
    stopped.iter().for_each(|(i, _)| workers[*i].signal(Signal::SIGCONT));
    for worker in &mut workers {
        let grants = || storm::bytes_in_log(directory, worker.pid.as_raw());
        let before = grants();
        wait_until("a worker goes on after the storm", || grants() > before + 240);
    }
    faults
}

#[test]
fn p1_p2_in_a_storm_no_limit_is_exceeded_no_permit_lost_and_no_process_stalls() {
    let seconds = std::env::var("SHMLIMIT_STORM_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(6);
    let seed =
        std::env::var("SHMLIMIT_STORM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(boot_time);
    println!("seed {seed} (SHMLIMIT_STORM_SEED), {seconds} s, {WORKERS} workers");
    let directory = directory();
    drop(open(directory.path()));
    let faults = kill_at_random(directory.path(), Duration::from_secs(seconds), &mut Random(seed));
    // All workers are dead now. A newcomer can acquire all permits, and must reclaim their holders for that.
    let limiter = open(directory.path());
    // The workers may have left the limiter throttled, or with the gate closed.
    for force in [BreakerCommand::Normal, BreakerCommand::ClearGate] {
        limiter.force(force).expect("forced");
    }
    let waiting_request = Request::new().timeout(WATCHDOG);
    let all: Vec<_> =
        (0..CONCURRENCY).map(|_| limiter.acquire(&waiting_request).expect("a permit comes back")).collect();
    match limiter.try_acquire(&Request::new()) {
        Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
        other => panic!("one permit too many: {other:?}"),
    }
    drop(all);
    wait_until("no permit is out", || limiter.snapshot().unwrap().in_flight == 0);
    let limiters = directory.path().join("limiters");
    wait_until("the queue is empty", || {
        drop(limiter.try_acquire(&Request::new()));
        let now = Image::of(&limiters);
        (now.waiting(), now.taken().len()) == (0, 0)
    });
    assert_eq!(limiter.snapshot().unwrap().resets, 0, "no state was reset");

    let logs: Vec<Vec<Entry>> = storm::logs(directory.path());
    let calls = storm::calls(&logs);
    println!(
        "{} processes, {} grants ({} taken back), {} kills, {} stops",
        logs.len(),
        calls.len(),
        calls.iter().filter(|call| call.cancelled).count(),
        faults.kills.len(),
        faults.stops.len()
    );
    assert!(faults.kills.len() as u64 >= KILLS_A_SECOND * seconds, "hardly a storm");
    for rule in [BUCKET, GCRA] {
        let (excess, window) = rule.worst_window(&calls);
        println!("worst window of {}/s + {}: {window}", rule.limit, rule.burst);
        assert!(!excess, "more grants than the rule allows: {window}");
    }
    let most = storm::most_at_once(&calls);
    println!("at most {most} permits were provably out at once");
    assert!(most as u64 <= CONCURRENCY);
    storm::report_stalls(&calls, &faults.kills, &faults.stops);
}

/// Starts a process and stops it inside the critical section.
fn stopped_in_the_lock(directory: &Path) -> Tracee {
    let mut holder = Tracee::start(CHILD_PROCESS, "holder", directory);
    let file = image::open(&directory.join("limiters"));
    let mut now = Image::blank();
    now.take(&file);
    let slot = now.slot_of(holder.child_process.pid.as_raw() as u32).unwrap();
    while now.lock_owner() != Some(slot) {
        assert_eq!(holder.step(), Step::Inside, "the operation never took the lock");
        now.take(&file);
    }
    holder
}

fn tell(callers: &mut [ChildProcess], how: &str) -> Vec<String> {
    callers.iter_mut().for_each(|asker| asker.send(how));
    callers.iter_mut().map(ChildProcess::receive).collect()
}

fn callers(directory: &Path) -> Vec<ChildProcess> {
    drop(open(directory));
    let mut callers: Vec<ChildProcess> =
        (0..3).map(|_| ChildProcess::start(CHILD_PROCESS, "asker", directory)).collect();
    callers.iter_mut().for_each(|asker| asker.send("go"));
    callers
}

#[test]
fn p2_a_stopped_lock_holder_makes_others_busy_until_it_continues() {
    let directory = directory();
    let mut callers = callers(directory.path());
    let mut holder = stopped_in_the_lock(directory.path());
    let busy = format!("busy {}", holder.child_process.pid);
    // By the lock bound, and by a deadline before it.
    for how in ["try", "wait", "try"] {
        assert_eq!(
            tell(&mut callers, how),
            [&*busy; 3],
            "{how}: a living holder is named, and keeps the lock"
        );
    }
    holder.run_to_mark();
    for asker in &mut callers {
        asker.send("try");
        assert_eq!(asker.receive(), "granted");
    }
}

#[test]
fn p2_a_lock_holder_killed_while_stopped_is_taken_over_at_once() {
    let directory = directory();
    let mut callers = callers(directory.path());
    let holder = stopped_in_the_lock(directory.path());
    assert_eq!(tell(&mut callers[..1], "try"), [format!("busy {}", holder.child_process.pid)]);
    holder.kill();
    for asker in &mut callers {
        asker.send("try");
        assert_eq!(
            asker.receive(),
            "granted",
            "within the lock bound: no other process holds the lock or a permit"
        );
    }
}

#[test]
fn p2_a_stopped_permit_holder_keeps_its_permits_until_it_continues() {
    let directory = directory();
    let mut callers = callers(directory.path());
    let mut holder = ChildProcess::start(CHILD_PROCESS, "permit holder", directory.path());
    holder.signal(Signal::SIGSTOP);
    let status = waitpid(holder.pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(status, WaitStatus::Stopped(..)));
    for how in ["try", "wait", "try"] {
        assert_eq!(
            tell(&mut callers, how),
            ["concurrency"; 3],
            "{how}: nothing is taken over from a living process"
        );
    }
    let image = Image::of(&directory.path().join("limiters"));
    assert_eq!(u64::from(image.held(image.slot_of(holder.pid.as_raw() as u32).unwrap())), CONCURRENCY);
    holder.signal(Signal::SIGCONT);
    holder.send("go");
    assert_eq!(holder.receive(), "released");
    assert_eq!(tell(&mut callers, "try"), ["granted"; 3]);
}

#[test]
fn the_window_check_notices_one_grant_too_many() {
    let rule = Rule { limit: 10, burst: 3, period: 1_000_000_000 };
    let call = |ms: u64| storm::Call {
        before: ms * 1_000_000,
        after: ms * 1_000_000,
        until: None,
        cancelled: false,
    };
    let mut calls: Vec<_> = [0, 0, 0, 100, 200].map(call).to_vec();
    assert!(!rule.worst_window(&calls).0, "exactly what the rule allows");
    calls.push(call(200));
    assert!(rule.worst_window(&calls).0);
    calls[5].before = 0;
    assert!(rule.worst_window(&calls).0, "at no moment could it have been granted within the rule");
    calls[5].after = 300_000_000;
    assert!(!rule.worst_window(&calls).0, "it may have been granted at 300 ms");
    let held = |from, until| storm::Call { before: from, after: from, until: Some(until), cancelled: false };
    assert_eq!(storm::most_at_once(&[held(0, 10), held(5, 15), held(10, 20), held(16, 17)]), 3);
}
