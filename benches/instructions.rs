//! Makes the calls of one shape, so that callgrind can count their instructions: `scripts/bench/instructions`.
//!
//! `instructions --list` prints the keys of the shapes, and `instructions KEY COUNT` makes `COUNT` calls. Only the
//! functions whose names begin with `counted_` are counted.

#[path = "../cli/src/bench/shapes.rs"]
mod shapes;

use shapes::{Call, SHAPES, Shape, settled, success};
use shmlimit::{AcquireError, Grant, Limiter, Outcome, Request};
use shmlimit_segment::AttachOptions;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

/// Calls that are not counted: the first ones reclaim exited processes and check the file's place, and the sliding log
/// needs a thousand to be as full as it becomes.
const WARM_UP: u32 = 2000;
const DAY: Duration = Duration::from_secs(86_400);

/// A clock that advances by 50 ns with each reading. How many instructions an algorithm executes depends on the time
/// that passed, and with the real clock two runs would never agree.
#[cfg(target_os = "linux")]
mod clock {
    use std::ffi::{c_int, c_long};
    use std::sync::atomic::{AtomicU64, Ordering};

    const STEP: u64 = 50;
    static NOW: AtomicU64 = AtomicU64::new(1_700_000_000_000_000_000);

    #[repr(C)]
    struct TimeSpec {
        seconds: i64,
        nanos: c_long,
    }

    /// Takes the place of the C library's function in this program.
    ///
    /// # Safety
    /// `time` must point to a writable `timespec`.
    #[unsafe(no_mangle)]
    #[inline(never)]
    unsafe extern "C" fn clock_gettime(_clock: c_int, time: *mut TimeSpec) -> c_int {
        let now = NOW.fetch_add(STEP, Ordering::Relaxed);
        let (seconds, nanos) = ((now / 1_000_000_000) as i64, (now % 1_000_000_000) as c_long);
        // SAFETY: the caller promises that the pointer is valid for writing.
        unsafe { time.write(TimeSpec { seconds, nanos }) };
        0
    }
}

#[inline(never)]
fn counted_acquire<'l>(limiter: &'l Limiter, request: &Request<'_>) -> Result<Grant<'l>, AcquireError> {
    limiter.try_acquire(request)
}

#[inline(never)]
fn counted_release(limiter: &Limiter, request: &Request<'_>) {
    drop(limiter.try_acquire(request));
}

#[inline(never)]
fn counted_record(limiter: &Limiter, request: &Request<'_>, outcome: &Outcome<'_>) {
    if let Ok(grant) = limiter.try_acquire(request) {
        drop(grant.record(outcome));
    }
}

#[inline(never)]
fn counted_refusal(limiter: &Limiter, request: &Request<'_>) -> bool {
    limiter.try_acquire(request).is_err()
}

#[inline(never)]
fn counted_snapshot(limiter: &Limiter) {
    drop(black_box(limiter.snapshot()));
}

fn repeat(shape: &Shape, count: u32) {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = AttachOptions { place: DAY, reclaim: DAY, ..AttachOptions::default() };
    let limiter = Limiter::builder("counted").directory(directory.path()).ignore_environment().bounds(bounds);
    let limiter = limiter.policy(shape.policy()).open().expect("a limiter");
    let request = shape.request();
    let _held = shape.prepare(&limiter);
    for _ in 0..if shape.call == Call::Snapshot { 1 } else { WARM_UP } {
        shape.call_once(&limiter, &request);
    }
    let request = black_box(&request);
    for _ in 0..count {
        match shape.call {
            Call::Acquire => drop(counted_acquire(&limiter, request)),
            Call::Release => counted_release(&limiter, request),
            Call::Record => counted_record(&limiter, request, &success()),
            Call::Settle => counted_record(&limiter, request, &settled()),
            Call::Refused(_) => assert!(counted_refusal(&limiter, request)),
            Call::Snapshot => counted_snapshot(&limiter),
        }
    }
    shape.call_once(&limiter, request);
}

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => SHAPES.iter().for_each(|shape| println!("{}", shape.key)),
        [key, count] => match (Shape::find(key), count.parse()) {
            (Some(shape), Ok(count)) => repeat(shape, count),
            _ => {
                eprintln!("no shape {key:?}, or no count {count:?}; --list prints the shapes");
                return ExitCode::from(2);
            }
        },
        _ => println!("this program is for scripts/bench/instructions"),
    }
    ExitCode::SUCCESS
}
