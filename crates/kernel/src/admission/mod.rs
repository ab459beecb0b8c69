//! Decides whether one call may go, apart from the queue: pause, breaker, gate, pace, permits and rules
//! together (R38, R130).
//!
//! The queue uses this module for calls that wait, and `decide` for calls that do not.

mod by_rules;
mod layers;

pub use by_rules::{Granted, RuleRefusal, acquire_by_rules, check_by_rules};
pub use layers::is_settled;
pub(crate) use layers::{opening, refused_without_end};

use super::breaker;
use super::pace;
use super::request::{AcquireRequest, Priority, Reason, Refusal};
use super::rule::{self, Need, RuleContext, When};
use super::state::Ticket;
use super::state::{Checked, Core, General, Held, Memory, RuleState, View};
use super::time::Time;
use super::{MAX_PERMITS, MAX_RULES};
use layers::Layers;

/// The longest wait among the rules.
#[derive(Clone, Copy)]
struct Wait {
    rule: Option<u8>,
    until: Time,
}

/// The wait for a cost that the rule can never admit.
const NEVER: Time = Time(u64::MAX);

impl Wait {
    #[inline]
    const fn none(now: Time) -> Wait {
        Wait { rule: None, until: now }
    }

    /// The longer of this wait and that of `rule`. This wait, if they are equal.
    #[inline]
    fn with(self, rule: usize, until: Time) -> Wait {
        let longer = self.rule.is_none() || until > self.until;
        if longer { Wait { rule: Some(rule as u8), until } } else { self }
    }

    /// The refusal that names the first layer in the way (R4, R39).
    #[inline]
    fn refusal(self, layers: &Layers, permit_free: bool, now: Time) -> Refusal {
        let paced = layers.paced_until > self.until;
        let (reason, rule, retry_at) = match (self.until, layers.block) {
            (NEVER, _) => (Reason::CostExceedsLimit, self.rule, None),
            (_, Some(block)) => (block.reason, None, block.until),
            _ if !permit_free => (Reason::Concurrency, None, None),
            _ if paced => (Reason::Adaptive, layers.bottleneck, Some(layers.paced_until)),
            (time, _) => (Reason::Rate, self.rule, Some(time)),
        };
        let rules = Some(self.until).filter(|until| *until != NEVER);
        let ready_at = rules.zip(layers.open_at(now)).map(|(rules, open)| rules.max(open));
        Refusal { reason, rule, retry_at, ready_at, gate: layers.gate, checked_at: now }
    }
}

#[inline(always)]
pub(crate) fn permit_free(general: &General, core: &Core, background: bool) -> bool {
    core.in_flight < general.concurrency.unwrap_or(MAX_PERMITS)
        && (!background || general.concurrency_background.is_none_or(|most| core.in_flight_background < most))
}

/// Whether a permit is free after `calls` others have taken theirs. `background` of them are background calls.
pub(crate) fn permit_free_behind<V: View>(v: &V, priority: Priority, calls: u32, background: u32) -> bool {
    let core = v.core().taken(Held { total: calls, background });
    permit_free(&v.general(), &core, priority.is_background())
}

/// Runs [`tick`](breaker::tick) before a call is checked, and evaluates the pace again. Returns the effective
/// time.
pub(crate) fn prepare<M: Memory>(m: &mut M, now: Time) -> Time {
    let now = now.max(m.core().latest);
    if now >= m.next_check() {
        prepare_with_next_check(m, now);
    }
    now
}

#[cold]
fn prepare_with_next_check<M: Memory>(m: &mut M, now: Time) {
    breaker::tick(m, now);
    if let Some(adaptive) = m.adaptive_policy() {
        pace::evaluate(m, &adaptive, now);
    }
}

/// Charges a call whose turn it is, if every layer admits it. If `leave_reserve` is set, a background call does
/// not use the reserve.
pub(crate) fn charge_all<M: Memory>(
    m: &mut M,
    slot: usize,
    request: &AcquireRequest,
    leave_reserve: bool,
    now: Time,
) -> Result<Ticket, Refusal> {
    let (general, core) = (m.general(), m.core());
    let background = request.priority.is_background();
    let watched = now >= m.next_check();
    let layers = if watched { Layers::of(m, now) } else { Layers::none(now) };
    let mut ticket = Ticket::uncharged(request, now);
    let pass = watched && m.is_passthrough();
    if request.is_peek() {
        return match layers.block {
            Some(_) if !pass => Err(Wait::none(now).refusal(&layers, true, now)),
            _ => Ok(ticket),
        };
    }
    let free = permit_free(&general, &core, background);
    let rules = Rules { count: general.rules, leave_reserve: background && leave_reserve, pass };
    charge_rules(m, &rules, request, free, &layers, &mut ticket)?;
    let checked = Checked { core, held: m.held(slot) };
    ticket.permit = take_permit(m, slot, &checked, background, now);
    if watched {
        layers::admitted(m, now);
    }
    Ok(ticket)
}

