//! Waits step by step, for event loops of other languages.

use super::Limiter;
use super::grant::AcquireError;
use super::owned::OwnedGrant;
use super::request::{OwnedRequest, Request};
use super::waiter::{self, Place, Waiter};
use shmlimit_kernel::queue::QueueTicket;
use std::time::{Duration, Instant};

/// A call in the queue of all processes, advanced step by step by a caller that owns the clock: an event loop in
/// another language, or a test. In Rust, [`Limiter::acquire_async`] is simpler. Dropping it leaves the queue at
/// once.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// use shmlimit::{Request, Step};
///
/// match limiter.enqueue(&Request::new())?.step()? {
///     Step::Granted(grant) => grant.release()?,
///     Step::Sleep(pending, time) => println!("step again in {time:?}: {pending:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it leaves the queue"]
pub struct PendingAcquire {
    limiter: Limiter,
    request: OwnedRequest,
    deadline: Option<u64>,
    place: Option<QueuePosition>,
    /// See [`Waiter::idle_since`].
    idle_since: Option<Instant>,
}

/// A [`Place`] without a borrow.
#[derive(Debug)]
struct QueuePosition {
    number: usize,
    attachment_id: u64,
    wait: QueueTicket,
}

/// The next step of a call that [waits](Limiter::enqueue).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
/// use shmlimit::{Request, Step};
///
/// let step = limiter.enqueue(&Request::new())?.step()?;
/// assert!(matches!(step, Step::Granted(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it leaves the queue, or gives the permit back"]
pub enum Step {
    /// The call may be made.
    Granted(OwnedGrant),
    /// The call must wait. After this time, step again.
    Sleep(PendingAcquire, Duration),
}

impl Limiter {
    /// Creates a call that waits. It enters the queue with the first [`PendingAcquire::step`], but a timeout starts
    /// now.
    ///
    /// ```
    /// # use shmlimit::{Limiter, Policy, PolicyDraft, Request, Step};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let policy = Policy::new(&PolicyDraft { concurrency: Some(4), ..PolicyDraft::default() })?;
    /// # let limiter = Limiter::builder("api").directory(directory.path()).policy(policy).open()?;
    /// let mut waiting = limiter.enqueue(&Request::new())?;
    /// let grant = loop {
    ///     match waiting.step()? {
    ///         Step::Granted(grant) => break grant,
    ///         Step::Sleep(later, time) => {
    ///             std::thread::sleep(time); // here the loop does something else
    ///             waiting = later;
    ///         }
    ///     }
    /// };
    /// # grant.release()?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue(&self, request: &Request<'_>) -> Result<PendingAcquire, AcquireError> {
        let deadline = Waiter::new(self, request, false)?.deadline();
        let (limiter, request) = (self.clone(), request.to_owned());
        Ok(PendingAcquire { limiter, request, deadline, place: None, idle_since: None })
    }
}

impl PendingAcquire {
    /// Enters the queue, or checks whether it is this call's turn. On a [`TestClock`](crate::TestClock), a step moves
    /// the clock to the time of the grant.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let limiter = shmlimit::Limiter::builder("api").directory(directory.path()).rate("100/min").open()?;
    /// use shmlimit::{Request, Step};
    ///
    /// let pending = limiter.enqueue(&Request::new())?;
    /// let Step::Granted(grant) = pending.step()? else { panic!("the limiter is free") };
    /// grant.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step(mut self) -> Result<Step, AcquireError> {
        let limiter = self.limiter.clone();
        let request = self.request.clone();
        let request = request.borrow();
        if self.place.is_none()
            && let Some(grant) = limiter.attempt_at_once(&request)
        {
            return Ok(Step::Granted(grant.into_owned()));
        }
        let mut waiter = self.waiter(&limiter, &request);
        let step = waiter.step()?;
        self.idle_since = waiter.idle_since();
        self.place = waiter.take_place().map(|Place { link, attachment_id, wait }| QueuePosition {
            number: link.number,
            attachment_id,
            wait,
        });
        Ok(match step {
            waiter::Step::Done(grant) => Step::Granted(grant.into_owned()),
            waiter::Step::Sleep { limit, .. } => Step::Sleep(self, limit),
            waiter::Step::Again => Step::Sleep(self, waiter::LOCK_RETRY_DELAY),
        })
    }

    /// The borrowing form of this call. It takes the place in the queue with it.
    fn waiter<'l, 'r>(&mut self, limiter: &'l Limiter, request: &'r Request<'r>) -> Waiter<'l, 'r> {
        let place = self.place.take().and_then(|QueuePosition { number, attachment_id, wait }| {
            Some(Place { link: limiter.shared.chain.at(number)?, attachment_id, wait })
        });
        Waiter::resumed(limiter, request, self.deadline, place, self.idle_since)
    }
}

impl Drop for PendingAcquire {
    fn drop(&mut self) {
        if self.place.is_some() {
            let limiter = self.limiter.clone();
            drop(self.waiter(&limiter, &Request::new()));
        }
    }
}
