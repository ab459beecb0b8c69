//! One attempt to get a grant: fast paths first, then the slow path.
//!
//! | step | function | lock | ends the attempt if |
//! | --- | --- | --- | --- |
//! | 1 | [`LimiterSegment::repeat_refusal`] | no | the last refusal of this process still holds |
//! | 2 | [`LimiterSegment::grant_single`] | if free | the only rule admits the call, and no call waits |
//! | 3 | [`LimiterSegment::refuse_unlocked`] | no | a consistent look shows a refusal, and no timer is due |
//! | 4 | [`LimiterSegment::decide_uncontended`] | if free | no call waits: any number of rules, also due timers |
//! | 5 | [`LimiterSegment::decide`] | waits | always: recovers the segment, reclaims from dead processes, follows a successor |
//!
//! Steps 1 and 2 are inlined into [`Limiter::attempt`]. Each other step is a separate function, so that no path
//! makes another path longer. A step that cannot decide changes nothing, and the next step starts from the
//! beginning.

use super::Limiter;
use super::events;
use super::grant::{AcquireError, Grant, Refusal};
use super::request::Request;
use super::segment_chain::LimiterSegment;
use super::waiter;
use shmlimit_kernel::log_context::{LogBaseline, RecentEvents};
use shmlimit_kernel::state::View;
use shmlimit_kernel::{AcquireRequest, Nanos, Reason, Time, decide};
use shmlimit_segment::layout::slot;
use shmlimit_segment::lock::{Deadline, SLEEP};
use shmlimit_segment::sys::Clock;
use shmlimit_segment::{Attachment, Error, Wakeups, slots};

impl Limiter {
    /// Asks once, in the steps of the module's table.
    #[inline(always)]
    pub(super) fn attempt(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        // The clock is read first. Loads before the clock read must have completed when it starts, but later loads
        // may overlap it.
        let read = Clock::read();
        let link = self.newest();
        let Some((kernel_request, attachment)) = request.plain().zip(link.segment.present()) else {
            return self.attempt_locked(request);
        };
        let raw = link.segment.raw_from(&attachment, read);
        let probably_refused = if link.segment.expects_refusal(raw) {
            if let Some(refusal) = link.repeat_refusal(kernel_request, &attachment, raw) {
                return Err(AcquireError::Refused(refusal));
            }
            true
        } else if link.segment.rules() == 1 && kernel_request.cost[0] == 1 {
            if let Some(grant) = link.grant_single(kernel_request, &attachment, raw) {
                return Ok(grant);
            }
            true
        } else {
            false
        };
        self.attempt_uncontended(request, raw, probably_refused)
    }

