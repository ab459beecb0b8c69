//! Runs each operation on the kernel and on the oracle, and compares everything.

use super::limiter::Refused;
use super::machine::Machine;
use super::policy::{Numbers, SECOND, TOKEN, WINDOWS};
use super::strategy::{Op, Patch, Step};
use shmlimit_kernel::breaker::{self, BreakerState};
use shmlimit_kernel::health_state::HealthStateView;
use shmlimit_kernel::log_context::{LogBaseline, RecentEvents};
use shmlimit_kernel::outcome::{self, OutcomeClass, Report};
use shmlimit_kernel::pace::{self, Observation};
use shmlimit_kernel::pause::{self, Pausing};
use shmlimit_kernel::policy::{BreakerKind, PerSecond, PolicyWords};
use shmlimit_kernel::*;
use std::fmt::Debug;

pub struct Pair {
    kernel: LocalMemory,
    oracle: Machine,
    policy: Policy,
    t: u64,
    next: usize,
    /// Calls in flight, with their tickets and priorities.
    calls: Vec<(usize, Ticket, Priority)>,
}

type Outcome = Result<(), String>;

fn same<T: PartialEq + Debug>(what: &str, kernel: T, oracle: T) -> Outcome {
    if kernel == oracle { Ok(()) } else { Err(format!("{what}: kernel {kernel:?}, oracle {oracle:?}")) }
}

