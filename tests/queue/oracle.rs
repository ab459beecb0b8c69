//! A slow implementation of the queue's rules: it keeps its own list of waiting calls, sorts it for every question,
//! and computes with exact fractions.

use super::machine::{MS, SECOND};
use proptest::prelude::*;
use shmlimit_kernel::queue::{self as kernel, QueueTicket, Wake};
use shmlimit_kernel::*;
use std::collections::HashMap;

pub const GRACE: u64 = 10 * MS;
pub const NOT_WORTH_A_WAKE: u64 = 50_000;
pub const WHOLE: u128 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub owner: u64,
    pub group: u64,
    pub request: AcquireRequest,
    pub deadline: u64,
    pub can_be_woken: bool,
    pub arrival: u64,
    pub tag: u64,
    pub weight: u64,
    pub wake_at: u64,
    pub wait: QueueTicket,
}

pub struct Oracle {
    pub policy: Policy,
    pub waiters: Vec<Waiter>,
    pub clocks: [u64; 3],
    pub ends: HashMap<(u64, u8), u64>,
    pub owed: u128,
    pub arrivals: u64,
    /// The end of the pause: 0 means no pause, and the maximum time means that the end is unknown.
    pub paused: u64,
}

/// The oracle's decision about a call.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    pub permit: bool,
    /// When the rules have room for it and for all calls ahead; `None` means never.
    pub time: Option<u64>,
    pub ahead: u64,
}

impl Oracle {
    pub fn new(policy: Policy) -> Oracle {
        Oracle {
            policy,
            waiters: Vec::new(),
            clocks: [0; 3],
            ends: HashMap::new(),
            owed: 0,
            arrivals: 0,
            paused: 0,
        }
    }

    pub fn expected(&self, w: &Waiter, now: u64) -> bool {
        now <= w.wake_at + GRACE && w.wake_at <= now + 5 * SECOND + GRACE && w.deadline >= now
    }

    pub fn weight(&self, request: &AcquireRequest) -> u64 {
        let of = |rule: &Rule| {
            (u128::from(request.cost[usize::from(rule.unit)])
                * u128::from(shmlimit_kernel::Nanos::of(rule.period).0))
            .div_ceil(rule.limit.into())
        };
        (self.policy.rules().iter().map(of).max().unwrap_or(0) as u64).clamp(1 << 10, 1 << 42)
    }

    /// The sort key of the order: owed first, then priority, tag, arrival.
    pub fn key(&self, w: &Waiter, owed: Option<u64>) -> (bool, u8, u64, u64) {
        (owed != Some(w.arrival), 2 - w.request.priority as u8, w.tag, w.arrival)
    }

    /// The first background call that could go and whose process will check.
    pub fn first_of_background(&self, m: &LocalMemory, now: u64) -> Option<&Waiter> {
        let full =
            self.policy.concurrency_background().is_some_and(|most| m.core().in_flight_background >= most);
        self.waiters
            .iter()
            .filter(|w| !full && w.request.priority == Priority::Background && self.expected(w, now))
            .min_by_key(|w| self.key(w, None))
    }

    /// The arrival number of the background call that is owed its share.
    pub fn owed(&self, m: &LocalMemory, now: u64) -> Option<u64> {
        let share = u128::from(self.policy.queueing().background_share);
        let first = self.first_of_background(m, now)?;
        (share > 0 && self.owed >= u128::from(first.weight) * (WHOLE - share)).then_some(first.arrival)
    }

    /// All expected calls, in order.
    pub fn order(&self, m: &LocalMemory, now: u64) -> Vec<Waiter> {
        let owed = self.owed(m, now);
        let mut order: Vec<Waiter> = self.waiters.iter().filter(|w| self.expected(w, now)).copied().collect();
        order.sort_by_key(|w| self.key(w, owed));
        order
    }

    pub fn check(&self, m: &LocalMemory, w: &Waiter, now: u64) -> Verdict {
        let owed = self.owed(m, now);
        let key = self.key(w, owed);
        let ahead: Vec<Waiter> = self.order(m, now).into_iter().filter(|a| self.key(a, owed) < key).collect();
        self.check_behind(m, w, &ahead, owed == Some(w.arrival), now)
    }

    pub fn check_behind(
        &self,
        m: &LocalMemory,
        w: &Waiter,
        ahead: &[Waiter],
        owed: bool,
        now: u64,
    ) -> Verdict {
        let background = w.request.priority == Priority::Background;
        let core = m.core();
        // With several units, a call that must wait for a rule does not need a permit yet.
        let users: Vec<&Waiter> = ahead
            .iter()
            .filter(|a| self.policy.units().count() == 1 || self.time(m, a, &[], false, now) == Some(now))
            .collect();
        let of_background =
            users.iter().filter(|a| a.request.priority == Priority::Background).count() as u32;
        let all = core.in_flight + users.len() as u32;
        let permit = all < self.policy.concurrency().unwrap_or(4096)
            && (!background
                || self
                    .policy
                    .concurrency_background()
                    .is_none_or(|most| core.in_flight_background + of_background < most));
        let open_ended = self.paused == u64::MAX;
        let open = if open_ended { now } else { self.paused.max(now) };
        let time = self.time(m, w, ahead, owed, open);
        Verdict { permit: permit && !open_ended, time, ahead: ahead.len() as u64 }
    }

