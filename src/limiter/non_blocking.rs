//! For callers that hold a lock of their own, such as an interpreter's: what needs no waiting for others.

use super::Limiter;
use super::grant::Grant;
use super::owned::OwnedGrant;
use super::request::Request;

impl Limiter {
    /// A grant, if it can be had without waiting for anybody, also not for one who is just changing the segment. `None`
    /// says nothing else than that: nothing was taken or counted, ask by [`acquire`](Self::acquire) or
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
    ///     None => limiter.acquire(&Request::new())?, // here others are let go on first
    /// };
    /// # assert!(limiter.acquire_at_once(&Request::new()).is_none());
    /// # grant.release()?;
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn acquire_at_once(&self, request: &Request<'_>) -> Option<Grant<'_>> {
        let link = self.newest();
        let (kernel_request, attachment) = request.plain().zip(link.segment.present())?;
        let raw = link.segment.raw_now(&attachment);
        if link.segment.rules() == 1 {
            link.grant_single(kernel_request, &attachment, raw)
        } else {
            link.take_uncontended(kernel_request, &attachment, raw)
        }
    }

    /// Whether somebody is changing the segment just now, so that the next call may have to wait for the lock. A hint.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.newest().segment.is_busy()
    }
}

impl OwnedGrant {
    /// [`Limiter::is_busy`] of the limiter that gave it.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.link().is_some_and(|link| link.segment.is_busy())
    }
}
