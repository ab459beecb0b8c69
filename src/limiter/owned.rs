//! A grant that keeps its limiter open.

use super::Shared;
use super::outcome::{Advice, Outcome};
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::Ticket;
use shmlimit_segment::Error;
use std::sync::Arc;
use std::time::Duration;

/// An attachment id that no process has.
const NO_ATTACHMENT: u64 = u64::MAX;

/// A [`Grant`](crate::Grant) without a borrow, made by [`Grant::into_owned`](crate::Grant::into_owned). It keeps
/// the limiter open.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
/// std::thread::spawn(move || grant.release()).join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a grant gives its permit back at once"]
pub struct OwnedGrant {
    /// Always present, because the grant borrowed it when this was created.
    shared: Option<Arc<Shared>>,
    /// The index of the segment in the limiter's chain. A replaced segment stays until the handle is dropped.
    number: usize,
    attachment_id: u64,
    ticket: Ticket,
    /// Whether it was released, cancelled or recorded.
    done: bool,
}

impl OwnedGrant {
    pub(super) fn new(link: &LimiterSegment, attachment_id: u64, ticket: Ticket) -> OwnedGrant {
        let shared = link.shared.upgrade();
        OwnedGrant { shared, number: link.number, attachment_id, ticket, done: false }
    }

    /// Ends the call and returns the permit. Dropping the grant does the same, but cannot report a failure.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// grant.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(mut self) -> Result<(), Error> {
        let released = self.try_release();
        self.done = true;
        released
    }

    /// Cancels a call that was never sent. It returns the permit, and gives back the units of each rule that can
    /// still take them (R129).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// grant.cancel()?;
    /// assert_eq!(limiter.snapshot()?.rules[0].remaining, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(mut self) -> Result<(), Error> {
        let cancelled = self.try_cancel();
        self.done = true;
        cancelled
    }

    /// Ends the call and records how it ended; see [`Grant::record`](crate::Grant::record). `None` if it was
    /// recorded before.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// assert!(grant.record(&shmlimit::Outcome::http(200, &[]))?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn record(mut self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        self.try_record(outcome)
    }

    /// Does the same as [`release`](Self::release), but keeps the grant. After a failure it can be tried again.
    /// After a success it does nothing.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let mut grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// grant.try_release()?;
    /// grant.try_release()?; // does nothing
    /// assert!(grant.is_done());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_release(&mut self) -> Result<(), Error> {
        self.end(|link, attachment_id, ticket| Ok(link.release(attachment_id, ticket)?)).map(drop)
    }

    /// Does the same as [`cancel`](Self::cancel), but keeps the grant.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let mut grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// grant.try_cancel()?;
    /// assert!(grant.is_done());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_cancel(&mut self) -> Result<(), Error> {
        self.end(|link, attachment_id, ticket| Ok(link.cancel(attachment_id, ticket)?)).map(drop)
    }

    /// Does the same as [`record`](Self::record), but keeps the grant.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let mut grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// assert!(grant.try_record(&shmlimit::Outcome::http(200, &[]))?.is_some());
    /// assert!(grant.is_done());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_record(&mut self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        self.end(|link, attachment_id, ticket| link.record_call(attachment_id, ticket, outcome))
    }

    /// Records what is known about the call before it is over, such as the head of a response whose body is still
    /// arriving. All processes that share the limiter take it into account, as with [`record`](Self::record). The
    /// permit stays in use, and costs are not settled. End the call with [`release`](Self::release), because
    /// [`record`](Self::record) would count it twice. `None` if the call is over.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// grant.note(&shmlimit::Outcome::http(200, &[]))?; // the head has arrived
    /// // … read the body …
    /// grant.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn note(&self, outcome: &Outcome<'_>) -> Result<Option<Advice>, Error> {
        if self.done {
            return Ok(None);
        }
        // As after a fork, the time of the grant is known (R140), and nothing is given back.
        self.link().map(|link| link.record_call(NO_ATTACHMENT, &self.ticket, outcome)).transpose()
    }

    /// Whether it was released, cancelled or recorded.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let mut grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// assert!(!grant.is_done());
    /// grant.try_release()?;
    /// assert!(grant.is_done());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// How long to delay the call; see [`Grant::delay`](crate::Grant::delay).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// std::thread::sleep(grant.delay()); // zero for all rules except leaky buckets
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.ticket.delay.0)
    }

    pub(super) fn link(&self) -> Option<&LimiterSegment> {
        self.shared.as_ref()?.chain.at(self.number)
    }

    /// Ends the call, unless it is over already. After a failure the call is not over.
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
            // `drop` cannot report a failure. If the release fails, the permit is reclaimed when this process
            // exits.
            let _ = self.try_release();
        }
    }
}
