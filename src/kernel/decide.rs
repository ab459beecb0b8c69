//! The only entry points: every decision about a limiter is one of these functions.
//!
//! Each takes effective time as max(now, latest change) (R3), decides on copies, and writes only if something
//! changes, so a refusal leaves no trace (R5).

use super::ask::{Ask, Priority, Reason, Refusal, Ticket};
use super::policy::Policy;
use super::queue;
use super::rule::{self, Charge, Charged, When};
use super::state::{Core, General, Held, Memory, RuleState, View};
use super::terms::Terms;
use super::time::Time;
use super::{MAX_PERMITS, MAX_RULES, MAX_UNITS};

/// The longest wait among the rules.
#[derive(Clone, Copy)]
struct Wait {
    rule: Option<u8>,
    /// Nothing = never.
    until: Option<Time>,
}

impl Wait {
    #[inline]
    const fn none(now: Time) -> Wait {
        Wait { rule: None, until: Some(now) }
    }

    /// The longer of this wait and that of `rule`, this one if they are equal.
    #[inline]
    fn with(self, rule: usize, when: When) -> Wait {
        let until = match when {
            When::Now => return self,
            When::At(time) => Some(time),
            When::Never => None,
        };
        let longer = match (self.until, until) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(longest), Some(time)) => self.rule.is_none() || time > longest,
        };
        if longer { Wait { rule: Some(rule as u8), until } } else { self }
    }

    #[inline]
    fn refusal(self, permit_free: bool, now: Time) -> Refusal {
        let (reason, rule, retry_at) = match self.until {
            None => (Reason::CostExceedsLimit, self.rule, None),
            Some(_) if !permit_free => (Reason::Concurrency, None, None),
            Some(time) => (Reason::Rate, self.rule, Some(time)),
        };
        Refusal { reason, rule, retry_at, ready_at: self.until, judged_at: now }
    }
}

#[inline(always)]
fn permit_free(general: &General, core: &Core, background: bool) -> bool {
    core.in_flight < general.concurrency.unwrap_or(MAX_PERMITS)
        && (!background || general.concurrency_background.is_none_or(|most| core.in_flight_background < most))
}

/// Whether a permit is free if `calls`, some of them for the background, get theirs before.
pub(super) fn permit_free_behind<V: View>(v: &V, priority: Priority, calls: u32, background: u32) -> bool {
    let core = v.core();
    let core = Core {
        in_flight: core.in_flight.saturating_add(calls),
        in_flight_background: core.in_flight_background.saturating_add(background),
        ..core
    };
    permit_free(&v.general(), &core, priority.is_background())
}

/// Asks for a call on behalf of the participant in `slot`: everything is charged, or nothing (R38, R130).
#[inline(always)]
pub fn acquire<M: Memory>(m: &mut M, slot: usize, ask: &Ask, now: Time) -> Result<Ticket, Refusal> {
    let now = now.max(m.core().latest);
    let waited_for = !m.waiting().is_empty() && !ask.is_peek();
    if waited_for && let Some(refusal) = queue::no_overtaking(m, ask, now) {
        return Err(refusal);
    }
    let ticket = charge_all(m, slot, ask, true, now)?;
    if waited_for {
        queue::settle_share(m, ask);
    }
    Ok(ticket)
}

/// Charges a call whose turn it is, if everything admits it. The reserve is left alone if `leave_reserve`, by the
/// background.
#[inline(always)]
pub(super) fn charge_all<M: Memory>(
    m: &mut M,
    slot: usize,
    ask: &Ask,
    leave_reserve: bool,
    now: Time,
) -> Result<Ticket, Refusal> {
    let (general, core) = (m.general(), m.core());
    let background = ask.priority.is_background();
    if ask.is_peek() {
        return Ok(Ticket {
            granted_at: now,
            cost: ask.cost,
            permit: Held::default(),
            charges: [Charge::default(); MAX_RULES],
        });
    }
    let free = permit_free(&general, &core, background);
    let charges = charge_rules(m, general.rules, ask, free, background && leave_reserve, now)?;
    let permit = take_permit(m, slot, core, background, now);
    Ok(Ticket { granted_at: now, cost: ask.cost, permit, charges })
}

