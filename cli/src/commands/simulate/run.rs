//! Runs operations on one limiter in private memory, under a virtual clock.

use super::fields::with_setting;
use super::op::{Cost, Op, Record, What};
use super::result_line::{self, Fsm, Line};
use super::tickets::Tickets;
use crate::ui::json::{self, Json, object};
use shmlimit::headers::{self, HeaderFormat, PARSERS, Parser};
use shmlimit::{Algorithm, Policy, Reason};
use shmlimit_kernel::backoff::Random;
use shmlimit_kernel::breaker::{self, BreakerState};
use shmlimit_kernel::health_state::{HealthStateView, TRANSITIONS};
use shmlimit_kernel::outcome::Report;
use shmlimit_kernel::pace::{self, Observation};
use shmlimit_kernel::pause::Pausing;
use shmlimit_kernel::policy::{Adaptive, BreakerKind, PolicyWords};
use shmlimit_kernel::rule::{self, RuleContext};
use shmlimit_kernel::{AcquireRequest, LocalMemory, MAX_UNITS, Nanos, Refusal, Ticket, Time, View, decide};
use std::collections::BTreeMap;

/// All calls belong to one participant.
const SLOT: usize = 0;

/// A limiter under a virtual clock.
pub struct Run {
    memory: LocalMemory,
    policy: Policy,
    clock: Time,
    tickets: Tickets,
    random: Random,
}

/// The result of an operation: its line, and data for the summary and the plot.
pub struct Step {
    pub line: Line,
    /// The number of granted calls, and why the last one was refused, if it was. Peeks do not count as calls.
    pub granted: u64,
    pub refused: Option<&'static str>,
    pub in_flight: u32,
}

