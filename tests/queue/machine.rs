//! A machine with its own clock. Its threads enter the queue, sleep until their wake time or until they are woken,
//! check, make their call and come again. The test decides every event, so counts are exact.

#![allow(dead_code, reason = "every test file uses another part")]

use shmlimit_kernel::queue::{self, NewWaiter, QueueOutcome, QueueTicket, Wake};
use shmlimit_kernel::*;
use std::collections::HashMap;
use std::time::Duration;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// The behaviour that a thread repeats.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    pub owner: u64,
    pub group: u64,
    pub request: AcquireRequest,
    /// The duration of a call.
    pub call: u64,
    /// The delay from the wake time, or from being woken, to the check.
    pub lateness: u64,
    pub timeout: Option<u64>,
    pub can_be_woken: bool,
    /// The number of calls that it makes.
    pub calls: u64,
}

impl Habit {
    /// A thread of the process in `slot` that makes calls without duration for ever.
    pub fn of(slot: u64, request: AcquireRequest) -> Habit {
        Habit {
            owner: slot + 2,
            group: slot + 1,
            request,
            call: 0,
            lateness: 0,
            timeout: None,
            can_be_woken: true,
            calls: u64::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum State {
    /// Enters the queue at this time.
    Away(u64),
    /// Checks at this time.
    Waits(QueueTicket, u64),
    /// Returns its permit at this time.
    Calls(Ticket, u64),
    Done,
}

#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub habit: Habit,
    pub state: State,
    pub stopped: bool,
    pub came: u64,
    pub grants: u64,
    pub refused: Option<Refusal>,
    scheduled: u64,
}

/// A grant in the log.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub thread: usize,
    pub came: u64,
    pub at: u64,
    pub cost: [u64; MAX_UNITS],
}

pub struct Machine {
    pub m: LocalMemory,
    pub policy: Policy,
    pub now: u64,
    pub threads: Vec<Thread>,
    pub log: Vec<Served>,
    pub looks: u64,
    pub wakes: u64,
    scheduled: u64,
    places: HashMap<usize, usize>,
}

pub fn rule(limit: u64, burst: u64) -> RuleDraft<'static> {
    RuleDraft {
        burst: Some(burst),
        ..RuleDraft::new(Algorithm::TokenBucket, limit, Duration::from_nanos(SECOND))
    }
}

impl Machine {
    pub fn new(draft: &PolicyDraft<'_>) -> Machine {
        let policy = Policy::new(draft).expect("valid");
        let m = LocalMemory::new(&policy);
        Machine {
            m,
            policy,
            now: 0,
            threads: Vec::new(),
            log: Vec::new(),
            looks: 0,
            wakes: 0,
            scheduled: 0,
            places: HashMap::new(),
        }
    }

    /// A limiter with one token bucket.
    pub fn with_rate(limit: u64, burst: u64) -> Machine {
        Machine::new(&PolicyDraft { rules: &[rule(limit, burst)], ..PolicyDraft::default() })
    }

    /// Adds a thread that comes at `at`.
    pub fn add(&mut self, habit: Habit, at: u64) -> usize {
        self.scheduled += 1;
        self.threads.push(Thread {
            habit,
            state: State::Away(at),
            stopped: false,
            came: at,
            grants: 0,
            refused: None,
            scheduled: self.scheduled,
        });
        self.threads.len() - 1
    }

    fn set(&mut self, thread: usize, state: State) {
        self.scheduled += 1;
        self.threads[thread].state = state;
        self.threads[thread].scheduled = self.scheduled;
    }

    /// The next event: its time and its thread.
    fn next(&self) -> Option<(u64, usize)> {
        let time = |thread: &Thread| match thread.state {
            State::Away(at) | State::Waits(_, at) | State::Calls(_, at) => Some(at),
            State::Done => None,
        };
        self.threads
            .iter()
            .enumerate()
            .filter(|(_, thread)| !thread.stopped)
            .filter_map(|(i, thread)| Some((time(thread)?, thread.scheduled, i)))
            .min()
            .map(|(at, _, i)| (at, i))
    }