/// A ticket of [`take_from_one`], as much of it as is not known from the ask: a whole one is made where it will stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    granted_at: Time,
    permit: Held,
    charge: Charge,
}

impl Taken {
    /// The ticket for what was asked.
    #[inline(always)]
    pub fn ticket(self, ask: &Ask) -> Ticket {
        let mut charges = [Charge::default(); MAX_RULES];
        charges[0] = self.charge;
        Ticket { granted_at: self.granted_at, cost: ask.cost, permit: self.permit, charges }
    }
}

/// [`acquire`] for the usual case: a limiter of one rule that counts this call as one, and admits it. Nothing in any
/// other, and nothing is taken. Short enough to be inlined, which makes it several times as fast.
#[inline(always)]
pub fn take_from_one<M: Memory>(m: &mut M, slot: usize, ask: &Ask, now: Time) -> Option<Taken> {
    let (general, core) = (m.general(), m.core());
    let background = ask.priority.is_background();
    if general.rules != 1 || !m.waiting().is_empty() || !permit_free(&general, &core, background) {
        return None;
    }
    let now = now.max(core.latest);
    let (state, terms) = (m.rule(0), m.terms(0));
    // A constant cost: a multiplication that is not needed would take all registers.
    if ask.cost[terms.unit()] != 1 {
        return None;
    }
    let (state, charge) = rule::admit(&terms, state, now, 1, background)?;
    m.set_rule(0, state);
    let permit = take_permit(m, slot, core, background, now);
    Some(Taken { granted_at: now, permit, charge })
}

#[inline(always)]
fn take_permit<M: Memory>(m: &mut M, slot: usize, core: Core, background: bool, now: Time) -> Held {
    let permit = Held { total: 1, background: u32::from(background) };
    m.set_core(Core {
        latest: now,
        in_flight: core.in_flight.saturating_add(permit.total),
        in_flight_background: core.in_flight_background.saturating_add(permit.background),
    });
    let held = m.held(slot);
    m.set_held(
        slot,
        Held {
            total: held.total.saturating_add(permit.total),
            background: held.background.saturating_add(permit.background),
        },
    );
    permit
}

/// Charges the first `count` rules, if a permit is free and all of them admit.
#[inline(always)]
fn charge_rules<M: Memory>(
    m: &mut M,
    count: usize,
    ask: &Ask,
    permit_free: bool,
    leave_reserve: bool,
    now: Time,
) -> Result<[Charge; MAX_RULES], Refusal> {
    let mut states = [RuleState::default(); MAX_RULES];
    let mut charges = [Charge::default(); MAX_RULES];
    let mut charged = [false; MAX_RULES];
    let mut wait = Wait::none(now);
    for i in 0..count.min(MAX_RULES) {
        let terms = m.terms(i);
        let cost = ask.cost[terms.unit()];
        if cost == 0 {
            continue;
        }
        let state = m.rule(i);
        match rule::admit(&terms, state, now, cost, leave_reserve) {
            Some(after) => {
                (states[i], charges[i]) = after;
                charged[i] = true;
            }
            None => {
                wait = wait.with(
                    i,
                    match rule::earliest(&terms, state, now, cost, leave_reserve) {
                        // The two differ only on damaged words. "Refused, but now" would be no refusal to the caller.
                        When::Now => When::Never,
                        later => later,
                    },
                );
            }
        }
    }
    if !permit_free || wait.rule.is_some() {
        return Err(wait.refusal(permit_free, now));
    }
    for i in 0..count.min(MAX_RULES) {
        if charged[i] {
            m.set_rule(i, states[i]);
        }
    }
    Ok(charges)
}

