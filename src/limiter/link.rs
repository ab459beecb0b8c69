//! A limiter's segment, and the one that takes its place when it is deleted or replaced.

use super::Shared;
use super::events;
use super::grant::{AcquireError, Grant, Refusal};
use super::request::{Request, unknown_unit};
use shmlimit_kernel::policy::Name;
use shmlimit_kernel::queue::Ring;
use shmlimit_kernel::scene::{Known, Recent};
use shmlimit_kernel::state::View;
use shmlimit_kernel::{self, Ask, Nanos, Reason, Ticket, Time, decide};
use shmlimit_segment::Error;
use shmlimit_segment::layout::slot;
use shmlimit_segment::lock::{Deadline, SLEEP};
use shmlimit_segment::paths::LimiterName;
use shmlimit_segment::{Member, Segment, slots};
use std::fmt;
use std::sync::Weak;

/// One segment of a limiter.
pub struct Link {
    pub(super) segment: Segment,
    name: LimiterName,
    units: Vec<Name>,
    /// How many were there before it.
    pub(super) number: usize,
    /// The handle that this belongs to, for grants that outlive the borrow of it.
    pub(super) home: Weak<Shared>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.segment.path()).finish()
    }
}

impl Link {
    pub(super) fn new(name: LimiterName, segment: Segment) -> Result<Link, Error> {
        let units = segment.policy()?.units().collect();
        Ok(Link { segment, name, units, number: 0, home: Weak::new() })
    }

    /// The limiter's name.
    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The index of a unit.
    pub(super) fn unit(&self, unit: &str) -> Result<usize, Box<Error>> {
        let index = self.units.iter().position(|known| known.as_str() == unit);
        index.ok_or_else(|| unknown_unit(self.name(), unit, &self.units))
    }

