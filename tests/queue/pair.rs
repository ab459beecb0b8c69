//! Runs the same operations on the kernel's queue and on the oracle's.

use super::machine::{MS, SECOND, rule};
use super::oracle::{GRACE, Oracle, Verdict, Waiter};
use proptest::prelude::*;
use shmlimit_kernel::pause::Pausing;
use shmlimit_kernel::queue::{self as kernel, NewWaiter, QueueOutcome, QueueTicket, Wake};
use shmlimit_kernel::*;

#[derive(Clone, Debug)]
pub enum Op {
    Enter {
        slot: u64,
        group: u64,
        cost: [u64; 2],
        priority: Priority,
        timeout: Option<u64>,
        can_be_woken: bool,
    },
    /// The call with the earliest wake time checks, and is late by this much.
    Sleep {
        late: u64,
    },
    Look(prop::sample::Index),
    Leave(prop::sample::Index),
    Release(prop::sample::Index),
    Cancel(prop::sample::Index),
    Try {
        cost: [u64; 2],
        priority: Priority,
    },
    Die {
        slot: u64,
    },
    Step(u64),
    Patch(usize),
    /// Pauses for this long, or until resumed.
    Pause(Option<u64>),
    Resume,
}

pub fn priority() -> impl Strategy<Value = Priority> {
    prop_oneof![2 => Just(Priority::Background), 3 => Just(Priority::User), 1 => Just(Priority::Webhook)]
}

pub fn cost() -> impl Strategy<Value = [u64; 2]> {
    prop_oneof![4 => Just([1, 0]), 2 => (1u64..9).prop_map(|n| [n, 0]), 1 => (0u64..3, 1u64..20).prop_map(|(r, t)| [r, t])]
}

pub fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    let timeout =
        prop::option::weighted(0.3, prop_oneof![0u64..3 * SECOND, Just(0), Just(365 * 86_400 * SECOND)]);
    prop_oneof![
        10 => (0u64..5, 0u64..5, cost(), priority(), timeout, prop::bool::weighted(0.8)).prop_map(
            |(slot, group, cost, priority, timeout, can_be_woken)| {
                Op::Enter { slot, group, cost, priority, timeout, can_be_woken }
            }
        ),
        10 => prop_oneof![3 => Just(0u64), 2 => 0u64..200_000, 1 => 0..30 * MS].prop_map(|late| Op::Sleep { late }),
        2 => index().prop_map(Op::Look),
        2 => index().prop_map(Op::Leave),
        6 => index().prop_map(Op::Release),
        2 => index().prop_map(Op::Cancel),
        2 => (cost(), priority()).prop_map(|(cost, priority)| Op::Try { cost, priority }),
        1 => (0u64..5).prop_map(|slot| Op::Die { slot }),
        3 => prop_oneof![0u64..40 * MS, Just(3600 * SECOND)].prop_map(Op::Step),
        1 => (0usize..4).prop_map(Op::Patch),
        1 => prop::option::weighted(0.6, prop_oneof![1u64..100 * MS, 1u64..5 * SECOND]).prop_map(Op::Pause),
        2 => Just(Op::Resume),
    ]
}

/// Four policies with the same units, to change between.
pub fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let one = (
        1u64..300,
        4u64..20,
        0u64..4,
        prop::option::of(1u64..4),
        prop::option::of(1u64..3),
        prop_oneof![2 => Just(0u64), 2 => 1u64..999_999, 1 => Just(1_000_000u64)],
        prop::bool::weighted(0.25),
    );
    (prop::collection::vec(one, 4), any::<bool>()).prop_map(|(policies, two_units)| {
        let policy =
            |(limit, burst, reserve, concurrency, concurrency_background, background_share, fifo)| {
                let tokens =
                    RuleDraft { name: Some("t"), unit: Some("tokens"), ..rule(limit * 3, burst * 2) };
                let rules = [RuleDraft { reserve, name: Some("r"), ..rule(limit, burst) }, tokens];
                let fairness = if fifo { Fairness::Fifo } else { Fairness::Process };
                let rules = &rules[..if two_units { 2 } else { 1 }];
                let draft = PolicyDraft {
                    concurrency,
                    concurrency_background,
                    background_share,
                    fairness,
                    rules,
                    ..PolicyDraft::default()
                };
                Policy::new(&draft).expect("valid")
            };
        policies.into_iter().map(policy).collect()
    })
}