/// What [`acquire`] would refuse, without taking anything.
#[inline(always)]
pub fn judge<V: View>(v: &V, ask: &Ask, now: Time) -> Option<Refusal> {
    let (general, core) = (v.general(), v.core());
    let now = now.max(core.latest);
    let background = ask.priority.is_background();
    let free = permit_free(&general, &core, background);
    if ask.is_peek() {
        return None;
    }
    let mut wait = Wait::none(now);
    for rule in 0..general.rules.min(MAX_RULES) {
        let terms = v.terms(rule);
        let cost = ask.cost[terms.unit()];
        if cost > 0 {
            wait = wait.with(rule, rule::earliest(&terms, v.rule(rule), now, cost, background));
        }
    }
    let refused = wait.rule.is_some() || !free;
    if refused { Some(wait.refusal(free, now)) } else { None }
}

/// [`judge`] for the usual refusal: by a limiter of one rule that counts this call, or for want of a permit. Nothing in
/// any other case. Short, because whoever is refused asks again and again.
#[inline(always)]
pub fn judge_one<V: View>(v: &V, ask: &Ask, now: Time) -> Option<Refusal> {
    let general = v.general();
    if general.rules != 1 {
        return None;
    }
    let background = ask.priority.is_background();
    let core = v.core();
    let now = now.max(core.latest);
    let free = permit_free(&general, &core, background);
    let (state, terms) = (v.rule(0), v.terms(0));
    // A constant cost: a multiplication that is not needed would take all registers.
    if ask.cost[terms.unit()] != 1 {
        return None;
    }
    match rule::earliest(&terms, state, now, 1, background) {
        When::At(time) => Some(Wait { rule: Some(0), until: Some(time) }.refusal(free, now)),
        When::Now if !free => Some(Wait::none(now).refusal(false, now)),
        When::Now | When::Never => None,
    }
}

/// Whole units that `priority` can still have of the units marked in `units`: the least over their rules (R7).
/// Nothing if no rule counts them.
pub fn remaining<V: View>(v: &V, priority: Priority, units: [bool; MAX_UNITS], now: Time) -> Option<u64> {
    let now = now.max(v.core().latest);
    (0..v.general().rules.min(MAX_RULES))
        .map(|i| (v.terms(i), i))
        .filter(|(terms, _)| units[terms.unit()])
        .map(|(terms, i)| rule::available(&terms, v.rule(i), now, priority.is_background()))
        .min()
}

/// Gives the permit of a finished call back. What the rules were charged stays charged.
#[inline(always)]
pub fn release<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket) {
    if ticket.permit.total > 0 {
        return_permits(m, slot, ticket.permit);
    }
}

/// Takes a call back that was never sent: its permit and what the rules can still give back (R129).
pub fn cancel<M: Memory>(m: &mut M, slot: usize, ticket: &Ticket, now: Time) {
    // Whoever holds no permit was reaped or reset meanwhile, and its charges with it.
    if ticket.permit.total > 0 && return_permits(m, slot, ticket.permit) {
        settle_rules(m, ticket, [0; MAX_UNITS], now);
    }
}

/// Replaces the cost a ticket was charged by what the call really cost (R129). At most once a ticket.
pub fn settle<M: Memory>(m: &mut M, ticket: &Ticket, actual: [u64; MAX_UNITS], now: Time) {
    if ticket.permit.total > 0 {
        settle_rules(m, ticket, actual, now);
    }
}

fn settle_rules<M: Memory>(m: &mut M, ticket: &Ticket, actual: [u64; MAX_UNITS], now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    m.set_core(Core { latest: now, ..core });
    for i in 0..m.general().rules.min(MAX_RULES) {
        let terms = m.terms(i);
        let (estimate, actual) = (ticket.cost[terms.unit()], actual[terms.unit()]);
        if estimate == actual {
            continue;
        }
        let charged = Charged { at: ticket.granted_at, cost: estimate, charge: ticket.charges[i] };
        let before = m.rule(i);
        let after = rule::settle(&terms, before, now, actual, &charged);
        if after != before {
            m.set_rule(i, after);
        }
    }
}