    /// The usual case: one rule, it admits the call, and nothing is in the way. Nothing in any other.
    #[inline(always)]
    pub(super) fn grant_at_once(&self, ask: &Ask, member: &Member, raw: u64) -> Option<Grant<'_>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(member, raw)?;
        let taken = decide::acquire_single_bucket(&mut tx, member.slot, ask, now);
        let committed = tx.commit().is_ok();
        tx.end();
        let taken = taken.filter(|_| committed)?;
        slots::tally(segment.words(), member.slot, slot::GRANTED);
        Some(Grant::new(self, member.badge, taken.ticket(ask)))
    }

    /// [`refuse_at_once`](Self::refuse_at_once) while the last refusal [lasts](Segment::expects_refusal), for the usual
    /// case of one rule: nothing is to be remembered that is not known.
    #[inline(always)]
    pub(super) fn refuse_again(&self, ask: &Ask, member: &Member, raw: u64) -> Option<Refusal> {
        let segment = &self.segment;
        let refusal =
            segment.look_at_once(raw, |view, now| decide::judge_single_bucket(view, ask, now))??;
        if refusal.reason == Reason::Concurrency && segment.are_dead_due(raw) {
            return None;
        }
        slots::tally(segment.words(), member.slot, slot::REFUSED);
        Some(refusal.into())
    }

    /// A refusal that needs no lock, because nothing is due yet: a consistent look is enough.
    #[inline(always)]
    pub(super) fn refuse_at_once(&self, ask: &Ask, member: &Member, raw: u64) -> Option<Refusal> {
        let segment = &self.segment;
        if segment.is_place_due(raw) {
            return None;
        }
        let refusal = segment.look_at_once(raw, |view, now| {
            if decide::is_settled(view, now) { decide::judge(view, ask, now) } else { None }
        })??;
        if !segment.expect_refusal(raw, &refusal) {
            return None;
        }
        slots::tally(segment.words(), member.slot, slot::REFUSED);
        self.tell_refusal(&refusal);
        Some(refusal.into())
    }

    /// Any number of rules, if nothing is in the way. Nothing in any other case; that is decided by
    /// [`decide`](Self::decide).
    #[inline(always)]
    pub(super) fn decide_at_once(
        &self,
        ask: &Ask,
        member: &Member,
        raw: u64,
    ) -> Option<Result<Grant<'_>, AcquireError>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(member, raw)?;
        // Among those who wait may be dead ones, who are looked for on the long way.
        if !tx.waiting().is_empty() {
            return None;
        }
        let watched = now >= tx.attention();
        let known = watched.then(|| Known::of(&tx));
        let decided = decide::acquire(&mut tx, member.slot, ask, now);
        let news = known.map(|known| Recent::since(&tx, known));
        let committed = tx.commit().is_ok();
        tx.end();
        if let Some(news) = news.filter(|_| committed) {
            events::news(self.name(), &news);
        }
        match decided {
            Ok(ticket) if committed => {
                slots::tally(segment.words(), member.slot, slot::GRANTED);
                if !segment.waiting().is_empty() {
                    // The request's own deadline is not known here. What cannot be done in a moment can wait.
                    self.open_the_short_way(member, &Deadline::within(SLEEP));
                }
                Some(Ok(Grant::new(self, member.badge, ticket)))
            }
            Err(refusal) if segment.expect_refusal(raw, &refusal) => {
                slots::tally(segment.words(), member.slot, slot::REFUSED);
                self.tell_refusal(&refusal);
                Some(Err(AcquireError::Refused(refusal.into())))
            }
            _ => None,
        }
    }

    /// [`decide_at_once`](Self::decide_at_once) for one who goes on to wait where it is not admitted: a refusal is then
    /// none, and is not counted.
    pub(super) fn take_at_once(&self, ask: &Ask, member: &Member, raw: u64) -> Option<Grant<'_>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(member, raw)?;
        if !tx.waiting().is_empty() || now >= tx.attention() {
            return None;
        }
        let ticket = decide::acquire(&mut tx, member.slot, ask, now).ok();
        let committed = tx.commit().is_ok();
        tx.end();
        let ticket = ticket.filter(|_| committed)?;
        slots::tally(segment.words(), member.slot, slot::GRANTED);
        Some(Grant::new(self, member.badge, ticket))
    }

    /// One try.
    pub(super) fn decide(
        &self,
        request: &Request<'_>,
        deadline: &Deadline,
    ) -> Result<Grant<'_>, AcquireError> {
        let segment = &self.segment;
        let ask = request.ask(self.name.as_str(), &self.units)?;
        let member = segment.member_within(deadline)?;
        let (decided, news) = segment.transact(&member, deadline, |tx, now| {
            let known = Known::of(tx);
            let decided = decide::acquire(tx, member.slot, &ask, now);
            let news = Recent::since(tx, known);
            // Also a refusal: timers may have acted.
            segment.commit(tx).map(|()| (decided, news))
        })??;
        events::news(self.name(), &news);
        let refusal = match decided {
            Err(refusal) => refusal,
            Ok(ticket) => {
                let grant = Grant::new(self, member.badge, ticket);
                slots::tally(segment.words(), member.slot, slot::GRANTED);
                if !segment.waiting().is_empty() {
                    self.open_the_short_way(&member, deadline);
                }
                return Ok(grant);
            }
        };
        // Permits may be out with the dead, or they may be ahead. They are looked for at most once per bound, so this ends.
        if matches!(refusal.reason, Reason::Concurrency | Reason::Queued)
            && self.look_for_dead(&member, deadline)?
        {
            return self.decide(request, deadline);
        }
        slots::tally(segment.words(), member.slot, slot::REFUSED);
        self.tell_refusal(&refusal);
        Err(AcquireError::Refused(refusal.into()))
    }

    /// Where nobody waits but the dead, the short way is closed until they are found, even if nobody is ever refused.
    #[cold]
    fn open_the_short_way(&self, member: &Member, deadline: &Deadline) {
        // The call is granted; whatever fails here can wait for the next.
        let _ = self.segment.reap(member, deadline);
    }

    /// Gives back what the dead held, if it is time to look for them. Says whether there were any.
    pub(super) fn look_for_dead(&self, member: &Member, deadline: &Deadline) -> Result<bool, Box<Error>> {
        match self.segment.reap(member, deadline) {
            Err(error @ (Error::Unsettled { .. } | Error::Liveness { .. })) => Err(Box::new(error)),
            // Whoever could not be examined or buried counts as alive.
            other => Ok(other.unwrap_or(false)),
        }
    }

    /// The answer to a call whose time ended while other processes held the lock in turn. It says to ask again when even
    /// a holder that has died would have been found.
    #[cold]
    pub(super) fn refuse_busy(&self) -> AcquireError {
        let segment = &self.segment;
        let judged_at = segment.present().map_or(Time::ZERO, |member| {
            slots::tally(segment.words(), member.slot, slot::REFUSED);
            segment.now(&member)
        });
        let again = Some(judged_at.plus(Nanos(super::nanos(SLEEP))));
        let refusal = shmlimit_kernel::Refusal {
            reason: Reason::Busy,
            rule: None,
            retry_at: again,
            ready_at: again,
            gate: judged_at,
            judged_at,
        };
        self.tell_refusal(&refusal);
        AcquireError::Refused(refusal.into())
    }

    /// The cost by unit index, as this limiter counts them.
    pub(super) fn ask(&self, request: &Request<'_>) -> Result<Ask, Box<Error>> {
        request.ask(self.name.as_str(), &self.units)
    }

    /// Gives the permit of a grant back, unless the grant is from before a fork.
    #[inline]
    pub(super) fn release(&self, badge: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        let segment = &self.segment;
        let deadline = segment.deadline();
        let released = segment.transact_untimed(&member, &deadline, |tx| {
            decide::release(tx, member.slot, ticket);
            let ring = segment.after_change(tx, &member);
            segment.commit(tx).map(|()| ring)
        });
        self.gave_back(&member, ticket, &deadline, released)
    }

    /// Takes a grant back as if it had not been made, unless it is from before a fork.
    pub(super) fn cancel(&self, badge: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        let segment = &self.segment;
        let deadline = segment.deadline();
        let cancelled = segment.transact(&member, &deadline, |tx, now| {
            let known = Known::of(tx);
            decide::cancel(tx, member.slot, ticket, now);
            let ring = segment.after_change(tx, &member);
            let news = Recent::since(tx, known);
            segment.commit(tx).map(|()| (ring, news))
        });
        let ring = cancelled.map(|committed| {
            committed.map(|(ring, news)| {
                events::news(self.name(), &news);
                ring
            })
        });
        self.gave_back(&member, ticket, &deadline, ring)
    }

    #[inline(always)]
    fn gave_back(
        &self,
        member: &Member,
        ticket: &Ticket,
        deadline: &Deadline,
        outcome: Result<Result<Ring, Box<Error>>, Box<Error>>,
    ) -> Result<(), Box<Error>> {
        match outcome {
            Ok(committed) => self.segment.ring_within(member, committed?, deadline),
            // Its successor counts the permit until this process says that it is back.
            Err(error) if matches!(*error, Error::Unsettled { .. }) => {
                self.segment.returned_too_late(ticket.permit.total);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
