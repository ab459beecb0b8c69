//! Waiting in the queue, independent of what sleeps: a thread, or the caller's executor.

use super::Limiter;
use super::grant::{AcquireError, Grant};
use super::request::Request;
use super::segment_chain::LimiterSegment;
use shmlimit_kernel::queue::{self, NewWaiter, QueueOutcome, QueueTicket};
use shmlimit_kernel::{AcquireRequest, Reason, Time};
use shmlimit_segment::Error;
use shmlimit_segment::layout::{CLOCK_OFFSET, checksum, slot};
use shmlimit_segment::lock::Deadline;
use shmlimit_segment::{Alarm, Attachment, Wakeups, slots};
use std::time::{Duration, Instant};

/// A call that waits in the queue. Dropping it leaves the queue at once.
pub(super) struct Waiter<'l, 'r> {
    limiter: &'l Limiter,
    request: &'r Request<'r>,
    /// The deadline by the machine's clock, which includes suspend; `None` if the call waits without a limit.
    deadline: Option<u64>,
    can_be_woken: bool,
    place: Option<Place<'l>>,
    /// On a test clock: since when, in real time, the call has waited for something without a known end.
    idle_since: Option<Instant>,
}

/// An entry in the queue of one segment, made by one attachment.
pub(super) struct Place<'l> {
    pub(super) link: &'l LimiterSegment,
    pub(super) attachment_id: u64,
    pub(super) wait: QueueTicket,
}

