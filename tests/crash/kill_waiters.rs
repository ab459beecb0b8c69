//! P2 for waiting calls. One of them is killed, interrupted or stopped: at the head of the queue, at its tail, just
//! woken, or about to wake another. The others go on, and no place or permit is lost.
//!
//! There is one permit, so each call can go on only when the previous one has returned it. Times are printed, not
//! checked; `scripts/proofs/stalls` repeats the cases often enough to evaluate them.

use crate::util::crash::child_process::stop_in_its_sleep;
use crate::util::crash::child_process::{self, ChildProcess, mark, ready};
use crate::util::crash::image::{self, Image, entry};
use crate::util::crash::ptrace::{Step, Tracee};
use crate::util::crash::{WATCHDOG, builder, fast_policy, report};
use crate::util::{boot_time, directory, poll, queued, wait_until};
use nix::sys::signal::{SigHandler, Signal, signal};
use shmlimit::{AcquireError, Grant, Limiter, Reason, Request};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const WAITERS: usize = 4;

/// How often each case is tried; the long version tries more.
fn rounds() -> usize {
    std::env::var("SHMLIMIT_STALL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// The test that serves as the entry point of actor processes.
const CHILD_PROCESS: &str = concat!(module_path!(), "::child_process");

/// The entry point of the actors of the other tests; checks nothing by itself.
#[test]
fn child_process() {
    if let Some((role, directory)) = child_process::role() {
        // A shell that runs the tests in the background may have made them ignore SIGINT.
        // SAFETY: the default disposition runs none of our code.
        unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.unwrap();
        run_role(&role, &directory);
        child_process::receive();
    }
}

fn run_role(role: &str, directory: &Path) {
    let limiter = builder(directory).open_existing().unwrap();
    let one = Request::new();
    match role {
        "waiter" => {
            ready();
            let grant = limiter.acquire(&one).unwrap();
            let at = boot_time();
            assert_eq!(limiter.snapshot().unwrap().in_flight, 1, "the limit is one");
            grant.release().unwrap();
            child_process::send(&format!("granted {at}"));
        }
        "several" => {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| limiter.acquire(&one).map(std::mem::forget));
                }
                ready();
                std::process::exit(0);
            });
        }
        "replaced" => {
            std::thread::scope(|scope| {
                scope.spawn(|| limiter.acquire(&one).map(std::mem::forget));
                ready();
                let arguments = [c"sleep", c"1000"];
                nix::unistd::execvp(arguments[0], &arguments).unwrap();
            });
        }
        "multitude" => {
            let awake = Cell::new(false);
            let mut calls: Vec<_> = (0..image::WAITERS).map(|_| queued(&limiter, &one, &awake)).collect();
            assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
            ready();
        }
        "releaser" => {
            let grant = limiter.try_acquire(&one).unwrap();
            ready();
            mark();
            grant.release().unwrap();
            mark();
        }
        "observer" => {
            let awake = Cell::new(false);
            let mut call = queued(&limiter, &one, &awake);
            assert!(poll(&mut call).is_pending());
            ready();
            awake.set(true);
            mark();
            let _ = poll(&mut call);
            mark();
        }
        other => panic!("no such role: {other}"),
    }
}

/// A limiter with one permit.
fn fresh() -> (TempDir, Limiter) {
    let directory = directory();
    let limiter = builder(directory.path()).policy(fast_policy(1)).create().unwrap();
    (directory, limiter)
}

/// Starts processes that wait for the permit, in this order.
fn line_up(directory: &Path, count: usize) -> Vec<ChildProcess> {
    let before = Image::of(directory).waiting();
    (1..=count as u64)
        .map(|nth| {
            let mut waiter = ChildProcess::start(CHILD_PROCESS, "waiter", directory);
            waiter.send("go");
            wait_until("it waits", || Image::of(directory).waiting() == before + nth);
            waiter
        })
        .collect()
}

