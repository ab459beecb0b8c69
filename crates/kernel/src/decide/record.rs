//! Records how calls ended, and the contents of their response headers.

use super::release;
use crate::MAX_UNITS;
use crate::backoff::{self, BackoffAdvice};
use crate::breaker;
use crate::gate;
use crate::health_state::{HealthStateMemory, HealthStateView};
use crate::ledger;
use crate::outcome::{self, OutcomeClass, Report};
use crate::pace::{self, Observation};
use crate::state::{Checked, Core, Memory, Ticket};
use crate::time::{Nanos, Time};

/// The result of recording an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Outcomes in the window, including this one, before its consequences.
    pub samples: u32,
    /// The errors among them.
    pub errors: u64,
    /// Successive 429 responses.
    pub consec429: u32,
    /// The advice to the caller.
    pub advice: BackoffAdvice,
    /// How long the caller should wait. Drawn with the random bits of the report, if the policy asks for jitter
    /// (R74).
    pub wait: Nanos,
    /// Whether this outcome closed the gate, or kept it closed for longer (R73).
    pub closed_gate: bool,
}

/// Records how a call ended, in one step (R130). Settles its cost, returns its permit, closes the gate for as
/// long as the server asked, updates the breaker, adds to the statistics, and evaluates the response headers.
/// `ticket` is the call's ticket, if it has one.
pub fn record<M: Memory>(
    m: &mut M,
    slot: usize,
    ticket: Option<&Ticket>,
    report: &Report<'_>,
    now: Time,
) -> Verdict {
    let verdict = evaluate_outcome(m, slot, ticket, report, now);
    if let Some(code) = report.code {
        ledger::ended(m, code);
    }
    if verdict.wait > Nanos::ZERO {
        ledger::change(m, |ledger| ledger.sleeps(verdict.wait));
    }
    if verdict.closed_gate
        && let Some(reporter) = report.reporter
    {
        gate::note_closed_by(m, reporter, now);
    }
    if !report.readings.is_empty() {
        let said = |window: &str| report.readings.iter().find(|(name, _)| *name == window);
        observe(m, |window| said(window).map(|(_, said)| *said), now);
    }
    verdict
}

/// The short form of [`record`] for the usual case: the call succeeded, no timer is due, no call waits, and no recent
/// failure is stored. Does not handle response headers. `actual` is the actual cost, if it differs from the requested
/// one. Returns the number of outcomes in the window.
///
/// If it returns `None`, the caller must undo every change of this operation and use [`record`].
#[inline(always)]
pub fn record_success<M: Memory>(
    m: &mut M,
    slot: usize,
    ticket: &Ticket,
    actual: Option<&[u64; MAX_UNITS]>,
    latency: Option<Nanos>,
    checked: &Checked,
    now: Time,
) -> Option<u32> {
    let Checked { core, held } = *checked;
    let now = now.max(core.latest);
    let window = m.healthy_window()?;
    if now >= m.next_check() || !m.waiting().is_empty() || m.has_written_off() {
        return None;
    }
    if ticket.permit.total == 0 || held.total < ticket.permit.total {
        return None;
    }
    let (oldest, samples) = outcome::make_room(m, window, now)?;
    if let Some(actual) = actual {
        release::settle_rules(m, ticket, actual, core.latest, now);
    }
    m.set_outcome(oldest.wrapping_add(samples), outcome::entry(OutcomeClass::Ok, now));
    m.set_healthy_window(oldest, samples + 1);
    m.add_ok();
    if let Some(latency) = latency {
        m.add_latency(latency);
    }
    m.replace_core(core, Core { latest: now, ..core }.given_back(ticket.permit));
    m.replace_held(slot, held, held.minus(ticket.permit), now);
    Some(samples + 1)
}

