//! A limiter's segment, and the one that takes its place when it is deleted or replaced.

use super::grant::{AcquireError, Grant};
use super::request::Request;
use crate::error::Error;
use crate::kernel::policy::Name;
use crate::kernel::{Policy, Reason, Time, decide};
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
    #[inline]
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
                // Permits may be out with the dead; looked into at most once per bound, so this ends.
                if refusal.reason == Reason::Concurrency && self.segment.reap(&member)? {
                    return self.try_acquire(request, patience);
                }
                Err(AcquireError::Refused(refusal.into()))
            }
        }
    }

    /// Changes the state on behalf of a grant, unless the grant is from before a fork.
    #[inline]
    pub(super) fn give_back(
        &self,
        badge: u64,
        change: impl FnOnce(&mut Tx<'_>, usize, Time),
    ) -> Result<(), Error> {
        if !self.segment.is_present(badge) {
            return Ok(());
        }
        let member = self.segment.member()?;
        let (mut tx, now) = match self.segment.begin(&member, self.segment.bounds().lock) {
            // What was held of a segment that is gone is gone with it.
            Err(Error::Unsettled { .. }) => return Ok(()),
            begun => begun?,
        };
        change(&mut tx, member.slot, now);
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
