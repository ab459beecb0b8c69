//! A grant that keeps its limiter open.

use super::Shared;
use super::link::Link;
use super::outcome::{Outcome, Recorded};
use crate::error::Error;
use crate::kernel::{Held, Ticket};
use std::sync::Arc;
use std::time::Duration;

/// A [`Grant`](crate::Grant) that borrows nothing, made by [`Grant::into_owned`](crate::Grant::into_owned). The limiter
/// stays open as long as it lives.
#[derive(Debug)]
#[must_use = "dropping a grant gives its permit back at once"]
pub struct OwnedGrant {
    /// Always there: whoever made this had borrowed it.
    home: Option<Arc<Shared>>,
    /// Which segment of the limiter, counted from its first: a replaced one stays until the handle goes.
    depth: usize,
    badge: u64,
    ticket: Ticket,
}

impl OwnedGrant {
    pub(super) fn new(link: &Link, badge: u64, ticket: Ticket) -> OwnedGrant {
        let home = link.home.upgrade();
        let depth = home.as_ref().map_or(0, |home| home.first.depth_of(link));
        OwnedGrant { home, depth, badge, ticket }
    }

    /// The call is over: gives the permit back. Dropping does the same but cannot report a failure.
    pub fn release(mut self) -> Result<(), Error> {
        let ticket = self.disarm();
        Ok(self.link().map_or(Ok(()), |link| link.release(self.badge, &ticket))?)
    }

    /// The call was never sent: gives the permit back, and to every rule what it can still take back (R129).
    pub fn cancel(mut self) -> Result<(), Error> {
        let ticket = self.disarm();
        Ok(self.link().map_or(Ok(()), |link| link.cancel(self.badge, &ticket))?)
    }

    /// The call is over, and this is how it ended; see [`Grant::record`](crate::Grant::record). `None` if its limiter is
    /// gone, which it never is.
    pub fn record(mut self, outcome: &Outcome<'_>) -> Result<Option<Recorded>, Error> {
        let recorded = match self.link() {
            Some(link) => Some(link.record_call(self.badge, &self.ticket, outcome)?),
            None => None,
        };
        self.disarm();
        Ok(recorded)
    }

    /// See [`Grant::delay`](crate::Grant::delay).
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.ticket.delay.0)
    }

    pub(super) fn link(&self) -> Option<&Link> {
        self.home.as_ref()?.first.at_depth(self.depth)
    }

    fn disarm(&mut self) -> Ticket {
        let ticket = self.ticket;
        self.ticket.permit = Held::default();
        ticket
    }
}

impl Drop for OwnedGrant {
    fn drop(&mut self) {
        if self.ticket.permit.total > 0 {
            // A failure leaves the permit to be found when this process ends; there is nobody to tell here.
            let _ = self.link().map(|link| link.release(self.badge, &self.ticket));
        }
    }
}
