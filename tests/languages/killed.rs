//! Programs in every language share a limiter and are killed and stopped at random. No program stalls, the number of
//! calls in flight stays within the limit, permits come back, and the queue is empty at the end.
//!
//! How soon the full rate is back depends on the machine; `scripts/languages/one-limiter --kill` checks that.

use crate::budget_check::{Budget, SECOND, median, recovery};
use crate::programs::{KINDS, METHODS, Program, setting, start};
use crate::util::crash::WATCHDOG;
use crate::util::server::{Seen, Server, limiter};
use crate::util::{boot_time, wait_until};
use nix::sys::signal::Signal;
use shmlimit::{Limiter, Request};
use std::path::Path;
use std::time::Duration;

const BUDGET: Budget = Budget { rate: 60, burst: 5, concurrency: 8 };
/// Answers under this path are slow, so a killed program usually has a call in flight.
const PREFIX: &str = "/slow";
/// The shortest time between two kills; the longest is twice that.
const PAUSE: Duration = Duration::from_millis(200);
const STOPPED: Duration = Duration::from_millis(300);
/// How long after a kill the killed processes may still have calls under way: a signal to a session reaches its
/// processes one after the other.
const DYING: u64 = SECOND / 10;

/// Pseudo-random numbers that a seed reproduces.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

#[derive(Clone, Copy, Default)]
struct Fate {
    killed: u32,
    children_killed: u32,
    stopped: u32,
}

impl Fate {
    fn strikes(&self) -> u32 {
        self.killed + self.children_killed + self.stopped
    }
}

struct Storm<'t> {
    directory: &'t Path,
    server: &'t Server,
    programs: Vec<Program>,
    fates: [Fate; KINDS.len()],
    /// When a program was killed or stopped.
    moments: Vec<u64>,
    chance: Chance,
}

