//! Operations that do not wait for other processes, for callers that hold a lock such as an interpreter's.

use super::Limiter;
use super::grant::Grant;
use super::owned::OwnedGrant;
use super::request::Request;

impl Limiter {
    /// A grant, if it is available without waiting for any other process, including one that is just changing the
    /// segment. `None` means only that: nothing was taken or counted, so use [`acquire`](Self::acquire) or
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(1), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let grant = match limiter.acquire_at_once(&Request::new()) {
    ///     Some(grant) => grant,
    ///     None => limiter.acquire(&Request::new())?, // release the other lock before this call
    /// };
    /// # assert!(limiter.acquire_at_once(&Request::new()).is_none());
    /// # grant.release()?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn acquire_at_once(&self, request: &Request<'_>) -> Option<Grant<'_>> {
        self.attempt_at_once(request)
    }

    /// Whether a process is changing the segment at this moment, so that the next call may have to wait for the
    /// lock. This is only a hint.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// assert!(!limiter.is_busy());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.newest().segment.is_busy()
    }
}

impl OwnedGrant {
    /// The same as [`Limiter::is_busy`], for the limiter of this grant.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// # let grant = limiter.acquire(&shmlimit::Request::new())?.into_owned();
    /// assert!(!grant.is_busy());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.link().is_some_and(|link| link.segment.is_busy())
    }
}