/// The kernel's memory, the oracle, and the outstanding tickets.
pub struct Pair {
    pub m: LocalMemory,
    pub oracle: Oracle,
    pub tickets: Vec<(u64, Ticket)>,
    pub now: u64,
}

impl Pair {
    pub fn request(&self, cost: [u64; 2], priority: Priority) -> AcquireRequest {
        let tokens = if self.oracle.policy.units().count() > 1 { cost[1] } else { 0 };
        AcquireRequest { cost: [cost[0].max(u64::from(tokens == 0)), tokens, 0, 0], priority }
    }

    pub fn check_next_look(&self, w: &Waiter, verdict: Verdict, until: u64) -> Result<(), TestCaseError> {
        let (now, time) = (self.now, verdict.time.expect("refused else"));
        prop_assert!(until > now && until <= now + SECOND && until <= w.deadline);
        let latest = (now + SECOND).min(w.deadline);
        // During a pause without a known end, calls check no more often than necessary.
        if self.oracle.paused == u64::MAX {
            let longest = if w.can_be_woken { SECOND } else { 200 * MS };
            prop_assert_eq!(until, (now + longest).min(w.deadline));
        }
        if verdict.permit {
            // The next check is not before the call could go. It is also not so late that a lost wake-up would cost
            // much.
            prop_assert!(until >= time.min(latest));
            let slack = if w.can_be_woken { 20 * MS * (verdict.ahead + 1) } else { 0 };
            prop_assert!(until <= time + slack);
        }
        Ok(())
    }

    pub fn enter(&mut self, mut w: Waiter) -> Result<(), TestCaseError> {
        let fifo = self.oracle.policy.queueing().fairness == Fairness::Fifo;
        let class = w.request.priority as usize;
        let highest = self
            .oracle
            .waiters
            .iter()
            .filter(|o| o.request.priority == w.request.priority)
            .map(|o| o.tag)
            .max();
        let end = self.oracle.ends.get(&(w.group, class as u8)).copied().unwrap_or(0);
        w.arrival = self.oracle.arrivals;
        w.weight = self.oracle.weight(&w.request);
        w.tag = self.oracle.clocks[class].max(if fifo { highest.unwrap_or(0) } else { end });
        let verdict = self.oracle.check(&self.m, &w, self.now);
        let mut before = self.m.clone();
        decide::tick(&mut before, Time(self.now));
        let newcomer = NewWaiter {
            owner: w.owner,
            group: w.group,
            request: w.request,
            deadline: Time(w.deadline),
            can_be_woken: w.can_be_woken,
        };
        let (outcome, wake) = kernel::enter(&mut self.m, &newcomer, Time(self.now));
        prop_assert_eq!(wake, Wake::None);
        let goes = verdict.permit && verdict.time == Some(self.now);
        let in_time = w.deadline > self.now && verdict.time.is_some_and(|time| time <= w.deadline);
        let alone = self.oracle.waiters.is_empty();
        match outcome {
            QueueOutcome::Granted(ticket) => {
                prop_assert!(goes, "{verdict:?}");
                self.tickets.push((w.owner, ticket));
                self.oracle.granted(&self.m, &w, self.now, false);
                if !alone && !fifo {
                    self.oracle.ends.insert((w.group, class as u8), w.tag + w.weight);
                }
            }
            QueueOutcome::Refused(refusal) => {
                prop_assert!(!goes && !in_time, "{verdict:?} {refusal:?}");
                prop_assert_eq!(&self.m, &before, "a refusal leaves no trace (R5)");
                prop_assert!(refusal.ready_at.is_none_or(|at| Some(at.0) == verdict.time));
            }
            QueueOutcome::Waiting(wait) => {
                prop_assert!(!goes && in_time, "{verdict:?}");
                self.check_next_look(&w, verdict, wait.until.0)?;
                (w.wait, w.wake_at) = (wait, wait.until.0);
                self.oracle.waiters.push(w);
                self.oracle.arrivals += 1;
                if !fifo {
                    self.oracle.ends.insert((w.group, class as u8), w.tag + w.weight);
                }
            }
            QueueOutcome::Gone => prop_assert!(false),
        }
        Ok(())
    }