impl Storm<'_> {
    fn start(&mut self, i: usize) -> Program {
        let method = METHODS[self.chance.below(METHODS.len())];
        start(KINDS[i], method, self.directory, self.server.port(), PREFIX)
    }

    /// Kills one program or one of its processes, or stops it for a while.
    fn strike(&mut self) {
        // The victim is random, but no program is hit twice before all were hit once.
        let least = self.fates.iter().map(Fate::strikes).min().unwrap_or(0);
        let spared: Vec<usize> = (0..KINDS.len()).filter(|i| self.fates[*i].strikes() == least).collect();
        let i = spared[self.chance.below(spared.len())];
        let mut moment = boot_time();
        match self.chance.below(4) {
            0 => {
                self.fates[i].stopped += 1;
                self.programs[i].signal(Signal::SIGSTOP);
                std::thread::sleep(STOPPED);
                self.programs[i].signal(Signal::SIGCONT);
            }
            1 if KINDS[i].name == "processes" => {
                let chance = &mut self.chance;
                self.fates[i].children_killed +=
                    u32::from(self.programs[i].kill_a_child(|n| chance.below(n)));
            }
            _ => {
                // Kill it during a call if it makes one.
                let calls = || self.server.seen_at(&path(KINDS[i].name)).len();
                let before = calls();
                for _ in 0..200 {
                    if calls() > before {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                moment = boot_time();
                self.programs[i].signal(Signal::SIGKILL);
                self.fates[i].killed += 1;
            }
        }
        self.moments.push(moment);
    }

    /// Restarts the programs that have ended.
    fn restart(&mut self) {
        for i in 0..KINDS.len() {
            if self.programs[i].ended().is_some() {
                // Kill the old session first: its remaining processes must not outlive it.
                self.programs[i].signal(Signal::SIGKILL);
                self.programs[i] = self.start(i);
            }
        }
    }
}

fn path(name: &str) -> String {
    format!("{PREFIX}/{name}")
}

/// Waits until all programs have called after `moment`.
fn all_call_after(server: &Server, moment: u64) {
    for kind in KINDS {
        wait_until(kind.what, || {
            std::thread::sleep(Duration::from_millis(5));
            server.seen_at(&path(kind.name)).last().is_some_and(|seen| seen.at > moment)
        });
    }
}

/// More calls than permits may be in flight only just after a kill, and only by as many as the killed processes had.
/// Returns how often that was so.
fn concurrency_is_kept(seen: &[Seen], moments: &[u64]) -> usize {
    let mut dying = 0;
    for seen in seen.iter().filter(|seen| seen.open as u64 > BUDGET.concurrency) {
        let last = moments[..moments.partition_point(|moment| *moment <= seen.at)].last();
        assert!(last.is_some_and(|last| seen.at - last < DYING), "{} calls in flight", seen.open);
        assert!(seen.open as u64 <= 2 * BUDGET.concurrency);
        dying += 1;
    }
    dying
}

#[test]
fn killing_programs_in_any_language_stalls_no_other_program_and_loses_no_permit() {
    let seconds = setting("SHMLIMIT_LANGUAGES_SECONDS", 3);
    let seed = setting("SHMLIMIT_LANGUAGES_SEED", boot_time());
    println!("languages, killed: {seconds} s, SHMLIMIT_LANGUAGES_SEED={seed}");
    let (directory, limiter) = limiter(BUDGET.policy());
    let server = Server::start();
    let mut storm = Storm {
        directory: directory.path(),
        server: &server,
        programs: Vec::new(),
        fates: Default::default(),
        moments: Vec::new(),
        chance: Chance(seed),
    };
    for i in 0..KINDS.len() {
        let program = storm.start(i);
        storm.programs.push(program);
    }
    all_call_after(&server, 0);
    let end = boot_time() + seconds * SECOND;
    while boot_time() < end {
        storm.strike();
        let pause = PAUSE + Duration::from_millis(storm.chance.below(PAUSE.as_millis() as usize) as u64);
        std::thread::sleep(pause);
        storm.restart();
    }
    // All programs get calls again, also those that were just started.
    let last = boot_time();
    all_call_after(&server, last);
    let recovered = boot_time();
    std::fs::write(directory.path().join("stop"), "").unwrap();
    for (kind, program) in KINDS.iter().zip(&mut storm.programs) {
        crate::programs::ends(kind, program);
    }
    let (fates, moments) = (storm.fates, std::mem::take(&mut storm.moments));
    drop(storm);
    let seen = server.seen();
    let excess = BUDGET.is_kept(&seen);
    let dying = concurrency_is_kept(&seen, &moments);
    everything_comes_back(&limiter);
    table(&server, &fates);
    let times: Vec<Option<u64>> = moments
        .iter()
        .filter(|moment| **moment + SECOND < recovered)
        .map(|moment| recovery(&seen, BUDGET.rate, *moment, recovered))
        .collect();
    let millis: Vec<f64> =
        times.iter().map(|time| time.map_or(f64::INFINITY, |time| time as f64 / 1e6)).collect();
    let gap = seen.windows(2).map(|pair| pair[1].at - pair[0].at).max().unwrap_or(0) as f64 / 1e6;
    let most = millis.iter().copied().fold(0.0, f64::max);
    println!(
        "languages, killed: the full rate again after {:.0} ms (median), {most:.0} ms (most); longest gap {gap:.0} ms; {excess} calls above the bucket in any window, {dying} times the dying had calls in flight beyond the permits",
        median(millis)
    );
    if setting("SHMLIMIT_LANGUAGES_JUDGE", 0) == 1 {
        assert!(most <= 1000.0, "the full rate again only after {most:.0} ms");
    }
}

/// All permits can be acquired at once, and no call waits.
fn everything_comes_back(limiter: &Limiter) {
    let waiting_request = Request::new().timeout(WATCHDOG);
    let all: Vec<_> = (0..BUDGET.concurrency).map(|_| limiter.acquire(&waiting_request).unwrap()).collect();
    let now = limiter.snapshot().unwrap();
    assert_eq!((u64::from(now.in_flight), now.held_by_exited), (BUDGET.concurrency, 0), "{now:?}");
    assert!(now.queue.is_empty(), "a call is left in the queue: {:?}", now.queue);
    drop(all);
    let now = limiter.snapshot().unwrap();
    assert_eq!((now.in_flight, now.resets), (0, 0));
    assert_eq!(now.participants.len(), 1, "another participant is left: {:?}", now.participants);
}

fn table(server: &Server, fates: &[Fate; KINDS.len()]) {
    println!(
        "{:<10} {:<42} {:>6} {:>14} {:>8} {:>14} {:>6}",
        "language", "kind", "killed", "child killed", "stopped", "calls cut off", "calls"
    );
    for (kind, fate) in KINDS.iter().zip(fates) {
        let path = path(kind.name);
        println!(
            "{:<10} {:<42} {:>6} {:>14} {:>8} {:>14} {:>6}",
            kind.language,
            kind.what,
            fate.killed,
            fate.children_killed,
            fate.stopped,
            server.left(&path),
            server.seen_at(&path).len()
        );
    }
}