/// Applies an outcome to permit and cost, gate and breaker, and computes the advice for the caller.
fn evaluate_outcome<M: Memory>(
    m: &mut M,
    slot: usize,
    ticket: Option<&Ticket>,
    report: &Report<'_>,
    now: Time,
) -> Verdict {
    let core = m.core();
    let now = now.max(core.latest);
    breaker::tick(m, now);
    if let Some(ticket) = ticket {
        // This comes first, because the possible refund depends on the time of the last change.
        if let Some(actual) = report.actual {
            super::settle(m, ticket, actual, now);
        }
        super::release(m, slot, ticket);
    }
    let core = m.core();
    m.set_core(Core { latest: now, ..core });
    outcome::tally(m, report);
    let backoff = m.backoff_policy();
    let is_target = report.class.is_backoff_target();
    let wait = report.retry_after.filter(|_| is_target).map(|said| backoff::retry_after(&backoff, said));
    let mut health = m.health();
    let closed_gate = wait.is_some_and(|wait| gate::close(&mut health, wait, now));
    health.run = match report.class {
        OutcomeClass::Ok => 0,
        OutcomeClass::Ignored => health.run,
        _ => health.run.saturating_add(1),
    };
    let evaluated = breaker::record(m, &mut health, report, wait, now);
    let advice = backoff::advise(&backoff, &health, report, wait);
    m.set_health(&health);
    breaker::schedule_check(m, &health, now);
    Verdict {
        samples: evaluated.samples,
        errors: evaluated.errors,
        consec429: evaluated.consec429,
        advice,
        wait: advice.wait(report.random),
        closed_gate,
    }
}

/// Evaluates response headers. `said` returns the reading for a window name. Windows that are not configured
/// are ignored (R92, R94).
pub fn observe<M: Memory>(m: &mut M, said: impl Fn(&str) -> Option<Observation>, now: Time) {
    let Some(adaptive) = m.adaptive_policy() else { return };
    let core = m.core();
    let now = now.max(core.latest);
    breaker::tick(m, now);
    m.set_core(Core { latest: now, ..core });
    for (i, window) in adaptive.windows().enumerate() {
        if let Some(said) = said(window.name.as_str()) {
            pace::observe(m, i, window, &said, now);
        }
    }
    pace::evaluate(m, &adaptive, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LocalMemory;
    use crate::outcome::Reporter;
    use crate::policy::{Policy, PolicyDraft};
    use crate::state::GateNote;

    const REPORTER: Reporter = Reporter { pid: 7, program: *b"curl\0\0\0\0\0\0\0\0\0\0\0\0" };

    fn fresh() -> LocalMemory {
        LocalMemory::new(&Policy::new(&PolicyDraft::default()).unwrap())
    }

    #[test]
    fn r116_r142_one_record_counts_code_and_wait_and_notes_the_process_that_closed_the_gate() {
        let mut m = fresh();
        let (code, retry_after) = (Some(429), Some(Nanos::from_secs(30)));
        let throttled =
            Report { code, retry_after, reporter: Some(REPORTER), ..Report::new(OutcomeClass::Throttled) };
        let verdict = record(&mut m, 0, None, &throttled, Time(5));
        assert_eq!((verdict.wait, verdict.closed_gate), (Nanos::from_secs(30), true));
        assert_eq!(m.gate_note(), GateNote { at: Time(5), pid: 7, program: REPORTER.program });
        assert_eq!(ledger::codes(&m).collect::<Vec<_>>(), [(429, 1)]);
        assert_eq!(ledger::ledger(&m).sleep_sum, Nanos::from_secs(30).0);
        // A shorter wait does not move the gate, so the note stays.
        let shorter = Report { retry_after: Some(Nanos::from_secs(1)), ..throttled };
        record(&mut m, 0, None, &shorter, Time(6));
        assert_eq!(m.gate_note().at, Time(5));
    }

    #[test]
    fn r74_a_wait_is_drawn_with_the_random_bits_of_the_report() {
        let waits = [0, u64::MAX].map(|random| {
            let failed = Report { random, attempt: Some(1), ..Report::new(OutcomeClass::Server) };
            record(&mut fresh(), 0, None, &failed, Time(0)).wait
        });
        assert_eq!(waits, [Nanos::ZERO, Nanos::from_millis(1500)]);
    }
}
