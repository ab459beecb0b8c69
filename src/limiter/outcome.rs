//! Records how a call ended, and derives the advice.

use super::Limiter;
use super::events::{self, Transition};
use super::outcome_code::{NetError, OutcomeCode};
use super::ratio;
use super::segment_chain::LimiterSegment;
use crate::headers::{self, Header, HeaderFormat, Reading};
use shmlimit_kernel::backoff::Random;
use shmlimit_kernel::backoff::WaitSource;
use shmlimit_kernel::decide::{self, Verdict};
use shmlimit_kernel::health_state::{Health, HealthStateView};
use shmlimit_kernel::ledger;
use shmlimit_kernel::log_context::RecentEvents;
use shmlimit_kernel::outcome::{OutcomeClass, Report, Reporter};
use shmlimit_kernel::pace::Observation;
use shmlimit_kernel::policy::PolicyWords;
use shmlimit_kernel::queue;
use shmlimit_kernel::state::View;
use shmlimit_kernel::{MAX_UNITS, Nanos, Priority, Ticket};
use shmlimit_segment::Error;
use shmlimit_segment::layout::{slot, slot_base};
use shmlimit_segment::{Attachment, Tx, Wakeups};
use std::time::Duration;

/// How a call ended.
///
/// ```
/// use shmlimit::{NetError, Outcome};
/// use std::time::Duration;
///
/// let fine = Outcome::http(200, &[]);
/// let throttled = Outcome::http(429, &[("Retry-After", "30")]).latency(Duration::from_millis(120));
/// let broken = Outcome::error(NetError::ReadTimeout).attempt(2);
/// # let _ = (fine, throttled, broken);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'o> {
    end: End,
    headers: &'o [Header<'o>],
    attempt: Option<u32>,
    latency: Option<Duration>,
    priority: Option<Priority>,
    actual: &'o [(&'o str, u64)],
}

#[derive(Clone, Copy, Debug)]
enum End {
    Status(u16),
    NoAnswer(NetError),
}

impl End {
    const fn code(self) -> OutcomeCode {
        match self {
            End::Status(status) => OutcomeCode::Status(status),
            End::NoAnswer(error) => OutcomeCode::Error(error),
        }
    }
}

impl<'o> Outcome<'o> {
    /// The server answered with this status and these headers. Retry-After is respected. Rate limit headers are
    /// read if the limiter is configured for them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// let advice = limiter.record(&shmlimit::Outcome::http(429, &[("Retry-After", "30")]))?;
    /// assert_eq!(advice.wait.as_secs(), 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn http(status: u16, headers: &'o [(&'o str, &'o str)]) -> Outcome<'o> {
        Outcome::new(End::Status(status), headers)
    }

    /// The server did not answer. The kind of error is for people, and all kinds count alike.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::{NetError, Outcome, OutcomeClass};
    ///
    /// let advice = limiter.record(&Outcome::error(NetError::ReadTimeout))?;
    /// assert_eq!(advice.outcome_class, OutcomeClass::Net);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn error(error: NetError) -> Outcome<'o> {
        Outcome::new(End::NoAnswer(error), &[])
    }

    const fn new(end: End, headers: &'o [Header<'o>]) -> Outcome<'o> {
        Outcome { end, headers, attempt: None, latency: None, priority: None, actual: &[] }
    }

    /// The number of the attempt, from 1. Without it, consecutive failures of all processes are counted instead
    /// (R77).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::{NetError, Outcome};
    ///
    /// let last = Outcome::error(NetError::Dns).attempt(100);
    /// assert!(!limiter.record(&last)?.retry); // too many attempts
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn attempt(mut self, attempt: u32) -> Outcome<'o> {
        self.attempt = Some(attempt);
        self
    }

    /// How long the call took.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::Outcome;
    /// use std::time::Duration;
    ///
    /// limiter.record(&Outcome::http(200, &[]).latency(Duration::from_millis(120)))?;
    /// assert_eq!(limiter.snapshot()?.condition.outcomes.latency_sum, Duration::from_millis(120));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn latency(mut self, latency: Duration) -> Outcome<'o> {
        self.latency = Some(latency);
        self
    }

    /// The priority of the call if it has no grant. It decides how often the call may be retried (R76).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::{Outcome, Priority};
    ///
    /// limiter.record(&Outcome::http(503, &[]).priority(Priority::User))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Outcome<'o> {
        self.priority = Some(priority);
        self
    }

    /// The actual cost, for units whose cost is known by now. The other units keep the requested cost (R129).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// use shmlimit::{Limiter, Outcome, Request};
    ///
    /// let limiter = Limiter::builder("llm").directory(directory.path()).rate("tokens=1000/h").open()?;
    /// let grant = limiter.acquire(&Request::new().cost("tokens", 100))?;
    /// grant.record(&Outcome::http(200, &[]).cost(&[("tokens", 40)]))?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 960);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn cost(mut self, actual: &'o [(&'o str, u64)]) -> Outcome<'o> {
        self.actual = actual;
        self
    }

    /// Whether this is a plain success. A Retry-After has no meaning on it.
    #[inline]
    fn is_plain_success(&self) -> bool {
        matches!(self.end, End::Status(ledger::USUAL))
    }

    /// The actual cost by unit index: `requested`, replaced for the units whose cost is known by now.
    fn actual_cost(
        &self,
        link: &LimiterSegment,
        requested: [u64; MAX_UNITS],
    ) -> Result<[u64; MAX_UNITS], Box<Error>> {
        let mut costs = requested;
        for (unit, amount) in self.actual {
            if let Some(cost) = costs.get_mut(link.unit(unit)?) {
                *cost = *amount;
            }
        }
        Ok(costs)
    }

    /// The report for the kernel. `ticket` is the call's, if it has one. `made` is the time of its grant, even if
    /// the permit belongs to another process.
    fn report(
        &self,
        link: &LimiterSegment,
        ticket: Option<&Ticket>,
        made: Option<&Ticket>,
        wall: u64,
    ) -> Result<Report<'static>, Box<Error>> {
        let class = match self.end {
            End::Status(status) => {
                OutcomeClass::of_status(status).ok_or_else(|| Box::new(Error::BadStatus { status }))?
            }
            End::NoAnswer(_) => OutcomeClass::Net,
        };
        let requested = ticket.map(|ticket| ticket.cost).unwrap_or_default();
        let actual = match self.actual {
            [] => None,
            _ => Some(self.actual_cost(link, requested)?),
        };
        Ok(Report {
            class,
            retry_after: headers::retry_after_in(self.headers, wall),
            attempt: self.attempt,
            priority: self.priority.or(made.map(priority_of)).unwrap_or_default(),
            latency: self.latency.map(|latency| Nanos(super::nanos(latency))),
            actual,
            granted_at: made.map(|ticket| ticket.granted_at),
            code: Some(self.end.code().number()),
            ..Report::new(class)
        })
    }
}

