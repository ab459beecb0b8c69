//! A limiter in private memory whose clock the test moves, and helpers for its operations.

#![allow(dead_code)]

pub mod adaptive;
pub mod consecutive;
pub mod permits;
pub mod regressions;
pub mod retries;
pub mod states;
pub mod window;

use shmlimit_kernel::breaker::{self, BreakerCommand, BreakerState, TransitionCause};
use shmlimit_kernel::decide::{self, Verdict};
use shmlimit_kernel::health_state::{Health, HealthStateView};
use shmlimit_kernel::log_context::{LogBaseline, RecentEvents};
use shmlimit_kernel::outcome::{self, OutcomeClass, Report};
use shmlimit_kernel::policy::{Breaker, BreakerKind};
use shmlimit_kernel::*;
use std::time::Duration;

pub const SECOND: u64 = 1_000_000_000;
pub const MINUTE: u64 = 60 * SECOND;

/// A limiter and its clock.
pub struct Rig {
    pub m: LocalMemory,
    pub policy: Policy,
    pub now: u64,
    known: u64,
}

/// A state change: time, new state, cause.
pub type Change = (u64, BreakerState, TransitionCause);

impl Rig {
    pub fn new(draft: &PolicyDraft<'_>) -> Rig {
        let policy = Policy::new(draft).expect("valid");
        Rig { m: LocalMemory::new(&policy), policy, now: 0, known: 0 }
    }

    /// TMDB's numbers: 35 per second, 4 in flight, the breaker with five states (R50).
    pub fn tmdb(change: impl FnOnce(&mut Breaker)) -> Rig {
        let mut breaker = Breaker::of(BreakerKind::Fsm);
        change(&mut breaker);
        Rig::new(&PolicyDraft {
            concurrency: Some(4),
            rules: &[bucket(35, 35)],
            breaker,
            ..PolicyDraft::default()
        })
    }

    pub fn consecutive() -> Rig {
        let breaker = Breaker::of(BreakerKind::Consecutive);
        Rig::new(&PolicyDraft { breaker, ..PolicyDraft::default() })
    }

    pub fn request(&mut self, cost: u64, priority: Priority) -> Result<Ticket, Refusal> {
        decide::acquire(&mut self.m, 0, &AcquireRequest::requests(cost, priority), Time(self.now))
    }

    pub fn acquire(&mut self) -> Result<Ticket, Refusal> {
        self.request(1, Priority::User)
    }

    /// Why an acquire is refused, and for how long.
    pub fn refused(&mut self) -> (Reason, Option<u64>) {
        let refusal = self.acquire().expect_err("refused");
        (refusal.reason, refusal.retry_after().map(|wait| wait.0))
    }

    pub fn report(&mut self, ticket: Option<&Ticket>, report: &Report<'_>) -> Verdict {
        decide::record(&mut self.m, 0, ticket, report, Time(self.now))
    }

    /// Records an outcome without a grant.
    pub fn record(&mut self, class: OutcomeClass) -> Verdict {
        self.report(None, &Report::new(class))
    }

    pub fn records(&mut self, class: OutcomeClass, times: usize) -> Verdict {
        (0..times).map(|_| self.record(class)).last().expect("at least one")
    }

    /// Records an outcome with a Retry-After.
    pub fn retry_after(&mut self, class: OutcomeClass, wait: u64) -> Verdict {
        self.report(None, &Report { retry_after: Some(Nanos(wait)), ..Report::new(class) })
    }

    pub fn force(&mut self, what: BreakerCommand) {
        assert!(decide::force(&mut self.m, what, Time(self.now)));
    }

    /// Moves the clock to `now`, and runs the timers.
    pub fn at(&mut self, now: u64) -> &mut Rig {
        self.now = now;
        decide::tick(&mut self.m, Time(now));
        self
    }

    pub fn after(&mut self, by: u64) -> &mut Rig {
        self.at(self.now + by)
    }

    pub fn health(&self) -> Health {
        self.m.health()
    }

    pub fn state(&self) -> BreakerState {
        self.health().state()
    }

    /// In thousandths of a unit per second.
    pub fn rate(&self) -> u64 {
        breaker::rate(&self.m).0 / 1_000_000
    }

    pub fn concurrency(&self) -> Option<u32> {
        breaker::concurrency(&self.m)
    }

    pub fn window(&self) -> (u32, u64) {
        outcome::counted(&self.m, Time(self.now))
    }

    pub fn left(&self) -> Option<u64> {
        decide::remaining(&self.m, Priority::User, [true; MAX_UNITS], Time(self.now))
    }

    /// The state changes since the last call of this function.
    pub fn new_transitions(&mut self) -> Vec<Change> {
        let recent = RecentEvents::since(&self.m, LogBaseline { transitions: self.known, paused: false });
        self.known = self.health().transitions;
        recent.iter().map(|t| (t.at.0, t.to, t.cause)).collect()
    }

    pub fn change(&mut self, draft: &PolicyDraft<'_>) {
        let new = Policy::new(draft).expect("valid");
        self.m.change_policy(&self.policy, &new, Time(self.now));
        self.policy = new;
    }
}

/// A token bucket with this rate per second and this burst.
pub fn bucket(rate: u64, burst: u64) -> RuleDraft<'static> {
    RuleDraft {
        burst: Some(burst),
        ..RuleDraft::new(Algorithm::TokenBucket, rate, Duration::from_nanos(SECOND))
    }
}
