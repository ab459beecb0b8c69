//! The roles of the processes: worker, operator, and the final check.

use crate::util::crash::storm::{Entry, Rule};
use crate::util::{Random, boot_time, wait_until};
use nix::libc;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, setgid, setgroups, setuid};
use shmlimit::{AcquireError, Algorithm, Error, Grant, Limiter, Outcome, Policy, PolicyDraft, Priority};
use shmlimit::{Reason, Request, RuleDraft};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Prefix of the variables that tell a process its role.
pub const PREFIX: &str = "SHMLIMIT_TEST_CHAOS_";
pub const CONCURRENCY: u64 = 2;
pub const BUCKET: Rule = Rule { limit: 300, burst: 30, period: 1_000_000_000 };
pub const GCRA: Rule = Rule { limit: 400, burst: 60, period: 1_000_000_000 };
/// The quota of a calendar day.
pub const QUOTA: u64 = 200;
const DAY: Duration = Duration::from_secs(86_400);
const NOBODY: u32 = 65534;
/// Calls that take longer than this, in nanoseconds, are logged.
pub const SLOW: u64 = 1_000_000_000;

fn setting(what: &str) -> Option<String> {
    std::env::var(format!("{PREFIX}{what}")).ok()
}

/// Runs the role that this process was started for, if there is one.
pub fn run_role() {
    let Some(role) = setting("ROLE") else { return };
    let path = PathBuf::from(setting("PATH").unwrap());
    let mut random = Random(setting("SEED").and_then(|seed| seed.parse().ok()).unwrap_or(1));
    match role.as_str() {
        "worker" => work(&path, &mut random),
        "set" => {
            let changes = [
                ("concurrency", "1"),
                ("concurrency", "2"),
                ("rules.0.limit", "200"),
                ("rules.0.limit", "300"),
            ];
            let (key, value) = changes[random.below(4) as usize];
            patiently(|| open(&path, "api", &api()).and_then(|limiter| limiter.set(key, value).map(drop)));
        }
        "replace" => {
            patiently(|| builder(&path, "api", &api()).replace().map(drop));
        }
        "delete" => {
            // The file may already be deleted.
            let _ = std::fs::remove_file(path.join("api.shm"));
            if random.below(3) == 0 {
                let _ = std::fs::remove_file(path.join("quota.shm"));
            }
        }
        "newcomer" => arrive(&path),
        other => panic!("no such role: {other}"),
    }
    std::process::exit(0);
}

fn api() -> Policy {
    let rules = [BUCKET.draft(Algorithm::TokenBucket), GCRA.draft(Algorithm::Gcra)];
    let draft = PolicyDraft {
        provider: "chaos",
        concurrency: Some(CONCURRENCY),
        rules: &rules,
        ..Default::default()
    };
    Policy::new(&draft).unwrap()
}

fn quota() -> Policy {
    let rules = [RuleDraft::new(Algorithm::FixedWindow, QUOTA, DAY)];
    Policy::new(&PolicyDraft { provider: "chaos", rules: &rules, ..Default::default() }).unwrap()
}

fn builder(path: &Path, name: &str, policy: &Policy) -> shmlimit::Builder {
    Limiter::builder(name).directory(path).policy(*policy)
}

/// Opens the limiter with its present settings, or creates it.
fn open(path: &Path, name: &str, policy: &Policy) -> Result<Limiter, Error> {
    match builder(path, name, policy).open() {
        Err(Error::ConfigMismatch { .. }) => Limiter::builder(name).directory(path).open_existing(),
        other => other,
    }
}

