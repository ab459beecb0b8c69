//! The segments of a handle in order: the one it was opened with, and its replacements.
//!
//! A replaced segment stays mapped until the handle is dropped, because another thread, a grant or a waiting call
//! may still refer to it. Its file is released (`successor/release_file.rs` of the segment), so only an address
//! range remains. Finding the newest segment takes constant time.

use super::Shared;
use super::events;
use super::request::{Request, unknown_unit};
use shmlimit_kernel::log_context::LogContext;
use shmlimit_kernel::log_context::RecentEvents;
use shmlimit_kernel::policy::Name;
use shmlimit_kernel::{AcquireRequest, Ticket, Time, decide};
use shmlimit_segment::lock::Deadline;
use shmlimit_segment::paths::LimiterName;
use shmlimit_segment::{Attachment, Error, Segment, Tx, Wakeups};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, Weak};

/// One segment of a limiter.
pub struct LimiterSegment {
    pub(super) segment: Segment,
    name: LimiterName,
    units: Vec<Name>,
    /// The number of segments before it.
    pub(super) number: usize,
    /// The handle that owns this segment, for grants that outlive the borrow of the handle.
    pub(super) shared: Weak<Shared>,
}

impl fmt::Debug for LimiterSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.segment.path()).finish()
    }
}

impl LimiterSegment {
    pub(super) fn new(name: LimiterName, segment: Segment) -> Result<LimiterSegment, Error> {
        let units = segment.policy()?.units().collect();
        Ok(LimiterSegment { segment, name, units, number: 0, shared: Weak::new() })
    }

    /// The limiter's name.
    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The units, by index.
    #[inline(always)]
    pub(super) fn units(&self) -> &[Name] {
        &self.units
    }

    /// The index of a unit.
    pub(super) fn unit(&self, unit: &str) -> Result<usize, Box<Error>> {
        let index = self.units.iter().position(|known| known.is(unit));
        index.ok_or_else(|| unknown_unit(self.name(), unit, &self.units))
    }

    /// The cost by unit index, in the units of this limiter.
    pub(super) fn kernel_request(&self, request: &Request<'_>) -> Result<AcquireRequest, Box<Error>> {
        request.kernel_request(self.name.as_str(), &self.units)
    }

    /// Returns the permit of a grant, unless the grant is from before a fork.
    #[inline]
    pub(super) fn release(&self, attachment_id: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(attachment_id) {
            return Ok(());
        }
        let segment = &self.segment;
        let attachment = segment.attachment()?;
        if let Some(mut tx) = segment.begin_untimed(&attachment)
            && decide::release_at_once(&mut tx, attachment.slot, ticket)
        {
            let committed = tx.commit().is_ok();
            tx.end();
            if committed {
                return Ok(());
            }
        }
        self.release_slowly(&attachment, ticket)
    }

    /// [`release`](Self::release) for the other cases: calls wait, or the lock was not free.
    #[cold]
    #[inline(never)]
    fn release_slowly(&self, attachment: &Attachment, ticket: &Ticket) -> Result<(), Box<Error>> {
        let segment = &self.segment;
        let deadline = segment.deadline();
        let released = segment.transact_untimed(attachment, &deadline, |tx| {
            decide::release(tx, attachment.slot, ticket);
            let wake = segment.after_change(tx, attachment);
            segment.commit(tx).map(|()| wake)
        });
        match released {
            Ok(Ok(wake)) => segment.wake_within(attachment, wake, &deadline),
            Ok(Err(error)) | Err(error) => return self.accept_late_return(ticket, error),
        }
        Ok(())
    }

    /// Takes back a grant as if it had not been made, unless it is from before a fork.
    pub(super) fn cancel(&self, attachment_id: u64, ticket: &Ticket) -> Result<(), Box<Error>> {
        if !self.segment.is_present(attachment_id) {
            return Ok(());
        }
        let attachment = self.segment.attachment()?;
        let cancelled = self.change(&attachment, &self.segment.deadline(), |tx, now| {
            decide::cancel(tx, attachment.slot, ticket, now);
            Ok(((), Wakeups::first(self.segment.after_change(tx, &attachment))))
        });
        cancelled.map(drop).or_else(|error| self.accept_late_return(ticket, error))
    }