impl Pair {
    pub fn new(numbers: Numbers) -> Pair {
        let policy = numbers.policy();
        let kernel = LocalMemory::new(&policy);
        Pair { kernel, oracle: Machine::new(numbers), policy, t: 0, next: 0, calls: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        let machine = &self.oracle;
        let auto = machine.numbers.breaker.auto_recover.0;
        let timers = [
            machine.until,
            machine.ramp_at,
            Some(machine.gate),
            machine.paused.filter(|until| *until < u64::MAX),
            (machine.state == BreakerState::CacheOnly && auto > 0).then(|| machine.cache_only_until(auto)),
        ];
        let next = timers.into_iter().flatten().filter(|at| *at > self.t).min();
        match *step {
            Step::Stay => {}
            Step::On(by) => self.t += by,
            Step::Back(by) => self.t = self.t.saturating_sub(by),
            Step::ToTimer(off) => self.t = next.map_or(self.t, |at| at.saturating_add_signed(off)),
        }
    }

    pub fn run(&mut self, step: &Step, op: &Op) -> Outcome {
        self.step(step);
        let now = self.oracle.now(self.t);
        let known = LogBaseline::of(&self.kernel);
        let was_paused = self.oracle.paused.is_some();
        self.oracle.recent.clear();
        match op {
            Op::Acquire { cost, priority } => self.acquire(*cost, *priority, now)?,
            Op::Record { call, class, retry_after, attempt, known, actual } => {
                self.record(*call, *class, (*retry_after, *attempt), *known, *actual, now)?;
            }
            Op::Release(call) => {
                decide::tick(&mut self.kernel, Time(self.t));
                self.oracle.tick(now);
                if let Some((id, ticket, _)) = self.take(Some(*call)) {
                    decide::release(&mut self.kernel, 0, &ticket);
                    self.oracle.end(id);
                }
            }
            Op::Cancel(call) => {
                self.oracle.tick(now);
                match self.take(Some(*call)) {
                    None => decide::tick(&mut self.kernel, Time(self.t)),
                    Some((id, ticket, _)) => {
                        self.oracle.end(id);
                        decide::cancel(&mut self.kernel, 0, &ticket, Time(self.t));
                        self.oracle.seen = now;
                        self.refunded(ticket.cost[0], now)?;
                    }
                }
            }
            Op::Force(what) => {
                let fits = what.fits(self.oracle.numbers.kind);
                same("force", decide::force(&mut self.kernel, *what, Time(self.t)), fits)?;
                if fits {
                    self.oracle.tick(now);
                    self.oracle.force(*what, now);
                }
            }
            Op::Pause(length) => {
                let length = length.map(Nanos);
                let asked =
                    Pausing { length, pid: 7, program: *b"operator\0\0\0\0\0\0\0\0", reason: "because" };
                let replaced = decide::pause(&mut self.kernel, &asked, Time(self.t));
                self.oracle.tick(now);
                same("replaced", replaced.map(|pause| pause.until.0), self.oracle.paused)?;
                self.oracle.paused = Some(length.map_or(u64::MAX, |length| now + length.0));
                self.oracle.seen = now;
            }
            Op::Resume => {
                let ended = decide::resume(&mut self.kernel, Time(self.t));
                self.oracle.tick(now);
                same("ended", ended.map(|pause| pause.until.0), self.oracle.paused.take())?;
                self.oracle.seen = now;
            }
            Op::Patch(patch) => self.patch(patch, now),
            Op::Observe { window, limit, remaining, reset } => {
                let said = Observation {
                    limit: *limit,
                    remaining: Some(*remaining),
                    used: None,
                    reset_after: reset.map(Nanos),
                };
                let named = |name: &str| (name == WINDOWS[*window]).then_some(said);
                decide::observe(&mut self.kernel, named, Time(self.t));
                if self.oracle.pace.is_some() {
                    self.oracle.tick(now);
                    self.oracle.seen = now;
                }
                if let Some(pace) = &mut self.oracle.pace {
                    if *window < pace.numbers.windows.len() {
                        pace.observe(*window, *limit, *remaining, *reset, now);
                    }
                    pace.evaluate(now);
                }
            }
            Op::Tick => {
                decide::tick(&mut self.kernel, Time(self.t));
                self.oracle.tick(now);
            }
        }
        let recent = RecentEvents::since(&self.kernel, known);
        let transitions: Vec<_> = recent.iter().map(|t| (t.at.0, t.from, t.to, t.cause)).collect();
        same("transitions", transitions, self.oracle.recent.clone())?;
        let ended = was_paused && self.oracle.paused.is_none();
        same("the end of a pause is told", recent.ended.is_some(), ended)?;
        self.compare(now)
    }

    fn take(&mut self, call: Option<usize>) -> Option<(usize, Ticket, Priority)> {
        let position = call?.checked_rem(self.calls.len())?;
        Some(self.calls.remove(position))
    }

    fn acquire(&mut self, cost: u64, priority: Priority, now: u64) -> Outcome {
        let request = AcquireRequest::requests(cost, priority);
        let id = self.next;
        self.next += 1;
        let wanted = self.oracle.acquire(id, cost, priority, now);
        let mut ticked = self.kernel.clone();
        decide::tick(&mut ticked, Time(self.t));
        let got = decide::acquire(&mut self.kernel, 0, &request, Time(self.t));
        let answer = match got {
            Ok(_) => Ok(()),
            Err(refusal) => Err((refusal.reason, refusal.rule, refusal.retry_at.map(|at| at.0))),
        };
        // The oracle does not predict ramp steps, which change the wait. `tight` checks the time.
        let ramps = |at: &u64| self.oracle.ramp_at.is_some_and(|step| step <= *at);
        match (answer, wanted) {
            (Err((reason, _, Some(_))), Err((wanted, _, Some(at)))) if ramps(&at) => {
                same("reason", reason, wanted)?;
            }
            _ => same("answer", answer, wanted)?,
        }
        match got {
            Ok(ticket) if cost > 0 => {
                same("granted at", ticket.granted_at.0, now)?;
                self.calls.push((id, ticket, priority));
            }
            Ok(_) => {}
            Err(refusal) => {
                if self.oracle.pace.is_none() {
                    same("a refusal changes timers only", self.kernel == ticked, true)?;
                }
                same("judged", decide::check(&self.kernel, &request, Time(self.t)), Some(refusal))?;
                self.tight(&request, answer.unwrap_err())?;
            }
        }
        Ok(())
    }

    /// R4: one nanosecond earlier the call is refused; at the stated time it passes that layer.
    fn tight(&self, request: &AcquireRequest, (reason, rule, at): Refused) -> Outcome {
        let Some(at) = at else { return Ok(()) };
        let again = |t: u64| decide::acquire(&mut self.kernel.clone(), 0, request, Time(t));
        let then = again(at).err().map(|refusal| (refusal.reason, refusal.rule));
        same("still in the way", then == Some((reason, rule)), false)?;
        // A pace that headers taught may become easier in the meantime.
        let easier = reason == Reason::Adaptive;
        let paced = self.oracle.pace.is_some() && reason == Reason::Rate;
        same("not tight", again(at - 1).is_ok() && !easier && !paced, false)
    }

    fn record(
        &mut self,
        call: Option<usize>,
        class: OutcomeClass,
        (retry_after, attempt): (Option<u64>, Option<u32>),
        known: bool,
        actual: Option<u64>,
        now: u64,
    ) -> Outcome {
        let call = self.take(call);
        let ticket = call.map(|(_, ticket, _)| ticket);
        let priority = call.map_or(Priority::User, |(_, _, priority)| priority);
        let granted_at = ticket.map(|ticket| ticket.granted_at).filter(|_| known);
        let report = Report {
            retry_after: retry_after.map(Nanos),
            attempt,
            priority,
            actual: actual.map(|cost| [cost, 0, 0, 0]),
            granted_at,
            ..Report::new(class)
        };
        self.oracle.tick(now);
        let mut refund = None;
        if let Some((id, ticket, _)) = call {
            self.oracle.end(id);
            match actual.map(|actual| actual.checked_sub(ticket.cost[0])) {
                Some(Some(more)) => self.oracle.charge(more, now),
                Some(None) => refund = Some(ticket.cost[0]),
                None => {}
            }
        }
        if let Some(cost) = refund {
            // Other tests check refunds. Here a refund is only bounded and copied to the oracle.
            decide::tick(&mut self.kernel, Time(self.t));
            decide::settle(&mut self.kernel, &ticket.unwrap(), report.actual.unwrap(), Time(self.t));
            self.oracle.seen = now;
            self.refunded(cost, now)?;
        }
        let settled = if refund.is_some() { None } else { report.actual };
        let report = Report { actual: settled, ..report };
        let verdict = decide::record(&mut self.kernel, 0, ticket.as_ref(), &report, Time(self.t));
        let advice = verdict.advice;
        let got = (
            verdict.samples,
            verdict.errors,
            verdict.consec429,
            advice.source,
            advice.ceiling.0,
            advice.drawn,
            advice.retry,
            verdict.closed_gate,
        );
        let granted = granted_at.map(|at| at.0);
        same("verdict", got, self.oracle.record(class, retry_after, attempt, priority, granted, now))
    }

    fn patch(&mut self, patch: &Patch, now: u64) {
        let mut new = self.oracle.numbers.clone();
        let breaker = &mut new.breaker;
        match *patch {
            Patch::Concurrency(most) => new.concurrency = most,
            Patch::Burst(burst) => {
                if let Some(first) = new.rules.first_mut() {
                    first.burst = burst.max(first.reserve);
                }
            }
            Patch::MinSamples(n) => new.window.min_samples = n,
            Patch::RateBase(rate) => breaker.rate_base = PerSecond(rate * SECOND),
            Patch::ProbeRate(rate) => breaker.probe_rate = PerSecond(rate * SECOND),
            Patch::ProbeConcurrency(n) => breaker.probe_concurrency = n,
            Patch::Ratios(throttle, recover) => {
                (breaker.p_throttle, breaker.p_recover) = (throttle, recover);
            }
            Patch::Counts(throttle, sleep) => (breaker.n_throttle, breaker.n_cacheonly) = (throttle, sleep),
            Patch::AutoRecover(every) => breaker.auto_recover = Nanos(every),
            Patch::CacheOnlyAfter(n) => breaker.cache_only_after = n,
            Patch::Sleep(min) => {
                breaker.sleep_min = Nanos(min);
                breaker.sleep_max = breaker.sleep_max.max(Nanos(min));
            }
        }
        let policy = new.policy();
        self.oracle.tick(now);
        self.oracle.patch(new, now);
        self.kernel.change_policy(&self.policy, &policy, Time(self.t));
        self.policy = policy;
    }

    /// The kernel's tokens of a rule, in 10^-18 tokens.
    fn tokens(&self, rule: usize, now: u64) -> i128 {
        let (terms, [whole, frac, ..]) = (self.kernel.terms(rule), self.kernel.rule(rule).0);
        let den = terms.den();
        let ahead =
            whole.checked_sub(now).map_or(0, |whole| i128::from(whole) * i128::from(den) + i128::from(frac));
        let parts = |span: span::Span| span.parts(den) as i128;
        (parts(terms.tau()) - ahead) * (TOKEN / parts(terms.step()))
    }

    /// A refund of up to `cost` may have come back, and nothing more.
    fn refunded(&mut self, cost: u64, now: u64) -> Outcome {
        for rule in 0..self.oracle.buckets.len() {
            let tokens = self.tokens(rule, now);
            let slack = self.slack();
            let bucket = &mut self.oracle.buckets[rule];
            let before = bucket.at(now);
            let most = (before + i128::from(cost) * TOKEN).min(i128::from(bucket.capacity) * TOKEN);
            same("refund", tokens + slack >= before && tokens <= most, true)?;
            bucket.set(tokens, now);
        }
        Ok(())
    }

    /// Each change of rate may round the remaining tokens down by less than a nanosecond's worth.
    fn slack(&self) -> i128 {
        i128::from(self.oracle.changes) * i128::from(self.oracle.numbers.rate_base().max(50 * SECOND))
    }

    fn compare(&mut self, now: u64) -> Outcome {
        let kernel = &self.kernel;
        let health = kernel.health();
        // A call that notices an open gate may advance `latest` to now.
        let latest = kernel.core().latest.0;
        same("latest", latest == self.oracle.seen || latest == now, true)?;
        self.oracle.seen = latest;
        let now = self.oracle.now(now);
        same("state", health.state(), self.oracle.state)?;
        same("gate", health.gate_until.0, self.oracle.gate)?;
        let eta =
            breaker::eta(&health, &kernel.breaker_policy()).filter(|_| health.state() == BreakerState::Sleep);
        same("eta", eta.map(|eta| eta.0), self.oracle.eta())?;
        let paused = pause::paused(kernel, Time(now)).map(|pause| (pause.until.0, pause.reason_text()));
        let wanted = self.oracle.paused.filter(|until| *until > now);
        same("paused", paused, wanted.map(|until| (until, "because".to_owned())))?;
        same("consec429", health.consec429, self.oracle.consec429)?;
        same("concurrency", breaker::concurrency(kernel), self.oracle.concurrency())?;
        same("in flight", kernel.core().in_flight as usize, self.oracle.flights.len())?;
        same("window", outcome::counted(kernel, Time(now)), self.oracle.counted(now))?;
        same("in force", breaker::is_effective(kernel, &self.policy, Time(now)), true)?;
        same("sane", decide::sane(kernel), true)?;
        if self.oracle.numbers.kind == BreakerKind::Fsm {
            same("rate", breaker::rate(kernel).0, self.oracle.shown_rate())?;
        }
        if self.oracle.numbers.kind == BreakerKind::Consecutive {
            same("failures", health.failures, self.oracle.failures)?;
        }
        if let Some(pace) = &self.oracle.pace {
            let bottleneck = pace.bottleneck.map_or(0, |window| u64::from(window) + 1);
            same("pace", (kernel.pace().interval.0, kernel.pace().bottleneck), (pace.interval, bottleneck))?;
            let adaptive = self.policy.adaptive().unwrap();
            for (i, window) in adaptive.windows().enumerate() {
                let status = pace::status(kernel, i, window, Time(now));
                same("window", (status.limit, status.remaining), pace.status(i, now))?;
            }
        }
        let slack = self.slack();
        for rule in 0..self.oracle.buckets.len() {
            let (tokens, exact) = (self.tokens(rule, now), self.oracle.buckets[rule].at(now));
            let slack = if rule == 0 { slack } else { 0 };
            if tokens > exact || exact - tokens > slack {
                return Err(format!("tokens of rule {rule}: kernel {tokens}, oracle {exact}"));
            }
            if tokens != exact {
                self.oracle.buckets[rule].set(tokens, now);
            }
        }
        self.oracle.changes = 0;
        for priority in Priority::ALL {
            let got = decide::remaining(&self.kernel, priority, [true; MAX_UNITS], Time(now));
            same("remaining", got, self.oracle.remaining(priority, now))?;
        }
        Ok(())
    }
}