/// Repeats `work` while only the lock or a transient state makes it fail.
fn patiently(mut work: impl FnMut() -> Result<(), Error>) {
    let end = Instant::now() + Duration::from_secs(20);
    while let Err(error) = work() {
        if is_refused_place(&error) {
            return;
        }
        assert!(Instant::now() < end, "{error}");
        note_error(&error);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the library refused a file system where it cannot keep its promises. Its error must name the remedy.
fn is_refused_place(error: &Error) -> bool {
    let refused = matches!(error.code(), "liveness" | "network_file_system");
    assert!(!refused || error.to_string().contains("/dev/shm"), "no remedy in: {error}");
    refused
}

fn append(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(setting("LOGS").unwrap()).join(name);
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = file.write_all(bytes);
    }
}

fn note_error(error: &Error) {
    append("errors", format!("{}\n", error.code()).as_bytes());
}

/// Opens a log of this process.
fn log(kind: &str) -> File {
    let path = PathBuf::from(setting("LOGS").unwrap()).join(format!(
        "{kind}-{}-{}",
        std::process::id(),
        boot_time()
    ));
    OpenOptions::new().append(true).create_new(true).open(path).unwrap()
}

fn die_with_the_parent() {
    // SAFETY: sets an attribute of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

struct Logs {
    api: File,
    quota: File,
    slow: File,
}

fn work(path: &Path, random: &mut Random) {
    die_with_the_parent();
    let mut logs = Logs { api: log("log"), quota: log("quota"), slow: log("slow") };
    let Some(limiter) = attach(path, "api", &api()) else { return };
    let quota = match setting("NO_QUOTA") {
        Some(_) => None,
        None => attach(path, "quota", &self::quota()),
    };
    if setting("DROP").is_some() {
        setgroups(&[]).and_then(|()| setgid(Gid::from_raw(NOBODY))).unwrap();
        setuid(Uid::from_raw(NOBODY)).unwrap();
        die_with_the_parent();
        append("dropped", b"x");
    }
    loop {
        call(&limiter, &mut logs, random);
        if random.below(16) == 0
            && let Some(quota) = &quota
        {
            let before = boot_time();
            if let Ok(grant) = quota.try_acquire(&Request::new()) {
                logs.quota.write_all(&Entry::Granted { before, after: boot_time() }.to_bytes()).unwrap();
                drop(grant);
            }
        }
        if random.below(400) == 0 {
            fork_a_child(&limiter, random);
        }
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            if status == nix::sys::wait::WaitStatus::StillAlive {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(4000)));
    }
}

/// Opens a limiter, with retries; `None` if the library refuses the directory.
fn attach(path: &Path, name: &str, policy: &Policy) -> Option<Limiter> {
    loop {
        match open(path, name, policy) {
            Ok(limiter) => return Some(limiter),
            Err(error) if is_refused_place(&error) => {
                append("refused", b"x");
                // Slows retries down, so that processes do not spend all their time starting.
                std::thread::sleep(Duration::from_millis(200));
                return None;
            }
            Err(error) => note_error(&error),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Makes one call, usually without waiting, because then the time of the grant is known precisely.
fn call(limiter: &Limiter, logs: &mut Logs, random: &mut Random) {
    let request = Request::new().priority(Priority::ALL[random.below(3) as usize]);
    let timeout = Duration::from_millis(1 + random.below(100));
    let before = boot_time();
    let answer = match random.below(4) {
        0 => limiter.acquire(&request.timeout(timeout)),
        _ => limiter.try_acquire(&request),
    };
    let after = boot_time();
    if after - before > SLOW {
        logs.slow.write_all(&Entry::Granted { before, after }.to_bytes()).unwrap();
    }
    match answer {
        Ok(grant) => hold(grant, (before, after), &mut logs.api, random),
        Err(AcquireError::Refused(_)) => {}
        Err(AcquireError::Failed(error)) => note_error(&error),
    }
}

fn hold(grant: Grant<'_>, (before, after): (u64, u64), log: &mut File, random: &mut Random) {
    log.write_all(&Entry::Granted { before, after }.to_bytes()).unwrap();
    if random.below(2) == 0 {
        std::thread::sleep(Duration::from_micros(random.below(8000)));
    }
    let cancel = random.below(16) == 0;
    log.write_all(&Entry::Ending { at: boot_time(), cancel }.to_bytes()).unwrap();
    let ended = match random.below(3) {
        _ if cancel => grant.cancel(),
        0 => grant.record(&Outcome::http(200, &[])).map(drop),
        _ => grant.release(),
    };
    ended.unwrap_or_else(|error| note_error(&error));
}

/// Forks a child that uses its parent's handle for some calls.
fn fork_a_child(limiter: &Limiter, random: &mut Random) {
    let mut seed = Random(random.below(u64::MAX));
    // SAFETY: the child only makes calls and ends with `_exit`; glibc keeps malloc usable.
    if let Ok(ForkResult::Child) = unsafe { fork() } {
        nix::unistd::alarm::set(10);
        // The child needs its own logs because logs are appended to. Without privileges it may be unable to create
        // one.
        let path = PathBuf::from(setting("LOGS").unwrap());
        let name = |kind: &str| path.join(format!("{kind}-{}-{}", std::process::id(), boot_time()));
        let open = |kind: &str| OpenOptions::new().append(true).create_new(true).open(name(kind));
        if let (Ok(api), Ok(quota), Ok(slow)) = (open("log"), open("quota"), open("slow")) {
            let mut logs = Logs { api, quota, slow };
            append("forks", b"x");
            for _ in 0..20 {
                call(limiter, &mut logs, &mut seed);
            }
        }
        // SAFETY: ends the child without running any of its parent's code.
        unsafe { libc::_exit(0) }
    }
}

/// The check after all processes have ended: every permit can be acquired, not one more, and the queue is empty.
fn arrive(path: &Path) {
    let limiter = match open(path, "api", &api()) {
        Ok(limiter) => limiter,
        Err(error) if is_refused_place(&error) => return,
        Err(error) => panic!("{error}"),
    };
    limiter.set("concurrency", &CONCURRENCY.to_string()).unwrap();
    let waiting_request = Request::new().timeout(Duration::from_secs(20));
    let all: Vec<_> =
        (0..CONCURRENCY).map(|_| limiter.acquire(&waiting_request).expect("a permit comes back")).collect();
    match limiter.try_acquire(&Request::new()) {
        Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
        other => panic!("one permit too many: {other:?}"),
    }
    drop(all);
    // Killed waiters are removed from the queue at the next call.
    wait_until("no permit is out and the queue is empty", || {
        drop(limiter.try_acquire(&Request::new()));
        let now = limiter.snapshot().unwrap();
        (now.in_flight, now.queue.len()) == (0, 0)
    });
}