/// An operation that is valid for this limiter.
enum Plan {
    Acquire { ask: AcquireRequest, units: [bool; MAX_UNITS], tries: Option<u64> },
    Record { report: Report<'static>, retry_after: Option<String> },
    Release,
    Cancel,
    Force(breaker::BreakerCommand),
    Pause { length: Option<u64>, reason: String },
    Resume,
    Set { key: String, policy: Box<Policy> },
    Headers { headers: Vec<(String, String)>, parser: &'static dyn Parser },
    Nothing,
}

impl Run {
    pub fn new(policy: &Policy, epoch: u64, seed: u64) -> Run {
        Run {
            memory: LocalMemory::starting_at(policy, epoch).without_permit_bound(),
            policy: *policy,
            clock: Time::ZERO,
            tickets: Tickets::default(),
            random: Random::new(seed),
        }
    }

    /// Returns the kind of the limiter's breaker.
    pub fn kind(&self) -> BreakerKind {
        self.memory.breaker_policy().kind()
    }

    /// Runs an operation. An invalid operation changes nothing.
    pub fn step(&mut self, i: u64, op: Op) -> Result<Step, String> {
        let name = op.what.name();
        let clock = self.clock_at(&op)?;
        let plan = self.plan(op.what)?;
        self.clock = clock;
        let before = self.memory.health().transitions;
        decide::tick(&mut self.memory, clock);
        self.end_lost_probes();
        let mut step = Step {
            line: Line {
                i,
                t: clock.0,
                op: name,
                state: BreakerState::Normal,
                kind: self.kind(),
                transitions: Vec::new(),
                fsm: None,
                answer: object! {},
            },
            granted: 0,
            refused: None,
            in_flight: 0,
        };
        step.line.answer = self.execute_plan(plan, &mut step);
        self.describe(before, &mut step);
        Ok(step)
    }

    /// Returns the permits of calls that were written off. No process is left that could end such a call, so its
    /// permit returns at once (R133). The next record or release then ends a later call.
    fn end_lost_probes(&mut self) {
        let written_at = self.memory.health().written_at;
        while let Some(ticket) = self.tickets.granted_before(written_at) {
            decide::release(&mut self.memory, SLOT, &ticket);
        }
    }

    /// Returns the clock for an operation. Time never goes back (R3).
    fn clock_at(&self, op: &Op) -> Result<Time, String> {
        let at = match op.what {
            What::Advance { by: Some(by) } => {
                let end = || format!("ns = {by}: the clock ends at {} ns", u64::MAX);
                self.clock.0.checked_add(by).ok_or_else(end)?
            }
            _ => op.at.unwrap_or(0),
        };
        Ok(self.clock.max(Time(at)))
    }

    /// Checks an operation without changing anything.
    fn plan(&self, what: What) -> Result<Plan, String> {
        Ok(match what {
            What::Acquire { cost, priority, tries } => {
                let (cost, units) = self.cost(&cost)?;
                Plan::Acquire { ask: AcquireRequest { cost, priority }, units, tries }
            }
            What::Record(Record { class, retry_after, attempt, priority, cost }) => {
                let actual = cost.map(|cost| self.cost(&cost)).transpose()?.map(|(cost, _)| cost);
                // The script does not name a grant, so a late outcome cannot be distinguished from a probe's (R140).
                let report = Report { attempt, priority, actual, ..Report::new(class) };
                Plan::Record { report, retry_after }
            }
            What::Release => Plan::Release,
            What::Cancel => Plan::Cancel,
            What::Force(force) if force.fits(self.kind()) => Plan::Force(force),
            What::Force(force) => {
                let (state, kind) = (force.as_str(), self.kind().as_str());
                return Err(format!("state = {state:?}: a breaker of kind {kind:?} does not have it"));
            }
            What::Pause { length, reason } => Plan::Pause { length, reason },
            What::Resume => Plan::Resume,
            What::Set { key, value } => {
                let policy = Box::new(with_setting(&self.policy, &key, &value)?);
                Plan::Set { key, policy }
            }
            What::Headers { headers, parser } => {
                let configured = self
                    .policy
                    .adaptive()
                    .and_then(|it| HeaderFormat::of(it.parser?))
                    .map(HeaderFormat::as_str);
                let name =
                    parser.as_deref().or(configured).ok_or("parser: missing, and no [adaptive] names one")?;
                let parser = headers::parser(name).ok_or_else(|| {
                    format!("parser = {name:?}: no such parser; there are: {}", PARSERS.join(", "))
                })?;
                Plan::Headers { headers, parser }
            }
            What::Advance { .. } => Plan::Nothing,
        })
    }

    /// Converts a cost to amounts by unit index, and returns which units it asks for.
    fn cost(&self, cost: &Cost) -> Result<([u64; MAX_UNITS], [bool; MAX_UNITS]), String> {
        let (mut amounts, mut named) = ([0; MAX_UNITS], [false; MAX_UNITS]);
        match cost {
            Cost::Requests(requests) => amounts[0] = *requests,
            Cost::Units(units) => {
                amounts[0] = 1;
                for (name, amount) in units {
                    let unit = self.policy.unit(name).ok_or_else(|| {
                        let known: Vec<_> = self.policy.units().map(|unit| unit.to_string()).collect();
                        format!("cost.{name}: no rule counts it; there are: {}", known.join(", "))
                    })?;
                    (amounts[unit], named[unit]) = (*amount, true);
                }
            }
        }
        let asked = amounts.map(|amount| amount > 0);
        Ok((
            amounts,
            match () {
                () if asked.contains(&true) => asked,
                // A peek asks about the units that it names.
                () if named.contains(&true) => named,
                () => [true, false, false, false],
            },
        ))
    }

    fn execute_plan(&mut self, plan: Plan, step: &mut Step) -> Json {
        let now = self.clock;
        match plan {
            Plan::Acquire { ask, units, tries } => self.acquire(&ask, units, tries, step),
            Plan::Record { report, retry_after } => self.record(report, retry_after),
            Plan::Release => {
                if let Some(ending) = self.tickets.oldest() {
                    decide::release(&mut self.memory, SLOT, &ending.ticket);
                }
                object! { "in_flight": self.memory.core().in_flight }
            }
            Plan::Cancel => {
                if let Some(ticket) = self.tickets.latest() {
                    decide::cancel(&mut self.memory, SLOT, &ticket, now);
                }
                object! { "in_flight": self.memory.core().in_flight }
            }
            Plan::Force(force) => {
                decide::force(&mut self.memory, force, now);
                object! {}
            }
            Plan::Pause { length, reason } => {
                let length = length.map(Nanos);
                let asked = Pausing { length, pid: 0, program: [0; 16], reason: &reason };
                decide::pause(&mut self.memory, &asked, now);
                object! {}
            }
            Plan::Resume => {
                decide::resume(&mut self.memory, now);
                object! {}
            }
            Plan::Set { key, policy } => {
                self.memory.change_policy(&self.policy, &policy, now);
                self.policy = *policy;
                object! { "key": key }
            }
            Plan::Headers { headers, parser } => self.apply_headers(&headers, parser),
            Plan::Nothing => object! {},
        }
    }

    fn acquire(
        &mut self,
        ask: &AcquireRequest,
        units: [bool; MAX_UNITS],
        tries: Option<u64>,
        step: &mut Step,
    ) -> Json {
        let now = self.clock;
        let is_peek = ask.cost == [0; MAX_UNITS];
        let delay = self.delay(units);
        let (mut last, mut admitted) = (None, 0_u64);
        for _ in 0..tries.unwrap_or(1) {
            match decide::acquire(&mut self.memory, SLOT, ask, now) {
                Ok(ticket) => {
                    admitted += 1;
                    if ticket.permit.total > 0 {
                        step.granted += 1;
                        self.tickets.add(ticket);
                    }
                    last = Some(Ok(ticket));
                }
                Err(refusal) => {
                    step.refused = Some(refusal.reason.as_str()).filter(|_| !is_peek);
                    last = Some(Err(refusal));
                    break;
                }
            }
        }
        let remaining = decide::remaining(&self.memory, ask.priority, units, now);
        let granted: Option<Ticket> = last.and_then(Result::ok);
        let refusal: Option<Refusal> = last.and_then(Result::err);
        let retry_after_ns = match refusal {
            None => Some(0),
            Some(refusal) => refusal.retry_after().map(|wait| wait.0),
        };
        let open = refusal.filter(|refusal| refusal.reason == Reason::Open);
        // A peek is never delayed, but it may ask how long a call would be delayed.
        let asks = is_peek && !self.policy.is_passthrough();
        let held_back = granted.map(|ticket| if asks { delay.unwrap_or(0) } else { ticket.delay.0 });
        let mut answer = object! {
            "allowed": granted.is_some(),
            "remaining": remaining,
            "retry_after_ns": retry_after_ns,
            "reason": refusal.map(|refusal| refusal.reason.as_str()),
            "rule": refusal.and_then(|refusal| self.blocking(&refusal)),
        };
        let error = open.map(|refusal| {
            let failures = self.memory.health().failures;
            result_line::unavailable(self.policy.provider().as_str(), failures, refusal.retry_after())
        });
        answer.0.extend(tries.map(|_| ("admitted".into(), admitted.into())));
        answer.0.extend(delay.and(held_back).map(|delay| ("delay_ns".into(), delay.into())));
        answer.0.extend(error.map(|error| ("error".into(), error.into())));
        answer
    }

    /// Returns how long leaky buckets of these units delay a call now, or `None` if there are none.
    fn delay(&self, units: [bool; MAX_UNITS]) -> Option<u64> {
        let leaky = |i: &usize| {
            let rule = self.policy.rules()[*i];
            rule.algorithm == Algorithm::LeakyBucket && units[usize::from(rule.unit)]
        };
        let delay = |i| rule::delay(&RuleContext::of(&self.memory, i, self.clock), self.memory.rule(i)).0;
        (0..self.policy.rules().len()).filter(leaky).map(delay).max()
    }

    /// Returns the name of the rule, or of the header window, that caused a refusal.
    fn blocking(&self, refusal: &Refusal) -> Option<String> {
        let index = usize::from(refusal.rule?);
        let name = match refusal.reason {
            Reason::Rate | Reason::CostExceedsLimit => self.policy.rules().get(index)?.name,
            Reason::Adaptive => self.policy.adaptive()?.windows().nth(index)?.name,
            _ => return None,
        };
        Some(name.to_string())
    }

    fn record(&mut self, report: Report<'_>, retry_after: Option<String>) -> Json {
        let now = self.clock;
        let wall = self.memory.wall(now);
        let ending = self.tickets.oldest();
        let can_settle = ending.as_ref().is_some_and(|ending| ending.can_settle);
        let report = Report {
            retry_after: retry_after.and_then(|text| headers::retry_after(&text, wall)),
            actual: report.actual.filter(|_| can_settle),
            ..report
        };
        let ticket = ending.as_ref().map(|ending| &ending.ticket);
        let mut random = self.random;
        let report = Report { random: random.bits(), ..report };
        let verdict = decide::record(&mut self.memory, SLOT, ticket, &report, now);
        let advice = verdict.advice;
        // Only an advice that draws a wait uses a random number, so that a simulation does not depend on other
        // records.
        if advice.drawn {
            self.random = random;
        }
        let samples = f64::from(verdict.samples);
        object! {
            "class": report.class.as_str(),
            "samples": verdict.samples,
            "err_rate": if verdict.samples == 0 { 0.0 } else { verdict.errors as f64 / samples },
            "consec429": verdict.consec429,
            "sleep_source": advice.source.map(|source| source.as_str()),
            "sleep_max_ns": advice.ceiling.0,
            "sleep_ns": verdict.wait.0,
            "retry": advice.retry,
        }
    }

    fn apply_headers(&mut self, headers: &[(String, String)], parser: &dyn Parser) -> Json {
        let now = self.clock;
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let readings = parser.parse(&headers, self.memory.wall(now));
        let observed = |window: &str| {
            let (_, reading) = readings.iter().find(|(name, _)| name == window)?;
            let headers::Reading { limit, remaining, used, reset_after, .. } = *reading;
            Some(Observation { limit, remaining, used, reset_after })
        };
        decide::observe(&mut self.memory, observed, now);
        let parsed: BTreeMap<_, _> =
            readings.iter().map(|(name, reading)| (name.clone(), result_line::reading(reading))).collect();
        let answer = object! { "parsed": json::map(parsed) };
        match self.policy.adaptive() {
            Some(adaptive) => answer.and(self.pace(adaptive).0),
            None => answer,
        }
    }

    fn pace(&self, adaptive: &Adaptive) -> Json {
        let pace = self.memory.pace();
        let bottleneck = usize::try_from(pace.bottleneck).ok().and_then(|number| number.checked_sub(1));
        let window = |(i, window): (usize, _)| {
            let status = pace::status(&self.memory, i, window, self.clock);
            (window.name.to_string(), result_line::window(status.limit, status.remaining))
        };
        let bottleneck = bottleneck.and_then(|index| adaptive.windows().nth(index));
        let windows: BTreeMap<_, _> = adaptive.windows().enumerate().map(window).collect();
        object! {
            "interval_ns": pace.interval.0,
            "bottleneck": bottleneck.map(|window| window.name.to_string()),
            "windows": json::map(windows),
        }
    }

    /// Fills in the keys that every line has, after the operation is complete.
    fn describe(&self, before: u64, step: &mut Step) {
        let (health, kind) = (self.memory.health(), self.kind());
        // One line makes only a few transitions: CacheOnly ends in HalfOpen however far the clock moves, and HalfOpen
        // stays.
        let first = before.max(health.transitions.saturating_sub(TRANSITIONS));
        step.line.transitions =
            (first..health.transitions).map(|number| self.memory.transition(number)).collect();
        step.line.state = health.state();
        step.in_flight = self.memory.core().in_flight;
        step.line.fsm = (kind == BreakerKind::Fsm).then(|| {
            let end = Some(step.line.state).filter(|state| *state == BreakerState::Sleep);
            let end = end.and_then(|_| breaker::eta(&health, &self.memory.breaker_policy()));
            Fsm {
                rate: match breaker::rate_of_rule(&self.memory) {
                    Some((limit, period)) => limit as f64 * 1e9 / period.0 as f64,
                    None => breaker::rate(&self.memory).0 as f64 / 1e9,
                },
                concurrency: breaker::concurrency(&self.memory),
                eta_ns: end.map_or(0, |end| end.since(self.clock).0),
            }
        });
    }
}