/// The place of a process that has one waiting call.
fn place_of(directory: &Path, child_process: &ChildProcess) -> usize {
    let now = Image::of(directory);
    let places = now.places_of(now.slot_of(child_process.pid.as_raw() as u32).unwrap());
    assert_eq!(places.len(), 1);
    places[0]
}

/// Waits until all of them have been granted a permit. Returns the times.
fn go_on(survivors: &mut [ChildProcess]) -> Vec<u64> {
    let said = survivors.iter_mut().map(ChildProcess::receive);
    said.map(|said| said.strip_prefix("granted ").expect(&said).parse().unwrap()).collect()
}

/// Checks that exactly one permit can be acquired, and that the queue is empty.
fn nothing_is_lost(directory: &Path, limiter: &Limiter) {
    let grant = limiter.acquire(&Request::new().timeout(WATCHDOG)).expect("the permit comes back");
    match limiter.try_acquire(&Request::new()) {
        Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.reason(), Reason::Concurrency),
        other => panic!("one permit too many: {other:?}"),
    }
    drop(grant);
    // An exited process is late soon, and other calls find that it has exited.
    wait_until("the queue is empty", || {
        let _ = limiter.try_acquire(&Request::new());
        let now = Image::of(directory);
        (now.waiting(), now.taken().len(), now.in_flight()) == (0, 0, 0)
    });
    assert_eq!(limiter.snapshot().unwrap().resets, 0, "no state was reset");
}

