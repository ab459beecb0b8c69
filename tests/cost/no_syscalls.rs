//! Decisions make no system call (docs/design/cost.md). ptrace counts the calls from another process.
//!
//! A helper (this program, started again) prepares itself, reports its thread, and is traced while it decides. The
//! helper marks the beginning and end of each stretch with a system call that nothing else makes.

use crate::shapes::{Call, SHAPES, Shape};
use crate::util::respawn::again;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getppid, gettid};
use shmlimit::{Limiter, Request};
use shmlimit_segment::AttachOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const DECISIONS: usize = 10_000;
/// The number of decisions where each of them stops the helper several times.
const NOISY_DECISIONS: usize = 200;
const HOUR: Duration = Duration::from_secs(3600);
const DIRECTORY: &str = "SHMLIMIT_TEST_DIRECTORY";
const WORK: &str = "SHMLIMIT_TEST_WORK";
const BOUND_MS: &str = "SHMLIMIT_TEST_PLACE_CHECK_MS";
const SAYS: &str = "traced helper: ";

/// The work of the helper between two marks: the key of a shape, or this.
const WAITED_FOR: &str = "released while another waits";

fn mark() {
    // Neither std nor this library asks for the parent.
    getppid();
}

fn limiter(directory: &Path, shape: &Shape, place: Duration) -> Limiter {
    let bounds = AttachOptions { place, reclaim: HOUR, ..AttachOptions::default() };
    Limiter::builder("traced").directory(directory).policy(shape.policy()).bounds(bounds).open().unwrap()
}

/// The entry point of the helper process; checks nothing by itself.
#[test]
fn traced_helper() {
    let (Some(directory), Ok(work)) = (std::env::var_os(DIRECTORY), std::env::var(WORK)) else { return };
    let place = Duration::from_millis(std::env::var(BOUND_MS).unwrap().parse().unwrap());
    let shape = Shape::find(if work == WAITED_FOR { "denied_permit" } else { &work }).unwrap();
    let limiter = limiter(Path::new(&directory), shape, place);
    if work == WAITED_FOR {
        return give_back_what_is_waited_for(&limiter);
    }
    let request = shape.request();
    let held = shape.prepare(&limiter);
    // The first decisions reclaim exited processes and check the file's place; the bounds keep the later ones from
    // it.
    for _ in 0..10 {
        shape.call_once(&limiter, &request);
    }
    println!("\n{SAYS}{}", gettid());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    mark();
    for _ in 0..100 {
        clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
    }
    mark();
    let started = Instant::now();
    for _ in 0..if place.is_zero() { NOISY_DECISIONS } else { DECISIONS } {
        shape.call_once(&limiter, &request);
    }
    let took = started.elapsed();
    mark();
    drop(held);
    println!("\n{SAYS}{}", took.as_secs());
}

/// The helper's work when another thread waits for the only permit.
fn give_back_what_is_waited_for(limiter: &Limiter) {
    let held = limiter.try_acquire(&Request::new()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| limiter.acquire(&Request::new()).unwrap().release().unwrap());
        println!("\n{SAYS}{}", gettid());
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let asleep = |looks_in: Duration| looks_in > Duration::from_millis(5);
        while !limiter.snapshot().unwrap().queue.iter().any(|waiter| asleep(waiter.looks_in)) {
            std::thread::yield_now();
        }
        mark();
        held.release().unwrap();
        mark();
    });
}

/// The result of tracing a helper.
struct Seen {
    /// The numbers of the system calls of all decisions.
    by_decisions: Vec<i64>,
    /// How long the decisions took, in whole seconds.
    seconds: u64,
}

