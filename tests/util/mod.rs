//! Shared by the test programs: directories, policies, raw access to a segment, child processes, an HTTP server.

#![allow(dead_code, unused_imports, unused_macros, reason = "each test program uses its part")]

pub mod children;
#[cfg(target_os = "linux")]
pub mod crash;
#[cfg(unix)]
pub mod forks;
#[cfg(target_os = "linux")]
pub mod mounts;
pub mod raw;
pub mod respawn;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(windows)]
pub mod windows;

use shmlimit::{AcquireError, Algorithm, Builder, Grant, Limiter, Policy, PolicyDraft, Request, RuleDraft};
use shmlimit_segment::AttachOptions;
use std::cell::Cell;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The limiter of every test.
pub const NAME: &str = "robust";

/// A private directory in memory, where creating and locking are cheap.
pub fn directory() -> TempDir {
    // Also under Wine, which has this path with a drive before it.
    let memory = std::path::absolute("/dev/shm").unwrap();
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

/// `burst` calls at once and then one per hour: nothing refills within a test, so grants can be counted.
pub fn counted(burst: u64, concurrency: Option<u64>) -> Policy {
    let hour = Duration::from_secs(3600);
    let rule = RuleDraft { burst: Some(burst), ..RuleDraft::new(Algorithm::TokenBucket, 1, hour) };
    Policy::new(&PolicyDraft { concurrency, rules: &[rule], ..PolicyDraft::default() }).unwrap()
}

/// No rule but this many permits.
pub fn permits(count: u64) -> Policy {
    Policy::new(&PolicyDraft { concurrency: Some(count), ..PolicyDraft::default() }).unwrap()
}

/// Bounds that are short enough for tests. The place of the file is checked at each call, and dead processes are
/// reclaimed whenever a call is refused.
pub fn quick() -> AttachOptions {
    AttachOptions {
        lock: Duration::from_millis(200),
        stall: Duration::from_millis(200),
        reclaim: Duration::ZERO,
        place: Duration::ZERO,
        ..AttachOptions::default()
    }
}

/// The test's limiter in `directory`.
pub fn builder(directory: &Path) -> Builder {
    Limiter::builder(NAME).directory(directory).bounds(quick())
}

/// The file of the test's limiter.
pub fn segment_path(directory: &Path) -> std::path::PathBuf {
    directory.join(format!("{NAME}.shm"))
}

/// Removes a segment's name while it is in use. On Windows a mapped file cannot be deleted, so it is renamed, as
/// the library does.
pub fn take_away(segment: &Path) {
    if cfg!(windows) {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let hidden = format!(".shmlimit-{}-{count}.gone", std::process::id());
        std::fs::rename(segment, segment.with_file_name(hidden)).unwrap();
    } else {
        std::fs::remove_file(segment).unwrap();
    }
}

/// Asks once; true if it was granted. The permit is kept.
pub fn take(limiter: &Limiter) -> bool {
    match limiter.try_acquire(&Request::new()) {
        Ok(grant) => {
            std::mem::forget(grant);
            true
        }
        Err(AcquireError::Refused(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// How many calls are granted until the first refusal.
pub fn drain(limiter: &Limiter) -> usize {
    (0..1_000_000).take_while(|_| take(limiter)).count()
}

/// Whether `claim` becomes true within 30 s, which is longer than any working system needs.
pub fn eventually(mut claim: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if claim() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Waits until `holds` returns true. If it does not, the test fails with `what`.
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    assert!(eventually(holds), "waited in vain: {what}");
}

/// Nanoseconds of the clock that limiters use.
#[cfg(target_os = "linux")]
pub fn boot_time() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Ends the whole test program if it is not dropped in time: a hang must be a failure, not a stuck build.
pub struct Watchdog(#[allow(dead_code, reason = "its drop is the signal")] std::sync::mpsc::Sender<()>);

impl Watchdog {
    /// Starts to watch.
    pub fn new(what: &'static str, limit: Duration) -> Watchdog {
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("HANG: {what} did not end within {limit:?}");
                std::process::abort();
            }
        });
        Watchdog(alive)
    }
}

/// A small generator. A printed seed repeats a run exactly (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// A new generator. It prints its seed, which `SHMLIMIT_SEED` sets.
    pub fn seeded(what: &str) -> Random {
        let given = std::env::var("SHMLIMIT_SEED").ok().and_then(|seed| seed.parse().ok());
        let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
        let seed = given.unwrap_or_else(clock);
        println!("{what}: SHMLIMIT_SEED={seed}");
        Random(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index below `end`.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }
}

/// A call in the queue without a thread that sleeps for it.
pub type Queued<'l, 'r> = Pin<Box<dyn Future<Output = Result<Grant<'l>, AcquireError>> + 'r>>;

/// A call that enters the queue at its first poll. It checks its turn at every poll after `awake` was set.
pub fn queued<'l: 'r, 'r>(
    limiter: &'l Limiter,
    request: &'r Request<'r>,
    awake: &'r Cell<bool>,
) -> Queued<'l, 'r> {
    let sleep = move |_| poll_fn(move |_| if awake.replace(false) { Poll::Ready(()) } else { Poll::Pending });
    Box::pin(limiter.acquire_async(request, sleep))
}

/// Polls it once.
pub fn poll<'l>(call: &mut Queued<'l, '_>) -> Poll<Result<Grant<'l>, AcquireError>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