/// The next step of a call.
pub(super) enum Step<'l> {
    /// The call may be made.
    Done(Grant<'l>),
    /// The call must wait: sleep for `limit`, or until the wake word of `place` in `link` differs from
    /// `wake_value`. If the awaited event has a known time, `known_at` is that time on the clock of the segment.
    Sleep { link: &'l LimiterSegment, place: usize, wake_value: u32, limit: Duration, known_at: Option<u64> },
    /// The lock of the segment was not free: step again.
    Again,
}

/// The delay before the next step if the lock was not free.
pub(super) const LOCK_RETRY_DELAY: Duration = Duration::from_millis(1);

/// On a test clock: how long a call with a deadline waits, in real time, for something without a known end. Other
/// threads and tasks need a moment to provide it.
const REAL_TIME_LIMIT: Duration = Duration::from_millis(100);
/// On a test clock: how often such a call checks again. Its next check time is on a clock that may stand still.
const REAL_LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long a call waits for the lock if `left` remains until its deadline. Even a call without any time left waits
/// a little for a busy holder. It then usually gets its answer and leaves the queue.
pub(super) fn at_least_grace(left: Duration) -> Duration {
    left.max(Duration::from_nanos(queue::GRACE.0))
}

impl<'l, 'r> Waiter<'l, 'r> {
    /// Creates a call that is not in the queue yet.
    pub(super) fn new(
        limiter: &'l Limiter,
        request: &'r Request<'r>,
        can_be_woken: bool,
    ) -> Result<Waiter<'l, 'r>, AcquireError> {
        let link = limiter.newest();
        let segment = &link.segment;
        let raw = segment.raw_now(&segment.attachment()?);
        let time_left = request.time_left(|| segment.clock_source().system_time());
        let deadline = time_left.map(|time_left| raw.saturating_add(super::nanos(time_left)));
        Ok(Waiter { limiter, request, deadline, can_be_woken, place: None, idle_since: None })
    }

    /// Continues a call that began to wait before and cannot be woken.
    pub(super) fn resumed(
        limiter: &'l Limiter,
        request: &'r Request<'r>,
        deadline: Option<u64>,
        place: Option<Place<'l>>,
        idle_since: Option<Instant>,
    ) -> Waiter<'l, 'r> {
        Waiter { limiter, request, deadline, can_be_woken: false, place, idle_since }
    }

    /// The deadline by the machine's clock.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// On a test clock: since when, in real time, it has waited for something without a known end.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    /// Takes the place in the queue out of this call. Another object then continues to wait there.
    pub(super) fn take_place(&mut self) -> Option<Place<'l>> {
        self.place.take()
    }

    /// Enters the queue, or checks whether it is this call's turn. On a test clock the call never sleeps for a
    /// known time.
    pub(super) fn step(&mut self) -> Result<Step<'l>, AcquireError> {
        match self.limiter.newest().segment.clock_source().alarm() {
            None => self.look_once(),
            Some(alarm) => self.step_with(alarm),
        }
    }

    /// Does the same as [`step`](Self::step) on a test clock. It advances the clock to each known time instead of
    /// sleeping.
    #[cold]
    fn step_with(&mut self, mut alarm: Alarm) -> Result<Step<'l>, AcquireError> {
        loop {
            let step = self.look_once()?;
            let Step::Sleep { link, place, wake_value, limit, known_at } = step else { return Ok(step) };
            let target = match (known_at, self.deadline) {
                (Some(known), _) => known,
                (None, Some(deadline)) if self.is_out_of_time() => deadline,
                (None, _) => {
                    let limit = limit.min(REAL_LOOK_INTERVAL);
                    return Ok(Step::Sleep { link, place, wake_value, limit, known_at });
                }
            };
            alarm.wait_until(target, || link.segment.read_wake_word(place) != wake_value);
        }
    }

    /// Whether the call has waited long enough, in real time, for something without a known end.
    fn is_out_of_time(&mut self) -> bool {
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= REAL_TIME_LIMIT
    }

    /// Checks once whether it is this call's turn, in the newest segment.
    fn look_once(&mut self) -> Result<Step<'l>, AcquireError> {
        let limiter = self.limiter;
        for _ in 0..super::MAX_SUCCESSORS {
            let link = limiter.newest();
            match self.step_in(link) {
                Err(AcquireError::Failed(error)) if matches!(*error, Error::Replaced { .. }) => {
                    // The old segment no longer exists, and neither does the place in its queue.
                    self.place = None;
                    limiter.follow(|link| link.segment.confirm(&link.segment.attachment()?.clock))?;
                }
                stepped => return self.retry_while_busy(stepped),
            }
        }
        let stepped = self.step_in(limiter.newest());
        self.retry_while_busy(stepped)
    }

    /// Converts a busy lock into a retry while there is time, and into a refusal after that.
    fn retry_while_busy(&self, stepped: Result<Step<'l>, AcquireError>) -> Result<Step<'l>, AcquireError> {
        match stepped {
            Err(AcquireError::Failed(error)) if matches!(*error, Error::Busy { stopped: false, .. }) => {
                let link = self.limiter.newest();
                let is_over = |attachment: Attachment| {
                    self.deadline.is_some_and(|at| link.segment.raw_now(&attachment) >= at)
                };
                if link.segment.present().is_none_or(is_over) {
                    Err(link.refuse_busy())
                } else {
                    Ok(Step::Again)
                }
            }
            stepped => stepped,
        }
    }

    fn step_in(&mut self, link: &'l LimiterSegment) -> Result<Step<'l>, AcquireError> {
        let segment = &link.segment;
        // Converted each time, because a successor may have other units.
        let kernel_request = link.kernel_request(self.request)?;
        let deadline = self.lock_deadline(link, segment.present().as_ref());
        let attachment = segment.attachment_within(&deadline)?;
        // A place is valid only in the segment and for the attachment that made it: after a fork it is the
        // parent's, and a new segment has a queue of its own.
        if self
            .place
            .as_ref()
            .is_some_and(|at| !std::ptr::eq(at.link, link) || at.attachment_id != attachment.id)
        {
            self.place = None;
        }
        loop {
            let (outcome, wake_value) = self.look(link, &kernel_request, &attachment, &deadline)?;
            match outcome {
                QueueOutcome::Granted(ticket) => {
                    self.place = None;
                    slots::tally(segment.words(), attachment.slot, slot::GRANTED);
                    return Ok(Step::Done(Grant::new(link, attachment.id, ticket)));
                }
                QueueOutcome::Refused(refusal) => {
                    self.place = None;
                    // The queue may be full of dead processes' calls.
                    if refusal.reason == Reason::QueueFull
                        && link.reclaim_dead_if_due(&attachment, &deadline)?
                    {
                        continue;
                    }
                    slots::tally(segment.words(), attachment.slot, slot::REFUSED);
                    link.log_refusal(&refusal);
                    return Err(AcquireError::refused(refusal));
                }
                // The state was lost, or another process removed the entry because its time was over. A new entry
                // handles both cases.
                QueueOutcome::Gone => self.place = None,
                QueueOutcome::Waiting(wait) => {
                    self.place = Some(Place { link, attachment_id: attachment.id, wait });
                    let looked_at = segment.now(&attachment);
                    if wait.suspects_dead && link.reclaim_dead_if_due(&attachment, &deadline)? {
                        continue;
                    }
                    let limit = Duration::from_nanos(wait.until.since(looked_at).0);
                    let known_at = wait.timed.then(|| segment.raw_at(wait.until));
                    return Ok(Step::Sleep { link, place: wait.place, wake_value, limit, known_at });
                }
            }
        }
    }

    /// Checks in one transaction, which also reads the wake word.
    fn look(
        &self,
        link: &'l LimiterSegment,
        kernel_request: &AcquireRequest,
        attachment: &Attachment,
        deadline: &Deadline,
    ) -> Result<(QueueOutcome, u32), AcquireError> {
        let segment = &link.segment;
        let waits = self.place.as_ref().map(|place| place.wait);
        let (looked, _) = link.change(attachment, deadline, |tx, now| {
            let (outcome, wake) = match waits {
                Some(wait) => {
                    slots::tally(segment.words(), attachment.slot, slot::LOOKED);
                    queue::look(tx, attachment.id, &wait, now)
                }
                None => {
                    // The offset can be negative: if the wall clock was set back, the limiter's clock can be
                    // behind the machine's after a reboot.
                    let offset = tx.load(CLOCK_OFFSET).cast_signed();
                    let deadline = self.deadline.map_or(u64::MAX, |raw| raw.saturating_add_signed(offset));
                    let newcomer = NewWaiter {
                        owner: attachment.id,
                        group: Group::key(self.limiter.shared.group, attachment.id),
                        request: *kernel_request,
                        deadline: Time(deadline),
                        can_be_woken: self.can_be_woken,
                    };
                    queue::enter(tx, &newcomer, now)
                }
            };
            let wake_value = match outcome {
                QueueOutcome::Waiting(wait) => segment.read_wake_word(wait.place),
                _ => 0,
            };
            Ok(((outcome, wake_value), Wakeups::first(wake)))
        })?;
        Ok(looked)
    }

    /// How long one step may wait for the lock: until the call's deadline, but not longer than the general bound.
    fn lock_deadline(&self, link: &LimiterSegment, attachment: Option<&Attachment>) -> Deadline {
        let longest = self.limiter.shared.bounds.lock;
        let left = |(at, attachment): (u64, &Attachment)| at.saturating_sub(link.segment.raw_now(attachment));
        let left = self.deadline.zip(attachment).map(left);
        Deadline::within(left.map_or(longest, |left| at_least_grace(Duration::from_nanos(left)).min(longest)))
    }
}

impl Drop for Waiter<'_, '_> {
    fn drop(&mut self) {
        let Some(Place { link, attachment_id, wait }) = self.place.take() else { return };
        let segment = &link.segment;
        // After a fork the place belongs to the parent.
        let Some(attachment) = segment.present().filter(|attachment| attachment.id == attachment_id) else {
            return;
        };
        let deadline = self.lock_deadline(link, Some(&attachment));
        // A call that cannot leave now is passed over, and reclaimed when its deadline is over or this process
        // exits.
        let _ = link.change(&attachment, &deadline, |tx, now| {
            Ok(((), Wakeups::first(queue::leave(tx, attachment_id, &wait, now))))
        });
    }
}

/// Several processes that take turns together, as if they were one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(u64);

/// The first word in the checksum of a named group's key. It differs from [`PROCESS`], which keeps both kinds of keys
/// apart.
const NAMED: u64 = 1;
/// The first word in the checksum of a process's key.
const PROCESS: u64 = 2;

impl Group {
    /// The group with this name.
    pub(super) fn named(name: &str) -> Group {
        Group(checksum([NAMED].into_iter().chain(name.bytes().map(u64::from))))
    }

    /// The group that the environment names.
    pub(super) fn from_environment() -> Option<Group> {
        let name = std::env::var_os("SHMLIMIT_GROUP").filter(|name| !name.is_empty())?;
        Some(Group::named(&name.to_string_lossy()))
    }

    /// The key of the group of an attachment: that of its named group, or its own id.
    pub(super) fn key(group: Option<Group>, attachment_id: u64) -> u64 {
        group.map_or_else(|| checksum([PROCESS, attachment_id]), |group| group.0)
    }
}