    /// Changes the state in one transaction ([`Segment::change`]), and logs the events that this caused.
    pub(super) fn change<T>(
        &self,
        attachment: &Attachment,
        deadline: &Deadline,
        work: impl Fn(&mut Tx<'_>, Time) -> Result<(T, Wakeups), Box<Error>>,
    ) -> Result<(T, RecentEvents), Box<Error>> {
        let changed = self.segment.change(attachment, deadline, work)?;
        events::log_recent(self.name(), &changed.1);
        Ok(changed)
    }

    /// Logs a refusal for subscribers that want all of them. It does not log the repetition of a refusal that still
    /// lasts.
    #[inline(always)]
    pub(super) fn log_refusal(&self, refusal: &shmlimit_kernel::Refusal) {
        if events::wants_refusals() {
            self.write_refusal_log(refusal);
        }
    }

    #[cold]
    fn write_refusal_log(&self, refusal: &shmlimit_kernel::Refusal) {
        if let Ok(log_context) = self.segment.look(|view| LogContext::of(view, refusal.checked_at)) {
            events::refused(self.name(), refusal, &log_context);
        }
    }

    /// The result of returning a permit. If the segment was replaced meanwhile, that is a success: the successor
    /// counts the permit until this process reports that it is back.
    #[cold]
    fn accept_late_return(&self, ticket: &Ticket, error: Box<Error>) -> Result<(), Box<Error>> {
        if !matches!(*error, Error::Replaced { .. }) {
            return Err(error);
        }
        self.segment.returned_too_late(ticket.permit.total);
        Ok(())
    }
}

/// Number of blocks of links. Each block holds twice as many links as the previous one, so that no link ever moves.
const BLOCKS: usize = usize::BITS as usize;

/// How many of the last links to release when a link gets a successor.
const AGAIN: usize = 4;

/// All links of a handle.
#[derive(Debug)]
pub(super) struct SegmentChain {
    pub(super) first: LimiterSegment,
    /// The index of the newest link; the first has index zero.
    newest: AtomicUsize,
    later: [OnceLock<Box<[OnceLock<LimiterSegment>]>>; BLOCKS],
}

impl SegmentChain {
    pub(super) fn new(first: LimiterSegment) -> SegmentChain {
        SegmentChain { first, newest: AtomicUsize::new(0), later: [const { OnceLock::new() }; BLOCKS] }
    }

    /// The newest link.
    #[inline]
    pub(super) fn newest(&self) -> &LimiterSegment {
        match self.newest.load(Ordering::Acquire) {
            0 => &self.first,
            number => self.at(number).unwrap_or(&self.first),
        }
    }

    /// The link with that index.
    pub(super) fn at(&self, number: usize) -> Option<&LimiterSegment> {
        if number == 0 {
            return Some(&self.first);
        }
        let block = number.ilog2() as usize;
        self.later.get(block)?.get()?.get(number - (1 << block))?.get()
    }

    /// Adds the successor of a link, unless another thread was faster.
    pub(super) fn succeed(&self, old: &LimiterSegment, mut successor: LimiterSegment) {
        let number = old.number + 1;
        (successor.number, successor.shared) = (number, Weak::clone(&old.shared));
        let block = number.ilog2() as usize;
        let links = self.later[block].get_or_init(|| (0..1 << block).map(|_| OnceLock::new()).collect());
        // The segment of the slower thread is dropped, which detaches it.
        if links[number - (1 << block)].set(successor).is_ok() {
            self.newest.fetch_max(number, Ordering::AcqRel);
            old.segment.has_successor();
            // Includes earlier segments whose lock was not free in time.
            for number in (0..number).rev().take(AGAIN) {
                if let Some(link) = self.at(number) {
                    link.segment.release_file();
                }
            }
        }
    }
}