/// The answer of a limiter to an outcome: whether to retry, and when.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let advice = limiter.record(&shmlimit::Outcome::http(200, &[]))?;
/// assert!(!advice.retry && advice.wait.is_zero());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The class of the outcome.
    pub outcome_class: OutcomeClass,
    /// Number of outcomes that count, including this one.
    pub samples: u32,
    /// The ratio of errors among these outcomes.
    pub error_ratio: f64,
    /// Number of consecutive 429 responses.
    pub consec429: u32,
    /// How long to wait before the next try. It is random if the policy has jitter.
    pub wait: Duration,
    /// The upper bound of a random wait.
    pub wait_at_most: Duration,
    /// The source of the wait; `None` if there is no wait.
    pub wait_source: Option<WaitSource>,
    /// Whether to retry (R76).
    pub retry: bool,
    /// The transitions that this outcome and due timers caused.
    pub transitions: Vec<Transition>,
}

impl Advice {
    /// The advice for a success in a healthy limiter.
    const fn success(samples: u32) -> Advice {
        Advice {
            outcome_class: OutcomeClass::Ok,
            samples,
            error_ratio: 0.0,
            consec429: 0,
            wait: Duration::ZERO,
            wait_at_most: Duration::ZERO,
            wait_source: None,
            retry: false,
            transitions: Vec::new(),
        }
    }
}

impl LimiterSegment {
    /// Records how the call of a grant ended. If the limiter was replaced meanwhile, the permit no longer exists,
    /// but the outcome is recorded for the successor.
    #[inline(always)]
    pub(super) fn record_call(
        &self,
        attachment_id: u64,
        ticket: &Ticket,
        outcome: &Outcome<'_>,
    ) -> Result<Advice, Error> {
        match self.record(Some((attachment_id, ticket)), outcome) {
            Err(error) if matches!(*error, Error::Replaced { .. }) => {
                let Some(shared) = self.shared.upgrade() else { return Err(*error) };
                let priority = outcome.priority.unwrap_or(priority_of(ticket));
                let recorded =
                    Limiter { shared }.record(&Outcome { actual: &[], ..outcome.priority(priority) })?;
                // Only after the outcome is recorded: a grant that could not be recorded must still be released.
                if self.segment.is_present(attachment_id) {
                    self.segment.returned_too_late(ticket.permit.total);
                }
                Ok(recorded)
            }
            recorded => Ok(recorded?),
        }
    }

    /// Records how a call ended, by the short form if possible.
    #[inline(always)]
    pub(super) fn record(
        &self,
        grant: Option<(u64, &Ticket)>,
        outcome: &Outcome<'_>,
    ) -> Result<Advice, Box<Error>> {
        if let Some((attachment_id, ticket)) = grant
            && outcome.is_plain_success()
            && let Some(samples) = self.record_success(attachment_id, ticket, outcome)
        {
            return Ok(Advice::success(samples));
        }
        self.record_full(grant, outcome)
    }