/// Returns whether the participant had such permits at all.
#[inline(always)]
fn return_permits<M: Memory>(m: &mut M, slot: usize, back: Held) -> bool {
    let held = m.held(slot);
    if held.total < back.total {
        return false;
    }
    let core = m.core();
    m.set_core(Core {
        in_flight: core.in_flight.saturating_sub(back.total),
        in_flight_background: core.in_flight_background.saturating_sub(back.background),
        ..core
    });
    m.set_held(
        slot,
        Held {
            total: held.total.saturating_sub(back.total),
            background: held.background.saturating_sub(back.background),
        },
    );
    true
}

/// What was given back for a participant that is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Its permits.
    pub held: Held,
    /// How many of its calls waited.
    pub waited: usize,
}

impl Reaped {
    /// Whether it had nothing.
    pub fn is_nothing(self) -> bool {
        self == Reaped::default()
    }
}

/// Gives back all permits of a participant that is gone, and takes its calls out of the queue (R113, R131).
pub fn reap<M: Memory>(m: &mut M, slot: usize) -> Reaped {
    let held = m.held(slot);
    if held != Held::default() {
        return_permits(m, slot, held);
    }
    Reaped { held, waited: queue::abandon(m, |standing| standing.slot() == slot) }
}

/// Starts over after the state was lost: no permit out, every rule *empty*, so that nothing is granted twice.
/// The permits of the participants are the caller's to clear. Whoever waits will find its entry gone, and enter anew.
#[cold]
pub fn reset<M: Memory>(m: &mut M, now: Time) {
    for group in 0..queue::WAITERS / 64 {
        m.set_places(group, queue::Places::default());
    }
    m.set_waiting(queue::Waiting::default());
    m.set_core(Core { latest: now, in_flight: 0, in_flight_background: 0 });
    for i in 0..m.general().rules.min(MAX_RULES) {
        let terms = m.terms(i);
        m.set_rule(i, rule::forget(&terms, rule::empty(&terms, now), now));
    }
}

/// Carries the rules' states over from one policy to another (R110); the caller stores the policy itself.
///
/// A rule is the same if it has the same name and unit (the nth of that name, if there are several). A rule
/// that was not there before starts empty: calls that it should have counted may have just been made.
#[cold]
pub fn patch<M: Memory>(m: &mut M, old: &Policy, new: &Policy, now: Time) {
    let core = m.core();
    let now = now.max(core.latest);
    let before: [RuleState; MAX_RULES] = std::array::from_fn(|i| m.rule(i));
    m.set_core(Core { latest: now, ..core });
    for (i, rule) in new.rules().iter().enumerate() {
        let terms = Terms::of(rule);
        let from = same_rule(old, new, i);
        let state = match from.map(|from| (Terms::of(&old.rules()[from]), before[from])) {
            Some((was, state)) => rule::rescale(&was, &terms, state, now),
            None => rule::empty(&terms, now),
        };
        // A ticket knows its charges by the rule's place and in the rule's fractions.
        let tickets_hold = from == Some(i) && state == before[i];
        m.set_rule(i, if tickets_hold { state } else { rule::forget(&terms, state, now) });
    }
}

/// The index that rule `i` of `new` has in `old`.
fn same_rule(old: &Policy, new: &Policy, i: usize) -> Option<usize> {
    let identity = |policy: &Policy, i: usize| {
        let rule = policy.rules()[i];
        (rule.name, policy.units().nth(usize::from(rule.unit)))
    };
    let wanted = identity(new, i);
    let earlier = (0..i).filter(|j| identity(new, *j) == wanted).count();
    (0..old.rules().len()).filter(|j| identity(old, *j) == wanted).nth(earlier)
}

/// Whether the state is one that operations can have made. A state that is not must be [`reset`].
pub fn sane<V: View>(v: &V) -> bool {
    let core = v.core();
    core.in_flight_background <= core.in_flight
        && (0..v.general().rules.min(MAX_RULES)).all(|i| {
            let terms = v.terms(i);
            terms.check() && rule::sane(&terms, v.rule(i), core.latest)
        })
}
