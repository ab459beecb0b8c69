//! The short form of a decision, for the usual case: only rules and permits can be in the way of a call, because no
//! call waits and the next check time has not come.
//!
//! It has the same results as the general form in this module's parent, and is several times as fast. Each rule is
//! charged as soon as it admits the call, so its terms and its state are used while they are in registers, and nothing
//! is kept for a second round. If a later rule refuses, the caller undoes the whole operation.

use super::{NEVER, permit_free, take_permit};
use crate::MAX_RULES;
use crate::request::{AcquireRequest, Reason, Refusal};
use crate::rule::{self, Need, RuleContext};
use crate::state::{Charge, Checked, Held, Memory, Ticket, View};
use crate::terms::Terms;
use crate::time::{Nanos, Time};

/// The part of a [`Ticket`] that is not known from the request. The whole ticket is built after the lock is free: a
/// store that is not made while the lock is held does not delay its release.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    granted_at: Time,
    permit: Held,
    delay: Nanos,
    charges: [Charge; MAX_RULES],
}

impl Granted {
    /// The ticket for the given request.
    #[inline(always)]
    pub fn ticket(&self, request: &AcquireRequest) -> Ticket {
        let Granted { granted_at, permit, delay, charges } = *self;
        Ticket { granted_at, cost: request.cost, permit, delay, charges }
    }
}

/// Grants a call if every rule admits it.
///
/// If it returns `None`, the caller must undo every change of this operation, and decide by
/// [`acquire`](crate::decide::acquire): the call is refused, or something else than rules and permits matters.
#[inline(always)]
pub fn acquire_by_rules<M: Memory>(
    m: &mut M,
    slot: usize,
    request: &AcquireRequest,
    checked: &Checked,
    now: Time,
) -> Option<Granted> {
    let general = m.general();
    let background = request.priority.is_background();
    let now = now.max(checked.core.latest);
    if !m.waiting().is_empty()
        || now >= m.next_check()
        || request.is_peek()
        || !permit_free(&general, &checked.core, background)
    {
        return None;
    }
    let (mut charges, mut delay) = ([Charge(0); MAX_RULES], Nanos::ZERO);
    for (rule, charge) in charges.iter_mut().enumerate().take(general.rules) {
        let [head] = m.terms_words(rule, 0);
        let kind = Terms::of_head(head);
        let need = Need { cost: request.cost[kind.unit()], leave_reserve: background };
        if need.cost == 0 && kind.is_bucket() {
            continue;
        }
        if kind.is_leaky() {
            delay = delay.max(rule::delay(&RuleContext::of(m, rule, now), m.rule(rule)));
        }
        *charge = rule::take(m, rule, head, now, need)?;
    }
    let permit = take_permit(m, slot, checked, background, now);
    Some(Granted { granted_at: now, permit, delay, charges })
}

/// A refusal by a rule or for lack of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleRefusal {
    /// The rule with the longest wait. `None` if all permits are in use.
    rule: Option<u8>,
    /// The time at which all rules admit the call.
    until: Time,
    checked_at: Time,
}

impl RuleRefusal {
    /// The reason: rate or concurrency.
    #[inline(always)]
    pub const fn reason(&self) -> Reason {
        if self.rule.is_some() { Reason::Rate } else { Reason::Concurrency }
    }

    /// The refusal that [`check`](crate::decide::check) returns.
    #[inline(always)]
    pub const fn refusal(self) -> Refusal {
        let RuleRefusal { rule, until, checked_at } = self;
        let retry_at = if rule.is_some() { Some(until) } else { None };
        let reason = self.reason();
        Refusal { reason, rule, retry_at, ready_at: Some(until), gate: checked_at, checked_at }
    }
}

/// The short form of [`check`](crate::decide::check) for a call that a rule or the lack of a permit refuses. `None` in
/// any other case. Refused callers ask again and again, so this is the most frequent decision.
#[inline(always)]
pub fn check_by_rules<V: View>(v: &V, request: &AcquireRequest, now: Time) -> Option<RuleRefusal> {
    let (general, core, next_check) = (v.general(), v.core(), v.next_check());
    let background = request.priority.is_background();
    let now = now.max(core.latest);
    if now >= next_check {
        return None;
    }
    let free = permit_free(&general, &core, background);
    let mut longest = RuleRefusal { rule: None, until: now, checked_at: now };
    for rule in 0..general.rules.min(MAX_RULES) {
        let until = rule::admits_at(v, rule, now, &request.cost, background)?;
        // At the next check time, the breaker may change the terms of the first rule. A damaged rule may never admit
        // a call.
        if rule == 0 && until >= next_check || until == NEVER {
            return None;
        }
        if until > longest.until {
            longest = RuleRefusal { rule: Some(rule as u8), until, checked_at: now };
        }
    }
    match longest.rule {
        Some(_) if free => Some(longest),
        None if free || request.is_peek() => None,
        _ => Some(RuleRefusal { rule: None, ..longest }),
    }
}