    /// Steps 3 to 5. Step 3 is only for calls that are `probably_refused`, because every other call would read the
    /// state twice.
    #[inline(never)]
    fn attempt_uncontended(
        &self,
        request: &Request<'_>,
        raw: u64,
        probably_refused: bool,
    ) -> Result<Grant<'_>, AcquireError> {
        let link = self.newest();
        if let Some((kernel_request, attachment)) = request.plain().zip(link.segment.present()) {
            if probably_refused && let Some(refusal) = link.refuse_unlocked(kernel_request, &attachment, raw)
            {
                return Err(AcquireError::Refused(refusal));
            }
            if let Some(decided) = link.decide_uncontended(kernel_request, &attachment, raw) {
                return decided;
            }
        }
        self.attempt_locked(request)
    }

    /// Step 5. Waits for the lock for at most as long as the request may wait, and follows a segment that was
    /// replaced.
    #[cold]
    #[inline(never)]
    fn attempt_locked(&self, request: &Request<'_>) -> Result<Grant<'_>, AcquireError> {
        let longest = self.shared.bounds.lock;
        let time_left = request
            .time_left(|| self.newest().segment.clock_source().system_time())
            .map_or(longest, |left| waiter::at_least_grace(left).min(longest));
        let deadline = Deadline::within(time_left);
        let decided = self.follow(|link| match link.decide(request, &deadline) {
            Err(AcquireError::Failed(error)) => Err(*error),
            decided => Ok(decided),
        });
        match decided {
            Err(Error::Busy { stopped: false, .. }) => Err(self.newest().refuse_busy()),
            decided => decided?,
        }
    }

    /// Step 2 alone, for a call that otherwise waits.
    #[inline(always)]
    pub(super) fn grant_single(&self, request: &Request<'_>) -> Option<Grant<'_>> {
        let link = self.newest();
        let (kernel_request, attachment) = request.plain().zip(link.segment.present())?;
        link.grant_single(kernel_request, &attachment, link.segment.raw_now(&attachment))
    }
}

impl LimiterSegment {
    /// Grants a call in a limiter with one rule under the lock. `None` if the rule does not admit the call, or if
    /// any other condition needs the slow path.
    #[inline(always)]
    pub(super) fn grant_single(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Grant<'_>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(attachment, raw)?;
        let taken = decide::acquire_single_bucket(&mut tx, attachment.slot, kernel_request, now);
        let committed = tx.commit().is_ok();
        tx.end();
        let taken = taken.filter(|_| committed)?;
        slots::tally(segment.words(), attachment.slot, slot::GRANTED);
        Some(Grant::new(self, attachment.id, taken.ticket(kernel_request)))
    }

    /// Does the same as [`refuse_unlocked`](Self::refuse_unlocked) for one rule while the last refusal of this
    /// process lasts. The end of that refusal is already known (`Segment::expects_refusal`).
    #[inline(always)]
    fn repeat_refusal(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Refusal> {
        let segment = &self.segment;
        let refusal = segment
            .look_at_once(raw, |view, now| decide::check_single_bucket(view, kernel_request, now))??;
        if refusal.reason == Reason::Concurrency && segment.is_reclaim_due(raw) {
            return None;
        }
        slots::tally(segment.words(), attachment.slot, slot::REFUSED);
        Some(Refusal::of(refusal))
    }

    /// Refuses without the lock, from one consistent read. `None` if the call may be admitted, or a timer is due.
    #[inline(never)]
    fn refuse_unlocked(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Refusal> {
        let segment = &self.segment;
        if segment.is_place_due(raw) {
            return None;
        }
        let refusal = segment.look_at_once(raw, |view, now| {
            if decide::is_settled(view, now) { decide::check(view, kernel_request, now) } else { None }
        })??;
        if !segment.expect_refusal(raw, &refusal) {
            return None;
        }
        slots::tally(segment.words(), attachment.slot, slot::REFUSED);
        self.log_refusal(&refusal);
        Some(Refusal::of(refusal))
    }

    /// Decides for any number of rules under the lock, if the lock is free and no call waits. Returns `None` in any
    /// other case, and [`decide`](Self::decide) follows.
    #[inline(never)]
    fn decide_uncontended(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Result<Grant<'_>, AcquireError>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(attachment, raw)?;
        // Waiting calls may belong to dead processes. Step 5 checks for these.
        if !tx.waiting().is_empty() {
            return None;
        }
        let watched = now >= tx.next_check();
        let known = watched.then(|| LogBaseline::of(&tx));
        let decided = decide::acquire(&mut tx, attachment.slot, kernel_request, now);
        let recent = known.map(|known| RecentEvents::since(&tx, known));
        let committed = tx.commit().is_ok();
        tx.end();
        if let Some(recent) = recent.filter(|_| committed) {
            events::log_recent(self.name(), &recent);
        }
        match decided {
            Ok(ticket) if committed => {
                slots::tally(segment.words(), attachment.slot, slot::GRANTED);
                Some(Ok(Grant::new(self, attachment.id, ticket)))
            }
            Err(refusal) if segment.expect_refusal(raw, &refusal) => {
                slots::tally(segment.words(), attachment.slot, slot::REFUSED);
                self.log_refusal(&refusal);
                Some(Err(AcquireError::refused(refusal)))
            }
            _ => None,
        }
    }

    /// Does the same as [`decide_uncontended`](Self::decide_uncontended) for a call that waits if it is not
    /// admitted. A refusal is not counted.
    pub(super) fn take_uncontended(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Grant<'_>> {
        let segment = &self.segment;
        let (mut tx, now) = segment.begin_at_once(attachment, raw)?;
        if !tx.waiting().is_empty() || now >= tx.next_check() {
            return None;
        }
        let ticket = decide::acquire(&mut tx, attachment.slot, kernel_request, now).ok();
        let committed = tx.commit().is_ok();
        tx.end();
        let ticket = ticket.filter(|_| committed)?;
        slots::tally(segment.words(), attachment.slot, slot::GRANTED);
        Some(Grant::new(self, attachment.id, ticket))
    }

    /// Decides under the lock, and waits for it. Recovers a damaged state, and reclaims what dead processes held.
    fn decide(&self, request: &Request<'_>, deadline: &Deadline) -> Result<Grant<'_>, AcquireError> {
        let segment = &self.segment;
        let kernel_request = self.kernel_request(request)?;
        let attachment = segment.attachment_within(deadline)?;
        // A refusal is committed too, because timers may have acted.
        let (decided, _) = self.change(&attachment, deadline, |tx, now| {
            Ok((decide::acquire(tx, attachment.slot, &kernel_request, now), Wakeups::NONE))
        })?;
        let refusal = match decided {
            Err(refusal) => refusal,
            Ok(ticket) => {
                let grant = Grant::new(self, attachment.id, ticket);
                slots::tally(segment.words(), attachment.slot, slot::GRANTED);
                if !segment.waiting().is_empty() {
                    self.reclaim_dead_waiters(&attachment, deadline);
                }
                return Ok(grant);
            }
        };
        // Dead processes may hold permits or places in the queue. They are looked for at most once per bound, so
        // this recursion ends.
        if matches!(refusal.reason, Reason::Concurrency | Reason::Queued)
            && self.reclaim_dead_if_due(&attachment, deadline)?
        {
            return self.decide(request, deadline);
        }
        slots::tally(segment.words(), attachment.slot, slot::REFUSED);
        self.log_refusal(&refusal);
        Err(AcquireError::refused(refusal))
    }

    /// Reclaims the queue entries of dead processes. The fast paths are closed while the queue is not empty. If
    /// every call is granted, no other code looks for these entries.
    #[cold]
    fn reclaim_dead_waiters(&self, attachment: &Attachment, deadline: &Deadline) {
        // The call is granted. If this fails, the next call tries it again.
        let _ = self.segment.reclaim(attachment, deadline);
    }

    /// Reclaims what dead processes held, if the next check for them is due. Returns whether there were any.
    pub(super) fn reclaim_dead_if_due(
        &self,
        attachment: &Attachment,
        deadline: &Deadline,
    ) -> Result<bool, Box<Error>> {
        match self.segment.reclaim(attachment, deadline) {
            Err(error @ (Error::Replaced { .. } | Error::Liveness { .. })) => Err(Box::new(error)),
            // A process that could not be examined or reclaimed counts as alive.
            other => Ok(other.unwrap_or(false)),
        }
    }

    /// The refusal of a call whose time ended while other processes held the lock in turn. Its time for the next
    /// try is late enough that a dead lock holder would have been found by then.
    #[cold]
    pub(super) fn refuse_busy(&self) -> AcquireError {
        let segment = &self.segment;
        let checked_at = segment.present().map_or(Time::ZERO, |attachment| {
            slots::tally(segment.words(), attachment.slot, slot::REFUSED);
            segment.now(&attachment)
        });
        let again = Some(checked_at.plus(Nanos(super::nanos(SLEEP))));
        let refusal = shmlimit_kernel::Refusal {
            reason: Reason::Busy,
            rule: None,
            retry_at: again,
            ready_at: again,
            gate: checked_at,
            checked_at,
        };
        self.log_refusal(&refusal);
        AcquireError::refused(refusal)
    }
}
