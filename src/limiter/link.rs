//! A limiter's segment, and the one that takes its place when it is deleted or replaced.

use super::grant::{AcquireError, Grant};
use super::request::Request;
use crate::error::Error;
use crate::kernel::policy::Name;
use crate::kernel::{Policy, Reason, Ticket, Time, decide};
use crate::paths::LimiterName;
use crate::segment::layout::slot;
use crate::segment::{Segment, Tx, slots};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

/// One segment of a limiter. A deleted or replaced segment stays mapped until the handle goes, because another
/// thread may be in the middle of it; its successor hangs on it.
pub struct Link {
    pub(super) segment: Segment,
    name: LimiterName,
    units: Vec<Name>,
    next: OnceLock<Box<Link>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.segment.path()).finish()
    }
}

impl Link {
    pub(super) fn new(name: LimiterName, segment: Segment) -> Result<Link, Error> {
        let units = segment.policy()?.units().collect();
        Ok(Link { segment, name, units, next: OnceLock::new() })
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

    /// Hangs a successor on this link, unless another thread was faster.
    pub(super) fn succeed(&self, successor: Link) {
        // The loser's segment is dropped, which leaves it.
        let _ = self.next.set(Box::new(successor));
    }

    /// One try.
    #[inline(always)]
    pub(super) fn try_acquire(
        &self,
        request: &Request<'_>,
        patience: Duration,
    ) -> Result<Grant<'_>, AcquireError> {
        let ask = request.ask(self.name.as_str(), &self.units)?;
        let member = self.segment.member()?;
        let (mut tx, now) = self.segment.begin(&member, patience)?;
        match decide::acquire(&mut tx, member.slot, &ask, now) {
            Ok(ticket) => {
                self.segment.commit(tx)?;
                slots::tally(self.segment.words(), member.slot, slot::GRANTED);
                Ok(Grant::new(self, member.badge, ticket))
            }
            Err(refusal) => {
                drop(tx);
                slots::tally(self.segment.words(), member.slot, slot::REFUSED);
                if refusal.reason == Reason::Concurrency && self.segment.reap(&member)? {
                    return self.try_again(request, patience);
                }
                Err(AcquireError::Refused(refusal.into()))
            }
        }
    }

    /// Permits were out with the dead. They are looked for at most once per bound, so this ends.
    #[cold]
    #[inline(never)]
    fn try_again(&self, request: &Request<'_>, patience: Duration) -> Result<Grant<'_>, AcquireError> {
        self.try_acquire(request, patience)
    }

    /// Gives the permit of a grant back, unless the grant is from before a fork.
    #[inline]
    pub(super) fn release(&self, badge: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        self.give_back(self.segment.begin_untimed(&member), |tx| decide::release(tx, member.slot, ticket))
    }

    /// Takes a grant back as if it had not been made, unless it is from before a fork.
    pub(super) fn cancel(&self, badge: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        let (tx, now) = match self.segment.begin(&member, self.segment.bounds().lock) {
            Ok((tx, now)) => (Ok(tx), now),
            Err(error) => (Err(error), Time(0)),
        };
        self.give_back(tx, |tx| decide::cancel(tx, member.slot, ticket, now))
    }

    #[inline(always)]
    fn give_back<'a>(
        &'a self,
        begun: Result<Tx<'a>, Box<Error>>,
        change: impl FnOnce(&mut Tx<'a>),
    ) -> Result<(), Box<Error>> {
        let mut tx = match begun {
            Ok(tx) => tx,
            // What was held of a segment that is gone is gone with it.
            Err(error) if matches!(*error, Error::Unsettled { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        change(&mut tx);
        self.segment.commit(tx)?;
        self.segment.announce();
        Ok(())
    }

    /// Puts another policy in force, for all processes at once (R110).
    pub(super) fn set_policy(&self, policy: &Policy) -> Result<(), Error> {
        if !policy.units().eq(self.units.iter().copied()) {
            let problem = "it would count other units".to_owned();
            return Err(Error::DoesNotFit { name: self.name.as_str().to_owned(), problem });
        }
        self.segment.set_policy(policy)
    }
}