    /// Runs all events until `end`, or until there are none.
    pub fn run(&mut self, end: u64) {
        let mut steps = 0u64;
        while let Some((at, thread)) = self.next().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.step(thread);
            steps += 1;
            assert!(steps < 3_000_000, "it never ends");
        }
        self.now = self.now.max(end);
        self.check();
    }

    fn step(&mut self, thread: usize) {
        let Thread { habit, state, .. } = self.threads[thread];
        match state {
            State::Away(_) => {
                self.threads[thread].came = self.now;
                let newcomer = NewWaiter {
                    owner: habit.owner,
                    group: habit.group,
                    request: habit.request,
                    deadline: Time(
                        habit.timeout.map_or(u64::MAX, |timeout| self.now.saturating_add(timeout)),
                    ),
                    can_be_woken: habit.can_be_woken,
                };
                let (outcome, wake) = queue::enter(&mut self.m, &newcomer, Time(self.now));
                self.follow(thread, outcome, wake);
            }
            State::Waits(wait, _) => {
                self.looks += 1;
                self.places.remove(&wait.place);
                let (outcome, wake) = queue::look(&mut self.m, habit.owner, &wait, Time(self.now));
                self.follow(thread, outcome, wake);
            }
            State::Calls(ticket, _) => self.finish(thread, &ticket),
            State::Done => {}
        }
    }

    fn follow(&mut self, thread: usize, outcome: QueueOutcome, wake: Wake) {
        let habit = self.threads[thread].habit;
        match outcome {
            QueueOutcome::Granted(ticket) => {
                assert_eq!(ticket.granted_at, Time(self.now));
                self.threads[thread].grants += 1;
                let came = self.threads[thread].came;
                self.log.push(Served { thread, came, at: self.now, cost: ticket.cost });
                if habit.call == 0 {
                    self.finish(thread, &ticket);
                } else {
                    self.set(thread, State::Calls(ticket, self.now + habit.call));
                }
            }
            QueueOutcome::Waiting(wait) => {
                assert!(wait.until > Time(self.now), "nobody spins");
                let longest = SECOND.max(4 * MS * (self.m.waiting().total() as u64 + 1));
                assert!(wait.until <= Time(self.now + longest), "nobody sleeps longer than the bound");
                self.places.insert(wait.place, thread);
                self.set(thread, State::Waits(wait, wait.until.0.saturating_add(habit.lateness)));
            }
            QueueOutcome::Refused(refusal) => {
                self.threads[thread].refused = Some(refusal);
                self.set(thread, State::Done);
            }
            QueueOutcome::Gone => self.set(thread, State::Away(self.now)),
        }
        self.wake(wake);
        let core = self.m.core();
        assert!(self.policy.concurrency().is_none_or(|most| core.in_flight <= most));
        assert!(self.policy.concurrency_background().is_none_or(|most| core.in_flight_background <= most));
    }

    fn finish(&mut self, thread: usize, ticket: &Ticket) {
        let habit = self.threads[thread].habit;
        decide::release(&mut self.m, habit.owner as usize - 2, ticket);
        let wake = queue::changed(&mut self.m, Time(self.now));
        let again = self.threads[thread].grants < habit.calls;
        self.set(thread, if again { State::Away(self.now) } else { State::Done });
        self.wake(wake);
    }

    pub fn wake(&mut self, wake: Wake) {
        let Wake::One(place) = wake else { return };
        self.wakes += 1;
        let thread = self.places[&place];
        let State::Waits(wait, at) = self.threads[thread].state else { panic!("woken, but awake") };
        let at = at.min(self.now + self.threads[thread].habit.lateness);
        self.set(thread, State::Waits(wait, at));
    }

    /// A thread gives up.
    pub fn leave(&mut self, thread: usize) {
        let State::Waits(wait, _) = self.threads[thread].state else { panic!("does not wait") };
        self.places.remove(&wait.place);
        self.set(thread, State::Done);
        let wake = queue::leave(&mut self.m, self.threads[thread].habit.owner, &wait, Time(self.now));
        self.wake(wake);
    }

    pub fn waiting(&self) -> Vec<usize> {
        let waits = |thread: &Thread| matches!(thread.state, State::Waits(..));
        (0..self.threads.len()).filter(|i| waits(&self.threads[*i])).collect()
    }

    /// Grants per group.
    pub fn by_group(&self) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        for served in &self.log {
            *counts.entry(self.threads[served.thread].habit.group).or_default() += 1;
        }
        counts
    }

    pub fn grants_of(&self, priority: Priority) -> u64 {
        self.log
            .iter()
            .filter(|served| self.threads[served.thread].habit.request.priority == priority)
            .count() as u64
    }

    /// Checks that the counts are true and that no rule was exceeded in any interval. Tokens are computed as R12
    /// defines them, from the log alone.
    pub fn check(&self) {
        for priority in Priority::ALL {
            let waits = |thread: &&Thread| match thread.state {
                State::Waits(wait, _) => {
                    let entry_head = self.m.entry_head(wait.place);
                    // A thread that was stopped for a long time may have lost its place.
                    entry_head.number == wait.number && entry_head.priority() == priority
                }
                _ => false,
            };
            assert_eq!(self.m.waiting().of(priority), self.threads.iter().filter(waits).count());
        }
        for rule in self.policy.rules() {
            let (limit, period) =
                (i128::from(rule.limit), i128::from(shmlimit_kernel::Nanos::of(rule.period).0));
            let full = i128::from(rule.burst) * period;
            let (mut tokens, mut last) = (full, 0);
            for served in &self.log {
                tokens = full.min(tokens + i128::from(served.at - last) * limit);
                tokens -= i128::from(served.cost[usize::from(rule.unit)]) * period;
                last = served.at;
                assert!(tokens >= 0, "{} exceeded at {}", rule.name.as_str(), served.at);
            }
        }
    }
}
