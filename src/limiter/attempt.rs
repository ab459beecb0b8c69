//! One attempt to get a grant: short paths first, then the general one.
//!
//! | step | function | lock | ends the attempt if |
//! | --- | --- | --- | --- |
//! | 1 | [`LimiterSegment::repeat_refusal`] | no | the last refusal of this process still holds: a rule or a permit refuses |
//! | 2 | [`LimiterSegment::grant_by_rules`] | if free | the rules and permits admit the call, and nothing else matters |
//! | 3 | [`LimiterSegment::refuse_unlocked`] | no | a consistent look shows a refusal by any layer, and no timer is due |
//! | 4 | [`LimiterSegment::decide`] | waits | always: recovers the segment, reclaims from dead processes, follows a successor |
//!
//! A call that may wait takes step 2 alone, and enters the queue after it.
//!
//! Each step is a function that ends with the answer of the caller, or with a call of the next step. So no path makes
//! another path longer, and an answer, which is seventeen words long, is written once to its final place. A step that
//! cannot decide changes nothing, and the next step starts from the beginning.

use super::Limiter;
use super::grant::{AcquireError, Grant, Refusal};
use super::request::Request;
use super::segment_chain::LimiterSegment;
use super::waiter;
use shmlimit_kernel::{AcquireRequest, Nanos, Reason, Time, decide};
use shmlimit_segment::layout::slot;
use shmlimit_segment::lock::{Deadline, SLEEP};
use shmlimit_segment::sys::Clock;
use shmlimit_segment::{Attachment, Error, Wakeups, slots};

/// What an attempt does if the short paths do not decide.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Decides, so a call that is not admitted is refused.
    Decide,
    /// Waits in the queue.
    Wait,
}

impl Limiter {
    /// Asks once, in the steps of the module's table, or waits if that is what comes `next`.
    #[inline(always)]
    pub(super) fn attempt(&self, request: &Request<'_>, next: Next) -> Result<Grant<'_>, AcquireError> {
        // The clock is read first. Loads before the clock read must have completed when it starts, but later loads
        // may overlap it.
        let read = Clock::read();
        let link = self.newest();
        let mut by_unit = None;
        let Some((kernel_request, attachment)) =
            request.by_index(link.units(), &mut by_unit).zip(link.segment.present())
        else {
            return self.attempt_first(request, next);
        };
        let raw = link.segment.raw_from(&attachment, read);
        if next == Next::Decide && link.segment.expects_refusal(raw) {
            return self.attempt_refusal(request, link, kernel_request, attachment.slot, raw);
        }
        match link.grant_by_rules(kernel_request, &attachment, raw) {
            Some(grant) => Ok(grant),
            None => self.attempt_next(request, next, raw),
        }
    }

    /// The first attempt of a process, or one with an unknown unit.
    #[cold]
    #[inline(never)]
    fn attempt_first(&self, request: &Request<'_>, next: Next) -> Result<Grant<'_>, AcquireError> {
        match next {
            Next::Decide => self.attempt_locked(request),
            Next::Wait => self.wait(request),
        }
    }

    /// Step 1.
    #[inline(never)]
    fn attempt_refusal(
        &self,
        request: &Request<'_>,
        link: &LimiterSegment,
        kernel_request: &AcquireRequest,
        slot: usize,
        raw: u64,
    ) -> Result<Grant<'_>, AcquireError> {
        match link.repeat_refusal(kernel_request, slot, raw) {
            Some(refusal) => Err(AcquireError::Refused(refusal)),
            None => self.attempt_other(request, raw),
        }
    }

    /// Step 2 for a call to which the last refusal does not apply.
    #[inline(never)]
    fn attempt_other(&self, request: &Request<'_>, raw: u64) -> Result<Grant<'_>, AcquireError> {
        let link = self.newest();
        if let Some((kernel_request, attachment)) = request.by_unit(link.units()).zip(link.segment.present())
            && let Some(grant) = link.grant_by_rules(&kernel_request, &attachment, raw)
        {
            return Ok(grant);
        }
        self.attempt_next(request, Next::Decide, raw)
    }

    /// Steps 3 and 4, or the queue.
    #[inline(never)]
    fn attempt_next(&self, request: &Request<'_>, next: Next, raw: u64) -> Result<Grant<'_>, AcquireError> {
        if next == Next::Wait {
            return self.wait(request);
        }
        let link = self.newest();
        if let Some((kernel_request, attachment)) = request.by_unit(link.units()).zip(link.segment.present())
            && let Some(refusal) = link.refuse_unlocked(&kernel_request, &attachment, raw)
        {
            return Err(AcquireError::Refused(refusal));
        }
        self.attempt_locked(request)
    }

    /// Step 4. Waits for the lock for at most as long as the request may wait, and follows a segment that was
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

    /// Step 2 alone.
    #[inline(never)]
    pub(super) fn attempt_at_once(&self, request: &Request<'_>) -> Option<Grant<'_>> {
        let read = Clock::read();
        let link = self.newest();
        let kernel_request = request.by_unit(link.units())?;
        let attachment = link.segment.present()?;
        let raw = link.segment.raw_from(&attachment, read);
        link.grant_by_rules(&kernel_request, &attachment, raw)
    }
}

impl LimiterSegment {
    /// Grants a call that the rules and permits admit. Returns `None` and changes nothing if they do not, or if any
    /// other condition needs the general path.
    #[inline(always)]
    fn grant_by_rules(
        &self,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        raw: u64,
    ) -> Option<Grant<'_>> {
        let segment = &self.segment;
        // The general form would take the lock a second time.
        if segment.is_check_due(raw) {
            return None;
        }
        let (mut tx, now, checked) = segment.begin_at_once(attachment, raw)?;
        // Dropping the transaction undoes what the first rules were charged.
        let granted = decide::acquire_by_rules(&mut tx, attachment.slot, kernel_request, &checked, now)?;
        let committed = tx.commit().is_ok();
        tx.end();
        if !committed {
            return None;
        }
        slots::tally(segment.words(), attachment.slot, slot::GRANTED);
        Some(Grant::new(self, attachment.id, granted.ticket(kernel_request)))
    }

    /// Does the same as [`refuse_unlocked`](Self::refuse_unlocked) for rules and permits, while the last refusal of
    /// this process lasts. The end of that refusal is already known (`Segment::expects_refusal`).
    #[inline(always)]
    fn repeat_refusal(&self, kernel_request: &AcquireRequest, slot: usize, raw: u64) -> Option<Refusal> {
        let segment = &self.segment;
        let refusal =
            segment.look_at_once(raw, |view, now| decide::check_by_rules(view, kernel_request, now))??;
        if refusal.reason() == Reason::Concurrency && segment.is_reclaim_due(raw) {
            return None;
        }
        slots::tally(segment.words(), slot, slot::REFUSED);
        Some(Refusal::of(refusal.refusal()))
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

    /// Reclaims the queue entries of dead processes. The short path is closed while the queue is not empty. If
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
