//! A limiter's segment, and the one that takes its place when it is deleted or replaced.

use super::Shared;
use super::events;
use super::grant::{AcquireError, Grant, Refusal};
use super::request::{Request, unknown_unit};
use crate::error::Error;
use crate::kernel::policy::Name;
use crate::kernel::queue::Ring;
use crate::kernel::sheet::{Recent, SheetView};
use crate::kernel::state::View;
use crate::kernel::{Ask, Reason, Ticket, decide};
use crate::paths::LimiterName;
use crate::segment::layout::slot;
use crate::segment::{Member, Segment, slots};
use std::fmt;
use std::sync::{OnceLock, Weak};
use std::time::Duration;

/// One segment of a limiter. A deleted or replaced segment stays mapped until the handle goes, because another
/// thread may be in the middle of it; its successor hangs on it.
pub struct Link {
    pub(super) segment: Segment,
    name: LimiterName,
    units: Vec<Name>,
    next: OnceLock<Box<Link>>,
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
        Ok(Link { segment, name, units, next: OnceLock::new(), home: Weak::new() })
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

    /// The newest of this chain.
    #[inline]
    pub(super) fn newest(&self) -> &Link {
        let mut link = self;
        while let Some(next) = link.next.get() {
            link = next;
        }
        link
    }

    /// The one that hangs on this, if it was replaced.
    fn next(&self) -> Option<&Link> {
        self.next.get().map(|next| &**next)
    }

    /// This and its successors.
    fn chain(&self) -> impl Iterator<Item = &Link> {
        std::iter::successors(Some(self), |link| link.next())
    }

    /// How many links before `other`, counted from this: a replaced one stays until the handle goes.
    pub(super) fn depth_of(&self, other: &Link) -> usize {
        self.chain().take_while(|link| !std::ptr::eq(*link, other)).count()
    }

    /// The link at that depth.
    pub(super) fn at_depth(&self, depth: usize) -> Option<&Link> {
        self.chain().nth(depth)
    }

    /// Hangs a successor on this link, unless another thread was faster.
    pub(super) fn succeed(&self, mut successor: Link) {
        successor.home = Weak::clone(&self.home);
        // The loser's segment is dropped, which leaves it.
        let _ = self.next.set(Box::new(successor));
    }

    /// The usual case: one rule, it admits the call, and nothing is in the way. Nothing in any other.
    #[inline(always)]
    pub(super) fn grant_at_once(&self, ask: &Ask, member: &Member, raw: u64) -> Option<Grant<'_>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(member, raw)?;
        let taken = decide::take_from_one(&mut tx, member.slot, ask, now);
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
        let refusal = segment.look_at_once(raw, |view, now| decide::judge_one(view, ask, now))??;
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
        let known = if watched { tx.health().transitions } else { 0 };
        let decided = decide::acquire(&mut tx, member.slot, ask, now);
        let news = watched.then(|| Recent::since(&tx, known));
        let committed = tx.commit().is_ok();
        tx.end();
        if let Some(news) = news.filter(|_| committed) {
            events::transitions(self.name(), &news);
        }
        match decided {
            Ok(ticket) if committed => {
                slots::tally(segment.words(), member.slot, slot::GRANTED);
                if !segment.waiting().is_empty() {
                    self.open_the_short_way(member, segment.bounds().lock);
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
        patience: Duration,
    ) -> Result<Grant<'_>, AcquireError> {
        let segment = &self.segment;
        let ask = request.ask(self.name.as_str(), &self.units)?;
        let member = segment.member()?;
        let (decided, news) = segment.transact(&member, patience, |tx, now| {
            let known = tx.health().transitions;
            let decided = decide::acquire(tx, member.slot, &ask, now);
            let news = Recent::since(tx, known);
            // Also a refusal: timers may have acted.
            segment.commit(tx).map(|()| (decided, news))
        })??;
        events::transitions(self.name(), &news);
        let refusal = match decided {
            Err(refusal) => refusal,
            Ok(ticket) => {
                let grant = Grant::new(self, member.badge, ticket);
                slots::tally(segment.words(), member.slot, slot::GRANTED);
                if !segment.waiting().is_empty() {
                    self.open_the_short_way(&member, patience);
                }
                return Ok(grant);
            }
        };
        // Permits may be out with the dead, or they may be ahead. They are looked for at most once per bound, so this ends.
        if matches!(refusal.reason, Reason::Concurrency | Reason::Queued)
            && self.look_for_dead(&member, patience)?
        {
            return self.decide(request, patience);
        }
        slots::tally(segment.words(), member.slot, slot::REFUSED);
        self.tell_refusal(&refusal);
        Err(AcquireError::Refused(refusal.into()))
    }

    /// Where nobody waits but the dead, the short way is closed until they are found, even if nobody is ever refused.
    #[cold]
    fn open_the_short_way(&self, member: &Member, patience: Duration) {
        // The call is granted; whatever fails here can wait for the next.
        let _ = self.segment.reap(member, patience);
    }

    /// Gives back what the dead held, if it is time to look for them. Says whether there were any.
    pub(super) fn look_for_dead(&self, member: &Member, patience: Duration) -> Result<bool, Box<Error>> {
        match self.segment.reap(member, patience) {
            Err(gone @ Error::Unsettled { .. }) => Err(Box::new(gone)),
            // Whoever could not be examined or buried counts as alive.
            other => Ok(other.unwrap_or(false)),
        }
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
        self.gave_back(
            &member,
            segment.transact_untimed(&member, |tx| {
                decide::release(tx, member.slot, ticket);
                let ring = segment.after_change(tx, &member);
                segment.commit(tx).map(|()| ring)
            }),
        )
    }

    /// Takes a grant back as if it had not been made, unless it is from before a fork.
    pub(super) fn cancel(&self, badge: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        let segment = &self.segment;
        let cancelled = segment.transact(&member, segment.bounds().lock, |tx, now| {
            let known = tx.health().transitions;
            decide::cancel(tx, member.slot, ticket, now);
            let ring = segment.after_change(tx, &member);
            let news = Recent::since(tx, known);
            segment.commit(tx).map(|()| (ring, news))
        });
        let ring = cancelled.map(|committed| {
            committed.map(|(ring, news)| {
                events::transitions(self.name(), &news);
                ring
            })
        });
        self.gave_back(&member, ring)
    }

    #[inline(always)]
    fn gave_back(
        &self,
        member: &Member,
        outcome: Result<Result<Ring, Box<Error>>, Box<Error>>,
    ) -> Result<(), Box<Error>> {
        match outcome {
            Ok(committed) => self.segment.ring(member, committed?),
            // What was held of a segment that is gone is gone with it.
            Err(error) if matches!(*error, Error::Unsettled { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