    /// [`decide::record_success`], if its conditions hold.
    #[inline(always)]
    fn record_success(&self, attachment_id: u64, ticket: &Ticket, outcome: &Outcome<'_>) -> Option<u32> {
        let segment = &self.segment;
        let attachment = segment.present().filter(|attachment| attachment.id == attachment_id)?;
        let raw = segment.raw_now(&attachment);
        let actual = match outcome.actual {
            [] => None,
            _ => Some(outcome.actual_cost(self, ticket.cost).ok()?),
        };
        let latency = outcome.latency.map(|latency| Nanos(super::nanos(latency)));
        let (mut tx, now, checked) = segment.begin_at_once(&attachment, raw)?;
        // Dropping the transaction undoes its changes.
        let samples = decide::record_success(
            &mut tx,
            attachment.slot,
            ticket,
            actual.as_ref(),
            latency,
            &checked,
            now,
        )?;
        let committed = tx.commit().is_ok();
        tx.end();
        committed.then_some(samples)
    }

    /// Records how a call ended. The call has a grant, unless that is from before a fork or the call was never
    /// granted.
    #[inline(never)]
    fn record_full(
        &self,
        grant: Option<(u64, &Ticket)>,
        outcome: &Outcome<'_>,
    ) -> Result<Advice, Box<Error>> {
        let segment = &self.segment;
        let deadline = segment.deadline();
        let attachment = segment.attachment_within(&deadline)?;
        // After a fork the permit belongs to the parent. The child's outcome still counts, and the time of the
        // grant is known (R140).
        let ticket =
            grant.filter(|(attachment_id, _)| segment.is_present(*attachment_id)).map(|(_, ticket)| ticket);
        let (wall, readings) = self.readings(outcome.headers)?;
        let readings: Vec<_> =
            readings.iter().map(|(window, said)| (window.as_str(), observed(said))).collect();
        let report = outcome.report(self, ticket, grant.map(|(_, ticket)| ticket), wall)?;
        let report = Report { readings: &readings, ..report };
        let ((verdict, log_context), recent) = segment.change(&attachment, &deadline, |tx, now| {
            let before = tx.health();
            let mut report = report;
            report.reporter = Some(reporter(tx, &attachment));
            report.random = Random::new(now.0 ^ attachment.id.rotate_left(32)).bits();
            let verdict = decide::record(tx, attachment.slot, ticket, &report, now);
            let wakeups = self.wakeups_for(tx, &attachment, &before);
            let log_context = events::log_context_of(tx, report.class, now);
            Ok(((verdict, log_context), wakeups))
        })?;
        if let Some(log_context) = log_context {
            events::backoff(self.name(), outcome.end.code(), &verdict, &log_context);
        }
        events::transitions_after(self.name(), &recent, &verdict);
        Ok(recorded(report.class, &verdict, &recent))
    }

    /// The rate limits in the headers, if the limiter is configured for them, and the wall time of reading them.
    fn readings(&self, headers: &[Header<'_>]) -> Result<(u64, Vec<(String, Reading)>), Error> {
        if headers.is_empty() {
            return Ok((0, Vec::new()));
        }
        let wall = self.segment.clock_source().wall_now();
        let format = self.segment.look(|view| view.adaptive_policy().and_then(|adaptive| adaptive.parser))?;
        let parser = format.and_then(HeaderFormat::of).map(HeaderFormat::parser);
        Ok((wall, parser.map(|parser| parser.parse(headers, wall)).unwrap_or_default()))
    }

    /// The calls to wake after an outcome. `before` is the health state before it.
    fn wakeups_for(&self, tx: &mut Tx<'_>, attachment: &Attachment, before: &Health) -> Wakeups {
        if tx.waiting().is_empty() {
            return Wakeups::NONE;
        }
        let health = tx.health();
        if health.transitions != before.transitions && health.state().blocks().is_some() {
            Wakeups::each(queue::all(tx))
        } else if health.gate_until > before.gate_until {
            // No call can proceed, but some calls can no longer meet their deadline. They are woken to be refused
            // (R132).
            Wakeups::each(queue::giving_up_before(tx, health.gate_until))
        } else {
            Wakeups::first(self.segment.after_change(tx, attachment))
        }
    }
}

fn recorded(class: OutcomeClass, verdict: &Verdict, recent: &RecentEvents) -> Advice {
    let duration = |nanos: Nanos| Duration::from_nanos(nanos.0);
    Advice {
        outcome_class: class,
        samples: verdict.samples,
        error_ratio: ratio(verdict.errors, verdict.samples),
        consec429: verdict.consec429,
        wait: duration(verdict.wait),
        wait_at_most: duration(verdict.advice.ceiling),
        wait_source: verdict.advice.source,
        retry: verdict.advice.retry,
        transitions: Transition::all(recent),
    }
}

/// The priority of the call, as far as it decides the number of retries.
fn priority_of(ticket: &Ticket) -> Priority {
    if ticket.permit.background > 0 { Priority::Background } else { Priority::User }
}

/// This process as its slot identifies it.
fn reporter(tx: &Tx<'_>, attachment: &Attachment) -> Reporter {
    let base = slot_base(attachment.slot);
    let program: [u64; 2] = tx.words().load_array(base + slot::PROGRAM);
    Reporter { pid: tx.load(base + slot::PID), program: bytemuck::cast(program) }
}

fn observed(reading: &Reading) -> Observation {
    let Reading { limit, remaining, used, reset_after, .. } = *reading;
    Observation { limit, remaining, used, reset_after }
}