struct Helper {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Helper {
    fn start(directory: &Path, work: &str, place: Duration) -> Helper {
        let mut command = again(&[], concat!(module_path!(), "::traced_helper"));
        command.env(DIRECTORY, directory).env(WORK, work).env(BOUND_MS, place.as_millis().to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Helper { child, output }
    }

    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(answer) = line.strip_prefix(SAYS) {
                return answer.trim().parse().unwrap();
            }
            line.clear();
        }
        panic!("the helper ended without an answer");
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel's text about the system call that a stopped thread enters or leaves: its number and arguments.
fn call(thread: Pid) -> String {
    std::fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap()
}

/// The number of the system call that a stopped thread enters or leaves.
fn call_number(thread: Pid) -> i64 {
    let text = call(thread);
    text.split(' ').next().unwrap().trim().parse().unwrap_or_else(|_| panic!("in no system call: {text}"))
}

/// The futex operation of the system call that a stopped thread enters or leaves; `None` for other system calls.
fn futex_operation(thread: Pid) -> Option<i64> {
    let text = call(thread);
    let mut words = text.split(' ');
    words.next().filter(|number| number.parse() == Ok(libc::SYS_futex))?;
    i64::from_str_radix(words.nth(1)?.trim_start_matches("0x"), 16).ok()
}

/// The system calls of a thread from its first mark to its last, in stretches between marks. Every system call stops
/// the thread twice, on entering and on leaving.
fn trace(thread: Pid, marks: usize) -> Vec<Vec<i64>> {
    let mut stretches: Vec<Vec<i64>> = Vec::new();
    let mut entering = true;
    while stretches.len() < marks {
        ptrace::syscall(thread, None).unwrap();
        match waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Stopped(..) => continue,
            ended => panic!("the helper ended early: {ended:?}"),
        }
        let number = call_number(thread);
        if stretches.is_empty() && number != libc::SYS_getppid {
            continue;
        }
        match (entering, number == libc::SYS_getppid) {
            (true, true) => stretches.push(Vec::new()),
            (true, false) => stretches.last_mut().unwrap().push(number),
            (false, _) => {}
        }
        entering = !entering;
    }
    stretches
}

/// Starts a helper, attaches to its thread that works, and lets it begin. Returns `None` where tracing is not permitted.
fn traced(directory: &Path, work: &str, file_check: Duration) -> Option<(Helper, Pid)> {
    let mut helper = Helper::start(directory, work, file_check);
    let thread = Pid::from_raw(i32::try_from(helper.answer()).unwrap());
    if let Err(error) = ptrace::attach(thread) {
        eprintln!("not tested: tracing is not permitted here ({error})");
        return None;
    }
    assert!(matches!(waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap(), WaitStatus::Stopped(..)));
    ptrace::setoptions(thread, ptrace::Options::PTRACE_O_TRACESYSGOOD).unwrap();
    helper.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    Some((helper, thread))
}

/// Traces a helper at `work`. Returns `None` where tracing is not permitted or reading the clock is a system call.
fn watch(work: &str, file_check: Duration) -> Option<Seen> {
    let directory = tempfile::tempdir().unwrap();
    let (mut helper, thread) = traced(directory.path(), work, file_check)?;
    let mut stretches = trace(thread, 3);
    ptrace::detach(thread, None).unwrap();
    let seconds = helper.answer();
    stretches.pop();
    let (by_decisions, by_the_clock) = (stretches.pop().unwrap(), stretches.pop().unwrap());
    if !by_the_clock.is_empty() {
        eprintln!("not tested: reading the clock is a system call on this machine");
        return None;
    }
    Some(Seen { by_decisions, seconds })
}

#[test]
fn ten_thousand_decisions_of_every_shape_make_no_system_call() {
    for shape in SHAPES.iter().filter(|shape| shape.call != Call::Snapshot) {
        let Some(seen) = watch(shape.key, HOUR) else { return };
        let calls = &seen.by_decisions;
        assert!(
            calls.is_empty(),
            "{}: {} system calls, the first is {:?}",
            shape.key,
            calls.len(),
            calls.first()
        );
    }
}

/// The system calls of one release while another thread waits for the permit: futex operations, and `None` for any
/// other call.
fn calls_of_a_release() -> Option<Vec<Option<i64>>> {
    let directory = tempfile::tempdir().unwrap();
    let (_helper, thread) = traced(directory.path(), WAITED_FOR, HOUR)?;
    let (mut marks, mut entering, mut calls) = (0, true, Vec::new());
    while marks < 2 {
        ptrace::syscall(thread, None).unwrap();
        match waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap() {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Stopped(..) => continue,
            ended => panic!("the helper ended early: {ended:?}"),
        }
        match (entering, call_number(thread) == libc::SYS_getppid) {
            (true, true) => marks += 1,
            (true, false) if marks == 1 => calls.push(futex_operation(thread)),
            _ => {}
        }
        entering = !entering;
    }
    ptrace::detach(thread, None).unwrap();
    Some(calls)
}

#[test]
fn r131_a_release_that_another_waits_for_makes_one_futex_wake_and_nothing_else() {
    let mut woke = false;
    for _ in 0..5 {
        let Some(calls) = calls_of_a_release() else { return };
        // A waiter that is about to look anyway need not be woken, so try several times.
        assert!(calls.is_empty() || calls == [Some(i64::from(libc::FUTEX_WAKE))], "{calls:?}");
        woke |= !calls.is_empty();
    }
    assert!(woke, "no try woke the waiter");
}

/// The system calls of one check: open the directory, stat the file, close the directory; with room for another way.
const CALLS_A_CHECK: u64 = 6;

#[test]
fn with_default_bounds_only_the_file_is_checked_and_at_most_once_a_second() {
    if let Some(seen) = watch("gcra", AttachOptions::default().place) {
        let most = (seen.seconds + 1) * CALLS_A_CHECK;
        assert!(seen.by_decisions.len() as u64 <= most, "{:?}", seen.by_decisions);
    }
}

#[test]
fn the_count_sees_system_calls_where_there_are_some() {
    if let Some(seen) = watch("gcra", Duration::ZERO) {
        assert!(seen.by_decisions.len() >= NOISY_DECISIONS, "only {}", seen.by_decisions.len());
    }
}