    pub fn look(&mut self, arrival: u64) -> Result<(), TestCaseError> {
        let w = *self.oracle.waiters.iter().find(|w| w.arrival == arrival).expect("waits");
        let verdict = self.oracle.check(&self.m, &w, self.now);
        let goes =
            verdict.permit && verdict.time == Some(self.now) && self.now <= w.deadline.saturating_add(GRACE);
        let in_time = w.deadline > self.now && verdict.time.is_some_and(|time| time <= w.deadline);
        let (outcome, wake) = kernel::look(&mut self.m, w.owner, &w.wait, Time(self.now));
        match outcome {
            QueueOutcome::Granted(ticket) => {
                prop_assert!(goes, "{verdict:?}");
                self.tickets.push((w.owner, ticket));
                self.oracle.granted(&self.m, &w, self.now, true);
                prop_assert_eq!(wake, self.oracle.wake(&self.m, self.now));
            }
            QueueOutcome::Refused(_) => {
                prop_assert!(!goes && !in_time, "{verdict:?}");
                self.oracle.left(arrival);
                prop_assert_eq!(wake, self.oracle.wake(&self.m, self.now));
            }
            QueueOutcome::Waiting(wait) => {
                prop_assert!(!goes && in_time, "{verdict:?}");
                self.check_next_look(&w, verdict, wait.until.0)?;
                let mine = self.oracle.waiters.iter_mut().find(|w| w.arrival == arrival).expect("waits");
                let late = self.now.saturating_sub(w.wake_at);
                let waited_for = if late > GRACE && late <= 25 * MS { late } else { 0 };
                mine.wait = wait;
                mine.wake_at = (wait.until.0 + waited_for).min(self.now + 5 * SECOND);
                prop_assert_eq!(wake, Wake::None);
            }
            QueueOutcome::Gone => prop_assert!(false, "its place is gone"),
        }
        Ok(())
    }

    pub fn changed(&mut self) -> Result<(), TestCaseError> {
        let wake = kernel::changed(&mut self.m, Time(self.now));
        prop_assert_eq!(wake, self.oracle.wake(&self.m, self.now));
        Ok(())
    }

    pub fn give_back(&mut self, ticket: usize, cancel: bool) -> Result<(), TestCaseError> {
        let (owner, ticket) = self.tickets.swap_remove(ticket);
        if cancel {
            decide::cancel(&mut self.m, owner as usize - 2, &ticket, Time(self.now));
        } else {
            decide::release(&mut self.m, owner as usize - 2, &ticket);
        }
        self.changed()
    }