/// An action on a line of waiters; the remaining ones must go on. The one permit is held until the `Grant` is
/// dropped. Returns the time from which a waiter could go on.
type Fault = fn(&Path, Grant<'_>, &mut Vec<ChildProcess>) -> u64;

fn give_back(held: Grant<'_>) -> u64 {
    let at = boot_time();
    drop(held);
    at
}

/// How long the next waiter and how long all waiters took, printed for people.
#[derive(Default)]
struct Stalls {
    next: Vec<Duration>,
    all: Vec<Duration>,
}

impl Stalls {
    fn note(&mut self, began: u64, times: &[u64]) {
        let since = |time: Option<&u64>| Duration::from_nanos(time.unwrap().saturating_sub(began));
        self.next.push(since(times.iter().min()));
        self.all.push(since(times.iter().max()));
    }

    fn report(self, what: &str) {
        report(&format!("{what}: next grant"), self.next);
        report(&format!("{what}: all others served"), self.all);
    }
}

fn survived(what: &str, fault: Fault) {
    let mut stalls = Stalls::default();
    for _ in 0..rounds() {
        let (directory, limiter) = fresh();
        let held = limiter.try_acquire(&Request::new()).unwrap();
        let mut line = line_up(directory.path(), WAITERS);
        let began = fault(directory.path(), held, &mut line);
        stalls.note(began, &go_on(&mut line));
        nothing_is_lost(directory.path(), &limiter);
    }
    stalls.report(what);
}

#[test]
fn p2_without_a_kill_all_waiters_are_served() {
    survived("no waiter killed", |_, held, _| give_back(held));
}

#[test]
fn p2_r131_a_killed_head_of_the_queue_delays_no_other() {
    survived("head killed", |_, held, line| {
        line.remove(0).kill();
        give_back(held)
    });
}

#[test]
fn p2_r131_a_killed_tail_of_the_queue_delays_no_other() {
    survived("tail killed", |_, held, line| {
        line.pop().unwrap().kill();
        give_back(held)
    });
}

#[test]
fn p2_r131_the_last_waiter_is_served_when_all_others_are_killed() {
    survived("all but the last killed", |_, held, line| {
        line.drain(..WAITERS - 1).for_each(drop);
        give_back(held)
    });
}

#[test]
fn p2_r131_ctrl_c_at_the_head_of_the_queue_delays_no_other() {
    survived("head interrupted", |_, held, line| {
        let mut head = line.remove(0);
        head.signal(Signal::SIGINT);
        wait_until("it has ended", || head.has_ended());
        give_back(held)
    });
}

#[test]
fn p2_r131_a_waiter_killed_between_wake_up_and_look_delays_no_other() {
    survived("killed just after it was woken", |directory, held, line| {
        let mut head = line.remove(0);
        stop_in_its_sleep(&head, directory);
        let place = place_of(directory, &head);
        let wake_word = Image::of(directory).wake_word(place);
        // However slow the machine is, no waiter is late at this moment.
        image::set_wake_time(directory, boot_time() + 900_000_000);
        let began = give_back(held);
        assert_eq!(Image::of(directory).wake_word(place), wake_word + 1, "it is woken");
        head.kill();
        began
    });
}

#[test]
fn p2_r131_a_stopped_head_delays_no_other_and_goes_on_when_continued() {
    let mut stalls = Stalls::default();
    for _ in 0..rounds() {
        let (directory, limiter) = fresh();
        let held = limiter.try_acquire(&Request::new()).unwrap();
        let mut line = line_up(directory.path(), WAITERS);
        let mut head = line.remove(0);
        stop_in_its_sleep(&head, directory.path());
        stalls.note(give_back(held), &go_on(&mut line));
        assert_eq!(Image::of(directory.path()).waiting(), 1, "it keeps its place");
        head.signal(Signal::SIGCONT);
        go_on(std::slice::from_mut(&mut head));
        nothing_is_lost(directory.path(), &limiter);
    }
    stalls.report("head stopped");
}

#[test]
fn p2_r131_a_stopped_waiter_keeps_its_place_and_is_served_before_later_ones() {
    let tries = 20;
    let first = (1..=tries).find(|_| {
        let (directory, limiter) = fresh();
        let path = directory.path();
        let held = limiter.try_acquire(&Request::new()).unwrap();
        let mut line = line_up(path, 3);
        let place = place_of(path, &line[0]);
        let entry_head = |now: &Image| (now.entry(place, entry::NUMBER), now.entry(place, entry::TAG));
        let before = Image::of(path);
        stop_in_its_sleep(&line[0], path);
        wait_until("it is late", || boot_time() > Image::of(path).entry(place, entry::WAKE_AT) + 10_000_000);
        line[0].signal(Signal::SIGCONT);
        wait_until("it looks again", || Image::of(path).entry(place, entry::WAKE_AT) > boot_time());
        assert_eq!(entry_head(&Image::of(path)), entry_head(&before));
        drop(held);
        let times = go_on(&mut line);
        nothing_is_lost(path, &limiter);
        times[0] < times[1] && times[0] < times[2]
    });
    // If the machine does not run it for 10 ms it is late again and is passed over, so the test tries several times.
    println!("served first at try {first:?}");
    assert!(first.is_some(), "others were served first {tries} times");
}

#[test]
fn p2_r137_a_queue_full_of_killed_waiters_soon_has_room() {
    let (directory, limiter) = fresh();
    let held = limiter.try_acquire(&Request::new()).unwrap();
    let mut multitude = ChildProcess::start(CHILD_PROCESS, "multitude", directory.path());
    let refused_for = |timeout| match limiter.acquire(&Request::new().timeout(timeout)) {
        Err(AcquireError::Refused(refusal)) => refusal.reason(),
        other => panic!("{other:?}"),
    };
    let moment = Duration::from_millis(5);
    assert_eq!(refused_for(moment), Reason::QueueFull);
    multitude.kill();
    wait_until("a call can wait again", || refused_for(moment) == Reason::Concurrency);
    drop(held);
    nothing_is_lost(directory.path(), &limiter);
}

/// Runs a tracee until the segment satisfies `shows`.
fn step_until(tracee: &mut Tracee, directory: &Path, mut shows: impl FnMut(&Image) -> bool) -> bool {
    let file = image::open(directory);
    let mut now = Image::blank();
    loop {
        now.take(&file);
        if shows(&now) {
            return true;
        }
        if tracee.step() == Step::Done {
            return false;
        }
    }
}

/// Kills a process that is about to wake the first of a line, `after` instructions after its change was committed.
fn waker_killed(after: usize, stalls: &mut Stalls) -> bool {
    let (directory, limiter) = fresh();
    let path = directory.path();
    let mut waker = Tracee::start(CHILD_PROCESS, "releaser", path);
    let mut line = line_up(path, WAITERS);
    let slot = Image::of(path).slot_of(waker.child_process.pid.as_raw() as u32).unwrap();
    assert!(step_until(&mut waker, path, |now| now.is_whole() && now.held(slot) == 0));
    // From here on a waiter could go on. Because of its own wake time it may do so before the kill.
    let began = boot_time();
    if (0..after).any(|_| waker.step() == Step::Done) {
        return false;
    }
    waker.kill();
    stalls.note(began, &go_on(&mut line));
    nothing_is_lost(path, &limiter);
    true
}

#[test]
fn p2_r131_a_process_killed_between_its_change_and_the_wake_up_delays_no_other() {
    // Try places up to the end of the operation, more densely with more rounds.
    let stride = (24 / rounds()).max(1);
    let mut stalls = Stalls::default();
    let kills = (0..).step_by(stride).take_while(|after| waker_killed(*after, &mut stalls)).count();
    println!("killed at {kills} places from the commit to the end");
    assert!(kills >= 2);
    stalls.report("ringer killed");
}

#[test]
fn p2_r131_a_process_killed_at_the_system_call_that_wakes_delays_no_other() {
    let mut stalls = Stalls::default();
    for _ in 0..rounds() {
        let (directory, limiter) = fresh();
        let path = directory.path();
        let mut waker = Tracee::start(CHILD_PROCESS, "releaser", path);
        let mut line = line_up(path, WAITERS);
        // The killed process runs at full speed, so that the others stay asleep and only a wake-up would tell them.
        let slot = Image::of(path).slot_of(waker.child_process.pid.as_raw() as u32).unwrap();
        while Image::of(path).held(slot) != 0 {
            assert_eq!(waker.run_to_system_call(), Step::Inside, "it makes no system call");
        }
        let began = boot_time();
        waker.kill();
        stalls.note(began, &go_on(&mut line));
        nothing_is_lost(path, &limiter);
    }
    stalls.report("waker killed at its system call");
}

#[test]
fn p2_r131_a_waiter_killed_during_its_look_delays_no_other() {
    let mut stalls = Stalls::default();
    for entries in 0..rounds() as u64 {
        let (directory, limiter) = fresh();
        let path = directory.path();
        let held = limiter.try_acquire(&Request::new()).unwrap();
        let mut head = Tracee::start(CHILD_PROCESS, "observer", path);
        let mut line = line_up(path, WAITERS - 1);
        drop(held);
        let slot = Image::of(path).slot_of(head.child_process.pid.as_raw() as u32).unwrap();
        // Step until it holds the lock, and then until some words are journaled.
        step_until(&mut head, path, |now| {
            let journaled = if now.is_whole() { 0 } else { now.word(shmlimit_segment::layout::JOURNAL_LEN) };
            now.lock_owner() == Some(slot) && journaled >= entries % 4
        });
        let began = boot_time();
        head.kill();
        stalls.note(began, &go_on(&mut line));
        nothing_is_lost(path, &limiter);
    }
    stalls.report("killed during its look");
}

/// A process whose own threads wait exits or executes another program.
fn goes_away(role: &str, calls: u64) {
    let (directory, limiter) = fresh();
    let path = directory.path();
    let held = limiter.try_acquire(&Request::new()).unwrap();
    let mut child_process = ChildProcess::start(CHILD_PROCESS, role, path);
    wait_until("its threads wait", || Image::of(path).waiting() == calls);
    let mut line = line_up(path, 2);
    child_process.send("go");
    wait_until("it is another program, or none", || {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", child_process.pid));
        child_process.has_ended() || name.is_ok_and(|name| name.trim() == "sleep")
    });
    drop(held);
    go_on(&mut line);
    nothing_is_lost(path, &limiter);
}

#[test]
fn p6_r131_a_process_may_exit_while_its_threads_wait() {
    goes_away("several", 3);
}

#[test]
fn p6_r131_a_process_may_become_another_program_while_a_thread_waits() {
    goes_away("replaced", 1);
}
