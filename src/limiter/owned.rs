//! A grant that keeps its limiter open.

use super::Shared;
use super::outcome::{Advice, Outcome};
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::Ticket;
use shmlimit_segment::Error;
use std::sync::Arc;
use std::time::Duration;

/// A attachment id that no process has.
const NO_ATTACHMENT: u64 = u64::MAX;

/// A [`Grant`](crate::Grant) that borrows nothing, made by [`Grant::into_owned`](crate::Grant::into_owned). The limiter
/// stays open as long as it lives.
#[derive(Debug)]
#[must_use = "dropping a grant gives its permit back at once"]
pub struct OwnedGrant {
    /// Always there: whoever made this had borrowed it.
    shared: Option<Arc<Shared>>,
    /// Which segment of the limiter: a replaced one stays until the handle goes.
    number: usize,
    attachment_id: u64,
    ticket: Ticket,
    /// Released, cancelled or recorded.
    done: bool,
}

impl OwnedGrant {
    pub(super) fn new(link: &LimiterSegment, attachment_id: u64, ticket: Ticket) -> OwnedGrant {
        let shared = link.shared.upgrade();
        OwnedGrant { shared, number: link.number, attachment_id, ticket, done: false }
    }

    /// The call is over: gives the permit back. Dropping does the same but cannot report a failure.
    pub fn release(mut self) -> Result<(), Error> {
        let released = self.try_release();
        self.done = true;
        released
    }

    /// The call was never sent: gives the permit back, and to every rule what it can still take back (R129).
    pub fn cancel(mut self) -> Result<(), Error> {
        let cancelled = self.try_cancel();
        self.done = true;
        cancelled
    }

    /// The call is over, and this is how it ended; see [`Grant::record`](crate::Grant::record). `None` if it was recorded
    /// before.
    pub fn record(mut self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        self.try_record(outcome)
    }

    /// [`release`](Self::release) for those who keep the grant: if it fails, it can be tried again; once it is done, it
    /// does nothing.
    pub fn try_release(&mut self) -> Result<(), Error> {
        self.end(|link, attachment_id, ticket| Ok(link.release(attachment_id, ticket)?)).map(drop)
    }

    /// [`cancel`](Self::cancel) for those who keep the grant.
    pub fn try_cancel(&mut self) -> Result<(), Error> {
        self.end(|link, attachment_id, ticket| Ok(link.cancel(attachment_id, ticket)?)).map(drop)
    }

    /// [`record`](Self::record) for those who keep the grant.
    pub fn try_record(&mut self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        self.end(|link, attachment_id, ticket| link.record_call(attachment_id, ticket, outcome))
    }

    /// What is known of how the call goes before it is over, such as the head of an answer whose body is on its way. All
    /// who share the limiter hear of it, as of [`record`](Self::record), but the permit stays out, and costs are not
    /// settled. [`release`](Self::release) it then: recorded, it would count twice. `None` if it is over.
    pub fn note(&self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        if self.done {
            return Ok(None);
        }
        // As after a fork: when the call was granted is known (R140), and nothing is given back.
        self.link().map(|link| link.record_call(NO_ATTACHMENT, &self.ticket, outcome)).transpose()
    }

    /// Whether it was released, cancelled or recorded.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// See [`Grant::delay`](crate::Grant::delay).
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.ticket.delay.0)
    }

    pub(super) fn link(&self) -> Option<&LimiterSegment> {
        self.shared.as_ref()?.chain.at(self.number)
    }

    /// Ends it, unless it is over already, or that fails.
    fn end<R>(
        &mut self,
        how: impl FnOnce(&LimiterSegment, u64, &Ticket) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        if self.done {
            return Ok(None);
        }
        let ended = self.link().map(|link| how(link, self.attachment_id, &self.ticket)).transpose()?;
        self.done = true;
        Ok(ended)
    }
}

impl Drop for OwnedGrant {
    fn drop(&mut self) {
        if self.ticket.permit.total > 0 {
            // A failure leaves the permit to be found when this process ends; there is nobody to tell here.
            let _ = self.try_release();
        }
    }
}