#[inline(always)]
fn take_permit<M: Memory>(m: &mut M, slot: usize, checked: &Checked, background: bool, now: Time) -> Held {
    let Checked { core, held } = *checked;
    let permit = Held { total: 1, background: u32::from(background) };
    m.replace_core(core, Core { latest: now, ..core }.taken(permit));
    m.replace_held(slot, held, held.plus(permit), now);
    permit
}

/// The rules to charge, and how to charge them.
struct Rules {
    count: usize,
    leave_reserve: bool,
    /// Passthrough: a call that is not admitted goes anyway and is not charged (R41).
    pass: bool,
}

/// Charges the rules if a permit is free, no other layer is in the way, and all rules admit the call.
fn charge_rules<M: Memory>(
    m: &mut M,
    rules: &Rules,
    request: &AcquireRequest,
    permit_free: bool,
    layers: &Layers,
    ticket: &mut Ticket,
) -> Result<(), Refusal> {
    let now = ticket.granted_at;
    let mut states = [RuleState::default(); MAX_RULES];
    let mut charged = [false; MAX_RULES];
    let mut wait = Wait::none(now);
    for i in 0..rules.count.min(MAX_RULES) {
        let at = RuleContext::of(m, i, now);
        let cost = request.cost[at.terms.unit()];
        // Damaged terms do not say reliably which unit they count, so such a rule is asked even if the cost is
        // 0.
        if cost == 0 && at.terms.kind().is_some() {
            continue;
        }
        let state = m.rule(i);
        let need = Need { cost, leave_reserve: rules.leave_reserve };
        match rule::admit(m, &at, state, need) {
            Some((after, charge)) => {
                (states[i], ticket.charges[i]) = (after, charge);
                charged[i] = true;
                ticket.delay = ticket.delay.max(rule::delay(&at, state));
            }
            None => {
                let until = match until(m, &at, state, need) {
                    // `admit` and `earliest` differ only on damaged words. A refusal with the retry time "now"
                    // would not be a refusal to the caller.
                    time if time <= now => NEVER,
                    later => later,
                };
                wait = wait.with(i, until);
            }
        }
    }
    let refused = !permit_free || wait.rule.is_some() || layers.block.is_some() || layers.paced_until > now;
    if refused && !rules.pass {
        return Err(wait.refusal(layers, permit_free, now));
    }
    for i in 0..rules.count.min(MAX_RULES) {
        if charged[i] {
            let at = RuleContext::of(m, i, now);
            let cost = request.cost[at.terms.unit()];
            rule::store(m, &at, cost, (states[i], ticket.charges[i]));
        }
    }
    Ok(())
}

/// The time at which a rule admits a call. [`NEVER`] if it never does.
#[inline]
fn until<V: View>(v: &V, at: &RuleContext, state: RuleState, need: Need) -> Time {
    match rule::earliest(v, at, state, need) {
        When::Now => at.now,
        When::At(time) if at.rule == 0 && time >= v.next_check() => {
            breaker::admitted_at(v, at.now, state, need, time)
        }
        When::At(time) => time,
        When::Never => NEVER,
    }
}

/// The refusal that [`decide::acquire`](crate::decide::acquire) would return, if any. Takes nothing. Without
/// the lock, check [`is_settled`] first.
pub fn check<V: View>(v: &V, request: &AcquireRequest, now: Time) -> Option<Refusal> {
    let (general, core) = (v.general(), v.core());
    let now = now.max(core.latest);
    let background = request.priority.is_background();
    let watched = now >= v.next_check();
    let layers = if watched { Layers::of(v, now) } else { Layers::none(now) };
    if watched && v.is_passthrough() {
        return None;
    }
    if request.is_peek() {
        return layers.block.map(|_| Wait::none(now).refusal(&layers, true, now));
    }
    let free = permit_free(&general, &core, background);
    let mut wait = Wait::none(now);
    for rule in 0..general.rules.min(MAX_RULES) {
        let at = RuleContext::of(v, rule, now);
        let cost = request.cost[at.terms.unit()];
        if cost > 0 {
            let until = until(v, &at, v.rule(rule), Need { cost, leave_reserve: background });
            wait = if until > now { wait.with(rule, until) } else { wait };
        }
    }
    let refused = wait.rule.is_some() || !free || layers.block.is_some() || layers.paced_until > now;
    if refused { Some(wait.refusal(&layers, free, now)) } else { None }
}