    pub fn step(&mut self, op: &Op, policies: &[Policy]) -> Result<(), TestCaseError> {
        let chosen = |index: &prop::sample::Index, n: usize| (n > 0).then(|| index.index(n));
        match op {
            Op::Enter { slot, group, cost, priority, timeout, can_be_woken } => {
                let request = self.request(*cost, *priority);
                let deadline = timeout.map_or(u64::MAX, |timeout| self.now + timeout);
                let wait =
                    QueueTicket { place: 0, number: 0, until: Time(0), timed: false, suspects_dead: false };
                self.enter(Waiter {
                    owner: slot + 2,
                    group: *group,
                    request,
                    deadline,
                    can_be_woken: *can_be_woken,
                    arrival: 0,
                    tag: 0,
                    weight: 0,
                    wake_at: 0,
                    wait,
                })?;
            }
            Op::Sleep { late } => {
                if let Some(next) = self.oracle.waiters.iter().min_by_key(|w| w.wake_at).copied() {
                    self.now = self.now.max(next.wake_at.saturating_add(*late));
                    self.look(next.arrival)?;
                }
            }
            Op::Look(index) => {
                if let Some(i) = chosen(index, self.oracle.waiters.len()) {
                    self.look(self.oracle.waiters[i].arrival)?;
                }
            }
            Op::Leave(index) => {
                if let Some(i) = chosen(index, self.oracle.waiters.len()) {
                    let w = self.oracle.waiters[i];
                    let wake = kernel::leave(&mut self.m, w.owner, &w.wait, Time(self.now));
                    self.oracle.left(w.arrival);
                    prop_assert_eq!(wake, self.oracle.wake(&self.m, self.now));
                }
            }
            Op::Release(index) | Op::Cancel(index) => {
                if let Some(i) = chosen(index, self.tickets.len()) {
                    self.give_back(i, matches!(op, Op::Cancel(_)))?;
                }
            }
            Op::Try { cost, priority } => self.try_one(*cost, *priority)?,
            Op::Die { slot } => {
                let waited = self.oracle.waiters.iter().filter(|w| w.owner == slot + 2).count();
                let reclaimed = decide::reclaim(&mut self.m, *slot as usize);
                prop_assert_eq!(reclaimed.waited, waited);
                // Leaves in the order of places. Only the first eight removals move others up.
                let mut dead: Vec<Waiter> =
                    self.oracle.waiters.iter().filter(|w| w.owner == slot + 2).copied().collect();
                dead.sort_by_key(|w| w.wait.place);
                prop_assume!(dead.len() <= 8);
                dead.iter().for_each(|w| self.oracle.left(w.arrival));
                self.tickets.retain(|(owner, _)| *owner != slot + 2);
                self.changed()?;
            }
            Op::Pause(length) => {
                let length = length.map(Nanos);
                let asked = Pausing { length, pid: 1, program: [0; 16], reason: "" };
                decide::pause(&mut self.m, &asked, Time(self.now));
                self.oracle.paused = length.map_or(u64::MAX, |length| self.now + length.0);
                self.changed()?;
            }
            Op::Resume => {
                decide::resume(&mut self.m, Time(self.now));
                self.oracle.paused = 0;
                self.changed()?;
            }
            Op::Step(by) => self.now += by,
            Op::Patch(i) => {
                self.m.change_policy(&self.oracle.policy, &policies[*i], Time(self.now));
                self.oracle.policy = policies[*i];
                self.changed()?;
            }
        }
        self.oracle.agrees(&self.m, self.now)
    }

    /// A call that does not wait passes no waiting call of its priority or above.
    pub fn try_one(&mut self, cost: [u64; 2], priority: Priority) -> Result<(), TestCaseError> {
        let request = self.request(cost, priority);
        let owed = self.oracle.owed(&self.m, self.now);
        let order = self.oracle.order(&self.m, self.now);
        let ahead: Vec<Waiter> = order
            .into_iter()
            .filter(|w| w.request.priority as u8 >= priority as u8 || owed == Some(w.arrival))
            .collect();
        let wait = QueueTicket { place: 0, number: 0, until: Time(0), timed: false, suspects_dead: false };
        let w = Waiter {
            owner: 7,
            group: 99,
            request,
            deadline: 0,
            can_be_woken: false,
            arrival: u64::MAX,
            tag: u64::MAX,
            weight: 0,
            wake_at: 0,
            wait,
        };
        let verdict = self.oracle.check_behind(&self.m, &w, &ahead, false, self.now);
        let goes = verdict.permit && verdict.time == Some(self.now);
        let clocks = self.oracle.clocks;
        match decide::acquire(&mut self.m, 5, &request, Time(self.now)) {
            Ok(ticket) => {
                prop_assert!(goes);
                self.tickets.push((7, ticket));
                self.oracle.granted(&self.m, &w, self.now, false);
                self.oracle.clocks = clocks;
            }
            Err(refusal) => {
                prop_assert!(!goes);
                let alone = self.oracle.check_behind(&self.m, &w, &[], false, self.now);
                let free = alone.permit && alone.time == Some(self.now);
                prop_assert_eq!(refusal.reason == Reason::Queued, free);
                let paused = self.oracle.paused > self.now && refusal.reason != Reason::CostExceedsLimit;
                prop_assert_eq!(refusal.reason == Reason::Paused, paused);
            }
        }
        Ok(())
    }
}