    /// When the rules have room for a call and for all calls ahead of it, from a time on; `None` means never.
    fn time(&self, m: &LocalMemory, w: &Waiter, ahead: &[Waiter], owed: bool, now: u64) -> Option<u64> {
        let background = w.request.priority == Priority::Background;
        let mut time = Some(now);
        for (i, rule) in self.policy.rules().iter().enumerate() {
            let unit = usize::from(rule.unit);
            let (cost, limit, period) = (
                i128::from(w.request.cost[unit]),
                i128::from(rule.limit),
                i128::from(shmlimit_kernel::Nanos::of(rule.period).0),
            );
            if cost == 0 {
                continue;
            }
            let reserve = if background && !owed { i128::from(rule.reserve) } else { 0 };
            let room = (i128::from(rule.burst) - reserve) * period;
            let before: i128 = ahead.iter().map(|a| i128::from(a.request.cost[unit])).sum();
            // The rule's words are a time in 1/den ns, see rule/bucket.rs; here it is in 1/limit ns.
            let [whole, part, ..] = m.rule(i).0;
            let den = i128::from(m.terms(i).den());
            let full_at = i128::from(whole) * limit + i128::from(part) * limit / den;
            let ready = full_at.max(i128::from(now) * limit) + (before + cost) * period - room;
            time = match time {
                Some(time) if cost * period <= room => {
                    Some(time.max(((ready + limit - 1).div_euclid(limit)).max(0) as u64))
                }
                _ => None,
            };
        }
        time
    }

    pub fn granted(&mut self, m: &LocalMemory, w: &Waiter, now: u64, waited: bool) {
        let class = w.request.priority as usize;
        let others: Vec<&Waiter> = self
            .waiters
            .iter()
            .filter(|o| o.request.priority == w.request.priority && o.arrival != w.arrival)
            .collect();
        if !waited && self.waiters.is_empty() {
            return;
        }
        let mut groups: Vec<u64> =
            others.iter().filter(|o| self.expected(o, now)).map(|o| o.group).chain([w.group]).collect();
        groups.sort_unstable();
        groups.dedup();
        let reached = others.iter().map(|o| o.tag).chain([w.tag]).min().unwrap_or(0);
        self.clocks[class] = (self.clocks[class] + w.weight / (4 * groups.len() as u64)).max(reached);
        self.waiters.retain(|o| o.arrival != w.arrival);
        let share = u128::from(self.policy.queueing().background_share);
        let weight = u128::from(self.weight(&w.request));
        if share == 0 {
        } else if !self.waiters.iter().any(|o| o.request.priority == Priority::Background) {
            self.owed = 0;
        } else if w.request.priority == Priority::Background {
            self.owed = self.owed.saturating_sub(weight * (WHOLE - share));
        } else if self.first_of_background(m, now).is_some() {
            self.owed += weight * share;
        }
    }

    pub fn left(&mut self, arrival: u64) {
        let Some(at) = self.waiters.iter().position(|w| w.arrival == arrival) else { return };
        let gone = self.waiters.remove(at);
        if self.policy.queueing().fairness == Fairness::Fifo {
            return;
        }
        for w in &mut self.waiters {
            if w.group == gone.group
                && w.request.priority == gone.request.priority
                && w.arrival > gone.arrival
            {
                w.tag = w.tag.saturating_sub(gone.weight);
            }
        }
        if let Some(end) = self.ends.get_mut(&(gone.group, gone.request.priority as u8)) {
            *end = end.saturating_sub(gone.weight);
        }
    }

    /// The call to wake: the first, if it could go well before it will check by itself. With several units, also
    /// one behind it.
    pub fn wake(&mut self, m: &LocalMemory, now: u64) -> Wake {
        let units = self.policy.units().count();
        let order = self.order(m, now);
        let owed = self.owed(m, now);
        for (i, w) in order.iter().take(if units > 1 { 8 } else { 1 }).enumerate() {
            let verdict = self.check_behind(m, w, &order[..i], owed == Some(w.arrival), now);
            let sooner = match verdict.time {
                Some(time) => verdict.permit && time + NOT_WORTH_A_WAKE < w.wake_at,
                None => true,
            };
            if sooner && w.can_be_woken && w.wake_at > now + NOT_WORTH_A_WAKE {
                let woken = self.waiters.iter_mut().find(|o| o.arrival == w.arrival).expect("it waits");
                woken.wake_at = now;
                return Wake::One(w.wait.place);
            }
        }
        Wake::None
    }

    pub fn agrees(&self, m: &LocalMemory, now: u64) -> Result<(), TestCaseError> {
        for priority in Priority::ALL {
            let count = self.waiters.iter().filter(|w| w.request.priority == priority).count();
            prop_assert_eq!(m.waiting().of(priority), count);
        }
        let mut mine: Vec<&Waiter> = self.waiters.iter().collect();
        let owed = self.owed(m, now);
        mine.sort_by_key(|w| self.key(w, owed));
        let mine: Vec<_> =
            mine.into_iter().map(|w| (w.wait.place, w.tag, w.wake_at, w.group, w.request)).collect();
        let its: Vec<_> = kernel::in_order(m, Time(now))
            .into_iter()
            .map(|(place, e)| {
                (place, e.entry_head.tag, e.entry_head.wake_at.0, e.entry_head.group, e.request())
            })
            .collect();
        prop_assert_eq!(mine, its);
        prop_assert_eq!(m.progress().clocks, self.clocks);
        prop_assert_eq!(u128::from(m.progress().owed), self.owed);
        Ok(())
    }
}
