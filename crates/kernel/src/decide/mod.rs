//! The entry points of the kernel: every decision about a limiter is one of these functions.
//!
//! Each function computes the effective time as max(now, latest change) (R3), runs the timers that are due, and
//! decides on copies. It writes only if something changes, so a refusal takes nothing (R5).

mod change;
mod record;
mod release;

pub use super::admission::{Granted, RuleRefusal, acquire_by_rules, check, check_by_rules, is_settled};
pub use super::breaker::{BreakerCommand, force};
pub use change::{catch_up, counted, patch, pause, reset, resume, sane};
pub use record::{Verdict, observe, record, record_success};
pub use release::{Reclaimed, cancel, reclaim, release, release_at_once, settle};

use super::admission;
use super::breaker;
use super::queue;
use super::request::{AcquireRequest, Priority, Refusal};
use super::rule::{self, RuleContext};

use super::state::{Memory, Ticket, View};
use super::time::Time;
use super::{MAX_RULES, MAX_UNITS};

/// Runs the timers that are due (R58). Reads after this are up to date.
pub fn tick<M: Memory>(m: &mut M, now: Time) {
    let now = now.max(m.core().latest);
    breaker::tick(m, now);
}

/// Requests a call for the participant in `slot`. Either everything is charged, or nothing (R38, R130).
pub fn acquire<M: Memory>(
    m: &mut M,
    slot: usize,
    request: &AcquireRequest,
    now: Time,
) -> Result<Ticket, Refusal> {
    let now = admission::prepare(m, now);
    let waited_for = !m.waiting().is_empty() && !request.is_peek();
    if waited_for && let Some(refusal) = queue::no_overtaking(m, request, now) {
        return Err(refusal);
    }
    let ticket = admission::charge_all(m, slot, request, true, now)?;
    if waited_for {
        queue::settle_share(m, request);
    }
    Ok(ticket)
}

/// The whole units that are still available to `priority`: the least over the rules that count one of the
/// marked `units` (R7). `None` if no rule counts them.
pub fn remaining<V: View>(v: &V, priority: Priority, units: [bool; MAX_UNITS], now: Time) -> Option<u64> {
    let now = now.max(v.core().latest);
    (0..v.general().rules.min(MAX_RULES))
        .map(|i| RuleContext::of(v, i, now))
        .filter(|at| units[at.terms.unit()])
        .map(|at| rule::available(v, &at, v.rule(at.rule), priority.is_background()))
        .min()
}
